"""What a process in the sandbox finds when it tries to get out: runs in a real fork, in place of a kernel."""

import contextlib
import ctypes
import json
import os
import socket

PTRACE = {"x86_64": 101, "aarch64": 117}
NEWUSER = 0x10000000


def run(request, listeners, ready, own_network):
    """Try all of TRIALS on the targets in the request; a dict of name to "it held" goes to the first socket."""
    held = {name: not trial(request["targets"]) for name, trial in TRIALS.items()}
    with socket.socket(fileno=listeners[0]) as answer:
        answer.sendall(json.dumps(held).encode())
    ready()


def succeeds(function, *arguments):
    """Whether it raises no OSError."""
    try:
        function(*arguments)
    except OSError:
        return False
    return True


def connects(family, address):
    """Whether something answers there."""
    with contextlib.suppress(OSError), socket.socket(family) as client:
        client.settimeout(1)
        client.connect(address)
        return True
    return False


def reads(targets):
    return succeeds(os.open, targets["file"], os.O_RDONLY)


def writes(targets):
    return succeeds(os.open, targets["folder"] + "/written", os.O_WRONLY | os.O_CREAT)


def sees_others(targets):
    """The first process of an own namespace and this one are no others."""
    try:
        return bool({int(name) for name in os.listdir("/proc") if name.isdigit()} - {1, os.getpid()})
    except OSError:
        return False


def signals(targets):
    return targets["process"] not in (1, os.getpid()) and succeeds(os.kill, targets["process"], 0)


def has_privileges(targets):
    with open("/proc/self/status") as file:
        status = {name: text.strip() for name, _, text in (line.partition(":") for line in file)}
    return (int(status["CapEff"], 16), status["NoNewPrivs"], status["Seccomp"]) != (0, "1", "2")


def makes_namespaces(targets):
    return ctypes.CDLL(None).unshare(NEWUSER) == 0


def traces(targets):
    return ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0


TRIALS = {
    "files": reads,
    "writes": writes,
    "loopback": lambda targets: connects(socket.AF_INET, tuple(targets["tcp"])),
    "sockets": lambda targets: connects(socket.AF_UNIX, targets["path"]),
    "abstract sockets": lambda targets: connects(socket.AF_UNIX, "\0" + targets["abstract"]),
    "processes": sees_others,
    "signals": signals,
    "privileges": has_privileges,
    "namespaces": makes_namespaces,
    "tracing": traces,
}
