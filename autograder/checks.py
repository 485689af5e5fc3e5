"""The visible cases of a lecture with their expected results, as data: reads `checks.json`, which lies beside the notebook.

It holds what the reference and the wrong answers did on the visible cases, never how. `checks_writer` makes it.
"""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from . import wire
from .diagnosis import Misconception, Rules
from .errors import CourseError
from .properties import Property
from .records import Seen

FILE = "checks.json"
FORMAT = 3  # of the file; another one is refused, for it was written by another version of this package


@dataclass(frozen=True, eq=False)
class VisibleChecks:
    """What a student's notebook knows of one exercise.

    Attributes:
        question: the visible cases, as a message.
        expected: what is expected on each.
        hidden: how many more cases run when graded.
        facts: the text of what is told of a result in its place, see `facts`; "" where the result itself is judged.
    """

    rules: Rules
    number: str
    points: float
    question: bytes
    expected: tuple[Seen, ...]
    misconceptions: tuple[Misconception, ...]
    hints: tuple[str, ...]
    hidden: int
    facts: str = ""


@dataclass(frozen=True)
class WrittenAnswer:
    """What a student's notebook knows of an answer in prose; its hints may be none."""

    id: str
    number: str
    points: float
    hints: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LectureChecks:
    """All that a checks.json holds, by id."""

    exercises: dict[str, VisibleChecks]
    written: dict[str, WrittenAnswer]
    predictions: dict[str, dict]


def load(path: Path, lecture: str) -> LectureChecks:
    """What the checks.json of a lecture holds.

    Raises:
        CourseError: the file is absent, damaged, of another lecture or of another version.
    """
    path = path.resolve()
    again = f"fetch the folder of lecture {lecture} again and open the notebook in it"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("format") != FORMAT:
            raise CourseError(
                f"{path} has format {data.get('format', 1)}, and the autograder installed here reads format {FORMAT}: "
                f"{again}, or install the autograder that came with it."
            )
        if data["lecture"] != lecture:
            raise CourseError(f"{path} belongs to lecture {data['lecture']}, not to {lecture}: {again}.")
        return LectureChecks(
            {e["id"]: _visible(e) for e in data["exercises"]},
            {w["id"]: WrittenAnswer(w["id"], w["number"], w["points"], tuple(w["hints"])) for w in data["written"]},
            {p["id"]: p for p in data["predictions"]},
        )
    except FileNotFoundError:
        raise CourseError(
            f"{FILE} is not in {path.parent}: it holds the visible checks and belongs beside the notebook; {again}."
        ) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise CourseError(f"{path} is damaged or cut short ({type(error).__name__}): {again}.") from error


def _visible(e) -> VisibleChecks:
    rules = Rules(
        e["id"],
        tuple(e["arguments"]),
        tuple(Property(name, tuple(arguments)) for name, *arguments in e["properties"]),
        tuple(e["tolerance"]) if e["tolerance"] else None,
        tuple(e["forbidden"]),
    )
    return VisibleChecks(
        rules,
        e["number"],
        e["points"],
        wire.whole(base64.b64decode(e["question"])),
        _seen(e["expected"]),
        tuple(Misconception(w["code"], w["message"], _seen(w["seen"]), w["breaks"]) for w in e["wrong"]),
        tuple(e["hints"]),
        e["hidden"],
        e.get("facts", ""),
    )


def _seen(text):
    return tuple(wire.read_seen(base64.b64decode(text)))
