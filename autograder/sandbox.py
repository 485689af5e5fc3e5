"""How well this machine can lock a kernel in, found by trying to get out of one.

level = sandbox.level()        # at first call about half a second, then kept for this process
level.name, level.missing      # "watchdog", ("Memory of all processes together is limited by polling ...",)
sandbox.at_least()             # the same, or Refused below Landlock and seccomp
"""

import contextlib
import functools
import json
import logging
import os
import secrets
import socket
import sys
import tempfile
from dataclasses import dataclass, field

from autograder import bubblewrap, landlock, seccomp
from autograder.errors import EngineError, Refused
from autograder.limits import Limits
from autograder.plans import PLANS, Plan
from autograder.warm import Zygote, ZygoteError, clean, start_fails

log = logging.getLogger(__name__)

MINIMUM = "landlock"
SIGNALS_SINCE = landlock.SCOPE_SINCE

BY_POLLING = (
    "Memory of several processes together is limited by polling 20 times a second: a burst can exceed it for a moment.",
)
SHARED = (
    "A kernel shares process numbers and scratch space with its zygote, which clears them before the next kernel.",
    "The limit on processes counts those of the same user outside the sandbox too.",
)
IN_THE_OPEN = (
    "A kernel has no root file system of its own: Landlock hides files, but names and sizes of some can be learnt.",
    "The total size and number of a kernel's files is limited by polling.",
    "A hidden package that is installed in site-packages cannot be imported, but its files can be read.",
    "Children of a kernel cannot use sockets: DataLoader needs num_workers=0, and what they print is lost.",
)
NOTHING = (
    "Student code has all the rights of the user who grades: it can read, change and send away whatever that user can.",
    "The limits on memory, processes, CPU time and files hold for code that does not try to get around them.",
)
MISSING = {  # what is not isolated, by plan
    "strict": (),
    "watchdog": BY_POLLING,
    "contained": (*BY_POLLING, *SHARED),
    "landlock": (*BY_POLLING, SHARED[1], *IN_THE_OPEN),
    "none": NOTHING,
}


@dataclass(frozen=True)
class Level:
    """What holds on this machine.

    name: of the plan: strict, watchdog, contained, landlock or none. missing: sentences on what is not isolated.
    why: for each better plan, why it is not to be had.
    """

    name: str
    missing: tuple[str, ...]
    why: dict[str, str] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        return PLANS[self.name]


@functools.cache
def level():
    """The best level whose every promise held when it was tried in a fork of this interpreter."""
    why = {}
    for plan in PLANS.values():
        if plan.name == "none" or not (why_not := reason_against(plan)):
            return Level(plan.name, (*MISSING[plan.name], *remarks(plan)), why)
        why[plan.name] = why_not
        log.info("no sandbox level %s here: %s", plan.name, why_not)
    raise AssertionError("the last plan needs nothing")


def at_least(minimum=MINIMUM, trust_code=False):
    """The level of this machine.

    Raises:
        Refused: it is below the minimum, and the code is not to be trusted.
        EngineError: the process that kernels are forked from does not start, whatever the level is.
    """
    found, names = level(), list(PLANS)
    if found.name == "none" and sys.platform.startswith("linux") and (why := start_fails()):
        raise EngineError(
            f"the process that kernels are forked from does not start ({why}), so nothing is known of the sandbox: "
            f"install the autograder for {sys.executable}, as the README says. --trust-code would not help"
        )
    if names.index(found.name) > names.index(minimum) and not trust_code:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.why.items())
        raise Refused(
            f"this machine offers sandbox level {found.name!r}, and at least {minimum!r} is needed to run code that is "
            f"not trusted ({reasons}). Run on Linux with user namespaces or Landlock, or pass --trust-code if you "
            "trust every submission."
        )
    return found


def weakest(levels):
    """Of several machines' levels the one that holds everywhere."""
    return max(levels, key=lambda level: list(PLANS).index(level.name))


def remarks(plan):
    """What is not isolated on this machine beyond what the plan says."""
    version = landlock.abi() if plan.locks else SIGNALS_SINCE
    if plan.root and not version:
        yield "The kernel of this machine has no Landlock: files are protected by mounts only."
    if not plan.root and version < SIGNALS_SINCE and os.geteuid() != 0:
        yield f"Landlock {version} does not confine signals (6 does, Linux 6.12): a kernel can end your other programs."
    if not plan.root and version < landlock.TRUNCATE_SINCE:
        yield f"Landlock {version} does not confine truncation (that needs 3, Linux 6.2)."


def reason_against(plan):
    """Why the plan does not hold here, or None."""
    if not sys.platform.startswith("linux"):
        return f"it needs Linux, this is {sys.platform}"
    if not seccomp.available():
        return f"there is no system-call filter for {os.uname().machine}"
    if plan.root and bubblewrap.program() is None:
        return "bubblewrap is not installed"
    if not plan.root and not landlock.abi():
        return "the kernel of this machine has no Landlock"
    try:
        held = try_out(plan)
    except (ZygoteError, OSError) as error:
        return str(error).strip().splitlines()[-1]
    broken = [name for name, holds in held.items() if not holds and name not in tolerated(plan)]
    return f"a fork got past it: {', '.join(broken)}" if broken else None


def tolerated(plan):
    """Trials whose success the plan's sentences already tell."""
    return () if plan.namespaces else ("processes", "signals") if plan.root else ("signals",)


def try_out(plan):
    """Run autograder.selftest behind the plan's walls: a dict of trial to whether the wall held."""
    with tempfile.TemporaryDirectory() as folder, targets(folder) as aims, Zygote.start(plan, modules=()) as zygote:
        ours, theirs = socket.socketpair()
        request = {
            "module": "autograder.selftest", "targets": aims, "env": clean("/tmp"),
            "cwd": None if plan.locks else folder, "seed": 0, "threads": 1,
        }  # fmt: skip
        forked = zygote.spawn(request, Limits(), [theirs])
        theirs.close()
        with ours:
            forked.wait_ready()
            answer = b"".join(iter(lambda: ours.recv(1 << 12), b""))
        if not answer:
            raise ZygoteError(f"the self-test ended with {forked.wait(10)}")
        return json.loads(answer)


@contextlib.contextmanager
def targets(folder):
    """Things of ours that a kernel must not reach, open to every user of this machine."""
    os.chmod(folder, 0o777)
    secret = f"{folder}/secret"
    with open(secret, "w") as file:
        file.write("secret")
    os.chmod(secret, 0o644)
    abstract = f"autograder-{secrets.token_hex(8)}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, listening(f"{folder}/socket"), listening("\0" + abstract):
        os.chmod(f"{folder}/socket", 0o777)
        yield {
            "file": secret, "folder": folder, "tcp": tcp.getsockname(), "path": f"{folder}/socket",
            "abstract": abstract, "process": os.getpid(),
        }  # fmt: skip


@contextlib.contextmanager
def listening(address):
    """A Unix socket that listens there."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        yield server
