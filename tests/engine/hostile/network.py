# ruff: noqa
# Snippets that try to talk to anything outside. One cell each; `escaped` is defined by the test, TARGETS says what is there.

# %% tcp_to_a_server_on_the_host
import socket

socket.create_connection(TARGETS["tcp"], timeout=1).close()
escaped("connected to the host's loopback")

# %% udp_to_a_server_on_the_host
import socket

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"out", tuple(TARGETS["udp"]))

# %% tcp_over_ipv6_loopback
import socket

socket.create_connection(("::1", TARGETS["tcp"][1]), timeout=1).close()
escaped("connected to the host's loopback")

# %% tcp_to_the_internet
import socket

socket.create_connection(("1.1.1.1", 80), timeout=1).close()
escaped("the internet")

# %% a_web_page
import urllib.request

urllib.request.urlopen("http://93.184.216.34/", timeout=1)
escaped("the internet")

# %% a_name_server
import socket

socket.getaddrinfo("example.org", 80)
escaped("name resolution")

# %% cloud_metadata
import urllib.request

urllib.request.urlopen("http://169.254.169.254/latest/meta-data/", timeout=1)
escaped("instance credentials")

# %% abstract_socket_of_the_host
import socket

s = socket.socket(socket.AF_UNIX)
s.settimeout(1)
s.connect("\0" + TARGETS["abstract"])
escaped("an abstract socket")

# %% path_socket_of_the_host
import socket

s = socket.socket(socket.AF_UNIX)
s.settimeout(1)
s.connect(TARGETS["path"])
escaped("a socket in the file system")

# %% datagram_to_a_path_socket_of_the_host
import socket

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.sendto(b"out", TARGETS["datagram"])
escaped("a datagram socket in the file system")

# %% datagram_from_half_a_socket_pair
import socket

a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.sendmsg([b"out"], [], 0, TARGETS["datagram"])
escaped("a datagram socket in the file system")

# %% docker_and_the_system_bus
import socket

for path in (
    "/var/run/docker.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/containerd/containerd.sock",
):
    s = socket.socket(socket.AF_UNIX)
    if s.connect_ex(path) == 0:
        escaped(path)

# %% raw_packets
import socket

socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
escaped("a raw socket")

# %% link_layer_packets
import socket

socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
escaped("a packet socket")

# %% the_hypervisor
import socket

socket.socket(socket.AF_VSOCK)
escaped("a vsock socket")

# %% crypto_sockets
import socket

socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
escaped("an AF_ALG socket")

# %% a_new_interface
import socket, struct

s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.send(struct.pack("=IHHIIBxHiII", 32, 16, 0x605, 1, 0, 0, 0, 0, 1, 1))  # RTM_NEWLINK
if struct.unpack_from("=i", s.recv(4096), 16)[0] == 0:
    escaped("made a network interface")

# %% inherited_sockets_turned_around
import os, socket

for n in range(3, 256):
    try:
        s = socket.socket(fileno=os.dup(n))
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    for where in (tuple(TARGETS["tcp"]), TARGETS["path"], "\0" + TARGETS["abstract"]):
        try:
            s.connect(where)
            escaped(f"descriptor {n} connected to {where}")
        except Exception:
            pass
# ends: any

# %% fast_open_instead_of_connect
import socket

s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
s.settimeout(1)
s.sendto(b"x", 0x20000000, tuple(TARGETS["tcp"]))  # MSG_FASTOPEN
s.recv(1)
escaped("connected without connect()")
