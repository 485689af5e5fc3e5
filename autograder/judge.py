"""Answers and the reference become Verdicts: the only place that decides points.

The reference and the wrong answers are run here, in a process that never saw the student's code, through the same `probe` that
described the student's calls. A misconception is recognised when the student's answer does what its wrong answer does, on
every case where the student's differs from the reference.
"""

import functools
from dataclasses import dataclass, replace

from . import probe, wire
from .compare import Difference, difference, show
from .exercises import VISIBLE_SEED, Exercise, standalone_text
from .records import FAILURES, Answers, Probe, Reply, Seen, SeenTensor, Verdict
from .source_rules import broken_rule


@dataclass(frozen=True, eq=False)
class Question:
    """The cases of one exercise as asked of one student: the visible ones first, then the hidden ones."""

    exercise: Exercise
    cases: tuple[tuple, ...]
    visible: int
    message: bytes

    @property
    def probe(self) -> Probe:
        return Probe(self.exercise.id, self.exercise.check_cell, wire.probe_code(self.exercise.id, self.message))


def question(exercise: Exercise, seed: int) -> Question:
    """The visible cases of `exercise`, and all those made from the private `seed`."""
    visible = exercise.visible_cases()
    cases = [*visible, *exercise.all_cases(seed)]
    return Question(exercise, tuple(cases), len(visible), _message(exercise, cases, seed))


def visible_question(exercise: Exercise) -> Question:
    """The visible cases only: what is released."""
    cases = exercise.visible_cases()
    return Question(exercise, tuple(cases), len(cases), _message(exercise, cases, VISIBLE_SEED))


def _message(exercise, cases, seed):
    return wire.pack_question(
        cases,
        exercise.arguments,
        seed=seed,
        driver=standalone_text(exercise.driver, "driver") if exercise.driver else "",
        gradient=exercise.gradient,
        fake_cuda=any(wanted.name == "device_agnostic" for wanted in exercise.properties),
    )


def seen_by(function, message: bytes) -> tuple[Seen, ...]:
    """What `function` does on the cases of a question, in this process: for functions that are trusted."""
    return tuple(wire.read_seen(probe.answer(function, message)))


def answers(asked: Question, reply: Reply) -> Answers:
    """What came back for a question, read; never an exception."""
    if reply.data is None:
        return Answers(asked.exercise.id, failure=FAILURES.get(reply.failure, FAILURES["silent"]))
    return wire.read_answers(asked.exercise.id, reply.data, len(asked.cases))


def verdict(asked: Question, given: Answers, source: str) -> Verdict:
    """Points and reasons for one exercise.

    Args:
        source: the student's submitted code up to the graded cell; rules about the text are read from it.
    """
    if given.failure:
        return _lost(asked.exercise, given.failure)
    return replace(_judged(asked, given, source), seconds=sum(seen.seconds for seen in given.seen))


def _judged(asked: Question, given: Answers, source: str) -> Verdict:
    exercise = asked.exercise
    expected = seen_by(exercise.function, asked.message)
    differences = [difference(e, g, exercise.properties, exercise.tolerance) for e, g in zip(expected, given.seen, strict=True)]
    failing = [i for i, found in enumerate(differences) if found]
    if not failing:
        if broken := broken_rule(source, exercise.id, exercise.properties, exercise.forbidden):
            return _lost(exercise, *_explained(asked, broken, None, matched_source(exercise, broken, source)))
        return Verdict(exercise.id, exercise.number, exercise.points, exercise.points)
    shown = min(failing, key=lambda i: (i >= asked.visible, _size(expected[i].inputs)))
    wrong = _recognised(asked, expected, given.seen, failing)
    return _lost(exercise, *_explained(asked, differences[shown], shown, wrong))


def _lost(exercise: Exercise, message: str, codes: tuple[str, ...] = ()) -> Verdict:
    return Verdict(exercise.id, exercise.number, 0.0, exercise.points, codes, message)


def _recognised(asked, expected, seen, failing):
    """The first wrong answer that the student's answer agrees with on every case where it fails."""
    exercise = asked.exercise
    if all(seen[i].raised and "NotImplementedError" in seen[i].raised.types for i in failing):
        return None
    for wrong in exercise.wrong_answers:
        theirs = seen_by(wrong.function, asked.message)
        if behaves_like(expected, seen, theirs, exercise.properties, exercise.tolerance):
            return wrong
    return None


def behaves_like(expected, seen, wrong, properties, tolerance) -> bool:
    """Whether an answer differs from the reference in the way a wrong answer does: the same cases, the same behaviour there."""
    for e, s, w in zip(expected, seen, wrong, strict=True):
        ours, theirs = difference(e, s, properties, tolerance), difference(e, w, properties, tolerance)
        if (ours is None) != (theirs is None):
            return False
        if ours is not None and (ours.aspect != theirs.aspect or _acts_differently(w, s, properties, tolerance)):
            return False
    return True


def _acts_differently(wrong, seen, properties, tolerance):
    # how many operations and which warnings an answer takes is no mark of a misconception; what it returns is
    telling = tuple(p for p in properties if p.name not in ("op_budget", "no_warnings", "never_calls"))
    return difference(wrong, seen, telling, tolerance) is not None


def matched_source(exercise: Exercise, broken: Difference, source: str):
    """The wrong answer whose text breaks the same rule in the same way."""
    for wrong in exercise.wrong_answers:
        text = standalone_text(wrong.function, exercise.id)
        theirs = broken_rule(text, exercise.id, exercise.properties, exercise.forbidden)
        if theirs and theirs.got.split(" in line ")[0] == broken.got.split(" in line ")[0]:
            return wrong
    return None


def _explained(asked, found: Difference, case: int | None, wrong):
    """(message, codes) of a lost exercise."""
    parts = []
    if wrong is not None:
        parts.append(wrong.message)
    if found.aspect == "unanswered":
        return found.next_step, ()
    parts.append(f"{found.path}: expected {found.expected}, got {found.got}.") if case is None else parts.append(
        case_text(asked, found, case)
    )
    if wrong is None:
        parts.append(found.next_step)
    return " ".join(parts), (wrong.code,) if wrong is not None else ()


def case_text(asked: Question, found: Difference, case: int) -> str:
    """A failing case in words. Of a hidden one only the kind is told: shapes and dtypes, no values."""
    named = zip(asked.exercise.arguments, asked.cases[case], strict=True)
    if case < asked.visible:
        given = ", ".join(f"{name} = {show(_as_seen(value))}" for name, value in named)
        return f"For {given}: {found.path}: expected {found.expected}, got {found.got}."
    given = ", ".join(f"{name}: {_kind_of(value)}" for name, value in named)
    what = {"raises": f"expected {found.expected}, and it was not raised", "raised": f"it raised {found.got.split(':')[0]}"}
    return f"On a hidden case ({given}): {what.get(found.aspect, f'{found.path}: the {found.aspect} differs')}."


def _as_seen(value):
    (seen,) = wire.read_seen(probe.answer(lambda v: v, wire.pack_question([(value,)], ["v"])))
    return seen.result


def _kind_of(value):
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        contiguous = "" if not hasattr(value, "is_contiguous") or value.layout.__str__() != "torch.strided" or value.is_contiguous() else ", not contiguous"
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}{contiguous}"
    return type(value).__name__


def _size(inputs) -> int:
    """How large a case is, for showing the smallest."""

    def count(tree):
        if isinstance(tree, SeenTensor):
            return functools.reduce(lambda a, b: a * b, tree.shape, 1)
        if isinstance(tree, (list, tuple)):
            return sum(map(count, tree))
        return len(str(tree)) if tree is not None else 0

    return sum(count(value) for value in inputs.values())
