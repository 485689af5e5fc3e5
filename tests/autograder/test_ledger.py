"""The ledger keeps what is unchanged, loses and doubles nothing in a crash, and takes a run back."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autograder import files, ledger
from autograder.errors import StorageError, UsageError
from autograder.ledger import SCORE_FROM, Ledger
from autograder.records import STATES, Report, Submission, Verdict

LECTURE = "10_tiny"
BELOW = {"exercises": "e", "torch": "1"}
CONDITIONS = {"seed": 7, "device": "cpu", "sandbox": "strict", "workers": 2}


def report(student, score=2.0, state="graded", **more):
    code = () if score else ("M09",)
    verdicts = (Verdict("every_kth", "10.1", score, 2.0, code), Verdict("why", "10.2", 0.0, 1.0, by_hand=True))
    return Report(student, LECTURE, state, verdicts, **{"notebook": '{"cells": []}', **more})


def grade(out, class_, gradebook, regraded=()):
    """What `autograder grade` does, for {student: (key, score)}: resume, grade, save, enter. Returns whom it graded."""
    graded = []
    with ledger.writing(out, LECTURE) as book:
        for found in book.unentered():
            gradebook.write(found)
            book.entered(found.student)
        run = book.begin(**CONDITIONS)
        for student, (key, score) in class_.items():
            if student not in regraded and book.kept(student, key):
                continue
            graded.append(student)
            saved = book.save(run, report(student, score), key, f"attempt of {key}", gradebook.snapshot(student))
            gradebook.write(saved)
            book.entered(student)
        book.finish(run, 1.0)
    return graded


class Gradebook:
    """A gradebook in a folder: a score a file."""

    def __init__(self, folder):
        self.folder = folder

    def write(self, graded):
        files.write_whole(self.folder / graded.student, str(graded.score))

    def snapshot(self, student):
        path = self.folder / student
        return path.read_text() if path.exists() else None

    def restore(self, lecture, student, snapshot):
        assert lecture == LECTURE
        if snapshot is None:
            (self.folder / student).unlink(missing_ok=True)
        else:
            files.write_whole(self.folder / student, snapshot)

    def scores(self):
        return {path.name: float(path.read_text()) for path in self.folder.glob("[!.]*")}


@pytest.fixture
def gradebook(tmp_path):
    return Gradebook(tmp_path / "gradebook")


FIRST = {"ada": ("k1", 2.0), "bob": ("k2", 0.0)}
SECOND = {"ada": ("k1", 2.0), "bob": ("k2 new", 1.0), "cyd": ("k3", 2.0)}


def scores(out):
    return {student: found.score for student, found in Ledger(out, LECTURE).reports().items()}


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.json"))}


# ---- resume


def test_a_second_call_keeps_what_is_unchanged(tmp_path, gradebook):
    assert grade(tmp_path, FIRST, gradebook) == ["ada", "bob"]
    assert grade(tmp_path, SECOND, gradebook) == ["bob", "cyd"]
    assert grade(tmp_path, SECOND, gradebook) == []
    assert scores(tmp_path) == gradebook.scores() == {"ada": 2, "bob": 1, "cyd": 2}


@pytest.mark.parametrize("state", STATES)
def test_only_a_result_is_kept(tmp_path, state):
    with ledger.writing(tmp_path, LECTURE) as book:
        book.save(book.begin(**CONDITIONS), report("ada", state=state), "k", "a")
        assert bool(book.kept("ada", "k")) == (state != "error")
        assert book.kept("ada", "another key") is None


def test_a_report_comes_back_as_it_was(tmp_path):
    told = {"repairs": ("put back",), "events": ("died",), "reason": "why", "provenance": {"torch": "2"}}
    given = report("Ada \udcff", seconds=1.5, **told)
    with ledger.writing(tmp_path, LECTURE) as book:
        book.save(book.begin(**CONDITIONS), given, "k", "a")
    assert Ledger(tmp_path, LECTURE).record("Ada \udcff").report == given
    assert Ledger(tmp_path, LECTURE).reports() == {"Ada \udcff": replace(given, notebook=None)}


def test_a_damaged_file_counts_as_not_graded(tmp_path, gradebook, caplog):
    grade(tmp_path, FIRST, gradebook)
    path = next((tmp_path / "report" / "submissions").rglob("ada.json"))
    path.write_text(path.read_text()[:50])
    assert grade(tmp_path, FIRST, gradebook) == ["ada"]
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        lambda submission, settings: (replace(submission, digest="other"), settings),
        lambda submission, settings: (replace(submission, notebook="other"), settings),
        lambda submission, settings: (replace(submission, repairs=("put back",)), settings),
        lambda submission, settings: (replace(submission, ungradable="half a file"), settings),
        *[lambda s, settings, name=name: (s, replace(settings, **{name: "changed"})) for name in ledger.MATTER],
    ],
)
def test_the_key_changes_with_everything_a_score_rests_on(tiny, tiny_settings, change):
    submission = Submission("ada", LECTURE, "{}", digest="d")
    before = ledger.score_key(submission, tiny, tiny_settings, 7, BELOW)
    assert before == ledger.score_key(submission, tiny, tiny_settings, 7, BELOW)
    changed, settings = change(submission, tiny_settings)
    assert before != ledger.score_key(changed, tiny, settings, 7, BELOW)
    assert before != ledger.score_key(submission, tiny, tiny_settings, 8, BELOW)
    assert before != ledger.score_key(submission, tiny, tiny_settings, 7, {**BELOW, "torch": "2"})


@pytest.mark.parametrize("name", ["workers", "out", "scheduler", "db_url", "seed"])
def test_the_key_does_not_change_with_what_decides_no_score(tiny, tiny_settings, name):
    submission = Submission("ada", LECTURE, "{}", digest="d")
    changed = replace(tiny_settings, **{name: "changed"})
    key = ledger.score_key(submission, tiny, tiny_settings, 7, BELOW)
    assert key == ledger.score_key(submission, tiny, changed, 7, BELOW)


def test_the_key_changes_with_the_exercises_and_with_the_package_that_they_import(tiny, tmp_path, monkeypatch):
    folder = tmp_path / LECTURE
    folder.mkdir()
    (folder / "exercises.py").write_text("import a_reference\n")
    (tmp_path / "a_reference.py").write_text("ANSWER = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    lecture = replace(tiny, folder=folder)
    before = ledger.foundations(lecture)
    (tmp_path / "a_reference.py").write_text("ANSWER = 2\n")
    assert ledger.foundations(lecture)["a_reference"] != before["a_reference"]
    assert ledger.foundations(replace(lecture, digest="new"))["exercises"] != before["exercises"]


def test_every_module_that_decides_no_score_is_one():
    """A name that is misspelt in the table would silently regrade everyone at each change of that module."""
    package = Path(ledger.__file__).parent
    missing = {name for name in ledger.AFTER_THE_SCORE if not (package / f"{name}.py").exists()}
    assert missing <= {"archive", "gradebook", "grading", "nbgrader_plugin", "release"}  # not here yet


# ---- our own failure


def test_an_error_shows_the_points_of_the_same_attempt_and_no_others(tmp_path):
    failed = report("ada", 0.0, state="error", reason="The kernel did not start.")
    with ledger.writing(tmp_path, LECTURE) as book:
        run = book.begin(**CONDITIONS)
        book.save(run, report("ada", 2.0), "k", "attempt 1")
        for _ in range(2):  # an error after an error still shows them
            shown = book.save(run, failed, "k new", "attempt 1")
            assert (shown.state, shown.score, shown.provenance[SCORE_FROM]) == ("error", 2.0, run.id)
            assert shown.reason.startswith("The kernel did not start.") and "earlier run" in shown.reason
        assert ledger.has_score(shown)
        shown = book.save(run, failed, "k", "attempt 2")
        assert not ledger.has_score(shown) and shown.reason == failed.reason


# ---- undo


def test_undo_takes_the_last_run_back(tmp_path, gradebook):
    grade(tmp_path, FIRST, gradebook)
    before = files_in(tmp_path / "report" / "submissions"), gradebook.scores()
    grade(tmp_path, SECOND, gradebook)
    undone = ledger.undo(tmp_path, gradebook.restore)
    assert (undone.students, undone.removed, undone.run.lecture) == (("bob", "cyd"), ("cyd",), LECTURE)
    assert (files_in(tmp_path / "report" / "submissions"), gradebook.scores()) == before
    ledger.undo(tmp_path, gradebook.restore)
    assert scores(tmp_path) == gradebook.scores() == {}
    with pytest.raises(UsageError, match="no grade run"):
        ledger.undo(tmp_path, gradebook.restore)


def test_a_run_that_graded_nothing_is_not_the_one_taken_back(tmp_path, gradebook):
    grade(tmp_path, FIRST, gradebook)
    grade(tmp_path, FIRST, gradebook)
    assert ledger.undo(tmp_path, gradebook.restore).students == ("ada", "bob")


def test_an_undo_that_was_interrupted_is_ended_by_the_next(tmp_path, gradebook):
    grade(tmp_path, FIRST, gradebook)

    def stumble(lecture, student, snapshot):
        if student == "bob":
            raise KeyboardInterrupt
        gradebook.restore(lecture, student, snapshot)

    with pytest.raises(KeyboardInterrupt):
        ledger.undo(tmp_path, stumble)
    ledger.undo(tmp_path, gradebook.restore)
    assert scores(tmp_path) == gradebook.scores() == {}


def test_an_interrupted_run_is_continued_and_taken_back_as_one(tmp_path, gradebook):
    with ledger.writing(tmp_path, LECTURE) as book:
        book.save(first := book.begin(**CONDITIONS), report("ada"), "k", "a", None)  # and then a crash
    with ledger.writing(tmp_path, LECTURE) as book:
        assert book.begin(**{**CONDITIONS, "seed": 8}).id != first.id
        assert book.begin(**CONDITIONS).id == first.id
    grade(tmp_path, FIRST, gradebook)
    assert ledger.undo(tmp_path, gradebook.restore).students == ("ada", "bob")


def test_who_is_graded_twice_in_one_run_gets_back_what_was_before_it(tmp_path, gradebook):
    """Interrupted, handed in again, continued: the first grading of the run is nothing to go back to."""
    grade(tmp_path, FIRST, gradebook)
    before = files_in(tmp_path / "report" / "submissions"), gradebook.scores()
    with ledger.writing(tmp_path, LECTURE) as book:
        saved = book.save(book.begin(**CONDITIONS), report("ada", 0.0), "k new", "a", gradebook.snapshot("ada"))
        gradebook.write(saved)
        book.entered("ada")  # and then a crash
    with ledger.writing(tmp_path, LECTURE) as book:
        assert list(book.unentered()) == []
        book.save(book.begin(**CONDITIONS), report("ada", 1.0), "k newer", "a", gradebook.snapshot("ada"))
        assert [found.score for found in book.unentered()] == [1.0]  # and then a crash
    ledger.undo(tmp_path, gradebook.restore)
    assert (files_in(tmp_path / "report" / "submissions"), gradebook.scores()) == before


def test_the_seed_of_the_last_run_is_known(tmp_path, gradebook):
    assert Ledger(tmp_path, LECTURE).last_run() is None
    grade(tmp_path, FIRST, gradebook)
    assert Ledger(tmp_path, LECTURE).last_run().seed == 7
    assert Ledger(tmp_path, "another").last_run() is None


def test_old_runs_are_forgotten(tmp_path, gradebook, monkeypatch):
    monkeypatch.setattr(ledger, "RUNS_KEPT", 2)
    for i in range(4):
        grade(tmp_path, {"ada": (f"k{i}", 2.0)}, gradebook)
    assert len(list((tmp_path / "report" / "runs").iterdir())) == 3  # two, and the one begun after they were counted
    assert list(Ledger(tmp_path, LECTURE).unentered()) == []


# ---- regrade


def test_a_regrade_stands_aside_until_it_is_agreed_to(tmp_path, gradebook):
    grade(tmp_path, FIRST, gradebook)
    with ledger.writing(tmp_path, LECTURE) as book:
        book.stage(report("bob", 2.0), "k", "a")
        assert scores(tmp_path)["bob"] == 0
        assert {s: record.report.score for s, record in book.staged().items()} == {"bob": 2}
        assert book.staged_record("bob").report.notebook
        book.unstage()
        assert book.staged() == {}


def test_changes_are_those_whose_result_differs_the_largest_first():
    points = {"same": (2.0, 2.0), "up": (0.0, 2.0), "down": (2.0, 1.0), "part": (1.5, 1.0), "broke": (2.0, 0.0)}
    old = {name: report(name, before) for name, (before, _) in points.items()} | {"gone": report("gone")}
    new = {name: report(name, after) for name, (_, after) in points.items()} | {"new": report("new")}
    new["broke"] = report("broke", 0.0, "error")
    found = {change.student: change for change in ledger.changes(old, new)}
    assert list(found) == ["up", "down", "part", "broke", "new"]
    assert [found[student].delta for student in found] == [2, -1, -0.5, None, None]
    assert found["up"].exercises == (("10.1", 0.0, 2.0),)
    assert (found["new"].before, found["new"].after, found["new"].state_before) == (None, 2.0, None)
    assert (found["broke"].after, found["broke"].state_after, found["broke"].exercises) == (None, "error", ())


@pytest.mark.parametrize("content", [b"", b'{"id": "cut', b"[]", b'{"id": 1}', b"\xff"])
def test_a_run_that_cannot_be_read_is_named_in_one_sentence(tmp_path, gradebook, content):
    grade(tmp_path, FIRST, gradebook)
    (path,) = (tmp_path / "report" / "runs").glob("*/run.json")
    path.write_bytes(content)
    for ask in (Ledger(tmp_path, LECTURE).last_run, lambda: ledger.undo(tmp_path, gradebook.restore)):
        with pytest.raises(StorageError, match=r"run.json is damaged .*move .* away"):
            ask()


@pytest.mark.parametrize("content", [b"", b'{"student": "cut', b"[]", b'{"student": "bob"}', b"\xff"])
def test_a_run_is_taken_back_only_if_all_that_stood_before_can_be_read(tmp_path, gradebook, content):
    grade(tmp_path, FIRST, gradebook)
    grade(tmp_path, SECOND, gradebook)
    run = ledger.last_run(tmp_path)
    last = max((tmp_path / "report" / "runs" / run.id / "before").iterdir())
    before, kept = (files_in(tmp_path / "report" / "submissions"), gradebook.scores()), last.read_bytes()
    last.write_bytes(content)
    with pytest.raises(StorageError, match=f"{last.name} is damaged .*nothing was taken back"):
        ledger.undo(tmp_path, gradebook.restore)
    assert (files_in(tmp_path / "report" / "submissions"), gradebook.scores()) == before
    last.write_bytes(kept)
    assert ledger.undo(tmp_path, gradebook.restore).run == run


# ---- two at once, and a crash at every moment


def test_two_processes_do_not_write_one_ledger(tmp_path):
    with ledger.writing(tmp_path, LECTURE), pytest.raises(UsageError, match="another process is grading"):
        with ledger.writing(tmp_path, LECTURE):
            pass
    with ledger.writing(tmp_path, LECTURE):
        pass  # it is free again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_kill_at_any_moment_loses_and_doubles_nothing(tmp_path):
    """A child process kills itself before, and after, each change it makes to the disk, one moment later each time."""
    moment, ended = 0, False
    while not ended:
        out = tmp_path / str(moment)
        gradebook = Gradebook(out / "autograded")
        grade(out, FIRST, gradebook)
        before = files_in(out / "report" / "submissions"), gradebook.scores()
        ended = not killed_at(moment, lambda out=out, gradebook=gradebook: grade(out, SECOND, gradebook))
        saved = {student for student, (key, _) in SECOND.items() if Ledger(out, LECTURE).kept(student, key)}
        again = set(grade(out, SECOND, gradebook))
        assert again == SECOND.keys() - saved, "what was saved is graded again, or something is lost"
        assert scores(out) == gradebook.scores() == {"ada": 2, "bob": 1, "cyd": 2}
        assert not list(out.rglob("*.part")), "half a file is left"
        undone = ledger.undo(out, gradebook.restore)
        assert set(undone.students) == {"bob", "cyd"}
        assert (files_in(out / "report" / "submissions"), gradebook.scores()) == before
        moment += 1
    assert moment > 15, "the moments were not counted"


def killed_at(moment, work):
    """Run `work` in a child that is killed at the given change to the disk; whether it came so far."""
    child = os.fork()
    if child == 0:
        left = [moment]

        def counted(change):
            def call(*args, **kwargs):
                for step in (lambda: None, lambda: change(*args, **kwargs)):
                    if left[0] == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    left[0] -= 1
                    result = step()
                return result

            return call

        try:
            for name in ("replace", "unlink", "rename", "open"):
                setattr(os, name, counted(getattr(os, name)))
            work()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_nothing_is_written_in_place(tmp_path, gradebook):
    """A kill in the middle of a write cannot be timed; so no file that counts is ever open for writing."""
    opened = []

    def watch(event, arguments):
        if event == "open" and opened is not None and isinstance(arguments[0], str | os.PathLike):
            opened.extend([Path(arguments[0])] if arguments[2] & (os.O_WRONLY | os.O_RDWR) else [])

    sys.addaudithook(watch)  # cannot be removed: from here on it is idle
    try:
        grade(tmp_path, FIRST, gradebook)
        grade(tmp_path, SECOND, gradebook)
        ledger.undo(tmp_path, gradebook.restore)
    finally:
        written, opened = opened, None
    ours = [path for path in written if path.is_relative_to(tmp_path)]
    assert len(ours) > 10
    with_something_in_them = [path for path in ours if path.name != "lock" and path.parent.name != "entered"]
    assert {path.suffix for path in with_something_in_them} == {".part"}
    assert all(path.stat().st_size == 0 for path in tmp_path.glob("report/runs/*/entered/*"))


def test_what_is_on_disk_is_json_that_others_can_read(tmp_path, gradebook):
    grade(tmp_path, FIRST, gradebook)
    found = json.loads(next((tmp_path / "report" / "submissions").rglob("ada.json")).read_text())
    assert found["report"]["student"] == "ada" and found["key"] == "k1"
