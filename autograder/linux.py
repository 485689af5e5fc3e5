"""The kernel calls that Python's os module has no name for (before 3.12, or at all)."""

import ctypes
import os
import platform
import socket
import struct

try:
    import fcntl
except ImportError:  # Windows, where this is imported and never used
    fcntl = None

libc = ctypes.CDLL(None, use_errno=True) if fcntl else None

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000  # clone(2)
NOSUID, NODEV, NOEXEC, BIND, REC, PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18  # mount(2)
PDEATHSIG, SET_DUMPABLE, CAPBSET_DROP, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38  # prctl(2)
SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # netdevice(7)
LAST_CAPABILITY = 63  # room for later kernels; dropping one that does not exist is an error that we ignore

# seccomp(2) differs by machine; the Landlock calls are newer than the common numbering and do not.
SECCOMP = {"x86_64": 317, "aarch64": 277}
MACHINE = platform.machine()

COLLAPSE, HUGE_PAGE = 25, 1 << 21  # madvise(2), since Linux 6.1


def checked(result, what):
    """The result of a libc call, or OSError with what was tried."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number, *arguments):
    """The result of a call by number, with ints passed as longs."""
    longs = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked(libc.syscall(ctypes.c_long(number), *longs), f"system call {number}")


def unshare(flags):
    """Move this process (for NEWPID: its children) into new namespaces."""
    checked(libc.unshare(flags), f"unshare({flags:#x})")


def setns(descriptor, flags):
    """Move this process (for NEWPID: its children) into the namespace behind the descriptor."""
    checked(libc.setns(descriptor, flags), "setns")


def mount(source, target, kind=None, flags=0, options=None):
    """mount(2), with None where the kernel takes NULL."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    source, target, kind, options = encoded
    checked(libc.mount(source, target, kind, ctypes.c_ulong(flags), options), f"mount on {target!r}")


def switch_loopback_on():
    """In a new network namespace nothing reaches even oneself before."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def prctl(option, value):
    """prctl(2) with one argument."""
    checked(libc.prctl(option, *(ctypes.c_ulong(x) for x in (value, 0, 0, 0))), f"prctl({option})")


def drop_capabilities():
    """Give up every capability of this thread, for itself and for whatever it starts."""
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(CAPBSET_DROP, *(ctypes.c_ulong(x) for x in (capability, 0, 0, 0)))
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    checked(libc.capset(header, none), "capset")


def become(uid):
    """Change from root to the user and group of that number, for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    prctl(SET_DUMPABLE, 1)  # else /proc/self belongs to root and the process cannot read its own descriptors


def huge_pages():
    """Move the private memory of this process into huge pages, as far as this kernel can."""
    with open("/proc/self/maps") as file:
        mappings = [line.split() for line in file]
    for addresses, access, _, _, inode, *name in mappings:
        if access == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
            start, end = (int(address, 16) for address in addresses.split("-"))
            start = -(-start // HUGE_PAGE) * HUGE_PAGE
            if start + HUGE_PAGE <= end:  # what cannot be moved stays
                libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t((end - start) // HUGE_PAGE * HUGE_PAGE), COLLAPSE)
