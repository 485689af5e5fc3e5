"""One warm process of a machine, from which the zygotes of its workers are forked: what they import is imported once.

The coordinator starts it before it forks its workers, which inherit it. It runs nothing of any student: a zygote that it
forks gets a user, processes, mounts, a network and a control group of its own, as one that is started alone.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import weakref

from autograder import bubblewrap, warm

_STEMS = {}  # of this process and of the one that it was forked from, by what they fit


def start(plan, modules, device="cpu", hides=()):
    """Start the stem of this process and of those that it forks, where the plan allows one; returns at once."""
    if plan.root and plan.namespaces:
        _STEMS[plan.name, tuple(modules), tuple(hides), device] = Stem(plan, modules, device, hides)


def fitting(plan, modules, hides=(), device="cpu"):
    """The stem from which such a zygote can be forked, or None."""
    return _STEMS.get((plan.name, tuple(modules), tuple(hides), device))


def descriptors():
    """Those that a fork of this process must keep."""
    return [stem.control.fileno() for stem in _STEMS.values()]


class Stem:
    """A warm process that forks zygotes; it ends with the last process that holds it."""

    def __init__(self, plan, modules, device, hides=()):
        """Start it, and return at once: it imports while others work, and never what it hides."""
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        setup = {
            "plan": plan.name, "modules": modules, "hides": hides, "stem": True,
            "visible": bubblewrap.visible(hides) + warm.OF_A_GPU[device], "devices": warm.DEVICES[device],
        }  # fmt: skip
        with theirs:
            self.process = warm.popen(setup, theirs, warm.clean("/tmp"))
        self.control.send(json.dumps(setup).encode())

    def fork(self, setup, control, ours, group):
        """Ask for a zygote that serves on the socket `control`; `ours` is its other end.

        Returns:
            Branch, its process.
        Raises:
            warm.ZygoteError: the stem has ended, or could not start.
        """
        files = [os.open(path, os.O_WRONLY) for path in (group.entrances() if group else ())]
        try:
            socket.send_fds(self.control, [json.dumps(setup).encode()], [control.fileno(), *files])
            control.close()  # else its end would not be seen
            ours.settimeout(warm.START_SECONDS)
            _, descriptors, _, _ = socket.recv_fds(ours, 64, 1)
            if not descriptors:
                raise OSError("it has ended")
        except OSError as error:
            ours.close()
            if group:
                group.remove()
            raise warm.ZygoteError(f"the stem forks no zygote: {error}") from error
        finally:
            for file in files:
                os.close(file)
        return Branch(descriptors[0])

    def stop(self):
        """End it, and every zygote that it forked."""
        self.control.close()
        self.process.kill()
        self.process.wait()


class Branch:
    """The process of a zygote that was forked from a stem, in the shape of subprocess.Popen.

    pid: as this process sees it.
    """

    def __init__(self, pidfd):
        self.pidfd = pidfd
        weakref.finalize(self, os.close, pidfd)
        with open(f"/proc/self/fdinfo/{pidfd}") as file:
            self.pid = next(int(line.split()[1]) for line in file if line.startswith("Pid:"))

    def poll(self):
        """0 once it has ended, else None."""
        return 0 if select.select([self.pidfd], [], [], 0)[0] else None

    def wait(self, timeout=None):
        """Wait until it has ended.

        Raises:
            subprocess.TimeoutExpired: it runs longer than timeout, seconds.
        """
        if not select.select([self.pidfd], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("zygote", timeout)
        return 0

    def kill(self):
        """Kill it, and with it its kernels."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
