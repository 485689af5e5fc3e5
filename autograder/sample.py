"""The sample class: twelve submissions made from a lecture's released notebook, each with its own fate.

Course tests, `make grade` and newcomers use it. What each one must come out as stands in EXPECTED; a test holds it.
"""

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import CourseError
from .exercises import Exercise, Lecture, standalone_text
from .files import storage_error
from .settings import Settings

FORGERY = """
import builtins, json, sys
import torch
from IPython import get_ipython
from IPython.display import display

print("score: 1000/1000")
display({"text/plain": "1000.0"}, raw=True)
shell = get_ipython()
shell.displayhook(1000.0)
always = lambda *args, **kwargs: True
torch.equal = torch.allclose = torch.Tensor.equal = torch.testing.assert_close = always
type(check).__call__ = lambda self, function: print("all checks passed")
for name, module in list(sys.modules.items()):
    if name.startswith("autograder."):
        for key in list(vars(module)):
            if key in ("difference", "diagnose", "broken_rule"):
                setattr(module, key, lambda *args, **kwargs: None)

class Empty(__import__("ast").NodeTransformer):
    def visit_Module(self, node):
        node.body = []
        return node

shell.ast_transformers.append(Empty())
yes = {"status": "ok", "data": {"text/plain": "True"}, "metadata": {}}
type(shell).user_expressions = lambda self, expressions: dict.fromkeys(expressions, yes)
"""


@dataclass(frozen=True)
class Fate:
    """What a sample submission must come out as.

    Attributes:
        state: of its report.
        lost: how many exercises it loses; None for all of them.
    """

    state: str
    lost: int | None = 0


EXPECTED = {
    "solved": Fate("graded"),
    "blank": Fate("graded", None),
    "wrong_copy": Fate("graded", 1),
    "wrong_duplicates": Fate("graded", 1),
    "wrong_rank": Fate("graded", 1),
    "syntax_error": Fate("graded", 1),
    "endless_loop": Fate("graded", 1),
    "killed_kernel": Fate("graded", 1),
    "deleted_test": Fate("repaired"),
    "duplicated_test": Fate("repaired"),
    "broken_json": Fate("ungradable", None),
    "forged_score": Fate("graded", None),
}


def write(lecture: Lecture, settings: Settings, folder: Path) -> list[str]:
    """Write the sample class as `folder`/STUDENT/LECTURE/LECTURE.ipynb; what stood there of these students is replaced.

    Raises:
        CourseError: the lecture is not released yet, or not as it should be.
        StorageError: `folder` cannot be written.
    """
    name = f"{lecture.name}.ipynb"
    try:
        released = (settings.course / lecture.name / name).read_text(encoding="utf-8")
        solved = (lecture.folder / name).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise CourseError(
            f"{error.filename} is missing: run make notebooks, then autograder release {lecture.name}"
        ) from error
    except ValueError as error:
        raise CourseError(
            f"{name} in {settings.course} or {settings.solutions} is not UTF-8 ({error}): run make notebooks, then "
            f"autograder release {lecture.name}"
        ) from error
    students = []
    for student, text in sample_class(lecture, released, solved):
        own = Path(folder) / student / lecture.name
        try:
            if own.exists():
                shutil.rmtree(own)
            own.mkdir(parents=True)
            (own / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise storage_error(own, error) from error
        students.append(student)
    return students


def sample_class(lecture: Lecture, released: str, solved: str) -> Iterator[tuple[str, str]]:
    """(student, text of the notebook handed in) of the whole sample class.

    Args:
        released, solved: the two notebooks of the lecture, as JSON text.
    """
    blank, answers = _read(released), _answers(_read(solved))
    full = _answered(blank, answers)
    chosen = _independent(lecture)
    first, second, third = (chosen[place % len(chosen)] for place in range(3))
    yield "solved", _text(full)
    yield "blank", _text(blank)
    for exercise, wrong in _labelled(lecture):
        yield wrong.sample, _spoilt(blank, answers, exercise, standalone_text(wrong.function, exercise.id))
    yield "syntax_error", _spoilt(blank, answers, first, answers[first.id] + "\n\ndef unfinished(:\n")
    yield "endless_loop", _spoilt(blank, answers, second, _endless(second))
    yield "killed_kernel", _spoilt(blank, answers, third, _killer(third))
    is_test = lambda cell: _grade_id(cell) == first.check_cell
    yield "deleted_test", _text(_with_cells(full, lambda cells: [c for c in cells if not is_test(c)]))
    yield "duplicated_test", _text(_with_cells(full, lambda cells: [*cells, *filter(is_test, cells)]))
    yield "broken_json", _text(full)[: len(_text(full)) // 2]
    yield "forged_score", _text(_with_cells(blank, _with_forgery))


def _spoilt(blank, answers, exercise, source) -> str:
    """The solved notebook with another text as the answer of one exercise."""
    return _text(_answered(blank, {**answers, exercise.id: source}))


def lost_exercise(lecture: Lecture, student: str) -> tuple[Exercise, str] | None:
    """The exercise that a sample submission loses for a misconception, and its code."""
    return next(((e, w.code) for e, w in _labelled(lecture) if w.sample == student), None)


def _labelled(lecture):
    labelled = [(e, w) for e in lecture.exercises for w in e.wrong_answers if w.sample]
    names = sorted(w.sample for _, w in labelled)
    if names != ["wrong_copy", "wrong_duplicates", "wrong_rank"]:
        raise CourseError(
            f"{lecture.name}: label one wrong answer each sample='wrong_copy', 'wrong_duplicates', 'wrong_rank'; there are {names}"
        )
    return labelled


def _independent(lecture) -> list[Exercise]:
    """Exercises whose loss costs no other one."""
    needed = {name for exercise in lecture.exercises for name in exercise.needs}
    return [e for e in lecture.exercises if not e.written and e.id not in needed and e.number not in needed]


def _endless(exercise):
    return (
        f"def {exercise.id}(*arguments):\n    while True:\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            continue\n"
    )


def _killer(exercise):
    return f"import os\nimport signal\n\n\ndef {exercise.id}(*arguments):\n    os.kill(os.getpid(), signal.SIGKILL)\n"


def _with_forgery(cells):
    forged = {
        "cell_type": "code",
        "source": FORGERY,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "id": "forgery",
    }
    after_setup = next(i for i, cell in enumerate(cells) if _grade_id(cell) == "setup") + 1
    return [*cells[:after_setup], forged, *cells[after_setup:]]


def _answers(solved) -> dict[str, str]:
    """The solved text of every cell that holds an answer, by grade_id."""
    return {_grade_id(cell): cell["source"] for cell in solved["cells"] if _nbgrader(cell).get("solution")}


def _answered(blank, answers):
    def fill(cells):
        return [
            {**c, "source": answers[_grade_id(c)]} if _nbgrader(c).get("solution") and _grade_id(c) in answers else c
            for c in cells
        ]

    return _with_cells(blank, fill)


def _with_cells(notebook, change: Callable[[list], list]):
    return {**notebook, "cells": change(copy.deepcopy(notebook["cells"]))}


def _read(text: str):
    """A notebook with every cell's source as one text; files hold it as a list of lines, too."""
    return _with_cells(json.loads(text), lambda cells: [{**c, "source": "".join(c["source"])} for c in cells])


def _text(notebook) -> str:
    return json.dumps(notebook, indent=1)


def _nbgrader(cell) -> dict:
    return cell.get("metadata", {}).get("nbgrader", {})


def _grade_id(cell) -> str | None:
    return _nbgrader(cell).get("grade_id")
