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

from IPython import get_ipython
from IPython.display import display

from . import checks, facts, probe, wire
from .checks import VisibleChecks, WrittenAnswer
from .compare import ASPECTS
from .diagnosis import diagnose, given_text
from .errors import UsageError

PROGRESS_FILE = "progress.json"
RUNS = "runs"  # where the TensorBoard lab logs to


class CheckFailed(AssertionError):
    """A visible check failed. Jupyter shows its one line and no traceback: the table above it says the rest."""

    def _render_traceback_(self):
        return [str(self)]


class Stopped(KeyboardInterrupt):
    """A check was interrupted; shown like CheckFailed, without the checker's own lines."""

    _render_traceback_ = CheckFailed._render_traceback_


class WrongCall(UsageError):
    """check, hint or predict was given something else than it needs; shown like CheckFailed."""

    _render_traceback_ = CheckFailed._render_traceback_


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
        found = checks.load(self.folder / checks.FILE, lecture)
        self.exercises, self.written, self.predictions = found.exercises, found.written, found.predictions
        self.passed: dict[str, bool] = dict.fromkeys(self.exercises, False)
        self.hints_shown: dict[str, int] = {}

    def __call__(self, function=None) -> None:
        """Run the visible cases of an exercise and show the result.

        Raises:
            CheckFailed: a visible check failed.
            WrongCall: `function` is no exercise of this lecture.
            Stopped: it was interrupted.
        """
        if written := self._written(function):
            raise WrongCall(
                f"{written.id} (exercise {written.number}) is a written answer, graded by hand: nothing checks it here. "
                "Write it into its cell, and it is handed in with the notebook."
            )
        exercise = self._exercise("check", function)
        if isinstance(function, str):
            raise WrongCall(f"check needs the function itself, so write check({function}), without the quotes.")
        id = exercise.rules.id
        lines = {}
        failed = lambda case, error: lines.setdefault(case, _last_line(error, _spaces(function)))
        try:
            answer = probe.answer(function, exercise.question, failed)
        except KeyboardInterrupt as stop:
            self.passed[id] = False
            line = _last_line(stop, _spaces(function))
            raise Stopped(
                f"Exercise {exercise.number} ({id}) was stopped{f' in {line}' if line else ''}. {STOPPED}"
            ) from None
        seen = tuple(wire.read_seen(facts.told(answer, exercise.question, exercise.facts)))
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
            rows = (("mind", NOT_RUN),) * _did_not_parse() + rows
            display(Table(f"○ {title}: not answered yet", rows, self.progress()))
            raise CheckFailed(f"Exercise {exercise.number} ({id}) is not answered yet.")
        line = lines.get(found.case, "") if found.found.aspect in ("raised", "raises") else ""
        step = _next_step(found, line, inspect.isfunction(function))
        display(Table(f"✗ {title}: not right yet", self._failed_rows(exercise, found, line, step), self.progress()))
        came = found.found.got.rstrip(".")
        raise CheckFailed(
            f"Exercise {exercise.number} ({id}): {found.found.path}: expected {found.found.expected}, got {came}."
            + (f" {found.likely}" if found.likely else "")
        )

    def _passed_rows(self, exercise: VisibleChecks):
        checked = ["value, shape and dtype", "arguments after the call", *(p.text for p in exercise.rules.properties)]
        return (
            ("checked", f"{', '.join(checked)}, on {len(exercise.expected)} cases"),
            ("still to come", f"{exercise.hidden} more cases run when graded"),
        )

    def _failed_rows(self, exercise: VisibleChecks, found, line, step):
        rows = []
        if found.case is not None:
            before = wire.read_seen(probe.answer(lambda *case: None, wire.without_driver(exercise.question)))
            rows.append(("smallest failing input", given_text(exercise.rules, before[found.case].inputs)))
        rows += [("mind", NOT_RUN)] * _did_not_parse()
        rows += [("where", found.found.path), ("expected", found.found.expected), ("got", found.found.got)]
        if line:
            rows.append(("in your code", line))
        if found.likely:
            rows.append(("likely cause", f"{found.likely} ({found.code})"))
        rows.append(("next step", step))
        if self.hints_shown.get(exercise.rules.id, 0) < len(exercise.hints):
            rows.append(("hint", f"hint({exercise.rules.id})"))
        return tuple(rows)

    def hint(self, function=None) -> None:
        """Show the next of three hints of an exercise: the idea, then where to look, then nearly the code.

        Args:
            function: an exercise, or its name while it is not defined yet.
        """
        written = self._written(function)
        exercise = written or self._exercise("hint", function)
        id, count = written.id if written else exercise.rules.id, len(exercise.hints)
        shown = self.hints_shown[id] = min(self.hints_shown.get(id, 0) + 1, count)
        self._keep("hints", id, shown)
        rows = tuple((f"hint {i + 1} of {count}", exercise.hints[i]) for i in range(shown))
        rows += (("hint", NO_HINTS),) * (not count)
        display(Table(f"Exercise {exercise.number}  {id}", (("graded", BY_HAND),) * bool(written) + rows))

    def predict(self, id: str, choice=...) -> None:
        """Store a prediction, then say why it is right or wrong. Predictions are not graded."""
        if id not in self.predictions:
            raise WrongCall(
                f"There is no prediction {id!r} in {self.lecture}; there are: {', '.join(self.predictions)}."
            )
        asked = self.predictions[id]
        choices = asked["choices"]
        given, choice = choice, choice.strip(" .)").lower() if isinstance(choice, str) else choice
        if not isinstance(choice, str) or choice not in choices:
            rows = tuple((letter, text) for letter, (text, _) in choices.items())
            footer = f'Commit yourself before you run on: predict("{id}", "{next(iter(choices))}"), or another letter.'
            if given is not ...:
                said = repr(given) if isinstance(given, str) else f"A {type(given).__name__}"
                footer = f"{said} is none of the letters {', '.join(choices)}. {footer}"
            display(Table(f"○ {id}  {asked['question']}", rows, footer))
            return
        self._keep("predictions", id, choice)
        text, why = choices[choice]
        right = choice == asked["answer"]
        rows = (("your prediction", f"{choice}: {text}"), ("right" if right else "not so", why))
        footer = "" if right else f"Read on and compare, then predict again if you like: predict({id!r}, ...)."
        display(Table(f"{'✓' if right else '✗'} {id}  {asked['question']}", rows, footer))

    def progress(self) -> str:
        """The progress of the lecture in one line."""
        done = sum(self.passed.values())
        bar = "■" * done + "□" * (len(self.passed) - done)
        return f"{self.lecture}: {done} of {len(self.passed)} exercises pass their visible checks  {bar}"

    def _written(self, function) -> WrittenAnswer | None:
        """The written answer that is meant: by its name, for it has no function."""
        return self.written.get(_id(function))

    def _exercise(self, verb: str, function) -> VisibleChecks:
        id = _id(function)
        if id in self.exercises:
            return self.exercises[id]
        known = f"The exercises of {self.lecture} are {', '.join(self.exercises)}."
        example = f"{verb}({next(iter(self.exercises))})"
        if function is None:
            raise WrongCall(f"{verb} needs the function of an exercise, as in {example}. {known}")
        if id is None:
            kind = type(function).__name__
            raise WrongCall(f"{verb} needs a function itself, as in {example}, not a {kind}: do not call it. {known}")
        raise WrongCall(f"{id} is no exercise: is its name as the task gives it? {known}")

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


BY_HAND = "This is a written answer: a person reads it and grades it by hand."
NO_HINTS = (
    "There are none for it. Answer what is asked in your own words; an example with numbers of your own says more than a "
    "general sentence."
)

STOPPED = "If it would never have ended: what ends the loop there, and does every round come nearer to it?"
NOT_RUN = "The cell that you ran just before has a SyntaxError and changed nothing: your function is checked as it was before."
AT_LINE = "Read the error, then that line: which value there is not what you thought? Print it just before."
OUTSIDE = "The error came when what your function returned was used: compare it with what the task asks for."


def _next_step(found, line, called) -> str:
    """What to look at: after an error of no known kind its line, or, of a function that is only called, that it has none."""
    if found.next_step != ASPECTS["raised"]:
        return found.next_step
    return AT_LINE if line else OUTSIDE if called else found.next_step


def _id(function) -> str | None:
    """The id of the exercise that is meant: what the function is called, or the text itself."""
    return function if isinstance(function, str) else getattr(function, "__name__", None)


def _did_not_parse() -> bool:
    """Whether the cell that was run before this one never began, for it is no Python."""
    before = getattr(get_ipython(), "last_execution_result", None)
    return isinstance(getattr(before, "error_before_exec", None), SyntaxError)


def _spaces(function) -> list[dict]:
    """The namespaces in which a function, or the methods of a class, were defined: the student's notebook."""
    methods = [getattr(f, "__func__", f) for f in vars(function).values()] if isinstance(function, type) else [function]
    return [f.__globals__ for f in methods if hasattr(f, "__globals__")]


def _last_line(error, spaces) -> str:
    """The innermost line on an error's way that belongs to one of these namespaces: "line 2: `return x[3]`"; "" if none does."""
    own = [step for step in traceback.walk_tb(error.__traceback__) if any(step[0].f_globals is s for s in spaces)]
    if not own:
        return ""
    frame, number = own[-1]
    text = linecache.getline(frame.f_code.co_filename, number).strip()
    return f"line {number}: `{text}`" if text else f"line {number}"


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
