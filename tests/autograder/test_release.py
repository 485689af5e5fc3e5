"""Releasing: the same bytes on every run, stale when a source changed, refused when something would be given away."""

import base64
import json
import shutil
from pathlib import Path

import nbformat
import pytest

from autograder import judge, leaks, notebooks
from autograder.errors import CourseError
from autograder.exercises import load_lecture
from autograder.nbgrader_plugin import BlankPredictions
from autograder.release import generate, release
from autograder.settings import load_settings

TINY = "10_tiny"


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} no longer holds {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def released_once(built_course, tmp_path_factory):
    lecture = load_lecture(TINY, built_course / "solutions")
    return generate(lecture, load_settings(built_course), tmp_path_factory.mktemp("released"))


@pytest.fixture
def released(released_once, tmp_path):
    """A released folder, to be changed at will."""
    return Path(shutil.copytree(released_once, tmp_path / "released"))


# ---- what students get ----------------------------------------------------------------------------------------------


def test_students_get_the_notebook_and_the_checks_only(settings):
    release([], settings)
    assert sorted(contents(settings.course)) == [f"{TINY}/{TINY}.ipynb", f"{TINY}/checks.json"]


def test_the_released_notebook_asks_and_does_not_answer(released):
    cells = {cell.id: cell for cell in notebooks.read(released / f"{TINY}.ipynb").cells}
    assert cells["even_numbers"].source.endswith('raise NotImplementedError("not answered yet")')
    assert '"""The even numbers of x' in cells["even_numbers"].source
    assert cells["why_copies"].source == "YOUR ANSWER HERE"
    assert cells["cell-005"].source == 'predict("P1", ...)'
    assert not {"cell-003", "cell-015"} & set(cells)  # instructor's notes
    assert cells["setup"].metadata.editable is False and cells["check_every_kth"].metadata.deletable is False


def test_a_cell_of_several_predictions_is_blanked_whole():
    cell = nbformat.v4.new_code_cell('predict("R1", "a")\npredict("R2", "c")  # c, since ...')
    blank, _ = BlankPredictions().preprocess_cell(cell, {}, 0)
    assert blank.source == 'predict("R1", ...)\npredict("R2", ...)'


def test_a_data_file_goes_along_and_notes_do_not(course, lecture, settings):
    for name in ("data.csv", "notes.md", "helper.py", "progress.json", ".secret"):
        (lecture.folder / name).write_text(f"{name}\n")
    release([], settings)
    assert sorted(path.name for path in (settings.course / TINY).iterdir()) == [
        f"{TINY}.ipynb",
        "checks.json",
        "data.csv",
    ]


def test_two_releases_are_the_same_bytes(settings):
    release([], settings)
    first = contents(settings.course)
    shutil.rmtree(settings.course)
    assert len(release([], settings)) == 2
    assert contents(settings.course) == first
    assert release([], settings) == []
    assert release([], settings, check=True) == []


# ---- stale ----------------------------------------------------------------------------------------------------------


def spoil(path):
    path.write_text("x", encoding="utf-8")


STALE = {
    "a changed notebook": (lambda course: spoil(course / TINY / f"{TINY}.ipynb"), f"course/{TINY}/{TINY}.ipynb"),
    "changed checks": (lambda course: spoil(course / TINY / "checks.json"), f"course/{TINY}/checks.json"),
    "a missing file": (lambda course: (course / TINY / "checks.json").unlink(), f"course/{TINY}/checks.json"),
    "a file too many": (lambda course: spoil(course / TINY / "extra.txt"), f"course/{TINY}/extra.txt"),
    "a lecture too many": (lambda course: (course / "11_gone").mkdir(), "course/11_gone"),
}


@pytest.mark.parametrize("change, named", STALE.values(), ids=STALE)
def test_a_stale_course_is_named_and_not_touched(settings, change, named):
    release([], settings)
    change(settings.course)
    before = contents(settings.course)
    with pytest.raises(CourseError, match=r"stale: .*make release") as caught:
        release([], settings, check=True)
    assert named in str(caught.value)
    assert contents(settings.course) == before


def test_a_solved_notebook_that_is_not_of_its_source_is_not_released(course, settings):
    edit(course / "solutions" / TINY / f"{TINY}.py", "# # Tiny", "# # Small")
    with pytest.raises(CourseError, match="run `make notebooks`"):
        release([], settings)
    assert not settings.course.exists()


def test_progress_is_nobody_elses_business(settings):
    release([], settings)
    (settings.course / TINY / "progress.json").write_text("{}")
    assert release([], settings, check=True) == []
    release([], settings)
    assert (settings.course / TINY / "progress.json").exists()


def test_a_notebook_that_someone_worked_in_is_kept(settings):
    release([], settings)
    path = settings.course / TINY / f"{TINY}.ipynb"
    blank = path.read_bytes()
    edit(path, 'raise NotImplementedError(\\"not answered yet\\")', "return x[-1, ::k]")
    mine = path.read_bytes()
    release([], settings)
    assert path.read_bytes() == blank
    assert (settings.course / TINY / f"{TINY}.edited-1.ipynb").read_bytes() == mine
    assert release([], settings, check=True) == []


def test_a_notebook_that_was_only_run_is_not_kept(settings):
    release([], settings)
    path = settings.course / TINY / f"{TINY}.ipynb"
    edit(path, '"execution_count": null', '"execution_count": 7')
    release([], settings)
    assert [p.name for p in path.parent.glob("*.ipynb")] == [path.name]


def test_without_a_configuration_there_is_no_release(course, settings):
    (course / "nbgrader_config.py").unlink()
    with pytest.raises(CourseError, match=r"there is no nbgrader_config\.py"):
        release([], settings)


def test_nbgraders_refusal_is_passed_on(course, settings, lecture):
    notebook = notebooks.read(notebooks.stored_path(lecture))
    notebook.cells[0].metadata.nbgrader = {"grade": True}
    notebooks.stored_path(lecture).write_text(notebooks.text(notebook), encoding="utf-8")
    with pytest.raises(CourseError, match="10_tiny: nbgrader cannot release it"):
        generate(lecture, settings, course / "elsewhere")


# ---- what must not be given away ------------------------------------------------------------------------------------


def test_what_is_released_gives_nothing_away(lecture, released):
    assert leaks.leaks(lecture, released, seed=123456) == []


def in_cell(id, change):
    def plant(folder):
        path = folder / f"{TINY}.ipynb"
        notebook = notebooks.read(path)
        change(next(cell for cell in notebook.cells if cell.id == id))
        path.write_text(json.dumps(notebook), encoding="utf-8")

    return plant


def adding(text):
    return lambda cell: cell.__setitem__("source", f"{cell.source}\n{text}")


def in_checks(change):
    def plant(folder):
        data = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
        change({e["id"]: e for e in data["exercises"]})
        (folder / "checks.json").write_text(json.dumps(data), encoding="utf-8")

    return plant


def with_hidden_cases(exercises):
    lecture = load_lecture(TINY, Path(__file__).parent / "fixtures" / "solutions")
    message = judge.question(lecture["every_kth"], 5).message
    exercises["every_kth"]["question"] = base64.b64encode(message).decode()


def encoded(text):
    return base64.b64encode(text.encode()).decode()


WRONG = "return x[-1, list(range(0, x.shape[1], k))]"
PLANTS = {
    "a solution": (in_cell("even_numbers", adding("    return x[remainders == 0]")), "the solution of even_numbers"),
    "a solution as a comment": (
        in_cell("cell-006", adding("# rows, columns = x.shape\n# return x[rows - 1, 0:columns:k]")),
        "the solution of every_kth",
    ),
    "a line of a solution, reformatted": (
        in_cell("cell-006", adding("remainders = torch . remainder(x,\n    2)")),
        "the solution of even_numbers",
    ),
    "a solution in prose": (
        in_cell("cell-007", adding("Try `return x[rows - 1, 0:columns:k]`.")),
        "the solution of every_kth",
    ),
    "a reference": (in_cell("cell-006", adding("def f(x, k):\n    return x[-1, ::k]")), "the reference of every_kth"),
    "a reference in the metadata": (
        in_cell(
            "cell-006",
            lambda cell: cell.metadata.__setitem__("note", "divisible = x.remainder(2).eq(0)\nreturn x[divisible]"),
        ),
        "the reference of even_numbers",
    ),
    "a reference in the checks": (
        in_checks(lambda exercises: exercises["every_kth"]["hints"].append("return x[-1, ::k]")),
        "the reference of every_kth",
    ),
    "an encoded reference": (
        in_checks(lambda e: e["every_kth"].__setitem__("more", encoded(f"{' ' * 30}return x[-1, ::k]{' ' * 30}"))),
        "the reference of every_kth",
    ),
    "a wrong answer": (in_cell("cell-006", adding(f"def f(x, k):\n    {WRONG}")), "the wrong answer M09 of every_kth"),
    "a right answer": (
        in_cell("cell-006", adding("def f(x, k):\n  last = x.select(0, x.shape[0]-1)\n  return last[::k]")),
        "a right answer of every_kth",
    ),
    "where the cases come from": (
        in_cell(
            "cell-006", adding("def f(rng):\n    for length in (0, 1, 6, 9):\n        yield (rng.integers(length),)")
        ),
        "the cases of even_numbers",
    ),
    "hidden cases": (in_checks(with_hidden_cases), "checks.json holds other cases of every_kth than the visible ones"),
    "the seed of hidden cases": (
        in_cell("cell-006", adding("torch.manual_seed(123456)")),
        "holds the seed of the hidden cases",
    ),
    "a model answer": (
        in_cell("cell-016", adding("No stride can describe it, therefore\n**torch** must copy the elements!")),
        "the model answer of why_copies",
    ),
    "a rubric": (
        in_cell(
            "cell-016",
            adding("One point for the missing stride, half a point for naming the consequence that a copy is made"),
        ),
        "the rubric of why_copies",
    ),
    "a written answer": (
        in_cell("why_copies", adding("A list of indices may name any elements at all, so there is none.")),
        "the answer of why_copies",
    ),
    "an instructor's note": (
        in_cell("cell-006", adding("# Ask the room before the next cell: most will say that it is a view.")),
        "an instructor's note",
    ),
    "the letter of a prediction": (
        in_cell("cell-005", lambda cell: cell.__setitem__("source", 'predict("P1", "b")')),
        "cell-005 tells the answer of a prediction",
    ),
    "an output": (in_cell("cell-006", lambda cell: cell.__setitem__("execution_count", 3)), "cell-006 has outputs"),
    "exercises.py": (
        lambda folder: (folder / "exercises.py").write_text("x = 1"),
        "exercises.py is no file for students",
    ),
    "exercises.py renamed": (
        lambda folder: shutil.copy(
            Path(__file__).parent / "fixtures" / "solutions" / TINY / "exercises.py", folder / "data.txt"
        ),
        "data.txt is a copy of a source",
    ),
    "a piece of exercises.py": (
        lambda folder: (folder / "data.txt").write_text("from autograder.exercises import exercise"),
        "data.txt holds 'autograder.exercises'",
    ),
    "a mark of the sources": (in_cell("every_kth", adding("    ### BEGIN SOLUTION")), "holds 'BEGIN SOLUTION'"),
    "an unlocked check": (
        in_cell("check_every_kth", lambda cell: cell.metadata.pop("editable")),
        "the cell check_every_kth is not locked",
    ),
    "an unlocked setup": (
        in_cell("setup", lambda cell: cell.metadata.nbgrader.__setitem__("locked", False)),
        "the cell setup is not locked",
    ),
    "a missing check": (
        in_cell("check_every_kth", lambda cell: cell.metadata.pop("nbgrader")),
        "the cell check_every_kth is missing",
    ),
    "a stub that scores": (
        in_cell(
            "even_numbers",
            lambda cell: cell.__setitem__("source", "def even_numbers(x):\n    return x[~(x % 2).bool()]"),
        ),
        "the released cell of even_numbers scores 3 of 3 as it stands",
    ),
    "a stub that does not run": (
        in_cell("even_numbers", lambda cell: cell.__setitem__("source", "def even(x):\n    pass")),
        "the released cell of even_numbers does not run",
    ),
    "no checks": (lambda folder: (folder / "checks.json").unlink(), "checks.json is not in"),
    "no notebook": (lambda folder: (folder / f"{TINY}.ipynb").unlink(), "there is no"),
}


@pytest.mark.parametrize("plant, expected", PLANTS.values(), ids=PLANTS)
def test_what_must_not_be_given_away_is_found(lecture, released, plant, expected):
    plant(released)
    found = leaks.leaks(lecture, released, seed=123456)
    assert any(expected in sentence for sentence in found), found


HARMLESS = {
    "a line of the reference in a hint": in_checks(
        lambda exercises: exercises["even_numbers"]["hints"].append("divisible = x.remainder(2).eq(0)")
    ),
    "an import": in_cell("cell-006", adding("from torch.utils.benchmark import Timer")),
    "a piece too short to tell": in_cell("cell-006", adding("rows, columns = x.shape\nreturn x")),
    "the docstring of an exercise": in_cell("cell-006", adding("# The even numbers of x, (n,), in order.")),
}


@pytest.mark.parametrize("plant", HARMLESS.values(), ids=HARMLESS)
def test_what_tells_nothing_is_no_leak(course, released, plant):
    path = course / "solutions" / TINY / "exercises.py"
    edit(path, '"Index with the mask."', '"Index with the mask.divisible = x.remainder(2).eq(0)"')
    edit(
        path,
        "    return x[-1, ::k]\n",
        "    from torch.utils.benchmark import Timer\n\n    return x[-1, ::k] if Timer else 0\n",
    )
    plant(released)
    assert leaks.leaks(load_lecture(TINY, course / "solutions"), released) == []


def test_a_wrong_answer_that_the_lecture_shows_is_no_leak(course, settings):
    source = course / "solutions" / TINY / f"{TINY}.py"
    edit(source, "# %% facts=", f"# %%\ndef f(x, k):\n    {WRONG}\n\n# %% facts=")
    lecture = load_lecture(TINY, course / "solutions")
    notebooks.stored_path(lecture).write_text(notebooks.text(notebooks.solved(lecture)), encoding="utf-8")
    assert leaks.leaks(lecture, generate(lecture, settings, course / "elsewhere")) == []


def test_a_lecture_that_gives_its_answer_away_is_not_released(course, settings):
    source = course / "solutions" / TINY / f"{TINY}.py"
    edit(source, "# ## The last row", "# ## The last row\n#\n# Try `return x[rows - 1, 0:columns:k]`.")
    notebook = notebooks.solved(load_lecture(TINY, course / "solutions"))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):  # as executed, without the time that it takes
        cell.execution_count = number
    (source.with_suffix(".ipynb")).write_text(notebooks.text(notebook), encoding="utf-8")
    with pytest.raises(CourseError, match=r"not released: 10_tiny: .* holds the solution of every_kth"):
        release([], settings)
    assert not settings.course.exists()
