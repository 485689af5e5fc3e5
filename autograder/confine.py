"""What a fork does to lock itself in: own mounts, no privileges, Landlock, limits, system-call filter.

Landlock and seccomp bind the calling thread and what it starts, so this runs before the kernel has threads.
"""

import contextlib
import os
import resource
import signal
import tarfile
from dataclasses import dataclass

from autograder import landlock, linux, seccomp

SCRATCH = "/scratch"
MIB = 1 << 20
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
PROC = ("self", "cpuinfo", "meminfo", "stat", "filesystems", "mounts", "sys/kernel", "sys/vm")
SYS = ("/sys/devices/system/cpu", "/sys/devices/system/node")


@dataclass(frozen=True)
class Room:
    """Where a kernel may be.

    scratch: the folder that it may write, or None for a kernel without walls.
    visible: paths that it may read, where it has no root file system of its own.
    devices: beyond the usual ones, such as /dev/nvidia0.
    """

    scratch: str | None
    visible: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


def enter(plan, limits, room, files):
    """Lock this process in, and unpack the submission's files into its working folder.

    files: descriptor of a tar archive, possibly empty.
    """
    if plan.namespaces:
        own_mounts(limits, room.visible)
    if room.scratch:
        make_home(room.scratch)
    if plan.locks:
        lock(plan, limits, room)
    elif room.scratch:
        set_limits(limits, tasks_of_this_user())
    if room.scratch:
        unpack(files, work(room.scratch))
    else:
        os.close(files)


def work(scratch):
    """The working folder of a kernel."""
    return f"{scratch}/work"


def own_mounts(limits, visible):
    """One small file system for everything that the kernel may write, and a view of its own processes only.

    visible: what may be read; the part of it that lies where the kernel's own file system comes stays there.
    """
    linux.unshare(linux.NEWNS | linux.NEWIPC)
    size = f"size={limits.scratch_mib}m,nr_inodes={limits.scratch_files},mode=755"
    linux.mount("tmpfs", SCRATCH, "tmpfs", linux.NOSUID | linux.NODEV, size)
    for place, seen_as in (("tmp", "/tmp"), ("shm", "/dev/shm")):
        os.mkdir(f"{SCRATCH}/{place}")
        for path in visible:
            if path.startswith(f"{seen_as}/"):
                keep(path, f"{SCRATCH}/{place}{path.removeprefix(seen_as)}")
        linux.mount(f"{SCRATCH}/{place}", seen_as, flags=linux.BIND | linux.REC)
    linux.mount("proc", "/proc", "proc", linux.NOSUID | linux.NODEV | linux.NOEXEC)


def keep(path, there):
    """Show at `there` what is at `path`, read only as it is."""
    os.makedirs(os.path.dirname(there), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), there)
    elif os.path.isdir(path) and not os.path.exists(there):
        os.mkdir(there)
        linux.mount(path, there, flags=linux.BIND | linux.REC)


def make_home(scratch):
    """The folders of a kernel, and the variables that point to them."""
    for place in ("work", "home", "tmp"):
        os.makedirs(f"{scratch}/{place}", exist_ok=True)
    os.environ.update(HOME=f"{scratch}/home", TMPDIR=f"{scratch}/tmp", USER="student", LOGNAME="student")


def lock(plan, limits, room):
    """Give up privileges, files, system calls and resources, in the order in which each is still allowed."""
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # when memory is short, this process goes first
    linux.prctl(linux.PDEATHSIG, signal.SIGKILL)
    linux.prctl(linux.SET_NO_NEW_PRIVS, 1)
    linux.drop_capabilities()
    beside = 0 if plan.namespaces else tasks_of_this_user()
    if landlock.abi() or not plan.root:  # in a root of its own the mounts alone would do
        landlock.restrict(readable(plan, room), writable(plan, room), (*DEVICES, *room.devices), plan.own_network)
    set_limits(limits, beside)
    seccomp.install(plan.own_network, memory_files=bool(room.devices))


def readable(plan, room):
    """In a root of its own a kernel may read all there is."""
    if plan.root:
        return ["/"]
    return [*room.visible, *(f"/proc/{name}" for name in PROC), *SYS]


def writable(plan, room):
    """Only the scratch folder, and its other names."""
    return [room.scratch, "/tmp", "/dev/shm"] if plan.namespaces else [room.scratch]


def set_limits(limits, beside):
    """Resource limits of each process; RLIMIT_DATA rather than RLIMIT_AS, because torch reserves addresses freely.

    beside: tasks that count against the limit on processes and are not the kernel's.
    """
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits.processes + beside),
        (resource.RLIMIT_DATA, data_bytes() + limits.memory_mib * MIB),
        (resource.RLIMIT_FSIZE, limits.file_mib * MIB),
        (
            resource.RLIMIT_CPU,
            limits.cpu_seconds + 2,
        ),  # the watchdog counts all processes and says why, so it goes first
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_MEMLOCK, MIB),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def data_bytes():
    """What counts against RLIMIT_DATA now."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmData:"))


def tasks_of_this_user():
    """Processes and threads of this user: without namespaces RLIMIT_NPROC counts them all."""
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def unpack(descriptor, folder):
    """Unpack a tar archive; names that lead out of the folder are an error."""
    with open(descriptor, "rb") as file:
        if os.fstat(descriptor).st_size:
            with tarfile.open(fileobj=file, mode="r:") as archive:  # else all compressions are tried
                archive.extractall(folder, filter="data")
