"""Answers and the reference become Verdicts: the only place that decides points.

The reference and the wrong answers run here, in a process that never saw the student's code, through the same `probe` that
described the student's calls.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from . import facts, probe, wire
from .compare import ASPECTS
from .diagnosis import Diagnosis, Misconception, Rules, construct, diagnose, given_text, kinds_text
from .errors import CourseError
from .exercises import VISIBLE_SEED, Exercise, standalone_text
from .properties import COUNTED
from .records import FAILURES, Answers, Probe, Reply, Seen, Verdict
from .source_rules import broken_rule, defined, rests_on_source


@dataclass(frozen=True, eq=False)
class Question:
    """The cases of one exercise as asked of one student: the visible ones first, then the hidden ones.

    Attributes:
        cases: how many there are.
        visible: how many of them the student may see.
        message: the question as bytes.
        device: where the tensors of the cases are.
    """

    exercise: Exercise
    cases: int
    visible: int
    message: bytes
    device: str = "cpu"

    @property
    def probe(self) -> Probe:
        code = wire.probe_code(self.exercise.id, self.message, _fakes_a_gpu(self.exercise))
        return Probe(self.exercise.id, self.exercise.check_cell, code)


def question(exercise: Exercise, seed: int, device: str = "cpu") -> Question:
    """The visible cases of `exercise`, and all those made from the private `seed`, with their tensors on `device`."""
    visible = exercise.visible_cases()
    cases = [*visible, *exercise.all_cases(seed)]
    message = _message(exercise, cases, device, threads=1, hidden=(len(visible), seed))
    return Question(exercise, len(cases), len(visible), message, device)


def visible_question(exercise: Exercise) -> Question:
    """The visible cases only: what is released."""
    cases = exercise.visible_cases()
    return Question(exercise, len(cases), len(cases), _message(exercise, cases))


def _message(exercise, cases, device="cpu", threads=0, hidden=None):
    return wire.pack_question(
        cases,
        exercise.arguments,
        seed=VISIBLE_SEED,
        hidden=hidden,
        driver=exercise.driver_text,
        gradient=exercise.gradient,
        fake_cuda=_fakes_a_gpu(exercise),
        count=any(wanted.name in COUNTED for wanted in exercise.properties),
        device=device,
        threads=threads,
    )


def _fakes_a_gpu(exercise) -> bool:
    return any(wanted.name == "device_agnostic" for wanted in exercise.properties)


def rules(exercise: Exercise) -> Rules:
    """What counts in `exercise`, as data."""
    return Rules(exercise.id, exercise.arguments, exercise.properties, exercise.tolerance, exercise.forbidden)


def seen_by(function, message: bytes, facts_text: str = "", first: int = 0) -> tuple[Seen, ...]:
    """What `function` does on the cases of a question from the `first` on, in this process: for functions that are trusted."""
    return tuple(wire.read_seen(facts.told(probe.answer(function, message, first=first), message, facts_text, first)))


def expected(asked: Question, function) -> tuple[Seen, ...]:
    """What `function`, which is the exercise's own, does on the cases of a question.

    The visible cases are everybody's, so that each process sees it at work on these once.
    """
    exercise = asked.exercise
    shown = _on_visible_cases(exercise, function, asked.device)
    seen = shown + seen_by(function, asked.message, exercise.facts_text, first=asked.visible)
    if function is exercise.function and (fault := next(filter(None, map(facts.fault, seen)), "")):
        raise CourseError(f"{exercise.id}: its facts fail on its reference: {fault}")
    return seen


@functools.lru_cache(maxsize=1024)
def _on_visible_cases(exercise: Exercise, function, device: str) -> tuple[Seen, ...]:
    return seen_by(function, _message(exercise, exercise.visible_cases(), device, threads=1), exercise.facts_text)


def misconceptions(asked: Question) -> Iterator[Misconception]:
    """The wrong answers of an exercise at work on the cases of a question, each run when it is asked for."""
    for wrong in asked.exercise.wrong_answers:
        seen = expected(asked, wrong.function)
        yield Misconception(wrong.code, wrong.message, seen, refused_construct(asked.exercise, wrong))


def refused_construct(exercise: Exercise, wrong) -> str:
    """The construct that the source of a wrong answer is refused for, or ""."""
    found = broken_rule(
        [standalone_text(wrong.function, exercise.id)], exercise.id, exercise.properties, exercise.forbidden
    )
    return construct(found) if found else ""


MISSING = "There is no {id} when its check runs: define a function of exactly this name in its cell."


def answers(asked: Question, reply: Reply) -> Answers:
    """What came back for a question, read; never an exception."""
    if reply.data is None:
        return Answers(asked.exercise.id, failure=_absence(asked.exercise.id, reply))
    told = functools.partial(facts.told, question=asked.message, text=asked.exercise.facts_text)
    return wire.read_answers(asked.exercise.id, reply.data, asked.cases, told)


def _absence(id: str, reply: Reply) -> str:
    """Why there is no answer, as a sentence."""
    if reply.failure != "unanswered":
        return FAILURES[reply.failure]
    if reply.detail == f"KeyError: {id!r}":
        return MISSING.format(id=id)
    return " ".join([FAILURES["unanswered"], *([f"What came instead: {reply.detail}."] if reply.detail else [])])


def verdict(asked: Question, given: Answers, cells: Sequence[str]) -> Verdict:
    """Points and reasons for one exercise.

    Args:
        cells: the texts of the student's modules and code cells up to the graded one; rules about the source are read
            from them.
    """
    if given.failure:
        return lost(asked.exercise, given.failure)
    return replace(_judged(asked, given, cells), seconds=sum(seen.seconds for seen in given.seen))


def _judged(asked: Question, given: Answers, cells: Sequence[str]) -> Verdict:
    exercise = asked.exercise
    right = expected(asked, exercise.function)
    found = diagnose(rules(exercise), right, given.seen, cells, misconceptions(asked), asked.visible)
    if (
        found is None
        and cells
        and rests_on_source(exercise.properties, exercise.forbidden)
        and not defined(cells, exercise.id)
    ):
        return lost(exercise, UNREAD.format(id=exercise.id))
    if found is None:
        return Verdict(exercise.id, exercise.number, exercise.points, exercise.points)
    codes = (found.code,) if found.code else ()
    return lost(exercise, _words(asked, found), codes)


UNREAD = (
    "It returns what is expected, but not every construct is allowed here, and no definition of {id} can be read in the "
    "notebook. Define it in its cell with def, and not by exec or globals()."
)


def lost(exercise: Exercise, message: str, codes: tuple[str, ...] = ()) -> Verdict:
    """No points, and why."""
    return Verdict(exercise.id, exercise.number, 0.0, exercise.points, codes, message)


def _words(asked: Question, found: Diagnosis) -> str:
    """The message of a Verdict. Of a hidden case only the kind is told: shapes and dtypes, no values."""
    if found.unanswered:
        return found.next_step
    difference = found.found
    came = f"{difference.path}: expected {difference.expected}, got {difference.got}."
    step = found.next_step
    if found.case is None:
        place = came
    elif found.case < asked.visible:
        place = f"For {given_text(rules(asked.exercise), _before(asked)[found.case].inputs)}: {came}"
    else:
        kinds = kinds_text(rules(asked.exercise), _before(asked)[found.case].inputs)
        place = f"On a hidden case ({kinds}) {_HIDDEN.get(difference.aspect, 'the {aspect} of {path} differs').format(**vars(difference))}."
        step = _UNSEEN if step == ASPECTS["value"] else step
    return " ".join(filter(None, (found.likely, place, "" if found.likely else step)))


_UNSEEN = "Try inputs of this kind that you make up, with every extreme that the task allows."
_HIDDEN = {
    "raises": "{expected} is expected and was not raised",
    "raised": "it raised an error where none is expected",
    "inputs": "{path} is not what it should be",
    "operations": "it takes more torch operations than allowed",
    "memory": "it takes more memory than allowed",
    "warnings": "a warning came",
    "gradient": "the {path} differs",
    "plot": "the figure is not as asked: look at {path}",
}


def _before(asked: Question) -> tuple[Seen, ...]:
    """The cases as they are before any call, described."""
    return seen_by(lambda *case: None, wire.without_driver(asked.message))
