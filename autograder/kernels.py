"""Runs a submission's cells in a kernel, with a probe beside each graded one: Submission -> Transcript.

One kernel at a time, used for one submission. A cell that ends or blocks its kernel costs its own exercise and no other: a fresh
kernel replays the cells that worked and goes on after it. Everything that arrives from a kernel is hostile text: it is counted,
cut and put into shape before it is kept.
"""

import asyncio
import atexit
import base64
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from queue import Empty

from . import preload, sandbox
from .errors import EngineError
from .exercises import Lecture
from .limits import Limits
from .probe import MIME
from .records import Probe, Reply, Submission, Transcript
from .running import start_cold_kernel, start_warm_kernel
from .settings import Settings
from .warm import Zygote

INTERRUPT_SECONDS = 3.0  # what a cell has to end by itself once it is interrupted
POLL_SECONDS = 0.2
KILLED = -9  # the code of a process that was ended by SIGKILL, which is no name on Windows
MAX_REPLY = 15 << 20  # base64 characters of one reply; the connection takes messages of 16 MiB
PRELOAD = (
    "autograder.check",
    "safetensors.torch",
    "lecture_pictures",
    "torch.testing",
    "torch.utils.tensorboard",
)  # beside what the zygote imports anyway


@dataclass
class Outcome:
    """How one execution ended.

    Attributes:
        status: "ok", "error", "timeout" or "died".
        outputs: nbformat outputs, in order.
        reply: base64 text of the probe's reply, or None.
    """

    status: str = "died"
    outputs: list[dict] = field(default_factory=list)
    reply: str | None = None
    error: str = ""


def run(
    submission: Submission,
    probes: list[Probe],
    settings: Settings,
    released: dict[str, bytes],
    hides: tuple[str, ...] = (),
) -> Transcript:
    """Run every code cell of a submission in order, and each probe after its graded cell.

    Args:
        released: files of the release that lie beside the notebook, by relative path; they win over those handed in.
        hides: packages that must not be importable.
    Raises:
        EngineError: no kernel could be started.
        sandbox.Refused: the code is not trusted, and this machine has no sandbox.
    """
    with tempfile.TemporaryDirectory(prefix="run-", ignore_cleanup_errors=True) as folder:
        for name, content in {**submission.files, **released}.items():
            path = Path(folder) / PurePosixPath(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return asyncio.run(_Run(submission, probes, settings, Path(folder), tuple(hides)).whole())


_ZYGOTES: dict[tuple, Zygote] = {}  # of this process, by what they were started with


def warm_up(settings: Settings, hides: tuple[str, ...] = ()) -> Zygote | None:
    """The zygote of this process for these settings, started at the first call (seconds); None where there can be none.

    Raises:
        sandbox.Refused: the code is not trusted, and this machine has no sandbox.
    """
    plan = sandbox.at_least(trust_code=settings.trust_code).plan
    if not sys.platform.startswith("linux"):
        return None
    key = (plan.name, hides, settings.device)
    if key not in _ZYGOTES or not _ZYGOTES[key].alive():
        _ZYGOTES[key] = Zygote.start(plan, (*preload.COURSE, *PRELOAD), hides, settings.device)
        atexit.register(_ZYGOTES[key].stop)
    return _ZYGOTES[key]


@contextlib.contextmanager
def warmed(lecture: Lecture, settings: Settings) -> Iterator[None]:
    """A worker's context: its zygote is started here, from the thread that lives longest, and stopped at the end."""
    warm_up(settings, lecture.without)
    try:
        yield
    finally:
        while _ZYGOTES:
            _ZYGOTES.popitem()[1].stop()


ENDED = "The kernel ended in code cell {} and was started anew."


class _Run:
    """One submission being run."""

    def __init__(self, submission, probes, settings, folder, hides):
        self.notebook = json.loads(submission.notebook)
        self.cells = [cell for cell in self.notebook["cells"] if cell["cell_type"] == "code"]
        for cell in self.cells:
            cell["outputs"], cell["execution_count"] = [], None  # what was handed in as output is nothing that happened
        self.probes = {probe.cell: probe for probe in probes}
        self.settings, self.folder, self.hides = settings, folder, hides
        self.replies: dict[str, Reply] = {probe.exercise: Reply(probe.exercise, failure="missing") for probe in probes}
        self.events: list[str] = []
        self.worked: list[int] = []  # cells to replay in a fresh kernel
        self.suspected: set[int] = set()  # cells in which the kernel ended
        self.output_left = int(settings.output_mib * (1 << 20))
        self.started = time.monotonic()
        self.kernel: _Kernel | None = None

    async def whole(self) -> Transcript:
        try:
            self.kernel = await self.start()
            for number, cell in enumerate(self.cells):
                if self.out_of_time():
                    self.events.append(
                        f"The time limit of {self.settings.submission_seconds:g} s for the whole notebook was reached."
                    )
                    break
                await self.cell(number, cell)
        finally:
            if self.kernel:
                await self.kernel.stop()
        return Transcript(json.dumps(self.notebook), self.replies, tuple(self.events), time.monotonic() - self.started)

    async def start(self) -> "_Kernel":
        zygote = warm_up(self.settings, self.hides)
        try:
            return await _Kernel.start(zygote, self.folder, self.settings, self.hides)
        except (TimeoutError, OSError) as error:
            raise EngineError(f"no kernel could be started: {error}") from error

    def out_of_time(self) -> bool:
        return self.seconds_left() <= 0

    def seconds_left(self) -> float:
        return self.settings.submission_seconds - (time.monotonic() - self.started)

    async def cell(self, number: int, cell: dict) -> None:
        """Run one cell, its probe if it is graded, and bring a kernel back that it ended.

        A kernel that was killed by nobody knows whom (the system for want of memory, a person) is no fault of a cell:
        the cell is run once more. One that kills its own kernel does so again.
        """
        probe = self.probes.pop(cell.get("metadata", {}).get("nbgrader", {}).get("grade_id"), None)
        died = await self.attempt(number, cell, probe)
        again = died and self.excused(number)
        if not self.kernel.alive():
            await self.revive(number, "The kernel was killed in code cell {}; that was run again." if again else ENDED)
        if again and not self.out_of_time():
            await self.attempt(number, cell, probe)
            if not self.kernel.alive():
                await self.revive(number, ENDED)

    async def attempt(self, number: int, cell: dict, probe: Probe | None) -> bool:
        """Run one cell, and its probe; whether the kernel ended meanwhile."""
        outcome = await self.execute(cell["source"])
        cell["outputs"], cell["execution_count"] = self.kept(outcome.outputs), number + 1
        if probe and outcome.status in ("ok", "error"):
            outcome = await self.probe(probe)
        elif probe:
            self.replies[probe.exercise] = Reply(probe.exercise, failure=self.failure(outcome))
        elif outcome.status == "ok":
            self.worked.append(number)
        return outcome.status == "died"

    async def probe(self, probe: Probe) -> Outcome:
        outcome = await self.execute(probe.code, silent=True)
        if outcome.reply is not None:
            self.replies[probe.exercise] = _decoded(probe.exercise, outcome.reply)
            return Outcome("ok")
        self.replies[probe.exercise] = Reply(probe.exercise, failure=self.failure(outcome), detail=outcome.error)
        return outcome

    def excused(self, number: int) -> bool:
        """Whether the kernel that ended in a cell was killed by nobody knows whom, for the first time in this cell."""
        first = number not in self.suspected
        self.suspected.add(number)
        return first and self.kernel.killed_from_outside()

    def failure(self, outcome: Outcome) -> str:
        return {"timeout": "timeout", "died": self.kernel.why_it_died()}.get(outcome.status, "silent")

    async def execute(self, code: str, silent: bool = False) -> Outcome:
        seconds = min(self.settings.cell_seconds, max(self.seconds_left(), 0.1))
        return await self.kernel.execute(code, seconds, silent=silent, keep=self.output_left)

    def kept(self, outputs: list[dict]) -> list[dict]:
        """The outputs, as long as the submission's share lasts."""
        self.output_left = max(self.output_left - len(json.dumps(outputs)), 0)
        return outputs

    async def revive(self, blamed: int, sentence: str) -> None:
        """A fresh kernel in which every cell that worked has run again."""
        self.events.append(sentence.format(blamed + 1))
        while not self.out_of_time():
            await self.kernel.stop()
            self.kernel = await self.start()
            for number in list(self.worked):
                await self.execute(self.cells[number]["source"])
                if not self.kernel.alive():
                    if not self.excused(number):
                        self.worked.remove(number)  # it worked once, and not again
                    break
            else:
                return


def _decoded(exercise: str, text: str) -> Reply:
    try:
        return Reply(exercise, base64.b64decode(text, validate=True))
    except ValueError:
        return Reply(exercise, b"")  # wire will call it unreadable


class _Kernel:
    """A running kernel: a fork of the zygote behind the walls of the machine's level, or a cold process without any."""

    def __init__(self, opened, kernel):
        self.opened, self.kernel, self.client = opened, kernel, kernel.client
        self.killed_by_us = False

    @classmethod
    async def start(cls, zygote: Zygote | None, folder: Path, settings: Settings, hides: tuple[str, ...]) -> "_Kernel":
        limits = Limits(memory_mib=settings.memory_mib, cpu_seconds=int(settings.submission_seconds) + 1)
        start = start_warm_kernel if zygote else start_cold_kernel
        opened = start(zygote or sys.executable, files=folder, limits=limits, hides=hides)
        return cls(opened, await opened.__aenter__())

    def alive(self) -> bool:
        return not self.kernel.died.done()

    async def stop(self) -> None:
        """Kill it, if it still runs, with all that it started, and close the connection."""
        await self.opened.__aexit__(None, None, None)

    async def kill(self) -> None:
        self.killed_by_us = True
        await self.kernel.kill()

    def killed_from_outside(self) -> bool:
        """Whether it was killed, not by us nor for a limit: by its own code or from outside, which looks the same."""
        ended = self.kernel.died.result() if self.kernel.died.done() else None
        killed = ended is not None and ended.code == KILLED and ended.stopped_by is None
        return killed and not self.killed_by_us

    def why_it_died(self) -> str:
        """A key of FAILURES."""
        ended = self.kernel.died.result() if self.kernel.died.done() else None
        return "memory" if ended and ended.stopped_by == "memory" else "died"

    async def execute(self, code: str, seconds: float, *, silent: bool, keep: int) -> Outcome:
        """Run `code` for at most `seconds`; keep at most `keep` bytes of its output."""
        outcome, collected = Outcome(), _Outputs(keep)
        message = self.client.execute(code, silent=silent, store_history=not silent, allow_stdin=False)
        deadline, interrupted = time.monotonic() + seconds, False
        while True:
            if time.monotonic() > deadline:
                if interrupted:
                    await self.kill()
                    break
                await self.kernel.interrupt()
                deadline, interrupted = time.monotonic() + INTERRUPT_SECONDS, True
            try:
                received = await self.client.get_iopub_msg(timeout=POLL_SECONDS)
            except Empty:
                if not self.alive():
                    break
                continue
            except Exception:  # a message that does not even parse is noise of the student's making
                continue
            if received.get("parent_header", {}).get("msg_id") != message:
                continue
            kind, content = received.get("msg_type"), received.get("content")
            if not isinstance(content, dict):
                continue
            if kind == "status" and content.get("execution_state") == "idle":
                outcome.status = "error" if outcome.error else "ok"
                break
            if kind == "error":
                outcome.error = f"{_text(content.get('ename'))}: {_text(content.get('evalue'))}"[:500]
            reply = (
                content.get("data", {}).get(MIME)
                if kind == "display_data" and isinstance(content.get("data"), dict)
                else None
            )
            if isinstance(reply, str) and len(reply) <= MAX_REPLY:
                outcome.reply = outcome.reply or reply
            else:
                collected.add(kind, content)
        if interrupted:
            outcome.status = "timeout"
        elif outcome.status != "died" and await self._asked_to_exit(message):
            outcome.status = "died"
            await self.kill()
        outcome.outputs = collected.outputs
        return outcome

    async def _asked_to_exit(self, message: str) -> bool:
        """Whether an execution ended with a call of exit() or quit(), which ends the kernel a little later."""
        for _ in range(20):  # a stray reply of an earlier message comes first, at most
            try:
                reply = await self.client.get_shell_msg(timeout=1)
            except Exception:  # none came, or one that does not parse
                return False
            if reply.get("parent_header", {}).get("msg_id") == message:
                payload = reply.get("content", {}).get("payload", [])
                return isinstance(payload, list) and any(
                    isinstance(p, dict) and p.get("source") == "ask_exit" for p in payload
                )
        return False


class _Outputs:
    """Outputs of one cell in nbformat's shape, cut at a number of bytes."""

    def __init__(self, keep: int):
        self.outputs: list[dict] = []
        self.left = keep

    def add(self, kind: str, content: dict) -> None:
        output = _SHAPES[kind](content) if kind in _SHAPES else None
        if kind == "clear_output":
            self.outputs.clear()
        if output is None or self.left <= 0:
            return
        self.left -= len(json.dumps(output))
        if self.left <= 0:
            output = {"output_type": "stream", "name": "stdout", "text": "\n[more output was cut]\n"}
        last = self.outputs[-1] if self.outputs else {}
        if output["output_type"] == "stream" and last.get("output_type") == "stream" and last["name"] == output["name"]:
            last["text"] += output["text"]
        else:
            self.outputs.append(output)


def _text(value) -> str:
    return value if isinstance(value, str) else ""


def _bundle(value) -> dict:
    """A MIME bundle with text values only; JSON ones are kept as they are."""
    if not isinstance(value, dict):
        return {}
    return {
        str(k): v for k, v in value.items() if isinstance(v, str) or (str(k).endswith("json") and isinstance(v, dict))
    }


_SHAPES = {
    "stream": lambda c: {
        "output_type": "stream",
        "name": "stderr" if c.get("name") == "stderr" else "stdout",
        "text": _text(c.get("text")),
    },
    "display_data": lambda c: {"output_type": "display_data", "data": _bundle(c.get("data")), "metadata": {}},
    "execute_result": lambda c: {
        "output_type": "execute_result",
        "data": _bundle(c.get("data")),
        "metadata": {},
        "execution_count": None,
    },
    "error": lambda c: {
        "output_type": "error",
        "ename": _text(c.get("ename")),
        "evalue": _text(c.get("evalue")),
        "traceback": [_text(line) for line in c.get("traceback", [])] if isinstance(c.get("traceback"), list) else [],
    },
}
