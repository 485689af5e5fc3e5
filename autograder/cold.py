"""An ordinary kernel process, for where none can be forked: another interpreter or system, CUDA awake too early.

It has no walls, only resource limits where the system has them: its level is "none".
"""

import asyncio
import contextlib
import inspect
import os
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from autograder.preload import Hidden
from autograder.warm import INHERITABLE, KEPT, Ended

MIB = 1 << 20
START_MIB = 1024  # what an interpreter with torch holds before the notebook does anything
POLL_SECONDS = 0.02
NEEDED_BY_WINDOWS = ("SYSTEMROOT", "COMSPEC", "TEMP", "TMP")


class Cold:
    """A kernel in a process group of its own, in the shape of warm.Forked."""

    def __init__(self, command, folder, env, limits):
        self.process = subprocess.Popen(
            command, cwd=f"{folder}/work", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=os.name == "posix",
        )  # fmt: skip
        self.pid = self.process.pid
        if sys.platform.startswith("linux"):
            limit(self.pid, limits)

    @property
    def ended(self):
        """A warm.Ended, or None while it runs; its CPU time is not known."""
        code = self.process.poll()
        return None if code is None else Ended(code)

    def poll(self):
        return self.process.poll()

    def send_signal(self, number):
        """Send a signal to the kernel, and to what it started too if it is to kill."""
        with contextlib.suppress(ProcessLookupError):
            if os.name == "posix" and number == signal.SIGKILL:
                os.killpg(self.pid, number)
            elif self.poll() is None:
                self.process.send_signal(number)

    def kill(self):
        self.send_signal(signal.SIGKILL) if os.name == "posix" else self.process.kill()


async def watch(cold):
    """How the kernel ended, once it has."""
    while cold.ended is None:
        await asyncio.sleep(POLL_SECONDS)
    return cold.ended


def limit(pid, limits):
    """Set resource limits of a process that just started."""
    resource = import_module("resource")  # not on Windows
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, (limits.memory_mib + START_MIB) * MIB),
        (resource.RLIMIT_FSIZE, limits.file_mib * MIB),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_NOFILE, limits.open_files),
    ):
        resource.prlimit(pid, kind, (most, most))


def prepare(folder, files):
    """The folders of a kernel, with copies of the regular files of another."""
    for place in ("work", "home", "tmp"):
        os.makedirs(f"{folder}/{place}")
    for path in sorted(Path(files).rglob("*")) if files else ():
        copy = Path(folder, "work", path.relative_to(files))
        if path.is_dir() and not path.is_symlink():
            copy.mkdir(exist_ok=True)
        elif path.is_file() and not path.is_symlink():
            shutil.copy(path, copy)


def environment(folder, env):
    """An environment with nothing of ours but what a process needs."""
    kept = {name: os.environ[name] for name in (*KEPT, "PATH", *NEEDED_BY_WINDOWS) if name in os.environ}
    places = {
        "HOME": f"{folder}/home",
        "USERPROFILE": f"{folder}/home",
        "TMPDIR": f"{folder}/tmp",
        "IPYTHONDIR": f"{folder}/home/.ipython",
    }
    return {**INHERITABLE, **kept, **places, **(env or {})}


def first_code(seed, threads, hides):
    """What makes a cold kernel start like a fork: seeds, threads, hidden packages. It leaves no name behind."""
    lines = [
        "def _start():",
        "    import random, sys, numpy, torch",
        "    from importlib.abc import MetaPathFinder",
        *(f"    {line}" for line in inspect.getsource(Hidden).splitlines()),
        f"    random.seed({seed}), numpy.random.seed({seed % (1 << 32)}), torch.manual_seed({seed})",
        f"    torch.set_num_threads({threads})",
        f"    sys.meta_path.insert(0, Hidden({tuple(hides)!r}))",
        "_start()",
        "del _start",
    ]
    return "\n".join(lines)
