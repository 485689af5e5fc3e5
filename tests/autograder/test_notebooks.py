"""Solved notebooks: built from their sources, refused when source and exercises contradict each other."""

import json

import nbformat
import pytest

from autograder import notebooks
from autograder.errors import CourseError
from autograder.exercises import load_lecture

TINY = "10_tiny"


def source_of(course):
    return course / "solutions" / TINY / f"{TINY}.py"


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} no longer holds {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def cell(notebook, id):
    return next(c for c in notebook.cells if c.id == id)


# ---- what is built --------------------------------------------------------------------------------------------------


def test_each_kind_of_cell_gets_the_metadata_that_nbgrader_needs(lecture):
    notebook = notebooks.read(notebooks.stored_path(lecture))
    marked = {c.id: c.metadata.nbgrader for c in notebook.cells if "nbgrader" in c.metadata}
    kinds = {id: (m.grade, m.solution, m.locked, m.get("points")) for id, m in marked.items()}
    assert kinds == {
        "setup": (False, False, True, None),
        "every_kth": (False, True, False, None),
        "check_every_kth": (True, False, True, 2),
        "even_numbers": (False, True, False, None),
        "check_even_numbers": (True, False, True, 3),
        "why_copies": (True, True, False, 1.5),
    }
    assert all(m.schema_version == 3 and m.grade_id == id for id, m in marked.items())


def test_the_solved_notebook_has_the_outputs_of_a_fresh_kernel(lecture):
    notebook = notebooks.read(notebooks.stored_path(lecture))
    shown = cell(notebook, "check_every_kth").outputs[0].data["text/plain"]
    assert "visible checks passed" in shown and "1 of 2 exercises" in shown
    assert cell(notebook, "cell-013").outputs[0].ename == "RuntimeError"


def test_building_again_gives_the_same_bytes(course, lecture):
    before = notebooks.stored_path(lecture).read_bytes()
    notebooks.build(lecture)
    assert notebooks.stored_path(lecture).read_bytes() == before


def test_nothing_in_the_notebook_tells_when_or_where_it_was_built(lecture):
    text = notebooks.stored_path(lecture).read_text(encoding="utf-8")
    assert "execution" not in json.loads(text)["cells"][1]["metadata"]
    assert '"version"' not in text and "/tmp" not in text and "ipykernel_" not in text


def test_building_leaves_no_trace_beside_the_notebook(lecture):
    assert sorted(p.name for p in lecture.folder.iterdir() if p.name != "__pycache__") == [
        f"{TINY}.ipynb",
        f"{TINY}.py",
        "checks.json",
        "exercises.py",
    ]


def test_a_warning_does_not_carry_the_process_that_gave_it(lecture):
    source = "import warnings\nwarnings.warn('mind this')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source, id="cell-001")])
    text = notebooks.executed(notebook, lecture.folder).cells[0].outputs[0].text
    assert text.startswith("cell.py:2: UserWarning: mind this")


def test_cards_and_questions_stand_in_place_of_their_names(lecture):
    notebook = notebooks.read(notebooks.stored_path(lecture))
    card, question = cell(notebook, "cell-010").source, cell(notebook, "cell-004").source
    for expected in (
        "Exercise 10.2",
        "★★ (2 of 5)",
        "about 1 minute",
        "3 points",
        "needs 10.1",
        "no Python loop",
        "`flip`",
    ):
        assert expected in card
    assert "hint(even_numbers)" in card
    assert "Is `x[[0, 1]]` a view" in question and "- **b** · no, it is a copy" in question
    assert "storage of its own" not in question  # the explanation comes after the choice


# ---- what is refused ------------------------------------------------------------------------------------------------

EXERCISE_CELL = '# %% exercise="even_numbers"\n'
CHECK_CELL = '# %% check="even_numbers"\ncheck(even_numbers)\n'
FAULTS = {
    "an exercise without a check cell": (CHECK_CELL, "", "even_numbers has no check cell"),
    "a check without its exercise": (EXERCISE_CELL, "# %%\n", "no cell carries exercise='even_numbers'"),
    "an unknown exercise": (EXERCISE_CELL, '# %% exercise="odd_numbers"\n', "there is no exercise 'odd_numbers'"),
    "an unknown check": ('check="even_numbers"', 'check="odd_numbers"', "there is no exercise 'odd_numbers'"),
    "an exercise twice": (CHECK_CELL, CHECK_CELL + "\n" + CHECK_CELL, "two check cells of even_numbers"),
    "a check that checks more": (
        "check(even_numbers)\n",
        "check(even_numbers); x = 1\n",
        "exactly check(even_numbers)",
    ),
    "a check of another function": ("check(even_numbers)\n", "check(every_kth)\n", "exactly check(even_numbers)"),
    "no setup cell": ("# %% setup=true\n", "# %%\n", "first code cell"),
    "code before the setup cell": ("# %% setup=true\n", "# %%\nx = 1\n\n# %% setup=true\n", "first code cell"),
    "the setup of another lecture": ('Checker("10_tiny")', 'Checker("02_indexing")', "the setup cell lacks the line"),
    "a mistyped key": ("# %% check=", "# %% chek=", "unknown metadata chek"),
    "a value without quotes": ('exercise="even_numbers"', "exercise=even_numbers", "values are JSON"),
    "a solution within a solution": (
        "    ### END SOLUTION\n",
        "    ### BEGIN SOLUTION\n    ### END SOLUTION\n    ### END SOLUTION\n",
        "around its body, or around several of its parts",
    ),
    "no end of the solution": ("    ### END SOLUTION\n", "", "BEGIN SOLUTION and ### END SOLUTION around its body"),
    "a solution outside of an exercise": ("x.view(7)", "### BEGIN SOLUTION\nx.view(7)", "carries no exercise"),
    "a cell that defines something else": ("def even_numbers(x)", "def evens(x)", "it does not define even_numbers"),
    "an exercise that says nothing": ('    """The even numbers of x, (n,), in order."""\n', "", "no docstring"),
    "an unknown card": ("{{card even_numbers}}", "{{card odd_numbers}}", "there is no 'odd_numbers'"),
    "a card within a line": ("{{card even_numbers}}", "see {{card even_numbers}}", "alone on its line"),
    "an unknown prediction": ('predict("P1", "b")', 'predict("P2", "b")', "no prediction 'P2'"),
    "a wrong prediction": ('predict("P1", "b")', 'predict("P1", "a")', "the answer of prediction P1 is 'b', not 'a'"),
    "a prediction not asked": ('predict("P1", "b")', "pass", "asked 0 times"),
    "a prediction among other code": ('predict("P1", "b")', 'y = 1\npredict("P1", "b")', "a code cell of its own"),
    "ignored output without a reason": (
        ' reason="the address of a storage differs from run to run"',
        "",
        "needs its reason",
    ),
    "a written answer in code": (
        '# %% [markdown] exercise="why_copies"',
        '# %% exercise="why_copies"',
        "must be Markdown",
    ),
}


@pytest.mark.parametrize("old, new, expected", FAULTS.values(), ids=FAULTS)
def test_a_contradiction_is_refused_with_its_place(course, lecture, old, new, expected):
    edit(source_of(course), old, new)
    with pytest.raises(CourseError, match=TINY) as caught:
        notebooks.solved(lecture)
    assert expected in str(caught.value)


def test_exercises_out_of_order_are_refused(course, lecture):
    text = source_of(course).read_text(encoding="utf-8")
    start, end = text.index(EXERCISE_CELL), text.index("# %% tags=")
    moved = text[:start] + text[end:] + "\n" + text[start:end]
    source_of(course).write_text(moved, encoding="utf-8")
    with pytest.raises(CourseError, match=r"stand in the order of exercises\.py"):
        notebooks.solved(lecture)


def test_an_exercise_without_a_cell_is_named(course):
    path = course / "solutions" / TINY / "exercises.py"
    edit(
        path,
        "why_copies = written(",
        'another = written("10.4", "another", points=1, minutes=1, stars=1, '
        'model_answer="A.", rubric="R.")\nwhy_copies = written(',
    )
    with pytest.raises(CourseError, match=r"exercises\.py has another, but no cell"):
        notebooks.solved(load_lecture(TINY, course / "solutions"))


def test_a_missing_source_is_named(course, lecture):
    source_of(course).unlink()
    with pytest.raises(CourseError, match=r"there is no .*10_tiny\.py"):
        notebooks.solved(lecture)


@pytest.mark.parametrize(
    "source, expected",
    [
        ("1 / 0", "raised ZeroDivisionError"),
        ("import os\nos._exit(1)", "has no kernel any more"),
    ],
)
def test_a_cell_that_fails_is_named(lecture, source, expected):
    cells = [nbformat.v4.new_markdown_cell("text"), nbformat.v4.new_code_cell(source, id="cell-002")]
    with pytest.raises(CourseError, match=rf"10_tiny: cell 2 \(cell-002, '.*{expected}"):
        notebooks.executed(nbformat.v4.new_notebook(cells=cells), lecture.folder)


def test_a_cell_that_does_not_end_is_named(lecture, monkeypatch):
    monkeypatch.setattr(notebooks, "CELL_SECONDS", 1)
    cells = [nbformat.v4.new_code_cell("import time\ntime.sleep(60)", id="cell-001")]
    with pytest.raises(CourseError, match=r"cell 1 .* did not finish within 1 s"):
        notebooks.executed(nbformat.v4.new_notebook(cells=cells), lecture.folder)


# ---- whether it is that of its source -------------------------------------------------------------------------------


def test_the_built_notebook_is_that_of_its_source(lecture):
    assert notebooks.difference(lecture) == ""


STALE = {
    "a text": ("# # Tiny", "# # Small", "cell 1 (cell-001) has another source"),
    "a tag": ("# %% facts=", '# %% tags=["x"] facts=', "cell 6 (cell-006) has another metadata"),
    "a cell more": ('# %% tags=["raises-exception"]', '# %%\n1\n\n# %% tags=["raises-exception"]', "has another"),
    "a cell less": ('# %% [markdown] exercise="why_copies"\n# Evenly', "# Evenly", "no cell carries"),
}


@pytest.mark.parametrize("old, new, expected", STALE.values(), ids=STALE)
def test_an_edited_source_makes_the_notebook_stale(course, lecture, old, new, expected):
    edit(source_of(course), old, new)
    with pytest.raises(CourseError) as caught:
        notebooks.demand_fresh([TINY], course / "solutions")
    assert expected in str(caught.value)


def test_edited_points_make_the_notebook_stale(course):
    edit(course / "solutions" / TINY / "exercises.py", "points=3", "points=4")
    assert "cell 10 (cell-010) has another source" in notebooks.difference(load_lecture(TINY, course / "solutions"))


def test_edited_cases_make_the_checks_stale(course):
    edit(course / "solutions" / TINY / "exercises.py", "(0, 1, 6, 9)", "(0, 1, 6, 8)")
    assert "checks.json is not that of exercises.py" in notebooks.difference(load_lecture(TINY, course / "solutions"))


def test_a_notebook_without_outputs_is_not_taken_for_executed(lecture):
    path = notebooks.stored_path(lecture)
    notebook = notebooks.read(path)
    cell(notebook, "check_every_kth").execution_count = None
    path.write_text(notebooks.text(notebook), encoding="utf-8")
    assert "was executed" in notebooks.difference(lecture)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"cells": 3}'])
def test_a_notebook_that_cannot_be_read_says_what_to_do(lecture, content):
    path = notebooks.stored_path(lecture)
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(CourseError, match="build it with `make notebooks`"):
        notebooks.difference(lecture)


def test_the_command_checks_and_names_what_is_stale(course, monkeypatch, capsys):
    monkeypatch.chdir(course)
    assert notebooks.main(["--check"]) == 0
    edit(source_of(course), "# # Tiny", "# # Small")
    assert notebooks.main([TINY, "--check"]) == 2
    assert "10_tiny: cell 1" in capsys.readouterr().err
    assert notebooks.main(["99_none"]) == 2
    assert "there is no lecture '99_none'" in capsys.readouterr().err
