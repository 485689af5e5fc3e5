"""A class from handed-in folders to ledger, gradebook and report, with real kernels on a real local cluster."""

import contextlib
import io
import json
import shutil
import sqlite3
import zipfile
from dataclasses import replace
from datetime import datetime

import pytest
from nbgrader.utils import parse_utc
from rich.console import Console

from autograder import archive, gradebook, grading, ledger, release
from autograder.errors import CourseError, EngineError, GradebookError, StorageError, UsageError
from autograder.exercises import load_lecture
from autograder.records import Report, Verdict

LECTURE = "10_tiny"
WRONG = {"every_kth": "def every_kth(x, k):\n    return x[-1, list(range(0, x.shape[1], k))]"}
KEYS = {"student", "lecture", "state", "reason", "repairs", "score", "max_score", "seconds", "exercises", "provenance"}


@pytest.fixture(scope="module")
def course(built_course, tmp_path_factory):
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


TIME = "2026-01-05 10:00:00 UTC"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (TIME.encode(), TIME),
        (b"2026-01-05T11:00:00+01:00\n", "2026-01-05T11:00:00+01:00\n"),
        (TIME.encode("utf-16"), TIME + "\n"),
        (TIME.encode("utf-16-be"), TIME + "\n"),
        (TIME.encode("utf-8-sig"), TIME + "\n"),
        (b"2026-W02-1T10:00", TIME + "\n"),
        (TIME.encode() + b" " * 500 + b"tuesday", TIME + "\n"),
        (b"0001-01-02T00:00:00", "0001-01-02T00:00:00"),
        (b"next tuesday", None),
        (b"2026-99-99", None),
    ],
)
def test_the_time_of_a_hand_in_is_kept_as_nbgrader_can_read_it(tmp_path, given, kept):
    path = tmp_path / "timestamp.txt"
    path.write_bytes(given)
    grading._put_time_right(path)
    assert (path.read_text() if path.exists() else None) == kept
    if kept and not kept.startswith("0001"):
        assert parse_utc(path.read_text().strip()) == datetime(2026, 1, 5, 10)


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

    with sqlite3.connect(course.out / "gradebook.db") as connection:  # as formgrader does
        cell = "(select id from base_cell where name = 'why_copies')"
        connection.execute(
            f"update grade set manual_score = 1.0, needs_manual_grade = 0 where cell_id = {cell} and auto_score is null"
        )
    connection.close()
    _, text, results = graded(course, folder)
    assert "4 of them unchanged and kept" in text
    assert results["bob"]["score"] == 4 and results["bob"]["exercises"][2]["message"] == "Graded by hand."
    page = (course.out / "autograded" / "bob" / LECTURE / f"{LECTURE}.ipynb").read_text(encoding="utf-8")
    assert "Rubric: One point for the missing stride" in page
    (feedback,) = grading.gradebook.feedback(load_lecture(LECTURE, course.solutions), course, "bob")
    assert "Rubric:" not in feedback.read_text(encoding="utf-8")

    handed(bob=handed_in(), ada=handed_in()[:2000])
    _, text, results = graded(course, folder)
    assert "2 of them unchanged and kept" in text
    assert (results["bob"]["score"], results["ada"]["score"]) == (5, 0), "points by hand survived a new attempt"
    assert auto_scores(course)["ada", "check_every_kth"] == 0, "an old score survived a new attempt"

    undone = Console(file=io.StringIO())
    grading.undo_last(course, err=undone)
    assert auto_scores(course)["ada", "check_every_kth"] == 2 and auto_scores(course)["bob", "check_every_kth"] == 0
    exported = grading.export_class(LECTURE, course, "canvas")
    assert "bob,,,bob,,4" in exported, "undo brought back the points that were given by hand"

    graded(course, folder)
    path = course.solutions / LECTURE / "exercises.py"
    before = path.read_text(encoding="utf-8")
    path.write_text(
        before.replace("yield rng.matrix(rows, columns), rng.integer(1, 3)", "yield rng.matrix(rows, columns), 1"),
        encoding="utf-8",
    )
    try:
        _, text, results = graded(course, folder, regrade=True)
    finally:
        path.write_text(before, encoding="utf-8")
    assert "No score changes." in text and results["bob"]["score"] == 5


@pytest.mark.xdist_group("grading")
def test_a_locked_gradebook_loses_nothing_and_the_next_call_goes_on(course, handed, handed_in, monkeypatch):
    folder = handed(eve=handed_in())
    put = grading.gradebook._put
    monkeypatch.setattr(
        grading.gradebook, "_put", lambda *a, **k: (_ for _ in ()).throw(GradebookError("the gradebook is locked"))
    )
    with pytest.raises(GradebookError, match="locked"):
        graded(course, folder)
    assert list(ledger.Ledger(course.out, LECTURE).unentered()), (
        "what was graded is in the ledger, and waits for the gradebook"
    )
    monkeypatch.setattr(grading.gradebook, "_put", put)
    _, text, results = graded(course, folder)
    assert results["eve"]["score"] == 5 and auto_scores(course)["eve", "check_every_kth"] == 2
    assert "of them unchanged and kept" in text and not list(ledger.Ledger(course.out, LECTURE).unentered())


@pytest.mark.xdist_group("grading")
@pytest.mark.xdist_group("grading")
def test_a_submission_that_cannot_be_entered_stops_no_other_and_no_later_call(small, handed_in, tmp_path, monkeypatch):
    folder = tmp_path / "handed"
    for student in ("ada", "dan", "cyd"):
        path = folder / student / LECTURE / f"{LECTURE}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(handed_in(), encoding="utf-8")
    real = gradebook.autograded

    def autograded(report, lecture):
        if report.student == "dan":
            raise RecursionError("too deep")
        return real(report, lecture)

    with monkeypatch.context() as broken:
        broken.setattr(gradebook, "autograded", autograded)
        errors, _, results = graded(small, folder)
        assert errors == 1 and {s: r["state"] for s, r in results.items()} == {
            "ada": "graded", "dan": "error", "cyd": "graded",
        }  # fmt: skip
        assert "RecursionError: too deep" in results["dan"]["reason"]
        book = ledger.Ledger(small.out, LECTURE)
        kept = book.record("ada")  # as if a crash had come between ledger and gradebook, and it was dan's
        book.save(book.last_run(), replace(kept.report, student="dan"), "", "")
        errors, _, results = graded(small, folder)
        assert errors == 1 and results["dan"]["state"] == "error"
    errors, _, results = graded(small, folder)
    assert errors == 0 and results["dan"]["score"] == results["ada"]["score"]
    assert auto_scores(small)["dan", "check_every_kth"] == 2


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


def tables(text):
    """The lines of the table of students, in what was printed."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("student "))
    return [line.rstrip() for line in lines[start:] if "/ 6.5" in line]


def at_once(task, submissions, lecture, settings, seed, *, warm):
    """Stands for farm.graded: full points where no cell is as released, and the first exercise lost by who is called bob."""
    for submission in submissions:
        full = "NotImplementedError" not in submission.notebook
        points = {e.id: e.points * full for e in lecture.exercises} | {"why_copies": 0.0}
        if submission.student == "bob":
            points |= {"every_kth": 0.0, "even_numbers": 3.0}
        verdicts = tuple(Verdict(e.id, e.number, points[e.id], e.points) for e in lecture.exercises)
        seen = {"submission": submission.digest, "seed": str(seed)}
        state = "repaired" if submission.repairs else "graded"
        yield Report(
            submission.student,
            lecture.name,
            state,
            verdicts,
            repairs=submission.repairs,
            provenance=seen,
            notebook=submission.notebook,
        )


@pytest.fixture
def small(course, tmp_path, monkeypatch):
    """Settings of the same course, for a class of its own that is judged without being run."""
    monkeypatch.setattr(grading.farm, "graded", at_once)
    out = tmp_path / "class"
    return replace(course, out=out, db_url=f"sqlite:///{out / 'gradebook.db'}")


@pytest.mark.xdist_group("grading")
def test_one_student_graded_beside_others_stands_in_the_report_of_all(small, handed_in, tmp_path):
    for student in ("ada", "bob", "o'brien@uni.edu"):
        path = tmp_path / "handed" / student / LECTURE / f"{LECTURE}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(handed_in(blank=True), encoding="utf-8")
    graded(small, tmp_path / "handed")
    (tmp_path / "handed" / "bob" / LECTURE / f"{LECTURE}.ipynb").write_text(handed_in(WRONG), encoding="utf-8")
    _, text, results = graded(small, tmp_path / "handed" / "bob")
    assert len(results) == 3 and results["bob"]["score"] == 3
    assert "1 submission of 10_tiny. 2 more were graded before and stand in the report." in text

    again = io.StringIO()
    grading.report_class(LECTURE, small, out=Console(file=again, width=200), err=Console(file=io.StringIO()))
    assert tables(again.getvalue()) == tables(text) and len(tables(text)) == 3
    page = (small.out / "report" / "index.html").read_text(encoding="utf-8")
    assert all(student in page for student in ("ada", "bob", "brien"))
    assert "\nada,0\r" in grading.export_class(LECTURE, small, "moodle").replace("\r\n", "\r\n")
    assert "o'brien@uni.edu,0" in grading.export_class(LECTURE, small, "moodle"), "the LMS knows no other name"


@pytest.mark.xdist_group("grading")
@pytest.mark.parametrize("regrade", [False, True])
def test_undo_of_the_only_run_leaves_nothing_graded_behind(small, handed_in, tmp_path, regrade):
    path = tmp_path / "handed" / "ada" / LECTURE / f"{LECTURE}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(handed_in(blank=True), encoding="utf-8")
    graded(small, tmp_path / "handed", regrade=regrade)
    grading.feedback_class(LECTURE, small, err=Console(file=io.StringIO()))
    assert (small.out / "autograded" / "ada").exists() and list((small.out / "feedback").rglob("*.html"))
    grading.undo_last(small, err=Console(file=io.StringIO()))
    left = {path.name for path in small.out.iterdir()}
    assert left <= {"submitted", "report", "gradebook.db", "gradebook.db-wal", "gradebook.db-shm"}
    assert [path for path in (small.out / "report").rglob("*") if path.is_file() and path.name != "lock"] == []
    assert not any(score for score in auto_scores(small).values())


@pytest.mark.xdist_group("grading")
def test_what_was_graded_is_kept_and_regraded_with_the_seed_of_its_own(small, handed_in, tmp_path):
    for student in ("ada", "bob"):
        path = tmp_path / "handed" / student / LECTURE / f"{LECTURE}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(handed_in(), encoding="utf-8")

    def seeds(results):
        return {student: result["provenance"]["seed"] for student, result in results.items()}

    first = seeds(graded(replace(small, seed=5), tmp_path / "handed")[2])
    _, text, results = graded(small, tmp_path / "handed")
    assert "2 of them unchanged and kept" in text and len(list((small.out / "report" / "runs").iterdir())) == 1
    assert first == seeds(results) == {"ada": "5", "bob": "5"}
    graded(replace(small, seed=7), tmp_path / "handed" / "bob")
    _, text, results = graded(small, tmp_path / "handed")
    assert "2 of them unchanged and kept" in text and seeds(results) == {"ada": "5", "bob": "7"}
    _, text, results = graded(small, tmp_path / "handed", regrade=True)
    assert "No score changes." in text and seeds(results) == {"ada": "5", "bob": "7"}
    assert "2 of them unchanged and kept" not in graded(replace(small, seed=9), tmp_path / "handed")[1]


@pytest.mark.xdist_group("grading")
def test_what_collect_left_out_is_told_with_the_score_and_is_no_zero_where_there_is_none(small, handed_in, tmp_path):
    name, big = f"{LECTURE}.ipynb", bytes(12 * 2**20)
    entries = {
        f"Ann_1_assignsubmission_file_/{name}": big,
        f"Bob_2_assignsubmission_file_/{name}": handed_in(blank=True),
        "Bob_2_assignsubmission_file_/big": big,
        "Cyd_3_assignsubmission_file_/work.pdf": b"%PDF",
        "Cyd_3_assignsubmission_file_/big": big,
    }
    with zipfile.ZipFile(tmp_path / "download.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        for entry, content in entries.items():
            zipped.writestr(entry, content)
    small = replace(small, submission_mib=1.0)
    archive.collect(tmp_path / "download.zip", LECTURE, small)
    errors, _, results = graded(small, small.out / "submitted")
    assert errors == 2 and {student: result["state"] for student, result in results.items()} == {
        "Ann": "error", "Bob": "repaired", "Cyd": "error",
    }  # fmt: skip
    told = [results["Ann"]["reason"], *results["Bob"]["repairs"], results["Cyd"]["reason"]]
    assert all("12.0 MiB" in text and "10 MiB at most" in text and "submission_mib" in text for text in told)
    assert "call collect again" in told[0] and "call collect again" in told[2] and results["Bob"]["score"] == 0
    assert "no notebook" in results["Cyd"]["reason"]


@pytest.mark.xdist_group("grading")
def test_what_collect_could_not_unpack_is_an_error_of_ours_and_no_zero(small, handed_in, tmp_path):
    spoilt = tmp_path / "download.zip"
    with zipfile.ZipFile(spoilt, "w") as file:
        for name in ("Ann_1", "Cy_2"):
            file.writestr(f"{name}_assignsubmission_file_/{LECTURE}.ipynb", handed_in())
    content = bytearray(spoilt.read_bytes())
    content[200] ^= 0xFF
    spoilt.write_bytes(content)
    archive.collect(spoilt, LECTURE, small)
    errors, text, results = graded(small, small.out / "submitted")
    assert errors == 1 and results["Ann"]["state"] == "error" and results["Cy"]["score"] == 5
    assert "could not be unpacked (it is damaged" in results["Ann"]["reason"]
    assert "download the archive again" in text and "Nothing was handed in" not in text
    exported = grading.export_class(LECTURE, small, "moodle")
    assert "Participant 2" in exported and "Participant 1" not in exported
    (small.out / "submitted" / "Ann" / LECTURE / f"{LECTURE}.ipynb").write_text(handed_in())  # by hand
    assert graded(small, small.out / "submitted")[2]["Ann"]["score"] == 5


BROKEN_LECTURES = {
    "syntax": ("\n\ndef broken(:\n", r"exercises.py, line 3: SyntaxError"),
    "at once": ("\n1 / 0\n", r"exercises.py, line 2: ZeroDivisionError"),
    "an end": ("raise SystemExit(3)\n", r"exercises.py, line 1: SystemExit"),
    "a package": ("import no_such_package\n", r"line 1: it imports no_such_package, which is not installed here"),
    "points": (
        "from autograder.exercises import exercise\n\n\n@exercise('7.1', points='x', minutes=5, stars=1)\ndef f():\n    pass\n"
        "\n\n@f.cases\ndef _(rng):\n    yield\n",
        r"exercises.py: TypeError",
    ),
    "bytes": (b"\xff\xfe\x00", "exercises.py.*Error"),
}


@pytest.fixture
def graded_once(small, handed_in, tmp_path):
    """Settings of a course of its own, with ada graded: 10_tiny alone is known."""
    root = tmp_path / "own"
    shutil.copytree(small.solutions, root / "solutions")
    shutil.copytree(small.course, root / "course")
    shutil.copy(small.solutions.parent / "nbgrader_config.py", root)
    settings = replace(small, solutions=root / "solutions", course=root / "course")
    path = tmp_path / "handed" / "ada" / LECTURE / f"{LECTURE}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(handed_in(), encoding="utf-8")
    graded(settings, tmp_path / "handed")
    return settings


@pytest.mark.xdist_group("grading")
@pytest.mark.parametrize("how", BROKEN_LECTURES)
def test_a_lecture_half_written_is_one_sentence_and_stops_no_other(graded_once, how):
    content, words = BROKEN_LECTURES[how]
    path = graded_once.solutions / "11_new" / "exercises.py"
    path.parent.mkdir()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CourseError, match=words):
        load_lecture("11_new", graded_once.solutions)
    quiet = Console(file=io.StringIO())
    grading.report_class(None, graded_once, out=quiet, err=quiet)
    assert "ada" in grading.export_class(None, graded_once, None)
    grading.undo_last(graded_once, err=quiet)
    assert "1 submission." in quiet.file.getvalue() and not ledger.last_run(graded_once.out)


@pytest.mark.xdist_group("grading")
def test_what_undo_and_grade_need_of_the_course_is_asked_for_before_anything_is_changed(graded_once, tmp_path):
    folder = graded_once.solutions / LECTURE
    folder.rename(tmp_path / "aside")
    with pytest.raises(
        UsageError, match=f"the last run is one of {LECTURE}, which is no longer in .*put its folder back"
    ):
        grading.undo_last(graded_once, err=Console())
    assert ledger.Ledger(graded_once.out, LECTURE).reports()
    (tmp_path / "aside").rename(folder)
    (folder / "checks.json").unlink()
    with pytest.raises(
        CourseError, match=f"no visible checks.*autograder.notebooks {LECTURE}, then autograder release"
    ):
        graded(graded_once, tmp_path / "handed")
    (graded_once.course / LECTURE / f"{LECTURE}.ipynb").write_bytes(b"\xff")
    with pytest.raises(CourseError, match=f"is not UTF-8.*autograder release {LECTURE}"):
        graded(graded_once, tmp_path / "handed")


@pytest.mark.xdist_group("grading")
def test_feedback_of_one_lecture_or_student_that_fails_is_said_and_the_others_are_written(graded_once, monkeypatch):
    for name in ("09_early", "12_late"):
        shutil.copytree(graded_once.solutions / LECTURE, graded_once.solutions / name)
    given = []

    def feedback(lecture, settings):
        given.append(lecture.name)
        if lecture.name == "09_early":
            raise GradebookError("no page for bob")
        return []

    monkeypatch.setattr(grading.gradebook, "feedback", feedback)
    monkeypatch.setattr(grading.Ledger, "last_run", lambda self: "a run")
    with pytest.raises(GradebookError, match="no page for bob"):
        grading.feedback_class(None, graded_once, err=Console(file=io.StringIO()))
    assert given == ["09_early", LECTURE, "12_late"]


UNWRITABLE = ["report", "autograded", "submitted", ""]


@pytest.mark.xdist_group("grading")
@pytest.mark.parametrize("place", UNWRITABLE)
def test_an_output_folder_that_cannot_be_written_is_refused_before_any_work(
    small, handed, handed_in, monkeypatch, place
):
    folder = handed(ada=handed_in())
    monkeypatch.setattr(grading.sandbox, "at_least", lambda **more: pytest.fail("work began"))
    (small.out / place).parent.mkdir(parents=True, exist_ok=True)
    (small.out / place).write_text("in the way")
    with pytest.raises(StorageError, match=r"class.* cannot be written: .*call again"):
        graded(small, folder)


@pytest.mark.xdist_group("grading")
@pytest.mark.parametrize(("agreed", "score"), [(False, 0), (None, 0), (True, 5)])
def test_a_regrade_shows_the_change_and_writes_it_when_someone_agrees(
    small, handed_in, tmp_path, monkeypatch, agreed, score
):
    path = tmp_path / "handed" / "ada" / LECTURE / f"{LECTURE}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(handed_in(blank=True), encoding="utf-8")
    graded(small, tmp_path / "handed")
    path.write_text(handed_in(), encoding="utf-8")
    (tmp_path / "handed" / "eve").mkdir()
    unreadable = grading.intake.read

    def read(folder, *more):
        if folder.student == "eve":
            raise EngineError("her folder cannot be read now")
        return unreadable(folder, *more)

    monkeypatch.setattr(grading.intake, "read", read)
    monkeypatch.setattr(grading.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())

    def answer(question, console):
        asked.append(auto_scores(small))
        if agreed is None:
            raise EOFError
        return agreed

    monkeypatch.setattr(grading.Confirm, "ask", answer)
    asked, text = [], io.StringIO()
    console = Console(file=text, width=200)
    with contextlib.nullcontext() if agreed else pytest.raises(UsageError, match="nothing was written"):
        grading.grade_class(LECTURE, tmp_path / "handed", small, regrade=True, out=console, err=console)
    assert asked[0]["ada", "check_every_kth"] == 0, "nothing is written before someone agrees"
    assert "+5" in text.getvalue() and "10.1: 0 → 2" in text.getvalue()
    book = ledger.Ledger(small.out, LECTURE).reports()
    assert book["ada"].score == score and ("eve" in book) == bool(agreed)
    assert sum(v or 0 for v in auto_scores(small).values()) == score


@pytest.mark.xdist_group("grading")
def test_a_copy_is_kept_of_what_is_read_and_of_no_more(small, handed_in, tmp_path):
    lecture = tmp_path / "handed" / "ada" / LECTURE
    deep = lecture.joinpath(*["deep"] * 600)
    deep.mkdir(parents=True)
    (lecture / f"{LECTURE}.ipynb").write_text(handed_in())
    (lecture / "data").mkdir()
    (lecture / "data" / "points.csv").write_text("1,2")
    with open(lecture / "all.bin", "wb") as file:
        file.truncate(64 << 20)  # of zeros: it takes no room here, and its copy would
    (lecture / "link.csv").symlink_to("/etc/hostname")
    _, _, results = graded(small, tmp_path / "handed")
    kept = small.out / "submitted" / "ada" / LECTURE
    assert results["ada"]["score"] == 5
    files = {path.relative_to(kept).as_posix() for path in kept.rglob("*") if not path.is_dir()}
    assert files == {f"{LECTURE}.ipynb", "data/points.csv"}


@pytest.mark.xdist_group("grading")
@pytest.mark.parametrize("place", ["solutions", "course", "", "grades"])
def test_a_folder_of_the_course_is_taken_for_no_student(small, handed_in, tmp_path, place):
    root = small.solutions.parent
    if place == "grades":
        root = small.out
        (root / "ada" / LECTURE).mkdir(parents=True)
        (root / "ada" / LECTURE / f"{LECTURE}.ipynb").write_text(handed_in())
    with pytest.raises(UsageError, match="course's own"):
        graded(small, root / place if place != "grades" else root)
