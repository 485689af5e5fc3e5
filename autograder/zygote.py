"""The warm process: imports everything once, then forks a kernel for each request.

Started by autograder.warm as `python -m autograder.zygote DESCRIPTOR`, where the descriptor is one end of a
SOCK_SEQPACKET socket pair. There is no path and no listener that a student's process could connect to, and when the
other end closes, the zygote ends and every kernel with it. What it holds in memory every kernel can read, so requests
come in a file that only the fork reads. It must have exactly one thread at each fork: a fork of a process with a thread
pool hangs in its first parallel operation.

A stem is the same process one step earlier: it has imported everything and forks zygotes, each behind walls of its own, for
whoever holds the other end of its socket.

Messages, each one JSON object:
    in   a Setup, once; then for each kernel {"limits": ..., "scratch": path or null} with its descriptors: the kernel's
         connection, and those of fork.Descriptors
    out  {"ready": true, "failed": {module: reason}} once warm, or {"error": text}
    to a stem
    in   a Setup, once; then for each zygote its Setup with descriptors: the zygote's socket, and files by which a process
         enters its control groups. No answer: what is to be said comes on the zygote's socket, its pidfd first
    on a kernel's connection
    out  {"pid": int} or {"error": text} at the start; a warm.Ended at the end
    in   {"signal": int}; closing it kills the kernel
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass

from autograder import confine, folders, fork, linux, preload, watchdog
from autograder.limits import Limits
from autograder.plans import PLANS

POLL_SECONDS = 0.05
STRAGGLING_SECONDS = 5.0  # what zygotes may take to end when nobody is left who could use them
LARGEST_MESSAGE = 1 << 18
MOST_DESCRIPTORS = 16
CUDA_ERROR_NOT_INITIALIZED = 3  # cuda.h
STUDENT = 1000  # what a kernel sees as its user id


@dataclass(frozen=True)
class Setup:
    """How a zygote is to be: name of a plan, modules to import, packages to hide, whom to become if it is root."""

    plan: str
    modules: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    uid: int | None = None
    visible: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    sweeps: bool = True  # whether what a kernel leaves behind is killed
    stem: bool = False  # whether it forks zygotes


@dataclass
class Kernel:
    """One forked kernel, as the zygote knows it."""

    connection: socket.socket
    pid: int
    pidfd: int
    init: int | None  # the first process of its process namespace
    dog: watchdog.Watchdog
    stopped_by: str | None = None


def main():
    """Serve one supervisor, then end."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    setup = Setup(**json.loads(control.recv(LARGEST_MESSAGE)))
    with told(control):
        if PLANS[setup.plan].namespaces and os.geteuid() == 0:
            mount_proc()  # bubblewrap's has covered parts for root, and below these no other may be mounted
        if not setup.stem:
            settle(setup)
        sys.meta_path.insert(0, preload.Hidden(setup.hides))
        with preload.to_stay():
            failed = preload.import_all(setup.modules)
            preload.touch()
        linux.huge_pages()  # a fork copies the tables of all pages, and its end clears them: 20 ms, with these 6
        if setup.stem:
            fork_zygotes(control, failed)
        else:
            serve(control, setup, failed)
    os._exit(0)  # taking torch's modules apart takes a second, for nothing


@contextlib.contextmanager
def told(control):
    """An error within goes to the supervisor."""
    try:
        yield
    except Exception:
        tell(control, error=traceback.format_exc())


def serve(control, setup, failed):
    """Say that we are warm, and fork kernels until the supervisor is gone."""
    tell(control, ready=True, failed=failed)
    Server(control, PLANS[setup.plan], setup).serve()


def fork_zygotes(control, failed):
    """Fork a zygote for each request until nobody is left who could ask."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(
            control, LARGEST_MESSAGE, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
        )
        reap(0 if message else STRAGGLING_SECONDS)
        if not message:
            return
        problem = why_not_fork()
        if os.fork() == 0:
            control.close()
            try:
                become_zygote(json.loads(message), failed, problem, *descriptors)
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def reap(seconds):
    """Take note of zygotes that have ended, or that do so within that time; the system adds their CPU time to ours."""
    end = time.monotonic() + seconds
    with contextlib.suppress(ChildProcessError):  # there is none any more
        while os.waitpid(-1, os.WNOHANG)[0] or time.monotonic() < end:
            time.sleep(0.01 if seconds else 0)


def become_zygote(setup, failed, problem, descriptor, *groups):
    """Enter the control groups, go behind walls, and serve."""
    me = os.pidfd_open(os.getpid())
    with socket.socket(fileno=descriptor) as control, told(control):
        socket.send_fds(control, [b"pidfd"], [me])
        os.close(me)
        if problem:
            raise RuntimeError(problem)
        for group in groups:
            os.write(group, b"0")
            os.close(group)
        setup = Setup(**setup)
        settle(setup, linux.NEWNET)
        serve(control, setup, failed)


def tell(connection, **message):
    """Send one message; who has gone does not get it."""
    with contextlib.suppress(OSError):
        connection.send(json.dumps(message).encode())


def settle(setup, more=0):
    """Give up root, and with namespaces become the first process of our own, and of `more` kinds."""
    if os.geteuid() == 0 and setup.uid is not None:
        linux.become(setup.uid)
    if PLANS[setup.plan].namespaces:
        own_namespaces(more)
    elif setup.sweeps:
        linux.prctl(linux.SET_CHILD_SUBREAPER, 1)  # orphans of a kernel come to us and are killed
    os.listdir(os.path.dirname(os.__file__))  # a clear error where this user cannot read Python's own library


def mount_proc():
    """Show the processes of this process namespace."""
    linux.mount("proc", "/proc", "proc", linux.NOSUID | linux.NODEV | linux.NOEXEC)


def own_namespaces(more=0):
    """Continue as process 1 of new user, process and mount namespaces, in which each kernel then gets its own.

    A process may come back from its children's process namespace only to one that its own user namespace owns.
    """
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.NEWUSER | linux.NEWPID | linux.NEWNS | more)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{STUDENT} {uid} 1"), ("gid_map", f"{STUDENT} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    pid = os.fork()
    if pid:
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)
    linux.prctl(linux.PDEATHSIG, signal.SIGKILL)
    linux.mount(None, "/", flags=linux.REC | linux.PRIVATE)
    mount_proc()
    if more & linux.NEWNET:
        linux.switch_loopback_on()


def why_not_fork():
    """The reason why a fork would be broken now, or None."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return f"the zygote has {threads} threads where it must have 1: leave out the module that starts one"
    with contextlib.suppress(OSError):
        cuda = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        if cuda.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != CUDA_ERROR_NOT_INITIALIZED:
            return "CUDA is initialised in the zygote: leave out the module that does it, or use cold kernels"
    return None


class Server:
    """The request loop."""

    def __init__(self, control, plan, setup):
        self.control, self.plan, self.setup = control, plan, setup
        self.kernels = {}  # by pid
        self.by_descriptor = {}  # each kernel by its connection and by its pidfd
        self.epoll = select.epoll()
        self.epoll.register(control, select.EPOLLIN)
        self.own_processes = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self.warm = (os.getpid(), watchdog.resident_bytes([os.getpid()]))

    def serve(self):
        """Answer until the supervisor is gone; then nothing is left."""
        try:
            while self.control.fileno() >= 0:
                self.turn()
        finally:
            for kernel in list(self.kernels.values()):
                self.kill(kernel)
                self.ended(kernel)

    def turn(self):
        """Wait for something to happen and deal with it."""
        for descriptor, _ in self.epoll.poll(POLL_SECONDS if self.kernels else -1):
            if descriptor == self.control.fileno():
                return self.request()
            if kernel := self.by_descriptor.get(descriptor):
                self.ended(kernel) if descriptor == kernel.pidfd else self.message(kernel)
        if self.setup.sweeps:
            self.watch()

    def request(self):
        """Fork a kernel; an empty message means that the supervisor is gone."""
        try:
            message, descriptors, _, _ = socket.recv_fds(
                self.control, LARGEST_MESSAGE, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionResetError:
            message = b""
        if not message:
            return self.control.close()
        connection = socket.socket(fileno=descriptors[0])
        if problem := why_not_fork():
            tell(connection, error=problem)
        else:
            self.fork(connection, json.loads(message), descriptors[1:])
        for descriptor in descriptors[1:]:
            os.close(descriptor)

    def fork(self, connection, message, descriptors):
        """Fork one kernel, where the plan has it in a process namespace of its own."""
        limits = Limits(**message["limits"])
        scratch = confine.SCRATCH if self.plan.root else message["scratch"]
        room = confine.Room(scratch, self.setup.visible, self.setup.devices)
        init = self.new_process_namespace() if self.plan.namespaces else None
        pid = os.fork()
        if pid == 0:
            fork.become_kernel(self.plan, limits, room, descriptors)
        if init:
            linux.setns(self.own_processes, linux.NEWPID)
        counted = None if self.plan.namespaces else scratch  # a file system of its own has a quota
        dog = watchdog.Watchdog([pid] + [init] * bool(init), limits, self.warm, counted)
        kernel = Kernel(connection, pid, os.pidfd_open(pid), init, dog)
        self.kernels[pid] = kernel
        for descriptor in (connection.fileno(), kernel.pidfd):
            self.by_descriptor[descriptor] = kernel
            self.epoll.register(descriptor, select.EPOLLIN)
        tell(connection, pid=pid)

    def new_process_namespace(self):
        """Start the first process of a new process namespace, into which we then fork; its death ends all in there.

        It sleeps. Orphans come to it, and because it ignores their end the kernel clears them away.
        """
        linux.unshare(linux.NEWPID)
        before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            return os.posix_spawn(shutil.which("sleep"), ["sleep", "2147483647"], {})
        finally:
            signal.signal(signal.SIGCHLD, before)

    def message(self, kernel):
        """Send the signal that the supervisor asks for; kill where it has hung up."""
        try:
            message = kernel.connection.recv(LARGEST_MESSAGE)
        except ConnectionResetError:  # it was killed with a message of ours unread
            message = b""
        if not message:
            self.epoll.unregister(kernel.connection)
        number = json.loads(message)["signal"] if message else signal.SIGKILL
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(kernel.pidfd, number)

    def kill(self, kernel):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(kernel.pidfd, signal.SIGKILL)

    def watch(self):
        """Kill the kernels that use too much, and processes that outlive theirs."""
        for kernel in self.kernels.values():
            if kernel.stopped_by is None and (limit := kernel.dog.exceeded()):
                kernel.stopped_by = limit
                self.kill(kernel)
        if not self.plan.namespaces:
            self.sweep()

    def ended(self, kernel):
        """Report the end of a kernel, after everything that it started has ended too."""
        _, status, usage = os.wait4(kernel.pid, 0)
        used = usage.ru_utime + usage.ru_stime
        if kernel.init:
            os.kill(kernel.init, signal.SIGKILL)
            usage = os.wait4(kernel.init, 0)[2]  # returns when the namespace is empty
            used += usage.ru_utime + usage.ru_stime
        del self.kernels[kernel.pid]
        used += self.sweep()
        for descriptor in (kernel.connection.fileno(), kernel.pidfd):
            del self.by_descriptor[descriptor]
            with contextlib.suppress(OSError, ValueError):
                self.epoll.unregister(descriptor)
        os.close(kernel.pidfd)
        if self.plan.root and not self.plan.namespaces:
            self.wipe()
        tell(
            kernel.connection,
            code=os.waitstatus_to_exitcode(status),
            cpu_seconds=round(used, 3),
            peak_mib=max(0, kernel.dog.peak_bytes >> 20),
            stopped_by=kernel.stopped_by,
        )
        kernel.connection.close()

    def sweep(self):
        """Kill children that are no kernel: orphans that came to us; the CPU seconds of those that are gone."""
        used = 0
        inits = {kernel.init for kernel in self.kernels.values()}
        while strays := [pid for pid in watchdog.children(os.getpid()) if pid not in self.kernels and pid not in inits]:
            for pid in watchdog.descendants(strays):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for pid in strays:
                usage = os.wait4(pid, 0)[2]
                used += usage.ru_utime + usage.ru_stime
        return used

    def wipe(self):
        """Empty the folders that the next kernel would share with this one."""
        for folder in (confine.SCRATCH, "/dev/shm"):
            folders.empty(folder)


if __name__ == "__main__":
    main()
