"""What a fork of the zygote does before it becomes a kernel: let go of all that it inherited."""

import contextlib
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from dataclasses import dataclass

from autograder import confine

FIXED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP)


@dataclass(frozen=True)
class Descriptors:
    """What the supervisor passes along with a request."""

    request: int
    ready: int
    files: int
    listeners: tuple[int, ...]

    @classmethod
    def of(cls, numbers):
        request, ready, files, *listeners = numbers
        return cls(request, ready, files, tuple(listeners))

    def all(self):
        return sorted((self.request, self.ready, self.files, *self.listeners))


def become_kernel(plan, limits, room, numbers):
    """Run what the request asks for in this process; never returns."""
    code, descriptors = 1, Descriptors.of(numbers)
    try:
        let_go(descriptors)
        request = read_request(descriptors.request)
        os.environ.clear()
        os.environ.update(request["env"])
        confine.enter(plan, limits, room, descriptors.files)
        os.chdir(request["cwd"] or confine.work(room.scratch))
        fresh_state(request["seed"], request["threads"])
        target = importlib.import_module(request["module"])
        target.run(request, descriptors.listeners, lambda: report(descriptors.ready, "ready"), plan.own_network)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        report(descriptors.ready, traceback.format_exc())
    finally:
        os._exit(code)


def report(descriptor, text):
    """Tell the supervisor how the start went; nothing after the first time."""
    with contextlib.suppress(OSError):
        os.write(descriptor, text.encode()[-4000:])
        os.close(descriptor)


def let_go(descriptors):
    """A session of its own, no descriptors but ours, signals as in a new process."""
    os.setsid()
    for number in FIXED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    start = 3
    for keep in descriptors.all():
        os.closerange(start, keep)
        start = keep + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def read_request(descriptor):
    """The request, a JSON object in a memory file."""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return json.load(file)


def fresh_state(seed, threads):
    """What is the same in every fork unless it is made anew: random states, temporary folder."""
    random.seed(seed)
    tempfile.tempdir = None
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % (1 << 32))
    if torch := sys.modules.get("torch"):
        # torch.manual_seed also notes for each kind of device from where it was called
        (torch.manual_seed if torch.backends.cuda.is_built() else torch.default_generator.manual_seed)(seed)
        torch.set_num_threads(threads)
