"""What a student's notebook calls: check, hint, predict.

    check = Checker("02_indexing")
    check(every_kth_of_last_row)

Runs the visible cases in the student's own process and shows what was expected, what came, the smallest failing input, the likely
misconception and the next step. It needs no reference and no network, and it decides no grade.
"""

import html
import inspect
import json
import linecache
import os
import re
import textwrap
import traceback
from dataclasses import dataclass
from pathlib import Path

from IPython.display import display

from . import checks, probe, wire
from .checks import VisibleChecks
from .diagnosis import diagnose, given_text
from .errors import UsageError

PROGRESS_FILE = "progress.json"
RUNS = "runs"  # where the TensorBoard lab logs to
RECALLED = "R"  # how the id of a question on earlier lectures begins: no cell after it shows the answer


class CheckFailed(AssertionError):
    """A visible check failed. Jupyter shows its one line and no traceback: the table above it says the rest."""

    def _render_traceback_(self):
        return [str(self)]


@dataclass(frozen=True)
class Table:
    """A few named rows under a title, shown as plain text or as HTML."""

    title: str
    rows: tuple[tuple[str, str], ...]
    footer: str = ""

    def __repr__(self):
        width = max((len(name) for name, _ in self.rows), default=0)
        lines = [f"  {name:<{width}}  {text}" for name, text in self.rows]
        return "\n".join([self.title, *lines, *([self.footer] if self.footer else [])])

    def _repr_html_(self):
        cell = "text-align:left;vertical-align:top;padding:2px 10px;"
        rows = "".join(
            f'<tr><th scope="row" style="{cell}">{html.escape(name)}</th>'
            f'<td style="{cell}white-space:pre-wrap">{_marked_up(text)}</td></tr>'
            for name, text in self.rows
        )
        footer = f"<p>{html.escape(self.footer)}</p>" if self.footer else ""
        return f"<p><strong>{_marked_up(self.title)}</strong></p><table>{rows}</table>{footer}"


def _marked_up(text: str) -> str:
    """Text as HTML: escaped, what stands between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", html.escape(text))


class Checker:
    """The checks, hints and predictions of one lecture.

    Args:
        lecture: its name, e.g. "02_indexing".
        folder: where its checks.json lies; the notebook's own folder by default.
    """

    def __init__(self, lecture: str, folder: str | Path = "."):
        self.lecture = lecture
        self.folder = Path(folder)
        self.exercises, self.predictions = checks.load(self.folder / checks.FILE)
        self.passed: dict[str, bool] = dict.fromkeys(self.exercises, False)
        self.hints_shown: dict[str, int] = {}

    def __call__(self, function) -> None:
        """Run the visible cases of an exercise and show the result.

        Raises:
            CheckFailed: a visible check failed.
            UsageError: `function` is no exercise of this lecture.
        """
        exercise, lines = self._exercise(self._itself(function)), {}
        id = exercise.rules.id
        failed = lambda case, error: lines.setdefault(case, _own_line(function, error))
        seen = tuple(wire.read_seen(probe.answer(function, exercise.question, failed), exercise.reads))
        found = diagnose(
            exercise.rules, exercise.expected, seen, _source(function), exercise.misconceptions, len(exercise.expected)
        )
        self.passed[id] = found is None
        title = f"Exercise {exercise.number}  {id}"
        if found is None:
            display(Table(f"✓ {title}: visible checks passed", self._passed_rows(exercise), self.progress()))
            return
        if found.unanswered:
            rows = (("next step", found.next_step), ("hint", f"hint({id}) gives the first of three hints"))
            display(Table(f"○ {title}: not answered yet", rows, self.progress()))
            raise CheckFailed(f"Exercise {exercise.number} ({id}) is not answered yet.")
        line = lines.get(found.case, "") if found.found.aspect in ("raised", "raises") else ""
        display(Table(f"✗ {title}: not right yet", self._failed_rows(exercise, found, line), self.progress()))
        raise CheckFailed(
            f"Exercise {exercise.number} ({id}): {found.found.path}: expected {found.found.expected}, "
            f"got {found.found.got.removesuffix('.')}." + (f" {found.likely}" if found.likely else "")
        )

    def _passed_rows(self, exercise: VisibleChecks):
        checked = ["value, shape and dtype", "arguments after the call", *(p.text for p in exercise.rules.properties)]
        return (
            ("checked", f"{', '.join(checked)}, on {len(exercise.expected)} cases"),
            ("still to come", f"{exercise.hidden} more cases run when graded"),
        )

    def _failed_rows(self, exercise: VisibleChecks, found, line):
        rows = []
        if found.case is not None:
            before = wire.read_seen(probe.answer(lambda *case: None, wire.without_driver(exercise.question)))
            rows.append(("smallest failing input", given_text(exercise.rules, before[found.case].inputs)))
        rows += [("where", found.found.path), ("expected", found.found.expected), ("got", found.found.got)]
        if line:
            rows.append(("in the line", line))
        if found.likely:
            rows.append(("likely cause", f"{found.likely} ({found.code})"))
        rows.append(("next step", found.next_step))
        if self.hints_shown.get(exercise.rules.id, 0) < len(exercise.hints):
            rows.append(("hint", f"hint({exercise.rules.id})"))
        return tuple(rows)

    def hint(self, function) -> None:
        """Show the next of three hints of an exercise: the idea, then where to look, then nearly the code."""
        exercise = self._exercise(function)
        id, count = exercise.rules.id, len(exercise.hints)
        shown = self.hints_shown[id] = min(self.hints_shown.get(id, 0) + 1, count)
        self._keep("hints", id, shown)
        rows = tuple((f"hint {i + 1} of {count}", exercise.hints[i]) for i in range(shown))
        display(Table(f"Exercise {exercise.number}  {id}", rows))

    def predict(self, id: str, choice=...) -> None:
        """Store a prediction, then say why it is right or wrong. Predictions are not graded."""
        if id not in self.predictions:
            raise UsageError(
                f"there is no prediction {id!r} in {self.lecture}; there are: {', '.join(self.predictions)}"
            )
        asked = self.predictions[id]
        choices = asked["choices"]
        given, choice = choice, choice.strip(" .)").lower() if isinstance(choice, str) else choice
        if choice not in choices:
            rows = tuple((letter, text) for letter, (text, _) in choices.items())
            footer = f'Commit yourself before you run on: predict("{id}", "{next(iter(choices))}"), or another letter.'
            if given is not ...:
                footer = f"There is no choice {given!r} here, only {', '.join(choices)}. {footer}"
            display(Table(f"○ {id}  {asked['question']}", rows, footer))
            return
        self._keep("predictions", id, choice)
        text, why = choices[choice]
        right = choice == asked["answer"]
        rows = (("your prediction", f"{choice}: {text}"), ("right" if right else "not so", why))
        compare = "Predict" if id.startswith(RECALLED) else "Run the next cell and compare, then predict"
        footer = "" if right else f'{compare} again if you like: predict("{id}", ...).'
        display(Table(f"{'✓' if right else '✗'} {id}  {asked['question']}", rows, footer))

    def progress(self) -> str:
        """The progress of the lecture in one line."""
        done = sum(self.passed.values())
        bar = "■" * done + "□" * (len(self.passed) - done)
        return f"{self.lecture}: {done} of {len(self.passed)} exercises pass their visible checks  {bar}"

    def _itself(self, function):
        """What is to be checked: the function, not its name, not what it returns, not an object of the class.

        Raises:
            UsageError: it is none of these, and what to write instead.
        """
        kind = type(function).__name__
        for id, what in ((function, "without quotes"), (kind, "without the second pair of brackets")):
            if isinstance(id, str) and id in self.exercises:
                raise UsageError(
                    f"give check() the {'class' if id == kind else 'function'} itself, {what}: check({id})"
                )
        return function

    def _exercise(self, function) -> VisibleChecks:
        id = function if isinstance(function, str) else getattr(function, "__name__", None)
        if id not in self.exercises:
            raise UsageError(
                f"{id or textwrap.shorten(repr(function), 80)} is no exercise of {self.lecture} with checks or hints: give "
                f"check() or hint() the function itself, not what it returns; one of {', '.join(self.exercises)}"
            )
        return self.exercises[id]

    def _keep(self, kind: str, id: str, value) -> None:
        """Note a prediction or a hint in progress.json; where that cannot be written, nothing is lost but the note."""
        path = self.folder / PROGRESS_FILE
        try:
            noted = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            noted.setdefault(kind, {}).setdefault(id, []).append(value)
            part = path.with_name(f"{PROGRESS_FILE}.{os.getpid()}")
            part.write_text(json.dumps(noted, indent=1), encoding="utf-8")
            part.replace(path)
        except (OSError, ValueError, AttributeError, TypeError):
            pass


def _own_line(function, error) -> str:
    """The innermost line of the student's notebook that an exception went through, with its place; "" if it went through none."""
    methods = [getattr(f, "__func__", f) for f in vars(function).values()] if isinstance(function, type) else [function]
    spaces = [f.__globals__ for f in methods if hasattr(f, "__globals__")]
    own = [
        (frame.f_code, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if any(frame.f_globals is space for space in spaces)
    ]
    if not own:
        return ""
    code, number = own[-1]
    text = linecache.getline(code.co_filename, number).strip()
    return f"`{text}` (line {number} of its cell, in {code.co_name})" if text else ""


def _source(function) -> list[str]:
    """The texts of a function and of the functions of the same notebook that it mentions, as far as they can be had."""
    texts, waiting, done = [], [function], set()
    while waiting:
        current = waiting.pop()
        if isinstance(current, type):
            texts.append(_class_source(current))
            continue
        code = getattr(current, "__code__", None)
        if code is None or id(current) in done:
            continue
        done.add(id(current))
        try:
            texts.append(inspect.getsource(current))
        except (OSError, TypeError):
            continue
        space = current.__globals__
        named = [space[name] for name in code.co_names if name in space]
        waiting += [f for f in named if getattr(f, "__globals__", None) is space]
    return [textwrap.dedent(text) for text in texts]


def _class_source(kind) -> str:
    """The methods of a class in one text: of a class that a notebook defines, inspect finds no source."""
    found = []
    for method in vars(kind).values():
        try:
            found.append(inspect.getsource(getattr(method, "__func__", method)))
        except (OSError, TypeError):
            continue
    return "\n".join(
        [f"class {kind.__name__}:", "    pass", *(textwrap.indent(textwrap.dedent(t), "    ") for t in found)]
    )
