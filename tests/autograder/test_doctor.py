"""What doctor says of a machine and its lectures: which one, what is wrong, and a command that runs as it stands."""

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import doctor
from autograder.checks import FILE
from autograder.handin import examine_notebook

ROOT = Path(__file__).parents[2]
LECTURES = ("01_storage", "02_indexing")


@pytest.fixture
def root(tmp_path):
    """A course of two lectures, without its sources."""
    for name in LECTURES:
        shutil.copytree(ROOT / "course" / name, tmp_path / "course" / name)
    return tmp_path


def findings(root, level):
    return [finding.text for finding in doctor.examine_lectures(root) if finding.level == level]


def test_whole_lectures_are_named(root):
    (text,) = findings(root, "ok")
    assert all(name in text for name in LECTURES) and not findings(root, "missing")


def test_where_there_is_no_course_nothing_is_said_of_lectures(tmp_path):
    assert list(doctor.examine_lectures(tmp_path)) == []


def notebook(folder):
    return folder / f"{folder.name}.ipynb"


FAULTS = {
    "no checks": (lambda folder: (folder / FILE).unlink(), "checks.json is not in"),
    "checks cut short": (lambda folder: (folder / FILE).write_text("{"), "damaged or cut short"),
    "checks of another lecture": (
        lambda folder: shutil.copy(ROOT / "course" / "00_start" / FILE, folder),
        "belongs to lecture 00_start",
    ),
    "no notebook": (lambda folder: notebook(folder).unlink(), "02_indexing.ipynb is not in"),
    "a notebook cut short": (lambda folder: notebook(folder).write_text('{"cells": ['), "02_indexing.ipynb: "),
}


@pytest.mark.parametrize(("spoil", "expected"), FAULTS.values(), ids=FAULTS)
def test_of_several_lectures_the_one_with_a_fault_is_named_with_the_fault(root, spoil, expected):
    spoil(root / "course" / "02_indexing")
    (text,) = findings(root, "missing")
    assert text.startswith("Lecture 02_indexing: ") and expected in text and "01_storage" not in text
    assert "autograder release" not in text  # a student has no sources
    (fine,) = findings(root, "ok")
    assert "01_storage" in fine and "02_indexing" not in fine


def test_where_the_sources_are_at_hand_a_lecture_can_be_built_anew(root):
    for name in ("02_indexing", "03_activations"):
        (root / "solutions" / name).mkdir(parents=True)
        (root / "solutions" / name / "exercises.py").touch()
    (root / "course" / "02_indexing" / FILE).unlink()
    (damaged,), (absent,) = findings(root, "missing"), findings(root, "weak")
    assert damaged.endswith(doctor.command("autograder release 02_indexing"))
    assert absent.startswith("Lecture 03_activations: it is not in ")
    assert absent.endswith(doctor.command("autograder release 03_activations"))


def test_a_configuration_that_cannot_be_read_is_named(root):
    (root / "nbgrader_config.py").write_text("c.Grading.workers = 'many'")
    (text,) = findings(root, "missing")
    assert "nbgrader_config.py" in text


def test_what_is_wrong_with_a_notebook_is_said_with_its_lecture(root):
    (root / "course" / "02_indexing" / FILE).write_text(json.dumps({"lecture": "02_indexing"}))
    for name in LECTURES:
        said = [finding.text for finding in examine_notebook(notebook(root / "course" / name), root / "elsewhere")]
        assert said and all(text.startswith(f"{name}: ") for text in said)
        assert any("has format 1" in text for text in said) == (name == "02_indexing")


def test_every_cure_runs_this_python_by_its_path(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "torch", None)
    said = [finding.text for finding in doctor.examine_machine() if finding.level == "missing"]
    assert len(said) == 3 and all(f"{shlex.quote(sys.executable)} -m pip install" in text for text in said)


@pytest.mark.skipif(os.name == "nt", reason="PATH is looked up by another rule there")
@pytest.mark.parametrize("python", ["python", "python3", f"python3.{sys.version_info.minor}"])
def test_the_environment_need_not_be_on_the_path(python, tmp_path):
    """jupyter_client starts a kernel that is called python in the Python that it runs in itself."""
    kernel = tmp_path / "kernels" / "python3"
    kernel.mkdir(parents=True)
    spec = {
        "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "P",
        "language": "python",
    }
    (kernel / "kernel.json").write_text(json.dumps(spec))
    code = "from autograder import doctor; print(*(f.level + f.text for f in doctor._kernel_spec()))"
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "JUPYTER_PATH": str(tmp_path)}
    out = subprocess.run(
        [sys.executable, "-c", code], env=plain, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert out == "okThe kernel python3 runs in this environment.\n"
