"""The gradebook in SQLite's file and on a PostgreSQL server: the same class, the same grades, the same mishaps."""

import contextlib
import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

from autograder import cli, database, gradebook, ledger, release
from autograder.errors import GradebookError
from autograder.exercises import load_lecture
from autograder.records import Report, Verdict
from autograder.settings import load_settings

HERE = Path(__file__).parent
LECTURE = "10_tiny"
WRONG = {"every_kth": "def every_kth(x, k):\n    return x[-1, list(range(0, x.shape[1], k))]"}
FULL = {"check_every_kth": 2.0, "check_even_numbers": 3.0, "why_copies": None}

pytestmark = pytest.mark.xdist_group("databases")


def module(name):
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


servers = module("servers")


@pytest.fixture(scope="module")
def server():
    if sys.platform == "win32" or servers.programs() is None:
        end = pytest.fail if os.environ.get("CI") else pytest.skip
        end("there are no programs of a PostgreSQL server here (initdb, postgres): apt-get install postgresql")
    with servers.postgresql() as running:
        yield running
        database.close_connections()


only_a_server = pytest.mark.parametrize("url", ["postgresql"], indirect=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Of a gradebook that does not exist yet, or of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'book' / 'gradebook.db'}"
    return request.getfixturevalue("server").new_database()


@pytest.fixture(scope="module")
def released_course(built_course, tmp_path_factory):
    """The folder of a course that is released; not to be changed."""
    root = shutil.copytree(built_course, tmp_path_factory.mktemp("class") / "course")
    release.release([LECTURE], load_settings(root))
    return root


@pytest.fixture
def course(released_course, tmp_path, url, monkeypatch):
    """The settings of a course whose gradebook is at the URL; its folder is the working folder."""
    root = Path(shutil.copytree(released_course, tmp_path / "course"))
    with (root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(f"\nc.Grading.db_url = c.CourseDirectory.db_url = {url!r}\n")
        config.write("c.Grading.workers, c.Grading.cell_seconds, c.Grading.trust_code = 1, 5, True\n")
    monkeypatch.chdir(root)
    return load_settings(root)


@pytest.fixture
def lecture(course):
    return load_lecture(LECTURE, course.solutions)


def rows(url, question):
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(question))]


GRADES = """select submitted_assignment.student_id, base_cell.name, grade.auto_score from grade
    join base_cell on base_cell.id = grade.cell_id join submitted_notebook on submitted_notebook.id = grade.notebook_id
    join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id order by 1, 2"""


def grades(url):
    """{student: {cell: points}}, each cell there once."""
    found = {}
    for student, cell, score in rows(url, GRADES):
        assert cell not in found.setdefault(student, {}), f"{cell} of {student} is there twice"
        found[student][cell] = score
    return found


def hand_in(folder, **notebooks):
    for student, notebook in notebooks.items():
        path = folder / student / LECTURE / f"{LECTURE}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(notebook, encoding="utf-8")


def said(capsys, *arguments):
    """(exit code, stdout, stderr with its line breaks taken out) of the command line."""
    code = cli.run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, " ".join(captured.err.split())


def results(settings):
    found = json.loads((settings.out / "report" / "results.json").read_text(encoding="utf-8"))["submissions"]
    return {submission["student"]: submission["score"] for submission in found}


# ---- a class, from the command line ---------------------------------------------------------------------------------


def test_a_class_is_graded_kept_regraded_taken_back_and_exported_by_nbgrader(course, url, handed_in, tmp_path, capsys):
    grade = ("grade", LECTURE, "--submissions", str(tmp_path / "handed"))
    hand_in(tmp_path / "handed", ada=handed_in(), bob=handed_in(WRONG), cyd=handed_in()[:2000])
    code, _, err = said(capsys, *grade)
    assert code == 0 and results(course) == {"ada": 5, "bob": 3, "cyd": 0}
    first = {
        "ada": FULL, "bob": {**FULL, "check_every_kth": 0.0}, "cyd": dict.fromkeys(FULL, 0.0),
    }  # fmt: skip
    assert grades(url) == first
    if password := make_url(url).password:
        assert "***" in err and password not in err

    hand_in(tmp_path / "handed", bob=handed_in(), dan=handed_in(blank=True))
    code, _, err = said(capsys, *grade)
    assert code == 0 and "2 of them unchanged and kept" in err
    second = {**first, "bob": FULL, "dan": {**dict.fromkeys(FULL, 0.0)}}
    assert grades(url) == second and results(course) == {"ada": 5, "bob": 5, "cyd": 0, "dan": 0}

    code, out, _ = said(capsys, *grade, "--regrade")
    assert code == 0 and "No score changes." in out and grades(url) == second

    for expected in (second, first):  # before the regrade, before the second run
        assert said(capsys, "undo")[0] == 0
        assert grades(url) == expected

    command = [sys.executable, "-m", "nbgrader", "export", f"--to={tmp_path / 'grades.csv'}"]
    subprocess.run(command, check=True, capture_output=True)
    with (tmp_path / "grades.csv").open(newline="", encoding="utf-8") as file:
        exported = {row["student_id"]: (row["score"], row["max_score"]) for row in csv.DictReader(file)}
    assert exported.pop("dan", ("0.0", "6.5")) == ("0.0", "6.5")
    assert exported == {"ada": ("5.0", "6.5"), "bob": ("3.0", "6.5"), "cyd": ("0.0", "6.5")}


def test_a_second_coordinator_is_refused(course, url, handed_in, tmp_path, capsys):
    hand_in(tmp_path / "handed", ada=handed_in())
    with ledger.writing(course.out, LECTURE):
        code, _, err = said(capsys, "grade", LECTURE, "--submissions", str(tmp_path / "handed"))
    assert code == 2 and "another process is grading into" in err


@only_a_server
def test_a_database_that_goes_away_in_the_middle_loses_nothing(
    course, server, handed_in, tmp_path, capsys, monkeypatch
):
    hand_in(tmp_path / "handed", **{f"s{i}": handed_in() for i in range(4)})
    put = gradebook._put

    def and_then_the_server_stops(*arguments):
        if len(grades(course.db_url)) == 2:
            server.stop()
        return put(*arguments)

    monkeypatch.setattr(gradebook, "_put", and_then_the_server_stops)
    code, _, err = said(capsys, "grade", LECTURE, "--submissions", str(tmp_path / "handed"))
    assert code == 2 and "nothing that was graded is lost" in err and server.password not in err
    assert len(ledger.Ledger(course.out, LECTURE).reports()) == 3, "what was graded is not kept"
    monkeypatch.setattr(gradebook, "_put", put)
    server.start()
    code, _, err = said(capsys, "grade", LECTURE, "--submissions", str(tmp_path / "handed"))
    assert code == 0 and "3 of them unchanged and kept" in err
    assert grades(course.db_url) == {f"s{i}": FULL for i in range(4)}


# ---- transactions ---------------------------------------------------------------------------------------------------


def report_of(lecture, student, score=1.0, message="", digest="one"):
    verdicts = [
        Verdict(e.id, e.number, 0.0 if e.written else score * e.points, e.points, (), message, by_hand=e.written)
        for e in lecture.exercises
    ]
    return Report(student, lecture.name, "graded", tuple(verdicts), provenance={"submission": digest})


def test_a_new_file_is_in_wal_mode(course, lecture, url):
    gradebook.ensure_assignment(lecture, course)
    if url.startswith("sqlite"):
        assert rows(url, "pragma journal_mode") == [("wal",)]
    assert rows(url, "select count(*) from alembic_version") == [(1,)]


def test_several_who_write_at_once_wait_for_one_another_from_the_first_table_on(course, lecture, url):
    """Two coordinators with folders of their own, and one gradebook."""

    def coordinator(number):
        settings = replace(course, out=course.out / str(number))
        gradebook.ensure_assignment(lecture, settings)
        for student in range(8):
            gradebook.write(report_of(lecture, f"of {number}: {student}"), lecture, settings)
            gradebook.write(report_of(lecture, f"shared {student}"), lecture, settings)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(coordinator, range(4)))
    students = [f"of {number}: {student}" for number in range(4) for student in range(8)]
    assert grades(url) == dict.fromkeys([*students, *(f"shared {student}" for student in range(8))], FULL)


TEXTS = {
    "a NUL": "before\0after",
    "half a surrogate pair": "before\ud800after",
    "every plane": "ä 漢 🎓 \u202e",
    "very long": "x" * 1_000_000,
    "what looks like SQL": "'); drop table grade; -- %s :name {}",
    "carriage returns": "a\r\nb\rc",
}


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_that_a_student_can_cause_is_stored(course, lecture, url, name):
    gradebook.ensure_assignment(lecture, course)
    gradebook.write(report_of(lecture, "ada", 0.5, TEXTS[name]), lecture, course)
    (stored,) = {comment for (comment,) in rows(url, "select auto_comment from comment where auto_comment is not null")}
    assert stored == TEXTS[name].replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    assert json.loads(json.dumps(gradebook.snapshot("ada", lecture, course)))


@contextlib.contextmanager
def someone_who_writes(url):
    """A person in formgrader, or another program, who has begun to change a grade."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text("update grade set manual_score = 0.25"))
        yield connection
        connection.rollback()


def test_a_gradebook_that_somebody_is_changing_is_waited_for_and_then_named(course, lecture, url, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.2)
    gradebook.ensure_assignment(lecture, course)
    gradebook.write(report_of(lecture, "ada"), lecture, course)
    with someone_who_writes(url):
        with pytest.raises(GradebookError, match=r"is in use by another program .* call again"):
            gradebook.write(report_of(lecture, "ada", 0.5, digest="two"), lecture, course)
    assert grades(url)["ada"] == FULL
    with someone_who_writes(url) as other:
        threading.Timer(0.1, other.commit).start()
        gradebook.write(report_of(lecture, "ada", 0.5), lecture, course)
    assert grades(url)["ada"]["check_every_kth"] == 1.0
    assert {hand for (hand,) in rows(url, "select manual_score from grade")} == {0.25}, "a person's points are lost"


def test_who_reads_is_in_nobodys_way(course, lecture, url, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.2)
    gradebook.ensure_assignment(lecture, course)
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as reader:
        reader.execute(text("select * from grade")).fetchall()
        gradebook.write(report_of(lecture, "ada"), lecture, course)
    assert grades(url)["ada"] == FULL


# ---- a connection that is cut ---------------------------------------------------------------------------------------


@pytest.fixture
def on_the_server(server, course):
    return make_url(course.db_url).database


@only_a_server
@pytest.mark.parametrize("moment", ["before", "in the middle", "after the changes"])
def test_a_connection_that_is_cut_is_made_again(course, lecture, server, on_the_server, monkeypatch, moment):
    gradebook.ensure_assignment(lecture, course)
    cuts = []

    def cut(*_):
        if not cuts:
            cuts.append(server.cut(on_the_server))

    if moment == "before":
        cut()
    else:
        name = "_score" if moment == "in the middle" else "_late_penalty"
        step = getattr(gradebook, name)
        monkeypatch.setattr(gradebook, name, lambda *arguments: cut() or step(*arguments))
    gradebook.write(report_of(lecture, "ada"), lecture, course)
    assert cuts == [1] and grades(course.db_url) == {"ada": FULL}


@only_a_server
def test_a_server_that_is_started_anew_is_waited_for(course, lecture, server, on_the_server, monkeypatch):
    gradebook.ensure_assignment(lecture, course)
    step, again = gradebook._score, []

    def stop_once(*arguments):
        if not again:
            again.append(threading.Timer(0.5, server.start))
            server.stop()
            again[0].start()
        return step(*arguments)

    monkeypatch.setattr(gradebook, "_score", stop_once)
    gradebook.write(report_of(lecture, "ada"), lecture, course)
    again[0].join()
    assert grades(course.db_url) == {"ada": FULL}


# ---- what is wrong with a URL ---------------------------------------------------------------------------------------

WRONG_URLS = {
    "another password": (lambda url: url.set(password="hunter2%"), "refuses this user or password: look at db_url"),
    "no password": (lambda url: url._replace(password=None), "asks for a password: set PGPASSWORD"),
    "another user": (lambda url: url.set(username="nobody_we_know"), "refuses this user or password"),
    "another database": (lambda url: url.set(database="no_such_book"), "does not exist on its server: make it"),
    "no server there": (
        lambda url: url.set(host="127.0.0.1", port=1, query={}),
        "does not answer: is its server running",
    ),
    "a host that there is not": (
        lambda url: url.set(host="no-such-host.invalid", query={}),
        "cannot be used now: .*no-such-host.invalid",
    ),
}


@only_a_server
@pytest.mark.parametrize("name", WRONG_URLS)
def test_a_wrong_url_is_one_sentence_without_its_password(course, lecture, server, on_the_server, name, monkeypatch):
    change, expected = WRONG_URLS[name]
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", "/dev/null")
    url = change(make_url(course.db_url)).render_as_string(hide_password=False)
    started = time.monotonic()
    with pytest.raises(GradebookError, match=expected) as caught:
        gradebook.ensure_assignment(lecture, replace(course, db_url=url))
    assert time.monotonic() - started < 10
    words = "".join(map(str, (caught.value, caught.value.__cause__)))
    assert "\n" not in str(caught.value)
    assert server.password not in words and "hunter2" not in words


@pytest.mark.parametrize(
    "written",
    [
        "postgresql//me:hunter2@there/book",
        "postgresql:me:hunter2@there/book",
        "postgresql+psycopg://me:hunter2@there:port/book",
    ],
)
def test_what_is_no_url_at_all_is_one_sentence_without_its_password(written):
    with pytest.raises(GradebookError, match=r"db_url is '[*]{3}@there") as caught:
        database.shown_url(written)
    assert "hun" not in str(caught.value) and caught.value.__suppress_context__


@pytest.mark.parametrize(
    "password", ["hunter2", "hun/ter2", "hun@ter2", "h@hun@ter2", "hun@ter2/h", "hun:ter2", "hun%2Fter2"]
)
def test_a_password_however_it_is_written_is_not_shown(password):
    url = f"postgresql+psycopg://me:{password}@there/book"
    try:
        shown = [database.shown_url(url), database.sentence(url, OSError(f"no host {make_url(url).host!r}"))]
    except GradebookError as error:
        shown = [str(error)]
    assert not any(part in text for text in shown for part in ("hun", "ter2")) and all("there/book" in t for t in shown)


def test_a_password_after_the_question_mark_is_not_shown_either():
    url = "postgresql+psycopg://there/book?password=hunter2&sslmode=require"
    shown = database.shown_url(url), database.sentence(url, OSError("hunter2 is wrong"))
    assert all("hunter2" not in text and "sslmode=require" in text for text in shown)


@only_a_server
def test_a_user_who_may_not_make_tables_is_told_what_to_do(course, lecture, server, on_the_server):
    server.ask("postgres", f"create role guest login password '{server.password}'")
    url = make_url(course.db_url).set(username="guest").render_as_string(hide_password=False)
    with pytest.raises(GradebookError, match=r"does not let this user make tables: .*createdb"):
        gradebook.ensure_assignment(lecture, replace(course, db_url=url))


@only_a_server
def test_the_password_can_stand_outside_the_url(course, lecture, server, on_the_server, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", server.password)
    url = make_url(course.db_url)._replace(password=None).render_as_string(hide_password=False)
    gradebook.ensure_assignment(lecture, replace(course, db_url=url))
