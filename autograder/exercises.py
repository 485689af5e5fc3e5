"""Exercises as data plus functions: what `solutions/<lecture>/exercises.py` is written with.

    from autograder.exercises import exercise, prediction
    from autograder.properties import same_sharing, no_loops

    @exercise("2.1", points=2, minutes=5, stars=1, concepts=["L-23"], properties=[same_sharing], hints=[...3 texts...])
    def every_kth_of_last_row(x, k):
        return x[-1, ::k]

    @every_kth_of_last_row.cases
    def _(rng):
        yield rng.matrix(4, 6), 3

    @every_kth_of_last_row.wrong("M09", "Indexing with a list copies. Use a slice.")
    def _(x, k):
        return x[-1, list(range(0, x.shape[1], k))]

    @every_kth_of_last_row.right
    def _(x, k):
        return x.select(0, -1)[::k]

The function under `@exercise` is the reference. Wrong and right answers use nothing but their arguments, builtins and what
they import themselves: their text must stand alone, for sample classes are made from it.
"""

import contextlib
import functools
import hashlib
import importlib.util
import inspect
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .errors import AutograderError, CourseError, UnknownLecture
from .properties import Property

VISIBLE_SEED = 0


class Rng:
    """A seeded source of case inputs. Two of the same seed yield the same cases, on every machine."""

    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed)

    def integer(self, low: int, high: int) -> int:
        """An int from low to high, both included."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def choice(self, options):
        """One of a non-empty sequence."""
        return options[self.integer(0, len(options) - 1)]

    def integers(self, *shape: int, low: int = -9, high: int = 9, dtype=torch.int64) -> torch.Tensor:
        """A tensor of ints from low to high, both included."""
        return torch.randint(low, high + 1, shape, generator=self.generator).to(dtype)

    def normal(self, *shape: int, dtype=torch.float32) -> torch.Tensor:
        """A tensor of standard normal values, rounded to two digits so that people can read them."""
        return (torch.randn(shape, generator=self.generator, dtype=torch.float64) * 100).round().div(100).to(dtype)

    def matrix(self, rows: int, columns: int, dtype=torch.float32) -> torch.Tensor:
        """A (rows, columns) tensor of distinct whole numbers in random order, so that every element can be told apart."""
        return self.permutation(rows * columns).view(rows, columns).to(dtype)

    def permutation(self, n: int) -> torch.Tensor:
        """0 .. n-1 in random order, int64."""
        return torch.randperm(n, generator=self.generator)

    def mask(self, *shape: int, density: float = 0.5) -> torch.Tensor:
        """A bool tensor in which each element is True with probability `density`."""
        return torch.rand(shape, generator=self.generator) < density


@dataclass(frozen=True, eq=False)
class WrongAnswer:
    """A misconception made executable.

    Attributes:
        code: of the misconception catalogue (M01 ...), or X-<exercise>-n for one of its own.
        message: what the student reads when an answer behaves like this one.
        sample: the name of the sample submission that hands this in, or "".
    """

    code: str
    message: str
    function: Callable
    sample: str = ""


@dataclass(frozen=True)
class Prediction:
    """A question that is answered before the cell is run.

    Attributes:
        choices: by letter, (text of the choice, why it is right or wrong).
        answer: the letter of the right choice.
    """

    id: str
    question: str
    choices: dict[str, tuple[str, str]]
    answer: str


def prediction(id: str, question: str, choices: dict[str, tuple[str, str]], answer: str) -> Prediction:
    """A Prediction, checked: at least two choices, each with its explanation, and the answer among them."""
    if answer not in choices or len(choices) < 2 or not all(len(pair) == 2 and all(pair) for pair in choices.values()):
        raise CourseError(
            f"prediction {id}: give at least two choices as (text, explanation), the answer {answer!r} among them"
        )
    return Prediction(id, question, choices, answer)


@dataclass(eq=False)
class Exercise:
    """One graded task: its reference, cases, properties, wrong and right answers.

    Attributes:
        function: the reference. Its name is the exercise's id.
        minutes: what a student needs for it, at a guess.
        homework: whether it is meant for home; the others are worked on in class.
        properties: what counts besides value, shape, dtype, errors and the inputs after the call.
        driver: how the student's function is called on a case, `driver(function, *case)`; None for `function(*case)`.
            Its text is sent to the student's process, so it stands alone, too. It calls and sends back what came, and judges
            nothing: there, whatever it compares and counts can be patched.
        teller: what is told of a result in its place, `teller(result, *case)`; None where the result itself is judged. It runs
            outside of the student's process, see `facts`, and its text is released: it stands alone, too.
        gradient: whether gradients with respect to inputs that require them are observed.
        visible: how many of the cases made from VISIBLE_SEED the student sees.
        tolerance: (rtol, atol) for floating point values; None for the default of the dtype.
        forbidden: names that the student's code may not use (read from its AST).
        written: the answer is prose, graded by hand; `model_answer` and `rubric` are for those who grade.
        few_wrong, few_right: why there are fewer than five wrong or two right answers, where the task leaves no room.
    """

    function: Callable
    number: str
    points: float
    minutes: int
    stars: int
    homework: bool = False
    concepts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()
    hints: tuple[str, ...] = ()
    gradient: bool = False
    visible: int = 5
    tolerance: tuple[float, float] | None = None
    forbidden: tuple[str, ...] = ()
    written: bool = False
    model_answer: str = ""
    rubric: str = ""
    few_wrong: str = ""
    few_right: str = ""
    driver: Callable | None = None
    teller: Callable | None = None
    case_source: Callable[[Rng], Iterator[tuple]] | None = None
    wrong_answers: list[WrongAnswer] = field(default_factory=list)
    right_answers: list[Callable] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.function.__name__

    @property
    def check_cell(self) -> str:
        """grade_id of the graded cell; of a written answer, of its one cell."""
        return self.id if self.written else f"check_{self.id}"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of a case's values: the parameters of the reference, or of the driver after its first."""
        if self.driver is not None:
            return tuple(inspect.signature(self.driver).parameters)[1:]
        return tuple(inspect.signature(self.function).parameters)

    @property
    def driver_text(self) -> str:
        """The driver as the text of a function `driver`, "" where there is none."""
        return standalone_text(self.driver, "driver") if self.driver else ""

    @property
    def facts_text(self) -> str:
        """The teller as the text of a function `facts`, "" where there is none."""
        return standalone_text(self.teller, "facts") if self.teller else ""

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def cases(self, source: Callable[[Rng], Iterator[tuple]]):
        """Label `source(rng)`, which yields one tuple of arguments a case, as where this exercise's cases come from."""
        self.case_source = source
        return source

    def call(self, driver: Callable):
        """Label `driver(function, *case)` as the way the student's function is called."""
        self.driver = driver
        return driver

    def facts(self, teller: Callable):
        """Label `teller(result, *case)` as what is told of a result in its place: the facts about it that are judged.

        It gets plain values of any kind, shape, dtype and size: look at these before computing or iterating.
        """
        self.teller = teller
        return teller

    def wrong(self, code: str, message: str, sample: str = ""):
        """Label a function as a wrong answer of this exercise."""

        def label(function: Callable):
            self.wrong_answers.append(WrongAnswer(code, message, function, sample))
            return function

        return label

    def right(self, function: Callable):
        """Label a function as a right answer, written differently from the reference."""
        self.right_answers.append(function)
        return function

    def all_cases(self, seed: int) -> list[tuple]:
        """Every case made from `seed`, as tuples of arguments."""
        cases = [case if isinstance(case, tuple) else (case,) for case in self.case_source(Rng(seed))]
        if not cases:
            raise CourseError(f"{self.id}: its cases() yields nothing")
        return cases

    def visible_cases(self) -> list[tuple]:
        """The cases that the student sees: the first `visible` of those made from VISIBLE_SEED."""
        return self.all_cases(VISIBLE_SEED)[: self.visible]


def exercise(number: str, *, points: float, minutes: int, stars: int, **options: Any) -> Callable[[Callable], Exercise]:
    """Label a function as the reference of an exercise; `options` are the further attributes of Exercise."""

    def label(function: Callable) -> Exercise:
        plain = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
        return Exercise(function, number, points, minutes, stars, **plain)

    return label


def written(
    number: str, id: str, *, points: float, minutes: int, stars: int, model_answer: str, rubric: str, **options
) -> Exercise:
    """An answer in prose, graded by hand in formgrader with `rubric` and `model_answer` beside it."""

    def answer():
        raise NotImplementedError("a written answer has no function")

    answer.__name__ = id
    return exercise(
        number,
        points=points,
        minutes=minutes,
        stars=stars,
        written=True,
        model_answer=model_answer,
        rubric=rubric,
        **options,
    )(answer)


def case_seed(run_seed: int, student: str, exercise_id: str, attempt: str = "") -> int:
    """The private seed of one student's cases of one exercise: told by no other student's, nor by an earlier attempt's.

    Args:
        attempt: digest of what was handed in. The same files under the same run seed get the same cases again.
    """
    text = f"{run_seed}/{student}/{exercise_id}/{attempt}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:7], "big") + 1


@functools.cache  # to find a class, inspect parses its whole file
def standalone_text(function: Callable, name: str) -> str:
    """The source of `function` without its decorators, defined under `name`."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith(("def ", "class ")))
    kind, _, rest = lines[start].partition(" ")
    return "".join([f"{kind} {name}{rest[len(function.__name__) :]}", *lines[start + 1 :]])


@dataclass(frozen=True, eq=False)
class Lecture:
    """A lecture's exercises and predictions, in the order of its exercises.py.

    Attributes:
        name: also of its folder, its notebook and its nbgrader assignment.
        folder: where its exercises.py stands.
        digest: SHA-256 of exercises.py, as hex.
        without: modules that a student's kernel must not be able to import in this lecture.
    """

    name: str
    folder: Path
    exercises: tuple[Exercise, ...]
    predictions: tuple[Prediction, ...]
    digest: str
    without: tuple[str, ...] = ()

    @property
    def points(self) -> float:
        return sum(exercise.points for exercise in self.exercises)

    def __getitem__(self, id: str) -> Exercise:
        for exercise in self.exercises:
            if exercise.id == id:
                return exercise
        raise KeyError(id)


def lecture_names(solutions: Path) -> list[str]:
    """The lectures there are, in order."""
    return sorted(path.parent.name for path in Path(solutions).glob("*/exercises.py"))


def load_lecture(name: str, solutions: Path) -> Lecture:
    """The lecture whose exercises stand in `solutions/<name>/exercises.py`.

    Raises:
        UnknownLecture: there is no such file.
        CourseError: the file cannot be run, or contradicts itself.
    """
    path = Path(solutions) / name / "exercises.py"
    if name not in lecture_names(solutions):
        raise UnknownLecture(
            f"there is no lecture {name!r}; there are: {', '.join(lecture_names(solutions)) or 'none'}"
        )
    with _told(path):
        return _loaded(name, path)


def _loaded(name: str, path: Path) -> Lecture:
    module_name = f"exercises_of_{name}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # inspect.getsource and dataclasses look a function's module up there
    spec.loader.exec_module(module)
    found = list(vars(module).values())
    exercises = tuple(value for value in found if isinstance(value, Exercise))
    lecture = Lecture(
        name,
        path.parent,
        exercises,
        tuple(value for value in found if isinstance(value, Prediction)) + tuple(getattr(module, "PREDICTIONS", ())),
        hashlib.sha256(path.read_bytes()).hexdigest(),
        tuple(getattr(module, "WITHOUT", ())),
    )
    _demand_consistency(lecture)
    return lecture


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Whatever running a lecture's exercises.py raises, as a CourseError that says where."""
    try:
        yield
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        lines += [error.lineno] if isinstance(error, SyntaxError) and error.filename == str(path) else []
        where = f"{path}, line {lines[-1]}" if lines else str(path)
        raise CourseError(f"{where}: {_said(error)}") from error


def _said(error: BaseException) -> str:
    if isinstance(error, AutograderError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"it imports {error.name}, which is not installed here"
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


def _demand_consistency(lecture: Lecture) -> None:
    for what, values in (
        ("exercise id", [e.id for e in lecture.exercises]),
        ("exercise number", [e.number for e in lecture.exercises]),
        ("prediction", [p.id for p in lecture.predictions]),
    ):
        for value in _doubled(values):
            raise CourseError(f"{lecture.name}: {what} {value!r} is used twice")
    for exercise in lecture.exercises:
        if exercise.case_source is None and not exercise.written:
            raise CourseError(f"{lecture.name}: {exercise.id} has no cases")
        if exercise.points <= 0:
            raise CourseError(f"{lecture.name}: {exercise.id} is worth {exercise.points} points; give more than 0")
        if len(exercise.hints) != 3 and not exercise.written:
            raise CourseError(
                f"{lecture.name}: {exercise.id} has {len(exercise.hints)} hints; give 3: idea, API or shape, nearly code"
            )
        for code in _doubled([wrong.code for wrong in exercise.wrong_answers]):
            raise CourseError(
                f"{lecture.name}: {exercise.id} has two wrong answers with the code {code}; each needs its own"
            )


def _doubled(values: Iterable) -> list:
    values = list(values)
    return [value for value in dict.fromkeys(values) if values.count(value) > 1]
