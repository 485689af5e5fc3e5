"""Runs a submission's cells in a kernel, with a probe beside each graded one: Submission -> Transcript.

One kernel at a time, used for one submission. A cell that ends, blocks or silences its kernel costs its own exercise and no
other: a fresh kernel replays the cells that worked, without the one that did it, and goes on. Everything that arrives from a
kernel is hostile text: it is counted, cut and put into shape before it is kept.

    a kernel is lost     how it is seen
    dead                 its process ended, or was killed: it did not stop when its time was over
    silent               it lives, and a question of ours that any kernel answers gets no answer; asked only where one of its
                         channels has said nothing, so that a submission without such a cell pays nothing for it
"""

import asyncio
import atexit
import base64
import contextlib
import json
import logging
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from queue import Empty

from . import preload, sandbox, stem, wire
from .errors import EngineError
from .exercises import Lecture
from .limits import Limits
from .plans import Plan
from .probe import MIME
from .records import Probe, Reply, Submission, Transcript
from .running import start_cold_kernel, start_warm_kernel
from .settings import Settings
from .warm import Zygote, ZygoteError

log = logging.getLogger(__name__)

INTERRUPT_SECONDS = 3.0  # what a cell has to end by itself once it is interrupted
POLL_SECONDS = 0.2
EXPRESSION = "probe"  # the name under which an expression is sent
SILENT_SECONDS = 3.0  # how long one channel of a kernel may lag behind the other
ECHO_SECONDS = 5.0  # what a living kernel has to answer our question; on a busy machine it takes 0.1
KILLED = -9  # the code of a process that was ended by SIGKILL, which is no name on Windows
MAX_REPLY = 15 << 20  # base64 characters of one reply; the connection takes messages of 16 MiB


@dataclass
class Outcome:
    """How one execution ended.

    Attributes:
        status: "ok", "error", "timeout", "died", or "silent" where one of the kernel's channels does not say how it ended.
        outputs: nbformat outputs, in order.
        reply: base64 text of the probe's reply, or None.
    """

    status: str = "died"
    outputs: list[dict] = field(default_factory=list)
    reply: str | None = None
    error: str = ""
    lost: bool = False  # whether the kernel was lost in it
    failure: str = ""  # the key of FAILURES, where it did not come to its end


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
        _ZYGOTES[key] = _started(plan, hides, settings.device)
        atexit.register(_ZYGOTES[key].stop)
    return _ZYGOTES[key]


def _started(plan: Plan, hides: tuple[str, ...], device: str) -> Zygote:
    """A new zygote, from the stem if there is one that fits and lives."""
    if found := stem.fitting(plan, preload.NOTEBOOKS, hides, device):
        try:
            return Zygote.start(plan, preload.NOTEBOOKS, hides, device, stem=found)
        except ZygoteError as error:
            log.info("a zygote is started by itself: %s", error)
    return Zygote.start(plan, preload.NOTEBOOKS, hides, device)


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
        self.unheard: set[int] = set()  # of these, the ones that ran since the kernel has last answered a question
        self.failures: dict[str, str] = {}  # of exercises whose own cell lost a kernel: keys of FAILURES
        self.suspected: set[int] = set()  # cells in which the kernel was killed
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
        """Run one cell, and its probe if it is graded: in one request, or in another where that brings no reply."""
        probe = self.probes.pop(_grade_id(cell), None)
        outcome = await self.settled(number, cell["source"], probe.code if probe else "")
        cell["outputs"], cell["execution_count"] = self.kept(outcome.outputs), number + 1
        if outcome.failure:
            self.blame(number, outcome, probe)
        elif probe and outcome.reply is None:
            await self.probe(number, probe)
        elif not (probe or outcome.error):
            self.worked.append(number)
            self.unheard.add(number)
        if probe and outcome.reply is not None:
            self.heard(probe, outcome)

    async def probe(self, number: int, probe: Probe) -> None:
        outcome = await self.settled(number, None, probe.code)
        if outcome.failure:
            self.blame(number, outcome, probe)
        elif outcome.reply is None:
            failure = self.failures.get(probe.exercise, "unanswered")
            self.replies[probe.exercise] = Reply(probe.exercise, failure=failure, detail=outcome.error)
        self.heard(probe, outcome)

    def heard(self, probe: Probe, outcome: Outcome) -> None:
        """Keep what a probe replied, also where the kernel was lost afterwards."""
        if outcome.reply is not None:
            self.replies[probe.exercise] = _decoded(probe.exercise, outcome.reply)
        if outcome.lost or not outcome.failure:  # it has just answered, or another that was asked after each cell
            self.unheard.clear()

    async def settled(self, number: int, code: str | None, probe: str = "") -> Outcome:
        """Execute; with a kernel that is lost by it replaced, and once more where an earlier cell turns out to have done that.

        A kernel that was killed by nobody knows whom (the system for want of memory, a person) is no fault of a cell: that is
        run once more, too. One that kills its own kernel does so again.

        Args:
            number: the code cell to which this belongs.
            code: its text; None for a probe alone, which has to reply.
        """
        while True:
            outcome = await self.execute(code, probe)
            missed = code is None and outcome.reply is None and outcome.status != "timeout"
            unheard = outcome.status == "silent" or missed
            if self.kernel.alive() and not (unheard and not await self.answers()):
                outcome.failure = "timeout" if outcome.status == "timeout" else ""
                return outcome
            excused = self.excused(number)
            self.note_loss(outcome)
            left_out = await self.revive()
            if outcome.reply is not None or self.out_of_time() or not (left_out or excused):
                return outcome
            if excused:
                self.events.append(f"The kernel was killed in code cell {number + 1}; that was run again.")

    async def execute(self, code: str | None, probe: str = "") -> Outcome:
        seconds = min(self.settings.cell_seconds, max(self.seconds_left(), 0.1))
        return await self.kernel.execute(code, seconds, probe=probe, keep=self.output_left)

    async def answers(self) -> bool:
        """Whether the kernel, asked something as probes ask, answers it on all its channels."""
        if not self.kernel.alive():
            return False
        word = secrets.token_hex(8)
        seconds = min(ECHO_SECONDS, max(self.seconds_left(), 0.1))
        outcome = await self.kernel.execute(None, seconds, probe=wire.echo_code(word), keep=0)
        return outcome.status == "ok" and word[::-1].encode() in (_decoded("", outcome.reply or "").data or b"")

    def kept(self, outputs: list[dict]) -> list[dict]:
        """The outputs, as long as the submission's share lasts."""
        self.output_left = max(self.output_left - len(json.dumps(outputs)), 0)
        return outputs

    def note_loss(self, outcome: Outcome) -> None:
        """Write into an outcome that the kernel was lost in it, and how; asked before the kernel is replaced."""
        ends = {"timeout": "timeout", "died": self.kernel.why_it_died()}
        outcome.lost = True
        outcome.failure = ends.get(outcome.status, "timeout" if self.out_of_time() else "silent")

    def blame(self, number: int, outcome: Outcome, probe: Probe | None = None) -> None:
        """Note in which code cell a kernel was stopped or lost; the exercise of a graded cell, or of an answer, says so."""
        exercise = probe.exercise if probe else _grade_id(self.cells[number])
        if exercise:
            self.failures[exercise] = outcome.failure
        if probe:
            self.replies[exercise] = Reply(exercise, failure=outcome.failure)
        if outcome.lost:
            self.events.append(LOST[outcome.failure == "silent"].format(number + 1))

    async def revive(self) -> bool:
        """Start a fresh kernel and run again in it what worked, less any cell that loses it; whether there was such a cell.

        It ends: each turn leaves out a cell more, and none begins when the submission's time is over.
        """
        left_out = False
        while not self.out_of_time():
            await self.kernel.stop()
            self.kernel = await self.start()
            culprit, outcome = await self.first_that_loses_it()
            if culprit is None:
                break
            if self.excused(culprit):
                continue
            self.note_loss(outcome)
            self.blame(culprit, outcome)
            self.worked.remove(culprit)
            self.unheard.discard(culprit)
            left_out = True
        return left_out

    def excused(self, number: int) -> bool:
        """Whether the kernel was killed by nobody knows whom, for the first time in this cell."""
        if number in self.suspected or not self.kernel.killed_from_outside():
            return False
        self.suspected.add(number)
        return True

    async def first_that_loses_it(self) -> tuple[int | None, Outcome | None]:
        """The first cell of those that worked whose replay loses the kernel, and how; None where all work again."""
        for number in list(self.worked):
            outcome = await self.execute(self.cells[number]["source"])
            asked = number in self.unheard or outcome.status == "silent"
            if not self.kernel.alive() or (asked and not await self.answers()):
                return number, outcome
        return None, None


LOST = {  # whether it lives on: the event
    False: "The kernel ended in code cell {}; it was started anew, and what had worked before was run again.",
    True: "Code cell {} left the kernel unable to answer; it was started anew, without that cell.",
}


def _grade_id(cell: dict) -> str | None:
    return cell.get("metadata", {}).get("nbgrader", {}).get("grade_id")


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

    async def execute(self, code: str | None, seconds: float, *, keep: int, probe: str = "") -> Outcome:
        """Run `code` for at most `seconds`; keep at most `keep` bytes of its output.

        Args:
            code: None for a probe alone, which leaves no trace in the notebook's history.
            probe: an expression that is evaluated afterwards, if the code ran without an error. Where both together take too
                long and the code alone did not, that is as if no reply had come.
        """
        outcome, collected = Outcome(), _Outputs(keep)
        message = self.client.execute(
            code or "",
            silent=code is None,
            store_history=code is not None,
            user_expressions={EXPRESSION: probe} if probe else {},
            allow_stdin=False,
            stop_on_error=False,
        )
        deadline, interrupted = time.monotonic() + seconds, False
        reply, idle_by = None, float("inf")  # what the shell channel says, and when the other one has to say so, too
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
                if reply is None and (reply := await self._reply(message, 0)) is not None:
                    idle_by = time.monotonic() + SILENT_SECONDS
                if time.monotonic() > idle_by:
                    outcome.status = "silent"
                    break
                continue
            except Exception:  # a message that does not even parse is noise of the student's making
                continue
            kind, content = received.get("msg_type"), received.get("content")
            if not (_is_about(received, message) and isinstance(kind, str) and isinstance(content, dict)):
                continue
            if kind == "status" and content.get("execution_state") == "idle":
                outcome.status = "error" if outcome.error else "ok"
                break
            if kind == "error":
                outcome.error = _error_text(content)
            published = (
                content.get("data", {}).get(MIME)
                if kind == "display_data" and isinstance(content.get("data"), dict)
                else None
            )
            if isinstance(published, str) and len(published) <= MAX_REPLY:
                outcome.reply = outcome.reply or published
            else:
                collected.add(kind, content)
        if interrupted:
            outcome.status = "timeout"
            if code is not None and probe and self.alive():
                reply = reply if reply is not None else await self._reply(message, SILENT_SECONDS)
                outcome.status = "ok" if reply and reply.get("status") == "ok" else "timeout"
        elif outcome.status in ("ok", "error"):
            reply = reply if reply is not None else await self._reply(message, SILENT_SECONDS)
            if reply is None:
                outcome.status = "silent"
            elif _asks_to_exit(reply):
                outcome.status = "died"
                await self.kill()
            else:
                outcome.error = outcome.error or _expression_error(reply)
        outcome.outputs = collected.outputs
        return outcome

    async def _reply(self, message: str, seconds: float) -> dict | None:
        """What the shell channel says of an execution within `seconds`; None if nothing."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                reply = await self.client.get_shell_msg(timeout=max(deadline - time.monotonic(), 0))
            except Empty:
                return None
            except Exception:  # one that does not parse
                reply = {}
            if _is_about(reply, message):  # else it is of an earlier one, or none of ours
                return reply.get("content") if isinstance(reply.get("content"), dict) else {}
            if time.monotonic() > deadline + SILENT_SECONDS:  # somebody sends on and on
                return None


def _is_about(received: dict, message: str) -> bool:
    parent = received.get("parent_header")
    return isinstance(parent, dict) and parent.get("msg_id") == message


def _expression_error(reply: dict) -> str:
    """The error that an evaluated expression ended with, or ""."""
    evaluated = reply.get("user_expressions")
    found = evaluated.get(EXPRESSION) if isinstance(evaluated, dict) else None
    return _error_text(found) if isinstance(found, dict) and found.get("status") == "error" else ""


def _error_text(content: dict) -> str:
    return f"{_text(content.get('ename'))}: {_text(content.get('evalue'))}"[:500]


def _asks_to_exit(reply: dict) -> bool:
    """Whether a reply says that exit() or quit() was called, which ends the kernel a little later."""
    payload = reply.get("payload", [])
    return isinstance(payload, list) and any(isinstance(p, dict) and p.get("source") == "ask_exit" for p in payload)


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
    """A text that every file can hold; half of a surrogate pair becomes a question mark."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _bundle(value) -> dict:
    """A MIME bundle with text values only, and JSON ones that are not nested deeper than anybody's."""
    bundle = {}
    for kind, shown in value.items() if isinstance(value, dict) else ():
        with contextlib.suppress(RecursionError):
            if isinstance(shown, str) or (kind.endswith("json") and isinstance(shown, dict)):
                bundle[_text(kind)] = _plain(shown)
    return bundle


DEEPEST = 50  # levels of JSON


def _plain(value, depth=0):
    """JSON values with texts that every file can hold.

    Raises:
        RecursionError: they are nested deeper than DEEPEST.
    """
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        return {_text(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, depth + 1) for item in value]
    return _text(value) if isinstance(value, str) else value


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
