"""Why an answer is not the expected one: the case to show, the first difference there, the misconception it looks like.

The judge asks this with fresh hidden cases, a student's notebook with the visible ones; the words are the same.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

from .compare import Difference, difference, show
from .properties import Property
from .records import Seen, SeenTensor
from .source_rules import broken_rule

# What an answer returns marks a misconception; how many operations and bytes it takes and which warnings come does not. Nor
# do demands on an answer alone: one that behaves like a wrong answer fails them as that one does.
NOT_TELLING = ("op_budget", "copy_budget", "no_warnings", "never_calls", "finite_gradient")


# What properties look at. In each case they come after the values, and so they do from case to case: nobody should hear of a
# GPU, because a case without elements is the smallest, whose answers are wrong where there are some.
ASIDE = (
    "sharing", "strides", "kind", "requires_grad", "storage", "operations", "memory", "forbidden call", "warnings",
    "gradient", "device", "plot",
)  # fmt: skip

# Before what is known of a mistake that came with another one.
NOT_ALONE = "For this input (another fault shows elsewhere):"


@dataclass(frozen=True)
class Rules:
    """What counts in one exercise, as data.

    Attributes:
        tolerance: (rtol, atol), or None for the default of the dtype and the device.
        forbidden: names that the code may not use.
    """

    id: str
    arguments: tuple[str, ...]
    properties: tuple[Property, ...] = ()
    tolerance: tuple[float, float] | None = None
    forbidden: tuple[str, ...] = ()

    def difference(self, expected: Seen, got: Seen) -> Difference | None:
        return difference(expected, got, self.properties, self.tolerance)


@dataclass(frozen=True, eq=False)
class Misconception:
    """How a known wrong answer behaves.

    Attributes:
        seen: what it does on the cases at hand, in order.
        breaks: the construct that its source is refused for ("a for loop"), or "".
    """

    code: str
    message: str
    seen: tuple[Seen, ...]
    breaks: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with an answer.

    Attributes:
        case: index of the case to show; None when the source and not a result is at fault.
        code, likely: the misconception and its message; "" when none is recognised.
    """

    found: Difference
    case: int | None
    code: str = ""
    likely: str = ""

    @property
    def unanswered(self) -> bool:
        return self.found.aspect == "unanswered"

    @property
    def next_step(self) -> str:
        return self.found.next_step


def diagnose(
    rules: Rules,
    expected: tuple[Seen, ...],
    got: tuple[Seen, ...],
    cells: Iterable[str],
    misconceptions: Iterable[Misconception],
    visible: int,
) -> Diagnosis | None:
    """What is wrong with `got`, or None.

    Args:
        expected, got: one a case; the first `visible` may be shown to the student and are preferred.
        cells: the texts of the student's code cells, for rules about the source.
        misconceptions: looked at in order, and only when something is wrong; may be a generator.
    """
    differences = [rules.difference(e, g) for e, g in zip(expected, got, strict=True)]
    failing = [i for i, found in enumerate(differences) if found]
    if not failing:
        return _source_diagnosis(rules, cells, misconceptions)
    unanswered = next((i for i in failing if differences[i].aspect == "unanswered"), None)
    if unanswered is not None and all(
        got[i].raised is not None and got[i].raised.blank for i in failing
    ):  # also where another error is expected
        return Diagnosis(differences[unanswered], unanswered)
    shown = min(failing, key=lambda i: (i >= visible, differences[i].aspect in ASIDE, size(expected[i].inputs), i))
    partly = {}
    for known in misconceptions:
        theirs = [rules.difference(e, w) for e, w in zip(expected, known.seen, strict=True)]
        alike = lambda i, known=known, theirs=theirs: _alike(rules, differences[i], got[i], theirs[i], known.seen[i])
        if all(map(alike, range(len(got)))):
            return Diagnosis(differences[shown], shown, known.code, known.message)
        if alike(shown) and all(differences[i] for i, found in enumerate(theirs) if found):
            partly[known.message] = known
    if len(partly) == 1:  # this fault, and one more that shows elsewhere
        (known,) = partly.values()
        return Diagnosis(differences[shown], shown, known.code, f"{NOT_ALONE} {known.message}")
    return Diagnosis(differences[shown], shown)


def _source_diagnosis(rules, cells, misconceptions):
    found = broken_rule(cells, rules.id, rules.properties, rules.forbidden)
    if found is None:
        return None
    broken = construct(found)
    known = next((m for m in misconceptions if m.breaks == broken), None)
    return Diagnosis(found, None, known.code, known.message) if known else Diagnosis(found, None)


def construct(found: Difference) -> str:
    """The construct that a source rule refused, without its line."""
    return found.got.split(" in line ")[0]


def _alike(rules, ours, got, theirs, wrong) -> bool:
    """Whether an answer does on one case what a wrong answer does: both are right there, or both wrong in the same way."""
    if ours is None or theirs is None:
        return ours is theirs
    telling = replace(rules, properties=tuple(p for p in rules.properties if p.name not in NOT_TELLING))
    return ours.aspect == theirs.aspect and not telling.difference(wrong, got) and _says(wrong) == _says(got)


def _says(seen: Seen) -> str:
    """What an error says, the names and numbers in it left out: one that is raised for another reason says something else."""
    if seen.raised is None or "RecursionError" in seen.raised.types:  # which call was the last one says nothing
        return ""
    return NAMES.sub("_", seen.raised.message)


# what the student has named, and numbers: a class, a dotted path, a function that is called
# (each begins where a word begins, or a long word would be read from every letter of it)
NAMES = re.compile(r"(?<![\w<>])(?:[\w<>]+\.)+[\w<>]+|\b(?!NoneType\b|Tensor\b)[A-Z]\w*|\b\w+\(\)|\d+")


def size(inputs: dict) -> int:
    """How large a case is: elements of its tensors and characters of the rest."""

    def count(tree):
        if isinstance(tree, SeenTensor):
            return prod(tree.shape)
        if isinstance(tree, (list, tuple)):
            return sum(map(count, tree))
        return len(str(tree))

    return sum(count(value) for value in inputs.values())


def given_text(rules: Rules, inputs: dict) -> str:
    """The inputs of a case in words: x = [[1, 2]], shape (1, 2), int64, k = 3; also unusual strides and offsets."""
    return ", ".join(f"{name} = {_given(inputs[name])}" for name in rules.arguments if name in inputs) or "no arguments"


def _given(value):
    text = show(value)
    if isinstance(value, SeenTensor) and value.stride is not None:
        text += "" if _contiguous(value) else f", strides {value.stride}"
        text += f", offset {value.offset}" if value.offset else ""
    return text


def kinds_text(rules: Rules, inputs: dict) -> str:
    """Only the kinds of the inputs of a case: x: float32 (5, 7), not contiguous; k: int."""
    return "; ".join(f"{name}: {_kind(inputs[name])}" for name in rules.arguments if name in inputs) or "no arguments"


def _kind(value):
    if not isinstance(value, SeenTensor):
        return type(value).__name__
    text = (
        f"{value.dtype} {value.shape}" if value.layout == "strided" else f"{value.layout} {value.dtype} {value.shape}"
    )
    return text if value.stride is None or _contiguous(value) else f"{text}, not contiguous"


def _contiguous(seen):
    step = 1
    for n, stride in zip(reversed(seen.shape), reversed(seen.stride), strict=True):
        if n != 1 and stride != step:
            return prod(seen.shape) == 0
        step *= n
    return True
