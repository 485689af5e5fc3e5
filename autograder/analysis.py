"""What a class did with each exercise: how many solved it, how long their calls took, what the others got wrong."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from .compare import ASPECTS
from .exercises import Exercise, Lecture
from .records import FAILURES, Report, Verdict

SCORED = ("graded", "repaired")  # states in which each verdict is about an answer
ENOUGH = 8  # submissions below which a correlation says nothing


@dataclass(frozen=True)
class Loss:
    """One way in which points were lost, and by how many students.

    Attributes:
        code: the misconception's code, or "" when none was recognised.
        text: what these students have in common, as a sentence.
    """

    code: str
    text: str
    count: int


@dataclass(frozen=True)
class Item:
    """One exercise over the whole class.

    Attributes:
        graded: how many submissions have points for it; those that wait for a person's judgement are in `waiting`.
        full, part: how many of them have all its points, or some.
        seconds: median wall time of the calls of all its cases; None when nobody's were timed.
        discrimination: correlation, -1 to 1, of its points with the points of the rest of the lecture; None when
            there are too few submissions, or no differences.
        losses: the most frequent first.
    """

    id: str
    number: str
    points: float
    graded: int = 0
    waiting: int = 0
    full: int = 0
    part: int = 0
    seconds: float | None = None
    discrimination: float | None = None
    losses: tuple[Loss, ...] = ()

    @property
    def share(self) -> float:
        """The part of the graded submissions that have full points, 0 to 1."""
        return self.full / self.graded if self.graded else 0.0


def items(lecture: Lecture, reports: Sequence[Report]) -> list[Item]:
    """One Item for each exercise of the lecture, over the reports that are about answers."""
    scored = [report for report in reports if report.state in SCORED]
    return [_item(exercise, scored) for exercise in lecture.exercises]


def _item(exercise: Exercise, reports) -> Item:
    pairs = [(report, verdict) for report in reports for verdict in report.verdicts if verdict.exercise == exercise.id]
    judged = [(report, verdict) for report, verdict in pairs if not verdict.by_hand]
    verdicts = [verdict for _, verdict in judged]
    times = [verdict.seconds for verdict in verdicts if verdict.seconds is not None]
    full = sum(verdict.score >= verdict.points for verdict in verdicts)
    return Item(
        exercise.id,
        exercise.number,
        exercise.points,
        graded=len(judged),
        waiting=len(pairs) - len(judged),
        full=full,
        part=sum(0 < verdict.score < verdict.points for verdict in verdicts),
        seconds=statistics.median(times) if times else None,
        discrimination=_discrimination(judged),
        losses=_losses(exercise, [verdict for verdict in verdicts if verdict.score < verdict.points]),
    )


@dataclass(frozen=True)
class Topic:
    """One misconception over the whole lecture: who has it, in which exercises."""

    code: str
    text: str
    students: int
    numbers: tuple[str, ...]


def topics(lecture: Lecture, reports: Sequence[Report], most: int = 3) -> list[Topic]:
    """The misconceptions that most students have, those of at least two: what is worth five minutes in class."""
    students, numbers, texts = defaultdict(set), defaultdict(dict), {}
    for exercise in lecture.exercises:
        texts = {wrong.code: wrong.message for wrong in exercise.wrong_answers} | texts
    for report in reports:
        for verdict in report.verdicts if report.state in SCORED else ():
            for code in verdict.codes:
                students[code].add(report.student)
                numbers[code][verdict.number] = None
    order = [exercise.number for exercise in lecture.exercises]
    found = [
        Topic(code, texts.get(code, ""), len(who), tuple(number for number in order if number in numbers[code]))
        for code, who in students.items()
        if len(who) > 1
    ]
    return sorted(found, key=lambda topic: (-topic.students, topic.code))[:most]


def _discrimination(judged) -> float | None:
    own = [verdict.score for _, verdict in judged]
    rest = [report.score - verdict.score for report, verdict in judged]
    if len(judged) < ENOUGH or len(set(own)) < 2 or len(set(rest)) < 2:
        return None
    return statistics.correlation(own, rest)


def _losses(exercise: Exercise, lost: list[Verdict]) -> tuple[Loss, ...]:
    texts = {wrong.code: wrong.message for wrong in exercise.wrong_answers}
    counts = Counter(_kind(verdict, texts) for verdict in lost)
    return tuple(Loss(code, text, count) for (code, text), count in counts.most_common())


def _kind(verdict: Verdict, texts: dict[str, str]) -> tuple[str, str]:
    """(code, text) that verdicts share which lost their points in the same way."""
    if verdict.codes:
        return verdict.codes[0], texts.get(verdict.codes[0], "")
    for sentence in FAILURES.values():
        if verdict.message.startswith(sentence):
            return "", sentence
    for aspect, next_step in ASPECTS.items():
        if verdict.message.endswith(next_step):
            return "", ASPECT_TEXTS.get(aspect, f"No known misconception: the {aspect} differs.")
    return "", "No known misconception."


ASPECT_TEXTS = {
    "unanswered": "Not answered.",
    "raised": "No known misconception: their code raises an error.",
    "raises": "No known misconception: an illegal input is not refused as the task asks.",
    "inputs": "No known misconception: an argument is changed, or is not changed as the task asks.",
    "forbidden call": "No known misconception: an operation is called that the task rules out.",
    "operations": "No known misconception: more operations than needed.",
    "warnings": "No known misconception: a warning is given.",
    "source": "No known misconception: a construct is used that the task rules out.",
}


@dataclass(frozen=True)
class Bin:
    """How many scores lie from `low` up to `high` percent; the last bin includes its upper end."""

    low: int
    high: int
    count: int


def histogram(reports: Sequence[Report], bins: int = 10) -> list[Bin]:
    """The scores that are results (all but those in state error), in percent of the points there are."""
    width = 100 // bins
    counts = Counter(min(int(_percent(report) // width), bins - 1) for report in reports if report.state != "error")
    return [Bin(i * width, (i + 1) * width, counts[i]) for i in range(bins)]


def median_score(reports: Sequence[Report]) -> float | None:
    """The median of the scores that are results, in points; None when there are none."""
    scores = [report.score for report in reports if report.state != "error"]
    return statistics.median(scores) if scores else None


def _percent(report: Report) -> float:
    return 100 * report.score / report.max_score if report.max_score else 0.0
