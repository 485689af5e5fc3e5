"""A system-call filter: what no graded notebook needs and an attacker does.

The filter is a list of what is refused, because PyTorch's own use of the kernel changes from release to release. It
stands behind namespaces and Landlock, and in front of what these do not cover.

Source: docs.kernel.org/userspace-api/seccomp_filter.html; numbers from asm/unistd_64.h and asm-generic/unistd.h.
"""

import ctypes
import errno
import struct

from autograder import linux

SET_MODE_FILTER, SPEC_ALLOW = 1, 1 << 2  # without SPEC_ALLOW older kernels slow the whole process down
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

# Refused everywhere: (name, x86_64, aarch64), None where the machine has no such call.
REFUSED = (
    # look into or steer another process
    ("ptrace", 101, 117), ("process_vm_readv", 310, 270), ("process_vm_writev", 311, 271), ("pidfd_getfd", 438, 438),
    ("kcmp", 312, 272), ("process_madvise", 440, 440), ("move_pages", 279, 239), ("migrate_pages", 256, 238),
    # namespaces and mounts
    ("mount", 165, 40), ("umount2", 166, 39), ("pivot_root", 155, 41), ("chroot", 161, 51), ("unshare", 272, 97),
    ("setns", 308, 268), ("open_tree", 428, 428), ("move_mount", 429, 429), ("fsopen", 430, 430),
    ("fsconfig", 431, 431), ("fsmount", 432, 432), ("fspick", 433, 433), ("mount_setattr", 442, 442),
    ("open_by_handle_at", 304, 265), ("name_to_handle_at", 303, 264), ("quotactl", 179, 60), ("quotactl_fd", 443, 443),
    ("fanotify_init", 300, 262),
    # large parts of the kernel with a history of holes
    ("bpf", 321, 280), ("perf_event_open", 298, 241), ("userfaultfd", 323, 282), ("io_uring_setup", 425, 425),
    ("io_uring_enter", 426, 426), ("io_uring_register", 427, 427), ("add_key", 248, 217), ("request_key", 249, 218),
    ("keyctl", 250, 219), ("modify_ldt", 154, None), ("personality", 135, 92), ("lookup_dcookie", 212, 18),
    # the machine
    ("kexec_load", 246, 104), ("kexec_file_load", 320, 294), ("init_module", 175, 105), ("finit_module", 313, 273),
    ("delete_module", 176, 106), ("reboot", 169, 142), ("swapon", 167, 224), ("swapoff", 168, 225), ("acct", 163, 89),
    ("syslog", 103, 116), ("settimeofday", 164, 170), ("clock_settime", 227, 112), ("adjtimex", 159, 171),
    ("clock_adjtime", 305, 266), ("iopl", 172, None), ("ioperm", 173, None), ("vhangup", 153, 58),
    ("sethostname", 170, 161), ("setdomainname", 171, 162),
    # memory that belongs to no process and no quota, so that no watchdog sees it
    ("memfd_secret", 447, 447), ("shmget", 29, 194), ("shmat", 30, 196), ("semget", 64, 190), ("msgget", 68, 186),
    ("mq_open", 240, 180),
)  # fmt: skip
MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435
SOCKETS = {"x86_64": (41, 53), "aarch64": (198, 199)}  # socket, socketpair
CONNECT = {"x86_64": 42, "aarch64": 203}
NEW_NAMESPACES = 0x7E020000

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, SOCK_DGRAM, SOCK_TYPE = 1, 2, 10, 16, 2, 0xF

LOAD, AND, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCH, FIRST, SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; arguments by their low half
ALLOW, KILL = 0x7FFF0000, 0x80000000


def refuse(error):
    """The instruction that makes the call fail with that error."""
    return (RETURN, 0, 0, 0x00050000 | error)


def when(number, block):
    """The block, run only for that system call."""
    return [(EQUAL, 0, len(block), number), *block]


def program(machine, network, memory_files):
    """The filter, a list of (code, jump if true, jump if false, value)."""
    column = {"x86_64": 1, "aarch64": 2}[machine]
    code = [(LOAD, 0, 0, ARCH), (EQUAL, 1, 0, AUDIT_ARCH[machine]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER)]
    if machine == "x86_64":
        code += [(AT_LEAST, 0, 1, X32_BIT), (RETURN, 0, 0, KILL)]
    for row in REFUSED:
        if row[column] is not None:
            code += when(row[column], [refuse(errno.EPERM)])
    if not memory_files:
        code += when(MEMFD_CREATE[machine], [refuse(errno.EPERM)])
    code += when(CLONE3, [refuse(errno.ENOSYS)])  # its flags cannot be inspected; the C library falls back to clone
    code += when(
        CLONE[machine],
        [(LOAD, 0, 0, FIRST), (ANY_BIT, 0, 1, NEW_NAMESPACES), refuse(errno.EPERM), (RETURN, 0, 0, ALLOW)],
    )
    for number in SOCKETS[machine]:
        code += when(number, own_sockets() if network else only_pairs())
    if not network:  # Landlock does not cover sockets that have a path: D-Bus, Docker, an ssh agent
        code += when(CONNECT[machine], [refuse(errno.EACCES)])
    return [*code, (RETURN, 0, 0, ALLOW)]


def own_sockets():
    """In an own network: the families that Python and libzmq use."""
    families = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
    tests = [(EQUAL, len(families) - i, 0, family) for i, family in enumerate(families)]
    return [(LOAD, 0, 0, FIRST), *tests, refuse(errno.EACCES), (RETURN, 0, 0, ALLOW)]


def only_pairs():
    """In the host's network: Unix sockets that cannot send to an address, which leaves pairs."""
    return [
        (LOAD, 0, 0, FIRST), (EQUAL, 0, 3, AF_UNIX),
        (LOAD, 0, 0, SECOND), (AND, 0, 0, SOCK_TYPE), (EQUAL, 0, 1, SOCK_DGRAM),
        refuse(errno.EACCES), (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip


def available():
    """Whether there is a table for this machine."""
    return linux.MACHINE in AUDIT_ARCH


def install(network, memory_files):
    """Filter the system calls of this thread and of whatever it starts; needs no-new-privileges."""
    code = program(linux.MACHINE, network, memory_files)
    packed = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(buffer)))
    linux.syscall(linux.SECCOMP[linux.MACHINE], SET_MODE_FILTER, SPEC_ALLOW, header)
