# ruff: noqa
# Snippets that try to gain rights.

# %% becoming_root
import os

for change in (os.setuid, os.setgid, lambda n: os.setresuid(n, n, n), lambda n: os.setgroups([n])):
    try:
        change(0)
        escaped("root")
    except OSError:
        pass

# %% new_namespaces
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
    if libc.unshare(flag) == 0:
        escaped(hex(flag))

# %% new_namespaces_by_clone
import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
pid = libc.syscall(number, 0x10000000 | 17, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
if pid > 0:
    escaped("a user namespace")

# %% new_namespaces_by_clone3
import ctypes, os, struct

arguments = ctypes.create_string_buffer(struct.pack("=11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))
pid = ctypes.CDLL(None).syscall(435, arguments, 88)
if pid == 0:
    os._exit(0)
if pid > 0:
    escaped("a user namespace")

# %% joining_namespaces
import ctypes, os

libc = ctypes.CDLL(None)
for pid in filter(str.isdigit, os.listdir("/proc")):
    for kind in ("user", "mnt", "net", "pid"):
        try:
            if libc.setns(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY), 0) == 0:
                escaped(kind)
        except OSError:
            pass

# %% mounting
import ctypes

libc = ctypes.CDLL(None)
for what in (
    (b"tmpfs", b"/tmp", b"tmpfs", 0, None),
    (b"/", b"/scratch", None, 4096, None),
    (b"proc", b"/proc", b"proc", 0, None),
    (None, b"/", None, 32 | 4096, None),
    (b"cgroup2", b"/tmp", b"cgroup2", 0, None),
):
    if libc.mount(*what) == 0:
        escaped(what)

# %% mounting_the_new_way
import ctypes

libc = ctypes.CDLL(None)
for number in (428, 429, 430, 432, 433, 442):  # open_tree, move_mount, fsopen, fsmount, fspick, mount_setattr
    if libc.syscall(number, -100, b"/", 1, 0, 0) >= 0:
        escaped(number)

# %% unmounting
import ctypes

libc = ctypes.CDLL(None)
for path in (b"/proc", b"/tmp", b"/scratch", b"/dev/shm", b"/dev/null", b"/"):
    if libc.umount2(path, 2) == 0:
        escaped(path)

# %% changing_the_root
import ctypes, os

try:
    os.chroot(".")
    escaped("chroot")
except OSError:
    pass
if ctypes.CDLL(None).syscall({"x86_64": 155, "aarch64": 41}[os.uname().machine], b".", b".") == 0:
    escaped("pivot_root")

# %% capabilities
import ctypes

header = (ctypes.c_uint32 * 2)(0x20080522, 0)
everything = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
if ctypes.CDLL(None).capset(header, everything) == 0:
    escaped("capabilities")
print([line for line in open("/proc/self/status") if line.startswith(("Cap", "NoNew", "Seccomp"))])

# %% programs_that_run_as_root
import subprocess

for command in (
    ["su", "-c", "id -u"],
    ["mount", "-t", "tmpfs", "x", "/tmp"],
    ["passwd", "-S"],
    ["sudo", "-n", "id", "-u"],
):
    try:
        done = subprocess.run(command, capture_output=True, timeout=5, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            escaped((command, done.stdout))
    except OSError:
        pass

# %% a_set_uid_program_of_its_own
import os, shutil, subprocess

shutil.copy("/bin/sh", "sh")
os.chmod("sh", 0o6755)
if subprocess.run(["./sh", "-p", "-c", "id -u"], capture_output=True, text=True).stdout.strip() == "0":
    escaped("root")

# %% rarely_used_system_calls
import ctypes, os

libc = ctypes.CDLL(None)
calls = {
    "x86_64": dict(
        bpf=321,
        perf_event_open=298,
        userfaultfd=323,
        io_uring_setup=425,
        add_key=248,
        keyctl=250,
        kexec_load=246,
        init_module=175,
        swapon=167,
        acct=163,
        syslog=103,
        fanotify_init=300,
        memfd_secret=447,
        modify_ldt=154,
        shmget=29,
        msgget=68,
        semget=64,
    ),
    "aarch64": dict(bpf=280, perf_event_open=241, userfaultfd=282, io_uring_setup=425, add_key=217, keyctl=219),
}[os.uname().machine]
for name, number in calls.items():
    if libc.syscall(number, 0, 0, 0, 0, 0) >= 0:
        escaped(name)

# %% the_machine
import ctypes, os, time

libc = ctypes.CDLL(None)
if libc.sethostname(b"mine", 4) == 0:
    escaped("host name")
for change in (
    lambda: time.clock_settime(time.CLOCK_REALTIME, 0),
    lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
    lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
):
    try:
        change()
        escaped("clock or priority")
    except OSError:
        pass

# %% thirty_two_bit_system_calls
import ctypes, mmap, os

page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # getpid by int 0x80, whose numbers the filter does not know
got = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
escaped(got)
# ends: dead
# only: x86_64

# %% x32_system_calls
import ctypes

escaped(ctypes.CDLL(None).syscall(0x40000000 | 39))
# ends: dead
# only: x86_64

# %% raising_its_limits
import resource

for kind in (
    resource.RLIMIT_NPROC,
    resource.RLIMIT_DATA,
    resource.RLIMIT_FSIZE,
    resource.RLIMIT_CPU,
    resource.RLIMIT_NOFILE,
):
    try:
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        escaped(kind)
    except (ValueError, OSError):
        pass

# %% locking_a_thread_out_of_the_filter
import threading, ctypes

found = []
thread = threading.Thread(target=lambda: found.append(ctypes.CDLL(None).unshare(0x10000000)))
thread.start()
thread.join()
if found == [0]:
    escaped("a thread without the filter")

# %% through_a_thread_of_the_kernel
import ctypes, time
from ipykernel.kernelapp import IPKernelApp

found = []
app = IPKernelApp.instance()
app.iopub_thread.schedule(lambda: found.append(ctypes.CDLL(None).unshare(0x10000000)))
app.control_thread.io_loop.add_callback(lambda: found.append(ctypes.CDLL(None).unshare(0x10000000)))
time.sleep(0.3)
if 0 in found:
    escaped("a thread without the filter")
print(found)

# %% keystrokes_into_a_terminal
import fcntl, os, termios

for n in (0, 1, 2):
    try:
        fcntl.ioctl(n, termios.TIOCSTI, b"x")
        escaped("typed")
    except OSError:
        pass
try:
    os.open("/dev/tty", os.O_RDWR)
    escaped("the terminal")
except OSError:
    pass
