"""The command line: the contract's verbs and exit codes, one sentence for every wrong use."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from autograder import farm, workers
from autograder.cli import run
from autograder.records import Report, Verdict

ROOT = Path(__file__).parents[2]
VERBS = "release list sample doctor collect grade feedback report export undo tensorboard".split()
GRADE_OPTIONS = (
    "--submissions --out --workers --scheduler --device --seed --cell-seconds --submission-seconds --memory-mib --regrade --trust-code"
).split()


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def said(capsys, *arguments):
    """(exit code, stdout, stderr with its line breaks taken out)."""
    code = run(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, " ".join(captured.err.split())


def test_help_names_every_verb_of_the_contract(capsys):
    code, out, _ = said(capsys, "--help")
    assert code == 0 and all(re.search(rf"\b{verb}\b", out) for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(capsys, verb):
    assert said(capsys, verb, "--help")[0] == 0


def test_grade_has_the_options_of_the_contract(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out = said(capsys, "grade", "--help")[1]
    assert all(option in out for option in GRADE_OPTIONS)


@pytest.mark.parametrize(
    "name", re.findall(r"(?:`|-m )autograder (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"))
)
def test_the_readme_names_only_verbs_that_there_are(name):
    assert name in VERBS


WRONG = {
    "an unknown lecture": (["list", "02_index"], "there are: "),
    "an unknown verb": (["grad"], "grad"),
    "an unknown option": (["list", "02_indexing", "--yaml"], "--yaml"),
    "a missing option": (["grade", "02_indexing"], "--submissions"),
    "a missing folder": (["grade", "02_indexing", "--submissions", "no/such/folder"], "does not exist"),
    "a setting below zero": (["grade", "02_indexing", "--submissions", "docs", "--cell-seconds", "-1"], "above 0"),
    "a setting of the wrong kind": (
        ["grade", "02_indexing", "--submissions", "docs", "--workers", "many"],
        "--workers",
    ),
    "a setting that is no number": (
        ["grade", "02_indexing", "--submissions", "docs", "--cell-seconds", "nan"],
        "above 0",
    ),
    "a setting without end": (["grade", "02_indexing", "--submissions", "docs", "--memory-mib", "-5"], "above 0"),
    "a time that no system takes": (
        ["grade", "02_indexing", "--submissions", "docs", "--submission-seconds", "1e300"],
        "give 0.01 to 1,000,000",
    ),
    "less memory than Python takes": (
        ["grade", "02_indexing", "--submissions", "docs", "--memory-mib", "1"],
        "give 64 to",
    ),
    "more memory than there can be": (
        ["grade", "02_indexing", "--submissions", "docs", "--memory-mib", str(10**20)],
        "give 64 to",
    ),
    "the course in place of a class": (["grade", "02_indexing", "--submissions", "solutions"], "course's own"),
    "a port that there is not": (["tensorboard", "docs", "--port", "99999999"], "--port"),
    "a seed too large": (["grade", "02_indexing", "--submissions", "docs", "--seed", str(10**30)], "seed"),
    "an unknown device": (
        ["grade", "02_indexing", "--submissions", "docs", "--device", "tpu"],
        "'tpu'; give cpu or cuda",
    ),
    "an unknown LMS": (["collect", "README.md", "02_indexing", "--lms", "ilias"], "moodle"),
    "nothing graded yet": (["report", "02_indexing", "--out", "no/such/class"], "autograder grade"),
    "nothing to take back": (["undo", "--out", "no/such/class"], "taken back"),
    "a worker that is no number": (["grade", "02_indexing", "--submissions", "docs", "--workers", "x1"], "given: 'x1'"),
    "an unset variable as the class": (["grade", "02_indexing", "--submissions", ""], "it is empty"),
    "an unset variable as the folder": (["report", "--out", ""], "it is empty"),
    "an unset variable as the archive": (["collect", "", "02_indexing"], "it is empty"),
    "a file as the folder": (
        ["grade", "02_indexing", "--submissions", "docs", "--out", "README.md"],
        "README.md cannot be written: a file is in the place of a folder. Move it away",
    ),
    "a scheduler without a port": (
        ["grade", "02_indexing", "--submissions", "docs", "--scheduler", "here"],
        "is 'here'; give tcp://HOST:PORT",
    ),
    "a scheduler at a port that there is not": (
        ["grade", "02_indexing", "--submissions", "docs", "--scheduler", "tcp://127.0.0.1:99999"],
        "0-65535); give tcp://HOST:PORT",
    ),
    "a sample class in place of a file": (["sample", "02_indexing", "README.md"], "a file is in the place of a folder"),
    "a notebook that is not there": (["doctor", "no.ipynb"], "no.ipynb"),
    "no runs": (["tensorboard", "no/such/runs"], "no/such/runs"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_gets_one_clear_sentence_and_code_2(capsys, name):
    arguments, words = WRONG[name]
    code, out, err = said(capsys, *arguments)
    assert code == 2 and words in err and "Traceback" not in err and out == ""


@pytest.mark.parametrize(
    "arguments",
    [("02_indexing", "--submissions", "no/such/folder"), ("nope", "--submissions", "docs")],
    ids=["a missing folder", "an unknown lecture"],
)
def test_for_a_typing_error_no_worker_is_started(capsys, monkeypatch, arguments):
    monkeypatch.setattr(workers, "start_importing", lambda settings: pytest.fail("it was started"))
    monkeypatch.setattr(farm, "LocalCluster", lambda **options: pytest.fail("it was started"))
    assert said(capsys, "grade", *arguments)[0] == 2


def test_where_nothing_is_to_be_graded_no_worker_is_started(capsys, monkeypatch, tmp_path):
    started = []

    @contextlib.contextmanager
    def opening(settings, submissions):
        started.append(submissions)
        yield

    def at_once(task, submissions, lecture, settings, seed, *, warm):
        for submission in submissions:
            verdicts = tuple(Verdict(e.id, e.number, 0.0, e.points) for e in lecture.exercises)
            yield Report(submission.student, lecture.name, "graded", verdicts, notebook=submission.notebook)

    monkeypatch.setattr(workers, "start_importing", lambda settings, hides: started.append("importing"))
    monkeypatch.setattr(farm, "opening", opening)
    monkeypatch.setattr(farm, "graded", at_once)
    folder = tmp_path / "class" / "ann" / "02_indexing"
    shutil.copytree(ROOT / "course" / "02_indexing", folder)
    call = [
        "grade",
        "02_indexing",
        "--submissions",
        str(tmp_path / "class"),
        "--out",
        str(tmp_path / "out"),
        "--trust-code",
    ]
    for more, expected in (([], ["importing", 1]), ([], [0]), (["--regrade"], ["importing", 1])):
        started.clear()
        code, _, err = said(capsys, *call, *more)
        assert code == 0 and started == expected, err
    (folder / "more.csv").write_text("1")
    started.clear()
    assert said(capsys, *call)[0] == 0 and started == ["importing", 1]


def test_an_empty_folder_is_wrong_use(capsys, tmp_path):
    code, _, err = said(capsys, "grade", "02_indexing", "--submissions", str(tmp_path))
    assert code == 2 and "no student's folder" in err


def test_collect_says_who_could_not_be_unpacked_and_ends_with_code_1(capsys, tmp_path):
    archive = tmp_path / "download.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("Ann_1", "Cy_2"):
            file.writestr(f"{name}_assignsubmission_file_/02_indexing.ipynb", "x" * 500)
    call = ["collect", str(archive), "02_indexing", "--out", str(tmp_path / "class")]
    assert said(capsys, *call)[0] == 0
    content = bytearray(archive.read_bytes())
    content[200] ^= 0xFF
    archive.write_bytes(content)
    for more in (["--dry-run"], []):
        code, out, err = said(capsys, *call, *more)
        assert code == 1 and "Ann" in err and "Cy" not in err and "call collect again" in err and "stays" in out
    kept = tmp_path / "class" / "submitted" / "Ann" / "02_indexing" / "02_indexing.ipynb"
    assert kept.read_text() == "x" * 500


def test_list_as_json_has_ids_numbers_points_and_cells(capsys):
    code, out, _ = said(capsys, "list", "02_indexing", "--json")
    rows = json.loads(out)
    assert code == 0 and rows[0] == {
        "id": "every_kth_of_last_row",
        "number": "2.1",
        "points": 2,
        "cells": ["every_kth_of_last_row", "check_every_kth_of_last_row"],
    }


def test_doctor_says_how_this_machine_stands(capsys):
    code, out, _ = said(capsys, "doctor")
    text = " ".join(out.split())
    assert code == 0 and all(
        word in text for word in ("Python", "torch", "CUDA", "kernel python3", "andbox", "memory", "free")
    )


def test_a_missing_package_is_named_with_the_cure(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "autograder.grading", None)
    code, _, err = said(capsys, "report")
    assert code == 2 and "not installed" in err and "torch-lectures[grade]" in err


@pytest.mark.parametrize("verbose", [False, True])
def test_a_fault_of_ours_is_one_sentence_and_a_traceback_where_it_is_asked_for(capsys, monkeypatch, verbose):
    monkeypatch.setattr("autograder.grading.report_class", lambda *a, **k: 1 / 0)
    code, out, err = said(capsys, *["-v"] * verbose, "report")
    assert code == 1 and out == "" and "A fault in the autograder: ZeroDivisionError: division by zero" in err
    assert ("Traceback" in err) == verbose == ("-v VERB shows where" not in err)


def test_help_shows_what_may_be_left_out_once(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for verb in VERBS:
        assert "[[" not in said(capsys, verb, "--help")[1]


def test_ctrl_c_says_that_nothing_is_lost(capsys, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("autograder.grading.grade_class", interrupted)
    code, _, err = said(capsys, "grade", "02_indexing", "--submissions", "docs")
    assert code == 2 and "What is graded is kept" in err


def test_help_is_quick_and_needs_neither_nbgrader_nor_dask():
    code = (
        "import sys\n"
        "for name in ('nbgrader', 'distributed', 'dask', 'jinja2'): sys.modules[name] = None\n"
        "from autograder.cli import run\n"
        "assert run(['--help']) == 0 and run(['doctor', '--help']) == 0\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True)


def test_tensorboard_is_started_on_this_machine_only(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(subprocess, "call", lambda command: asked.append(command) or 0)
    assert run(["tensorboard", str(tmp_path), "--port", "7200"]) == 0
    flags = asked[0][asked[0].index("tensorboard.main") + 1 :]
    assert flags == ["--logdir", str(tmp_path), "--host", "127.0.0.1", "--port", "7200"]
