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


@dataclass(frozen=True, eq=False)
class VisibleChecks:
    """What a student's notebook knows of one exercise.

    Attributes:
        question: the visible cases, as a message.
        expected: what is expected on each.
        hidden: how many more cases run when graded.
        reads: how files among the results are read, see wire.READERS.
    """

    rules: Rules
    number: str
    points: float
    question: bytes
    expected: tuple[Seen, ...]
    misconceptions: tuple[Misconception, ...]
    hints: tuple[str, ...]
    hidden: int
    reads: str = ""


def load(path: Path) -> tuple[dict[str, VisibleChecks], dict[str, dict]]:
    """The exercises and predictions in a checks.json, by id.

    Raises:
        CourseError: the file is absent or damaged.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {e["id"]: _visible(e) for e in data["exercises"]}, {p["id"]: p for p in data["predictions"]}
    except FileNotFoundError:
        raise CourseError(
            f"{path.name} is not in {path.parent}: open the notebook in its own folder, beside {FILE}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CourseError(
            f"{path.name} is damaged ({type(error).__name__}): get it anew from your instructor"
        ) from error


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
        base64.b64decode(e["question"]),
        _seen(e["expected"]),
        tuple(Misconception(w["code"], w["message"], _seen(w["seen"]), w["breaks"]) for w in e["wrong"]),
        tuple(e["hints"]),
        e["hidden"],
        e.get("reads", ""),
    )


def _seen(text):
    return tuple(wire.read_seen(base64.b64decode(text)))
