"""The frozen records that pass from stage to stage: Submission, Transcript, Answers, Verdict, Report.

    intake   a submitted file          -> Submission
    kernels  Submission + probes       -> Transcript
    wire     Transcript                -> Answers
    judge    Answers + reference       -> Verdicts
    report   Verdicts                  -> Report

All of them pickle small and hold no open file, so that they travel to a worker and back as messages.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Submission:
    """What one student handed in for one lecture, made ready to run.

    Attributes:
        notebook: the repaired notebook as JSON text (nbformat 4); None when it is ungradable.
        files: the other files handed in, by their relative POSIX path.
        repairs: one sentence for every thing put right, in the order it was found.
        ungradable: why it cannot be graded, as a sentence for the student; None when it can.
        digest: SHA-256 over every file handed in, as hex.
    """

    student: str
    lecture: str
    notebook: str | None
    files: dict[str, bytes] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()
    ungradable: str | None = None
    digest: str = ""


@dataclass(frozen=True)
class Probe:
    """What is asked of the student's process beside one graded cell.

    Attributes:
        exercise: id of the exercise, which is the name of the student's function.
        cell: grade_id of the graded cell that it follows.
        code: an expression that, evaluated there, publishes one reply.
    """

    exercise: str
    cell: str
    code: str


@dataclass(frozen=True)
class Reply:
    """What came back for one probe: bytes, or the way in which nothing did.

    Attributes:
        data: the message as sent, not yet read; None when there was none.
        failure: "" or one of FAILURES.
        detail: for people, e.g. the last line of a traceback.
    """

    exercise: str
    data: bytes | None = None
    failure: str = ""
    detail: str = ""


FAILURES = {
    "timeout": "It did not finish within the time limit, so it was stopped.",
    "died": "The Python process ended while this was running.",
    "memory": "It used more memory than allowed, so it was stopped.",
    "missing": "Its check cell was not reached.",
    "silent": "It left Python unable to send anything back. Do not close or replace what belongs to the notebook: "
    "sys.stdout, display, sys.modules, file descriptors and sockets.",
    "unanswered": "It was called and ended without sending an answer back.",
}


@dataclass(frozen=True)
class Transcript:
    """What happened when a submission was run.

    Attributes:
        notebook: the executed notebook as JSON text.
        replies: one for each probe, by exercise id.
        events: what went wrong on the way, one sentence each ("the kernel died in cell 7").
        seconds: wall time of the run.
    """

    notebook: str
    replies: dict[str, Reply]
    events: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class SeenTensor:
    """A tensor as it was seen in the process that made it: values, and observations beside them.

    Attributes:
        value: the values, contiguous, strided, on the CPU; None when they were not sent (see `withheld`). For a sparse
            layout `parts` holds its index and value tensors instead.
        stride, offset: in elements; None where the layout has none.
        storage: a name for its storage, equal for tensors of one case that share memory; "" for an empty storage.
        same_as: the path of the input that is this very object, or "".
        kind: "tensor", "parameter", "masked" (parts: data, mask), "array" (NumPy) or the name of another subclass.
    """

    value: Any
    dtype: str
    shape: tuple[int, ...]
    layout: str = "strided"
    stride: tuple[int, ...] | None = None
    offset: int | None = None
    device: str = "cpu"
    storage: str = ""
    storage_bytes: int = 0
    same_as: str = ""
    kind: str = "tensor"
    requires_grad: bool = False
    is_leaf: bool = True
    grad_fn: str = ""
    parts: dict[str, "SeenTensor"] = field(default_factory=dict)
    withheld: str = ""


@dataclass(frozen=True, eq=False)
class SeenLine:
    """A line of a plot.

    Attributes:
        x, y: float64 SeenTensors of one dimension, in data coordinates.
        label: as given; "" when none was.
        style: matplotlib's line style and its dash pattern; equal for lines that look equal in grey and without markers.
        marker, colour: matplotlib's name of the marker, "" for none; the colour as #rrggbbaa.
    """

    x: SeenTensor
    y: SeenTensor
    label: str = ""
    style: str = ""
    marker: str = ""
    colour: str = ""


@dataclass(frozen=True, eq=False)
class SeenAxes:
    """One panel of a figure.

    Attributes:
        x_limits, y_limits: the two ends of each axis.
        shares_x, shares_y: number of the first panel whose axis this one shares, its own number where there is none.
        legend: the texts of its legend, in order.
    """

    title: str
    x_label: str
    y_label: str
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]
    shares_x: int
    shares_y: int
    lines: tuple[SeenLine, ...]
    legend: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class SeenFigure:
    """A matplotlib figure as data; it is never drawn.

    Attributes:
        panels: its visible axes, in the order in which they were made.
        alt: the description that was returned beside it, "" when none was.
        title, x_label, y_label, legend: those that belong to the figure as a whole.
    """

    panels: tuple[SeenAxes, ...]
    alt: str = ""
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    legend: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeenObject:
    """A value that is no data (a function, a module): its type's name and a short text."""

    type: str
    text: str


@dataclass(frozen=True)
class Raised:
    """An exception that a call ended with; `types` are the names of its class and its bases, nearest first."""

    types: tuple[str, ...]
    message: str

    @property
    def blank(self) -> bool:
        """Whether it is what an answer raises that nobody has begun, and not torch's word for what it cannot do."""
        return "NotImplementedError" in self.types and self.message.strip() in BLANK


BLANK = ("", "not answered yet")  # what the stub of a code cell says


@dataclass(frozen=True, eq=False)
class Seen:
    """What one call on one case did: everything that a verdict can rest on.

    Attributes:
        result: a tree of plain values, SeenTensor, SeenFigure and SeenObject; meaningless when `raised` is set.
        inputs: the arguments after the call, as the same kind of tree, by name.
        gradients: by the path of the input, a SeenTensor or None; empty when none were asked for.
        ops: how often each torch operation was dispatched, by name ("aten.add.Tensor").
        new_bytes: of the memory that the operations' results took beyond that of their inputs.
        warnings: "Category: text" of each warning.
        seconds: wall time of the call.
        fake_cuda: how the same call went on a fake GPU: {"raised", "message", "devices"}; None when it was not tried.
    """

    result: Any = None
    raised: Raised | None = None
    inputs: dict[str, Any] = field(default_factory=dict)
    gradients: dict[str, Any] = field(default_factory=dict)
    ops: dict[str, int] = field(default_factory=dict)
    new_bytes: int = 0
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    fake_cuda: dict[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Answers:
    """What the student's code returned for the cases of one exercise, as data.

    Attributes:
        seen: one Seen a case, in order; empty when unreadable or absent.
        failure: "" or why there is nothing to judge, as a sentence.
    """

    exercise: str
    seen: tuple[Seen, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class Verdict:
    """Points and reasons for one exercise.

    Attributes:
        codes: misconceptions recognised, e.g. ("M09",).
        message: for the student: what was expected, what came, the smallest failing input, the likely misconception,
            the next step; "" when nothing is wrong.
        by_hand: it waits for a person's judgement.
        seconds: wall time of the student's calls, as measured in the student's process; None when nothing was called.
    """

    exercise: str
    number: str
    score: float
    points: float
    codes: tuple[str, ...] = ()
    message: str = ""
    by_hand: bool = False
    seconds: float | None = None


STATES = ("graded", "repaired", "ungradable", "error")


@dataclass(frozen=True)
class Report:
    """One submission, graded.

    Attributes:
        state: one of STATES.
        reason: a sentence for "ungradable" and "error", else None.
        verdicts: one for each exercise of the lecture, in order, whatever happened.
        events: what went wrong on the way, one sentence each.
        provenance: hashes and versions that the score rests on, by name.
        notebook: the executed notebook as JSON text; None when it never ran.
    """

    student: str
    lecture: str
    state: str
    verdicts: tuple[Verdict, ...]
    reason: str | None = None
    repairs: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    seconds: float = 0.0
    provenance: dict[str, str] = field(default_factory=dict)
    notebook: str | None = None

    @property
    def score(self) -> float:
        return sum(verdict.score for verdict in self.verdicts)

    @property
    def max_score(self) -> float:
        return sum(verdict.points for verdict in self.verdicts)
