"""A class from handed-in folders to ledger, gradebook and report, with real kernels on a real local cluster."""

import io
import json
import sqlite3
from dataclasses import replace

import pytest
from rich.console import Console

from autograder import grading, ledger, release
from autograder.errors import CourseError, GradebookError, UsageError

LECTURE = "10_tiny"
WRONG = {"every_kth": "def every_kth(x, k):\n    return x[-1, list(range(0, x.shape[1], k))]"}
KEYS = {"student", "lecture", "state", "reason", "repairs", "score", "max_score", "seconds", "exercises", "provenance"}


@pytest.fixture(scope="module")
def course(built_course, tmp_path_factory):
    import shutil

    from autograder.settings import load_settings

    root = shutil.copytree(built_course, tmp_path_factory.mktemp("class") / "course")
    settings = load_settings(root, workers=1, cell_seconds=5, trust_code=True)
    release.release([LECTURE], settings)
    return settings


@pytest.fixture(scope="module")
def handed(course, handed_in):
    """Puts notebooks where students hand them in; returns that folder."""
    folder = course.out.parent / "handed"

    def put(**notebooks):
        for student, text in notebooks.items():
            path = folder / student / LECTURE / f"{LECTURE}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return folder

    return put


def graded(settings, folder, regrade=False):
    """(how many errors, what was printed, results by student)."""
    text = io.StringIO()
    console = Console(file=text, width=200)
    errors = grading.grade_class(LECTURE, folder, settings, regrade=regrade, out=console, err=console)
    results = json.loads((settings.out / "report" / "results.json").read_text(encoding="utf-8"))
    return errors, text.getvalue(), {s["student"]: s for s in results["submissions"]}


def auto_scores(settings):
    """{(student, cell): points} as they stand in nbgrader's database."""
    query = """select submitted_assignment.student_id, base_cell.name, grade.auto_score from grade
        join base_cell on base_cell.id = grade.cell_id join submitted_notebook on submitted_notebook.id = grade.notebook_id
        join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"""
    connection = sqlite3.connect(settings.out / "gradebook.db")
    found = {(student, cell): score for student, cell, score in connection.execute(query)}
    connection.close()
    return found


@pytest.mark.xdist_group("grading")
def test_a_class_is_graded_kept_regraded_and_taken_back(course, handed, handed_in):
    folder = handed(ada=handed_in(), bob=handed_in(WRONG), cyd=handed_in()[:2000], dan=handed_in(blank=True))
    errors, text, results = graded(course, folder)
    assert errors == 0
    assert {s: (r["state"], r["score"]) for s, r in results.items()} == {
        "ada": ("graded", 5), "bob": ("graded", 3), "cyd": ("ungradable", 0), "dan": ("graded", 0),
    }  # fmt: skip
    assert set(results["ada"]) == KEYS and results["ada"]["max_score"] == 6.5
    assert results["bob"]["exercises"][0]["codes"] == ["M09"] and "breaks off" in results["cyd"]["reason"]
    assert all(student in text for student in ("ada", "bob", "cyd", "dan"))
    assert auto_scores(course)["ada", "check_every_kth"] == 2 and auto_scores(course)["bob", "check_every_kth"] == 0
    assert (course.out / "autograded" / "ada" / LECTURE / f"{LECTURE}.ipynb").exists()
    assert (course.out / "submitted" / "ada" / LECTURE / f"{LECTURE}.ipynb").exists()

    text = graded(course, folder)[1]
    assert "4 of them unchanged and kept" in text

    handed(bob=handed_in(), ada=handed_in()[:2000])
    _, text, results = graded(course, folder)
    assert "2 of them unchanged and kept" in text
    assert (results["bob"]["score"], results["ada"]["score"]) == (5, 0)
    assert auto_scores(course)["ada", "check_every_kth"] == 0, "an old score survived a new attempt"

    undone = Console(file=io.StringIO())
    grading.undo_last(course, err=undone)
    assert auto_scores(course)["ada", "check_every_kth"] == 2 and auto_scores(course)["bob", "check_every_kth"] == 0
    exported = grading.export_class(LECTURE, course, "canvas")
    assert "dan" in exported and "cyd" in exported and "bob" not in exported, "bob's written answer waits for a person"

    graded(course, folder)
    path = course.solutions / LECTURE / "exercises.py"
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace("yield rng.matrix(rows, columns), rng.integer(1, 3)", "yield rng.matrix(rows, columns), 1"), encoding="utf-8")
    try:
        _, text, results = graded(course, folder, regrade=True)
    finally:
        path.write_text(before, encoding="utf-8")
    assert "No score changes." in text and results["bob"]["score"] == 5


@pytest.mark.xdist_group("grading")
def test_a_locked_gradebook_loses_nothing_and_the_next_call_goes_on(course, handed, handed_in, monkeypatch):
    folder = handed(eve=handed_in())
    written = grading.gradebook.write
    monkeypatch.setattr(grading.gradebook, "write", lambda *a, **k: (_ for _ in ()).throw(GradebookError("the gradebook is locked")))
    with pytest.raises(GradebookError, match="locked"):
        graded(course, folder)
    assert list(ledger.Ledger(course.out, LECTURE).unentered()), "what was graded is in the ledger, and waits for the gradebook"
    monkeypatch.setattr(grading.gradebook, "write", written)
    _, text, results = graded(course, folder)
    assert results["eve"]["score"] == 5 and auto_scores(course)["eve", "check_every_kth"] == 2
    assert "of them unchanged and kept" in text and not list(ledger.Ledger(course.out, LECTURE).unentered())


@pytest.mark.xdist_group("grading")
def test_what_cannot_be_graded_at_all_is_refused_with_a_sentence(course, tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        graded(course, tmp_path / "none")
    with pytest.raises(CourseError, match="autograder release"):
        graded(replace(course, course=tmp_path), tmp_path)
    with pytest.raises(UsageError, match="nothing of 10_tiny was graded"):
        grading.report_class(LECTURE, replace(course, out=tmp_path), out=Console(), err=Console())
    with pytest.raises(UsageError, match="no GPU"):
        (tmp_path / "ada" / LECTURE).mkdir(parents=True)
        graded(replace(course, device="cuda"), tmp_path)
