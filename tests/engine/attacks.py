"""Hostile snippets: data in hostile/*.py, and how one is run against a zygote."""

import asyncio
import contextlib
import json
import os
import platform
import re
import secrets
import socket
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.limits import Limits
from autograder.running import start_warm_kernel

HOSTILE = Path(__file__).parent / "hostile"
MARK = "gr4der-s3cret-" + secrets.token_hex(4)
LIMITS = Limits(
    memory_mib=400, processes=48, cpu_seconds=4, scratch_mib=64, scratch_files=2000, message_mib=4, messages_waiting=32
)
SECONDS = {
    "silent": 0.7,
    "interrupted": 0.7,
    "any": 2.5,
    "dead": 2.5,
    "cpu": 90.0,
}  # before the snippet is interrupted; else:
PATIENCE, AFTER_INTERRUPT = 20.0, 0.7
ENDS = ("alive", "dead", "any", "silent", "interrupted", "memory", "cpu", "scratch")


@dataclass(frozen=True)
class Snippet:
    """One cell of a file of hostile code.

    ends: what becomes of the kernel, one of ENDS. without: plans whose own sentences say that it succeeds.
    """

    name: str
    source: str
    ends: str = "alive"
    without: tuple[str, ...] = ()
    only: str | None = None


def snippets():
    """All of them, in the order of files and lines."""
    for path in sorted(HOSTILE.glob("*.py")):
        for cell in re.split(r"(?m)^# %% ", path.read_text())[1:]:
            name, source = cell.split("\n", 1)
            said = dict(re.findall(r"(?m)^# (ends|not|only): (\w+)$", source))
            yield Snippet(
                f"{path.stem}-{name}", source, said.get("ends", "alive"), (said.get("not"),), said.get("only")
            )


SNIPPETS = [snippet for snippet in snippets() if snippet.only in (None, platform.machine())]


@dataclass(frozen=True)
class Outcome:
    """What a kernel did with a piece of code.

    status: "ok" or "error" as it replied, "dead", or "silent" if it did not reply even when interrupted.
    """

    status: str
    text: str
    error: str = ""
    interrupted: bool = False


@contextlib.contextmanager
def world(folder):
    """A host with things worth attacking: yields the targets, and afterwards fails if one of them was touched."""
    folder = Path(folder)
    files = {"submission": folder / "submitted/other/secret.txt", "gradebook": folder / "gradebook.db"}
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("another's")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777)
    abstract = f"attack-{secrets.token_hex(6)}"
    victim = subprocess.Popen(["sleep", "1000"])
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        datagram = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagram.bind(str(folder / "datagram"))
        streams = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        for stream, address in zip(streams, (str(folder / "path"), "\0" + abstract), strict=True):
            stream.bind(address)
            stream.listen()
        for name in ("datagram", "path"):
            os.chmod(folder / name, 0o777)
        try:
            yield {
                **{name: str(path) for name, path in files.items()}, "folder": str(folder), "grader": os.getpid(),
                "tcp": tcp.getsockname(), "udp": udp.getsockname(), "path": str(folder / "path"),
                "datagram": str(folder / "datagram"), "abstract": abstract,
            }  # fmt: skip
            for server in (tcp, udp, datagram, *streams):
                assert not readable(server), f"something reached {server}"
            for path in files.values():
                assert path.read_text() == "another's"
            assert state(victim.pid) == "S"
        finally:
            victim.kill()
            victim.wait()


def readable(server):
    """Whether a connection or a datagram has arrived."""
    server.setblocking(False)
    try:
        server.recv(1) if server.type == socket.SOCK_DGRAM else server.accept()
    except BlockingIOError:
        return False
    return True


def state(pid):
    """The state of a process: S sleeping, T stopped, Z dead."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def prelude(targets):
    """What a snippet finds defined."""
    return (
        f"TARGETS, LIMITS, MARK = {json.loads(json.dumps(targets))!r}, {asdict(LIMITS)!r}, {MARK[::-1]!r}\n"
        "def escaped(what):\n    print('ESCAPED', what, flush=True)\n"
    )


async def attack(zygote, snippet, targets, files):
    """Run a snippet in a fresh kernel: (outcome, whether the kernel still answers, warm.Ended)."""
    async with start_warm_kernel(zygote, files=files, limits=LIMITS) as kernel:
        await execute(kernel, prelude(targets), PATIENCE)
        outcome = await execute(kernel, snippet.source, SECONDS.get(snippet.ends, PATIENCE))
        after = None
        if outcome.status in ("ok", "error") and snippet.ends != "any":
            after = await execute(kernel, "print('alive')", PATIENCE)
        ended = await kernel.kill()
    return outcome, bool(after) and "alive" in after.text, ended


async def execute(kernel, source, seconds):
    """Run code; interrupt it after some seconds."""
    request = kernel.client.execute(source)
    outputs = asyncio.ensure_future(collect(kernel.client, request))
    interrupted = False
    for patience in (seconds, AFTER_INTERRUPT):
        done, _ = await asyncio.wait((outputs, kernel.died), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if done:
            break
        interrupted = True
        await kernel.interrupt()
    if outputs.done():
        status, text, error = outputs.result()
        return Outcome(status, text, error, interrupted)
    outputs.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await outputs
    return Outcome("dead" if kernel.died.done() else "silent", "", interrupted=interrupted)


async def collect(client, request):
    """Read messages until the request is done: status, a bounded part of the text, name of the exception."""
    text, status, error = "", "ok", ""
    while True:
        message = await client.get_iopub_msg(timeout=None)
        if message["parent_header"].get("msg_id") != request:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            text = (text + content["text"])[:100_000]
        elif message["msg_type"] == "error":
            status, error = "error", content["ename"]
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            return status, text, error
