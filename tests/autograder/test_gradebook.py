"""The gradebook: whole transactions, nothing old under a new attempt, and nbgrader can work with what is in it."""

import contextlib
import csv
import dataclasses
import json
import shutil
import sqlite3
import traceback
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import nbgrader
import pytest
from alembic.script import ScriptDirectory
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import CsvExportPlugin
from nbgrader.utils import determine_grade
from sqlalchemy import text
from sqlalchemy.exc import SAWarning

from autograder import database, gradebook, notebooks, probe
from autograder.autograded import autograded, notebook_text
from autograder.errors import EngineError, GradebookError, StorageError
from autograder.exercises import load_lecture
from autograder.identities import Identity, remember
from autograder.records import Report, Verdict
from autograder.release import course_config, said_by_nbgrader
from autograder.settings import load_settings

TINY = "10_tiny"
SCORES = {"every_kth": 2.0, "even_numbers": 0.0}


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path.name} no longer holds {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def report_of(lecture, student="ada", scores=SCORES, digest="one", **changes):
    """A Report as grading makes it: the solved notebook executed, these scores, the written answer to be read."""
    verdicts = []
    for exercise in lecture.exercises:
        if exercise.written:
            verdicts.append(
                Verdict(exercise.id, exercise.number, 0.0, exercise.points, message="By hand.", by_hand=True)
            )
        else:
            message = "" if scores[exercise.id] else f"{exercise.id}: expected [2], got <b>[3]</b>."
            verdicts.append(Verdict(exercise.id, exercise.number, scores[exercise.id], exercise.points, (), message))
    text = notebooks.stored_path(lecture).read_text(encoding="utf-8")
    values = {"state": "graded", "notebook": text, "provenance": {"submission": digest}, **changes}
    return Report(student, lecture.name, verdicts=tuple(values.pop("verdicts", verdicts)), **values)


def ungradable(lecture, **changes):
    verdicts = [Verdict(e.id, e.number, 0.0, e.points) for e in lecture.exercises]
    reason = "It is not a notebook."
    return report_of(lecture, state="ungradable", reason=reason, verdicts=verdicts, notebook=None, **changes)


def rows(settings, query, *values):
    with sqlite3.connect(settings.out / "gradebook.db") as connection:
        found = connection.execute(query, values).fetchall()
    connection.close()
    return found


GRADES = """select base_cell.name, auto_score, manual_score, extra_credit, needs_manual_grade from grade
    join base_cell on base_cell.id = cell_id join submitted_notebook on submitted_notebook.id = grade.notebook_id
    join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id
    where student_id = ? order by base_cell.name"""
COMMENTS = GRADES.replace(
    "auto_score, manual_score, extra_credit, needs_manual_grade from grade", "auto_comment, manual_comment from comment"
).replace("grade.notebook_id", "comment.notebook_id")


def grades(settings, student="ada"):
    return {name: tuple(values) for name, *values in rows(settings, GRADES, student)}


def comments(settings, student="ada"):
    return {name: tuple(values) for name, *values in rows(settings, COMMENTS, student)}


def by_hand(settings, cell, student="ada", **values):
    """What a person does in formgrader."""
    with stock_gradebook(settings) as book:
        row = book.find_grade(cell, TINY, TINY, student)
        for name, value in values.items():
            setattr(row, name, value)
        row.needs_manual_grade = False
        book.db.commit()


def comment_by_hand(settings, cell, text, student="ada"):
    with stock_gradebook(settings) as book:
        book.find_comment(cell, TINY, TINY, student).manual_comment = text
        book.db.commit()


@pytest.fixture(scope="session")
def built_book(built_course, tmp_path_factory):
    """A gradebook that knows the lecture; not to be changed."""
    out = tmp_path_factory.mktemp("out") / "grading"
    settings = load_settings(built_course, out=out)
    gradebook.ensure_assignment(load_lecture(TINY, settings.solutions), settings)
    return out


@pytest.fixture
def book(built_book, settings):
    """The settings of a course whose gradebook knows the lecture."""
    shutil.copytree(built_book, settings.out)
    return settings


@contextlib.contextmanager
def stock_gradebook(settings):
    """nbgrader's own, whose way of adding a submission makes SQLAlchemy warn."""
    with warnings.catch_warnings(), Gradebook(settings.db_url, "") as book:
        warnings.filterwarnings("ignore", "Object of type <Submitted(Assignment|Notebook)> not in session", SAWarning)
        yield book


# ---- the lecture's cells --------------------------------------------------------------------------------------------

CELLS = """select base_cell.name, base_cell.type, grade_cells.max_score, grade_cells.cell_type
    from base_cell left join grade_cells on grade_cells.id = base_cell.id order by 1, 2"""
SOURCES = "select name, cell_type, locked, source, checksum from source_cell order by name"
LECTURES = """select assignment.name, course_id, notebook.name, kernelspec
    from assignment join notebook on assignment.id = assignment_id"""


def test_the_gradebook_knows_the_cells_as_if_nbgrader_had_stored_them(lecture, settings, course):
    gradebook.ensure_assignment(lecture, settings)
    ours = [rows(settings, query) for query in (CELLS, SOURCES, LECTURES)]
    theirs = dataclasses.replace(
        settings, out=course / "theirs", db_url=f"sqlite:///{course / 'theirs' / 'gradebook.db'}"
    )
    gradebook.save_cells(theirs.db_url, "another", nbformat.v4.new_notebook())  # an empty gradebook
    config = course_config(settings)
    config.CourseDirectory.update(
        root=str(course), release_directory="by_nbgrader", assignment_id=TINY, db_url=theirs.db_url
    )
    config.GenerateAssignment.pop("pre_convert_hook")
    config.GenerateAssignment.preprocessors[-1] = "nbgrader.preprocessors.SaveCells"
    with said_by_nbgrader():
        GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()
    assert len(ours[0]) == 6 and len(ours[1]) == 6
    assert [
        rows(theirs, CELLS),
        rows(theirs, SOURCES),
        [row for row in rows(theirs, LECTURES) if row[0] == TINY],
    ] == ours


def test_a_new_gradebook_has_the_version_that_alembic_would_give_it(book):
    scripts = ScriptDirectory(str(Path(nbgrader.__file__).parent / "alembic"))
    assert rows(book, "select version_num from alembic_version") == [(scripts.get_current_head(),)]


@pytest.mark.parametrize("version", ["167914646830", "f00d"])  # an older one of nbgrader, and one that it does not know
def test_a_gradebook_of_another_version_is_refused_and_left_as_it_is(lecture, book, version):
    rows(book, "update alembic_version set version_num = ?", version)
    before = state_of(book)
    for use in (
        lambda: gradebook.prepare(book),
        lambda: gradebook.ensure_assignment(lecture, book),
        lambda: gradebook.write(report_of(lecture), lecture, book, attempt_changed=True),
    ):
        with pytest.raises(GradebookError, match=rf"of version {version}, .*`nbgrader db upgrade`"):
            use()
    assert state_of(book) == before


def test_changed_exercises_change_the_cells_and_keep_the_other_grades(lecture, book, course):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    by_hand(book, "check_every_kth", manual_score=1.0)
    folder = course / "solutions" / TINY
    exercises = folder / "exercises.py"
    edit(exercises, "points=2,", "points=5,")
    edit(exercises, "def even_numbers(x):\n    divisible", "def odd_numbers(x):\n    divisible")
    for old, new in (("@even_numbers.", "@odd_numbers."),) * 3 + (("X-even_numbers-1", "X-odd_numbers-1"),):
        edit(exercises, old, new)
    source = folder / f"{TINY}.py"
    source.write_text(source.read_text(encoding="utf-8").replace("even_numbers", "odd_numbers"), encoding="utf-8")
    changed = load_lecture(TINY, course / "solutions")
    path = notebooks.stored_path(changed)
    path.write_text(notebooks.text(notebooks.solved(changed)), encoding="utf-8")
    gradebook.ensure_assignment(changed, book)
    assert ("check_every_kth", "GradeCell", 5.0, "code") in rows(book, CELLS)
    assert grades(book) == {
        "check_every_kth": (2.0, 1.0, None, 0),
        "check_odd_numbers": (None, None, None, 1),
        "why_copies": (None, None, None, 1),
    }
    assert set(comments(book)) == {"every_kth", "odd_numbers", "why_copies"}
    assert rows(book, "select count(*) from grade")[0][0] == 3


def test_storing_the_cells_again_changes_nothing(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    before = [
        rows(book, f"select * from {table} order by 1") for table in ("base_cell", "source_cell", "grade", "comment")
    ]
    gradebook.ensure_assignment(lecture, book)
    assert before == [
        rows(book, f"select * from {table} order by 1") for table in ("base_cell", "source_cell", "grade", "comment")
    ]


def test_a_notebook_of_another_name_leaves_the_lecture(lecture, book):
    with stock_gradebook(book) as stock:
        stock.add_notebook("draft", TINY)
        stock.add_grade_cell("test1", "draft", TINY, max_score=7, cell_type="code")
        stock.add_student("bo")
        stock.add_submission(TINY, "bo")
    gradebook.ensure_assignment(lecture, book)
    assert rows(book, "select name from notebook") == [(TINY,)]
    with stock_gradebook(book) as stock:
        assert stock.find_assignment(TINY).max_score == 6.5


# ---- one submission -------------------------------------------------------------------------------------------------


def test_every_cell_gets_its_score_and_its_comment(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    assert grades(book) == {
        "check_even_numbers": (0.0, None, None, 0),
        "check_every_kth": (2.0, None, None, 0),
        "why_copies": (None, None, None, 1),
    }
    assert comments(book) == {
        "even_numbers": ("even_numbers: expected [2], got <b>[3]</b>.", None),
        "every_kth": (None, None),
        "why_copies": (None, None),
    }
    with stock_gradebook(book) as stock:
        submission = stock.find_submission(TINY, "ada")
        assert (submission.score, submission.max_score, submission.needs_manual_grade) == (2.0, 6.5, True)


def test_an_unanswered_question_waits_for_nobody(lecture, book):
    verdicts = [Verdict(e.id, e.number, 0.0, e.points) for e in lecture.exercises]
    gradebook.write(report_of(lecture, verdicts=verdicts), lecture, book, attempt_changed=True)
    assert set(grades(book).values()) == {(0.0, None, None, 0)}


def test_what_cannot_be_graded_gets_nothing_and_the_reason(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    gradebook.write(ungradable(lecture), lecture, book, attempt_changed=True)
    assert set(grades(book).values()) == {(0.0, None, None, 0)}
    assert set(comments(book).values()) == {("It is not a notebook.", None)}


def test_a_cell_without_a_verdict_gets_nothing(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    gradebook.write(report_of(lecture, verdicts=[]), lecture, book, attempt_changed=True)
    assert {score for score, *_ in grades(book).values()} == {0.0}


@pytest.mark.parametrize("state", ["graded", "repaired", "ungradable"])
def test_nothing_old_survives_a_new_attempt(lecture, book, state):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    by_hand(book, "check_even_numbers", manual_score=3.0, extra_credit=1.0)
    by_hand(book, "why_copies", manual_score=1.5)
    comment_by_hand(book, "why_copies", "Well said.")
    again = ungradable(lecture) if state == "ungradable" else report_of(lecture, state=state)
    gradebook.write(again, lecture, book, attempt_changed=True)
    assert {(manual, extra) for _, manual, extra, _ in grades(book).values()} == {(None, None)}
    assert {manual for _, manual in comments(book).values()} == {None}
    assert grades(book)["why_copies"][-1] == (state != "ungradable")


def test_what_people_gave_stays_when_the_same_files_are_graded_again(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    by_hand(book, "check_every_kth", manual_score=1.0)
    by_hand(book, "check_even_numbers", manual_score=3.0)
    by_hand(book, "why_copies", manual_score=1.5, extra_credit=0.5)
    comment_by_hand(book, "why_copies", "Well said.")
    gradebook.write(
        report_of(lecture, scores={"every_kth": 2.0, "even_numbers": 3.0}), lecture, book, attempt_changed=False
    )
    assert grades(book) == {
        "check_even_numbers": (3.0, 3.0, None, 1),  # the automatic score changed beneath: a second look
        "check_every_kth": (2.0, 1.0, None, 0),
        "why_copies": (None, 1.5, 0.5, 0),
    }
    assert comments(book)["why_copies"] == (None, "Well said.")


def test_the_gradebook_knows_by_itself_whether_an_attempt_is_new(lecture, book):
    gradebook.write(report_of(lecture, digest="one"), lecture, book)
    by_hand(book, "why_copies", manual_score=1.5)
    gradebook.write(report_of(lecture, digest="one"), lecture, book)
    assert grades(book)["why_copies"] == (None, 1.5, None, 0)
    gradebook.write(report_of(lecture, digest="two"), lecture, book)
    assert grades(book)["why_copies"] == (None, None, None, 1)


def test_an_error_of_ours_leaves_the_grades_of_the_same_files(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    before = grades(book), comments(book)
    gradebook.write(report_of(lecture, state="error", reason="No kernel."), lecture, book, attempt_changed=False)
    assert (grades(book), comments(book)) == before
    assert (book.out / "autograded" / "ada" / TINY / f"{TINY}.ipynb").exists()


def test_an_error_of_ours_takes_away_the_grades_of_the_old_files(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    with stock_gradebook(book) as stock:
        stock.grant_extension(TINY, "ada", days=2)
    gradebook.write(report_of(lecture, state="error", reason="No kernel."), lecture, book, attempt_changed=True)
    assert set(grades(book).values()) == {(None, None, None, 1)}
    assert set(comments(book).values()) == {("Not graded yet: No kernel.", None)}
    assert not (book.out / "autograded" / "ada" / TINY).exists()
    with stock_gradebook(book) as stock:
        assert stock.find_submission(TINY, "ada").extension == timedelta(days=2)


def test_an_error_of_ours_makes_no_grade(lecture, book):
    gradebook.write(report_of(lecture, state="error", reason="No kernel."), lecture, book, attempt_changed=True)
    assert grades(book) == {} and rows(book, "select count(*) from student") == [(0,)]


def test_a_submission_that_nbgrader_made_is_taken_over(lecture, book):
    with stock_gradebook(book) as stock:
        stock.add_student("ada")
        stock.add_submission(TINY, "ada")
        stock.find_grade("check_every_kth", TINY, TINY, "ada").manual_score = 2.0
        stock.db.commit()
    gradebook.write(report_of(lecture, scores={"every_kth": 0.0, "even_numbers": 0.0}), lecture, book)
    assert grades(book)["check_every_kth"] == (0.0, None, None, 0)


@pytest.mark.parametrize(
    "given, kept",
    [
        ("2026-03-01 12:00:00 UTC", "2026-03-01 12:00:00.000000"),
        ("2026-03-01 14:00:00 +0200", "2026-03-01 12:00:00.000000"),
        ("yesterday", None),
        (None, None),
    ],
)
def test_the_time_of_handing_in_is_that_of_the_submitted_folder(lecture, book, given, kept):
    if given:
        folder = book.out / "submitted" / "ada" / TINY
        folder.mkdir(parents=True)
        (folder / "timestamp.txt").write_text(given)
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    assert rows(book, "select timestamp from submitted_assignment") == [(kept,)]


@pytest.mark.parametrize(
    "told, kept",
    [("2026-11-30T10:00:00", "2026-11-30 10:00:00.000000"), ("30.11.2026 10:00", "2020-01-01 00:00:00.000000")],
)
def test_the_time_that_the_lms_told_wins_over_a_file_in_the_folder(lecture, book, told, kept):
    folder = book.out / "submitted" / "ada" / TINY
    folder.mkdir(parents=True)
    (folder / "timestamp.txt").write_text("2020-01-01 00:00:00")
    remember(book.out, TINY, {"ada": Identity("blackboard", "ada", "Ada", told)})
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    assert rows(book, "select timestamp from submitted_assignment") == [(kept,)]


def test_a_late_submission_loses_what_the_course_says(lecture, book, course):
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text() + "\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    with stock_gradebook(book) as stock:
        stock.update_or_create_assignment(TINY, duedate="2026-03-01 12:00")
    for student, minute, expected in (("ada", 0, None), ("bo", 1, 2.0)):
        handed_in = datetime(2026, 3, 1, 12, minute, tzinfo=UTC)
        gradebook.write(report_of(lecture, student), lecture, book, attempt_changed=True, timestamp=handed_in)
        with stock_gradebook(book) as stock:
            assert stock.find_submission_notebook(TINY, TINY, student).late_submission_penalty == expected


def test_who_was_given_more_time_is_not_late(lecture, book, course):
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text() + "\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    with stock_gradebook(book) as stock:
        stock.update_or_create_assignment(TINY, duedate="2026-03-01 12:00")
        stock.add_student("ada")
        stock.add_submission(TINY, "ada")
        stock.grant_extension(TINY, "ada", minutes=30)
    for minute, expected in ((30, None), (31, 2.0), (29, None)):
        gradebook.write(report_of(lecture), lecture, book, timestamp=datetime(2026, 3, 1, 12, minute, tzinfo=UTC))
        with stock_gradebook(book) as stock:
            assert stock.find_submission_notebook(TINY, TINY, "ada").late_submission_penalty == expected


def test_points_by_hand_count_when_a_late_submission_loses_points(lecture, book, course):
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text() + "\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    gradebook.write(report_of(lecture), lecture, book)
    by_hand(book, "check_every_kth", manual_score=1.0, extra_credit=0.25)
    with stock_gradebook(book) as stock:
        stock.update_or_create_assignment(TINY, duedate="2026-03-01 12:00")
    gradebook.write(report_of(lecture), lecture, book, timestamp="2026-03-02 12:00")
    assert rows(book, "select late_submission_penalty from submitted_notebook") == [(1.25,)]


SNAPSHOT = {"timestamp", "extension", "digest", "flagged", "late_submission_penalty", "grades", "comments"}


def test_what_is_replaced_is_noted_before_anything_changes(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, timestamp="2026-03-01 12:00")
    by_hand(book, "why_copies", manual_score=1.5)
    before, kept, noted = state_of(book), gradebook.snapshot("ada", lecture, book), []

    def note(held):
        assert state_of(book) == before
        noted.append(json.loads(json.dumps(held)))
        return report_of(lecture, scores={"every_kth": 1.0, "even_numbers": 1.0}, digest="two")

    gradebook.write(ungradable(lecture, digest="two"), lecture, book, note=note)
    assert noted == [kept] and kept["submission"].keys() == SNAPSHOT
    assert grades(book)["check_every_kth"] == (1.0, None, None, 0), "what was noted is not what was written"
    gradebook.restore(noted[0], lecture, book)
    assert state_of(book) == before


def test_of_who_is_new_it_is_noted_that_there_was_nothing(lecture, book):
    noted = []
    gradebook.write(report_of(lecture), lecture, book, note=lambda held: noted.append(held) or report_of(lecture))
    assert noted == [{"student": "ada", "submission": None, "autograded": None}]


def test_what_cannot_be_noted_is_not_written(lecture, book):
    def full(held):
        raise StorageError("the disk is full")

    with pytest.raises(StorageError, match="the disk is full"):
        gradebook.write(report_of(lecture), lecture, book, note=full)
    assert grades(book) == {} and rows(book, "select count(*) from student") == [(0,)]


def test_an_assignment_that_was_handed_in_without_this_notebook_keeps_its_extension(lecture, book):
    with stock_gradebook(book) as stock:
        stock.add_student("ada")
        stock.add_submission(TINY, "ada")
        stock.grant_extension(TINY, "ada", days=2)
        for table in ("grade", "comment", "submitted_notebook"):
            stock.db.execute(text(f"delete from {table}"))
        stock.db.commit()
    assert gradebook.snapshot("ada", lecture, book)["submission"] is None
    gradebook.write(report_of(lecture), lecture, book, timestamp="2026-03-01 12:00")
    assert len(grades(book)) == len(comments(book)) == 3
    with stock_gradebook(book) as stock:
        (found,) = stock.assignment_submissions(TINY)
        assert (found.extension, found.timestamp) == (timedelta(days=2), datetime(2026, 3, 1, 12))


# ---- the notebook beside it -----------------------------------------------------------------------------------------


def executed(lecture, change):
    """A Report whose notebook was changed by `change(cells by grade_id, notebook)`."""
    notebook = notebooks.read(notebooks.stored_path(lecture))
    change({c.metadata.nbgrader.grade_id: c for c in notebook.cells if "nbgrader" in c.metadata}, notebook)
    return report_of(lecture, notebook=json.dumps(notebook))


def scored(notebook):
    return {
        cell.metadata.nbgrader.grade_id: determine_grade(cell)[0]
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }


def result(text):
    return nbformat.v4.new_output("execute_result", data={"text/plain": text}, execution_count=1)


FORGERIES = {
    "nothing": lambda cells, notebook: None,
    "a result": lambda cells, notebook: cells["check_even_numbers"].outputs.insert(0, result("3.0")),
    "text on stderr": lambda cells, notebook: cells["check_every_kth"].outputs.insert(
        0, nbformat.v4.new_output("stream", name="stderr", text="UserWarning: beta")
    ),
    "an error": lambda cells, notebook: cells["check_every_kth"].outputs.insert(
        0, nbformat.v4.new_output("error", ename="E")
    ),
    "points": lambda cells, notebook: cells["check_even_numbers"].metadata.nbgrader.update(points=0),
    "a double": lambda cells, notebook: notebook.cells.append(cells["check_even_numbers"].copy()),
    "a cell of its own": lambda cells, notebook: notebook.cells[0].metadata.update(
        nbgrader={"grade": True, "grade_id": "bonus", "points": 100}
    ),
    "no longer graded": lambda cells, notebook: cells["check_even_numbers"].metadata.nbgrader.update(grade=False),
    "metadata that are none": lambda cells, notebook: notebook.cells[0].metadata.update(nbgrader={"grade_id": ["x"]}),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_nbgrader_reads_the_true_score_whatever_the_student_displayed(lecture, change):
    notebook = autograded(executed(lecture, change), lecture)
    assert scored(notebook) == {"check_every_kth": 2.0, "check_even_numbers": 0.0, "why_copies": None}
    marked = [c.metadata.nbgrader.grade_id for c in notebook.cells if "nbgrader" in c.metadata]
    assert sorted(marked) == [
        "check_even_numbers",
        "check_every_kth",
        "even_numbers",
        "every_kth",
        "setup",
        "why_copies",
    ]


def test_what_the_student_displayed_stays_for_people(lecture):
    notebook = autograded(report_of(lecture), lecture)
    outputs = next(c for c in notebook.cells if c.id == "check_every_kth").outputs
    assert outputs[0].data == {"text/plain": "2.0"}
    assert "visible checks passed" in outputs[1].data["text/plain"]


def test_the_file_says_what_nbformat_would_write(lecture):
    notebook = autograded(report_of(lecture), lecture)
    nbformat.validate(notebook)
    theirs = nbformat.reads(nbformat.writes(notebook), as_version=4)
    assert nbformat.reads(notebook_text(notebook), as_version=4) == theirs


def test_messages_of_probes_are_not_kept(lecture):
    def answer(cells, notebook):
        message = nbformat.v4.new_output("display_data", data={probe.MIME: "AAAA"})
        cells["check_every_kth"].outputs.append(message)

    assert probe.MIME not in json.dumps(autograded(executed(lecture, answer), lecture))


@pytest.mark.parametrize("score", [2.5, -1.0, float("nan"), float("inf")])
def test_a_score_that_cannot_be_is_an_error_of_ours(lecture, book, score):
    with pytest.raises(EngineError, match="every_kth has the score"):
        gradebook.write(report_of(lecture, scores={**SCORES, "every_kth": score}), lecture, book, attempt_changed=True)
    assert grades(book) == {}


def test_a_page_stands_in_for_a_notebook_that_there_is_not(lecture, book):
    gradebook.write(ungradable(lecture), lecture, book, attempt_changed=True)
    path = book.out / "autograded" / "ada" / TINY / f"{TINY}.ipynb"
    assert "It is not a notebook." in notebooks.read(path).cells[0].source


# ---- taking back ----------------------------------------------------------------------------------------------------


def state_of(settings):
    handed_in = rows(settings, "select student_id, timestamp, extension from submitted_assignment order by 1")
    digests = rows(settings, "select digest from autograder_attempt")
    files = {p.name: p.read_bytes() for p in settings.out.glob("autograded/*/*/*")}
    return grades(settings), comments(settings), handed_in, digests, files


def test_a_snapshot_puts_everything_back(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True, timestamp="2026-03-01 12:00")
    by_hand(book, "why_copies", manual_score=1.5, extra_credit=1.0)
    comment_by_hand(book, "why_copies", "Well said.")
    with stock_gradebook(book) as stock:
        stock.grant_extension(TINY, "ada", days=2)
    before = state_of(book)
    kept = json.loads(json.dumps(gradebook.snapshot("ada", lecture, book)))
    gradebook.write(
        ungradable(lecture, digest="two"), lecture, book, attempt_changed=True, timestamp="2026-03-05 12:00"
    )
    assert state_of(book) != before
    gradebook.restore(kept, lecture, book)
    assert state_of(book) == before


def test_a_snapshot_of_nothing_takes_everything_away(lecture, book):
    before = state_of(book)
    kept = json.loads(json.dumps(gradebook.snapshot("ada", lecture, book)))
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    gradebook.restore(kept, lecture, book)
    assert state_of(book) == before
    assert rows(book, "select count(*) from grade") == [(0,)]


# ---- when it cannot be used -----------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.05)


def test_a_locked_gradebook_is_one_sentence_and_loses_nothing(lecture, book, impatient):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    before = state_of(book)
    other = sqlite3.connect(book.out / "gradebook.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(GradebookError, match=r"gradebook\.db is in use by another program .* call again"):
            gradebook.write(ungradable(lecture), lecture, book, attempt_changed=True)
    finally:
        other.close()
    assert state_of(book) == before
    gradebook.write(ungradable(lecture), lecture, book, attempt_changed=True)
    assert state_of(book) != before


def test_a_gradebook_that_is_locked_for_a_moment_is_waited_for(lecture, book, monkeypatch):
    other = sqlite3.connect(book.out / "gradebook.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    freed = []
    busy = database._is_busy
    monkeypatch.setattr(database, "_is_busy", lambda error: freed.append(other.close()) or busy(error))
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    assert len(freed) == 1 and grades(book)["check_every_kth"][0] == 2.0


def test_someone_who_reads_is_in_nobodys_way(lecture, book, impatient):
    reader = sqlite3.connect(book.out / "gradebook.db", isolation_level=None)
    try:
        reader.execute("BEGIN")
        reader.execute("select * from grade").fetchall()
        gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    finally:
        reader.close()
    assert grades(book)["check_every_kth"][0] == 2.0


def test_a_gradebook_that_is_kept_open_is_open_to_others(lecture, book, impatient):
    """Without it the log is written back at the end of each transaction."""
    log = book.out / "gradebook.db-wal"
    gradebook.write(report_of(lecture), lecture, book)
    assert not log.exists()
    with database.kept_open(book.db_url):
        gradebook.write(report_of(lecture, "bo"), lecture, book)
        assert log.exists()
        by_hand(book, "why_copies", "bo", manual_score=1.5)
        gradebook.write(report_of(lecture, "bo"), lecture, book)
        assert grades(book, "bo")["why_copies"] == (None, 1.5, None, 0)
    assert not log.exists() and len(grades(book, "bo")) == 3


def test_a_gradebook_that_cannot_be_kept_open_is_no_matter_here(settings):
    with database.kept_open("sqlite:////proc/none/gradebook.db"), database.kept_open("postgresql://none/none"):
        pass


def test_a_full_disk_is_one_sentence_and_changes_nothing(lecture, book, monkeypatch):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    before = state_of(book)

    def full(path, content):
        raise StorageError(f"{path} cannot be written: the disk is full.")

    monkeypatch.setattr(gradebook, "write_whole", full)
    with pytest.raises(StorageError, match="the disk is full"):
        gradebook.write(ungradable(lecture), lecture, book, attempt_changed=True)
    assert state_of(book) == before


def test_a_full_database_is_one_sentence_and_changes_nothing(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    before = state_of(book)
    engine = database._engine(book.db_url, database.PATIENCE)

    @database.event.listens_for(engine, "connect")
    def _(connection, _record):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    many = "x" * 500_000
    verdicts = [dataclasses.replace(v, message=many) for v in report_of(lecture).verdicts]
    try:
        with pytest.raises(GradebookError, match=r"has no room left on its disk: free some space and call again"):
            gradebook.write(report_of(lecture, verdicts=verdicts), lecture, book, attempt_changed=True)
    finally:
        database.close_connections()
    assert state_of(book) == before


@pytest.mark.parametrize(
    "url, expected",
    [
        ("sqlite:////proc/none/gradebook.db", "the gradebook /proc/none/gradebook.db cannot be"),
        ("nonsense", "give an SQLAlchemy URL"),
        ("oracle9://me:secret@there/book", "needs a driver"),
        ("postgresql+nodriver://me:secret@there/book", "pip install 'torch-lectures\\[postgres\\]'"),
    ],
)
def test_a_url_that_does_not_work_is_one_sentence_without_its_password(lecture, settings, url, expected):
    with pytest.raises(GradebookError, match=expected) as caught:
        gradebook.ensure_assignment(lecture, dataclasses.replace(settings, db_url=url))
    assert "secret" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///file:x?mode=memory&uri=true"]
)
def test_a_gradebook_that_would_end_with_the_call_is_refused(lecture, settings, url):
    with pytest.raises(GradebookError, match=r"keeps nothing.*give the path of a file"):
        gradebook.ensure_assignment(lecture, dataclasses.replace(settings, db_url=url))


def test_a_file_that_is_no_database_is_one_sentence(lecture, settings):
    settings.out.mkdir()
    (settings.out / "gradebook.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(GradebookError, match="is no database"):
        gradebook.ensure_assignment(lecture, settings)


def test_a_lecture_that_the_gradebook_does_not_know_is_named(lecture, settings):
    with pytest.raises(GradebookError, match="does not know 10_tiny; call ensure_assignment"):
        gradebook.write(report_of(lecture), lecture, settings, attempt_changed=True)


# ---- what nbgrader makes of it --------------------------------------------------------------------------------------


def test_nbgrader_opens_the_gradebook_as_its_own(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    with Gradebook(book.db_url, "torch-lectures") as stock:
        assert [s.id for s in stock.students] == ["ada"]
        assert stock.find_assignment(TINY).course_id == "torch-lectures"
    assert rows(book, "select id from course") == [("torch-lectures",)]


def test_feedback_shows_scores_and_messages_and_no_secret(lecture, book):
    for student in ("ada", "bo"):
        gradebook.write(report_of(lecture, student), lecture, book, attempt_changed=True)
    gradebook.write(ungradable(lecture, student="cy"), lecture, book, attempt_changed=True)
    pages = gradebook.feedback(lecture, book)
    assert [page.parts[-3] for page in pages] == ["ada", "bo", "cy"]
    text = pages[0].read_text(encoding="utf-8")
    assert "(Score: 2.0 / 6.5)" in text and "even_numbers: expected" in text
    assert "divisible" not in text and "rubric" not in text and "must copy the elements" not in text
    assert "It is not a notebook." in pages[2].read_text(encoding="utf-8")


def test_feedback_that_cannot_be_made_names_the_student(lecture, book):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    gradebook.write(report_of(lecture, "bo"), lecture, book, attempt_changed=True)
    (book.out / "autograded" / "ada" / TINY / f"{TINY}.ipynb").write_text("{")
    with pytest.raises(GradebookError, match=r"there is no page for ada .*The other pages are written") as caught:
        gradebook.feedback(lecture, book)
    assert "traceback" not in str(caught.value)
    assert (book.out / "feedback" / "bo" / TINY / f"{TINY}.html").exists()


@pytest.mark.parametrize(
    "told", ["OSError: [Errno 28] No space left on device", "(sqlite3.OperationalError) database or disk is full"]
)
def test_feedback_on_a_full_disk_says_so_and_speaks_of_no_upgrade(lecture, book, monkeypatch, told):
    def full(self):
        try:
            raise OSError(told)
        except OSError:
            self.log.error(traceback.format_exc() + "[SQL: insert]\n(Background on this error at: https://sqlalche.me)")
        self.log.error("To resolve the issue run `nbgrader db upgrade`.")
        raise NbGraderException("To resolve the issue run `nbgrader db upgrade`.")

    monkeypatch.setattr(gradebook.GenerateFeedback, "start", full)
    with pytest.raises(StorageError, match=r"feedback cannot be written: the disk is full. Free some space"):
        gradebook.feedback(lecture, book)


def test_feedback_asks_the_gradebook_before_nbgrader_does(lecture, book, monkeypatch):
    monkeypatch.setattr(gradebook.GenerateFeedback, "start", lambda self: pytest.fail("nbgrader began"))
    (book.out / "gradebook.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(GradebookError, match="is no database"):
        gradebook.feedback(lecture, book)


def test_exported_grades_survive_commas_quotes_and_formulas(lecture, book, tmp_path):
    with stock_gradebook(book) as stock:
        stock.add_student("ada", last_name='Lovelace, "Countess"', first_name="=1+1", email="ada@x.org")
        stock.add_student("none")
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True)
    path = gradebook.export(book, tmp_path / "out" / "grades.csv")
    with path.open(newline="", encoding="utf-8") as file:
        exported = {row["student_id"]: row for row in csv.DictReader(file)}
    assert exported["ada"]["last_name"] == 'Lovelace, "Countess"' and exported["ada"]["first_name"] == "'=1+1"
    assert exported["ada"]["score"] == "2.0" and exported["ada"]["max_score"] == "6.5"
    assert exported["none"]["score"] == "0.0" and exported["none"]["timestamp"] == ""
    assert list(exported["ada"]) == list(gradebook.COLUMNS)


def test_nbgraders_own_export_has_the_same_columns_and_values(lecture, book, tmp_path):
    gradebook.write(report_of(lecture), lecture, book, attempt_changed=True, timestamp="2026-03-01 12:00")
    with stock_gradebook(book) as stock:
        CsvExportPlugin(to=str(tmp_path / "theirs.csv")).export(stock)
    gradebook.export(book, tmp_path / "ours.csv", TINY)
    theirs, ours = (
        list(csv.reader((tmp_path / f"{name}.csv").read_text().splitlines())) for name in ("theirs", "ours")
    )
    assert ours == theirs
