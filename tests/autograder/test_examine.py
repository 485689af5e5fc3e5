"""A student asks before handing in."""

import json

import pytest

from autograder.errors import UsageError
from autograder.examine import examine

from .broken import BROKEN, LECTURE, answers, checks, small_release, small_solution, write

RELEASE, SOLUTION = small_release(), small_solution()


def asked(folder, handed=SOLUTION, released=RELEASE, name=f"{LECTURE}.ipynb"):
    return examine(write(folder, handed, name), released, LECTURE)


def edited(change):
    notebook = json.loads(SOLUTION)
    change(notebook)
    return json.dumps(notebook)


@pytest.mark.parametrize("released", [RELEASE, None], ids=["with the release", "alone"])
def test_of_a_good_notebook_nothing_is_said(tmp_path, released):
    assert asked(tmp_path, released=released) == []


@pytest.mark.parametrize("released", [RELEASE, None], ids=["with the release", "alone"])
def test_exercises_without_an_answer_are_named(tmp_path, released):
    sentences = asked(tmp_path, RELEASE, released)
    assert len(sentences) == 3
    for sentence, exercise in zip(sentences, ("last_row", "column", "why_view"), strict=True):
        assert sentence.startswith(f"{exercise} is not answered yet")


@pytest.mark.parametrize("released", [RELEASE, None], ids=["with the release", "alone"])
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def last_row(x, k)\n    return x", "line 1: expected ':'"),
        ("def last_row(x, k):\n    return x[", "line 2: '[' was never closed"),
        ("def last_row(x, k):\nreturn x", "expected an indented block"),
    ],
)
def test_an_answer_that_is_no_python_is_named_with_its_line(tmp_path, source, words, released):
    handed = edited(lambda notebook: answers(notebook)[0].update(source=source))
    (sentence,) = asked(tmp_path, handed, released)
    assert "The cell of last_row is not valid Python" in sentence and words in sentence


@pytest.mark.parametrize(
    "source",
    ["%time\ndef last_row(x, k):\n    !ls\n    files = !ls\n    return x", "last_row?\ndef last_row(x): 'a\\d'"],
)
def test_what_jupyter_understands_is_no_error(tmp_path, source):
    assert asked(tmp_path, edited(lambda notebook: answers(notebook)[0].update(source=source))) == []


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_said_before_handing_in_is_what_grading_finds(tmp_path, name):
    folder = tmp_path / "anna" / LECTURE
    folder.mkdir(parents=True)
    BROKEN[name].make(folder, SOLUTION, RELEASE)
    path = folder / f"{LECTURE}.ipynb"
    files = [other for other in folder.parent.rglob("*") if other.is_symlink() or not other.is_dir()]
    if files != [path] or path.is_symlink() or not path.is_file():
        return  # about names and other files, not about one notebook
    sentences = " ".join(examine(path, RELEASE, LECTURE))
    assert bool(sentences) == (BROKEN[name].state != "graded"), sentences
    if BROKEN[name].state == "repaired":
        assert all(words in sentences for words in BROKEN[name].says), sentences
        assert "put right by itself when the notebook is graded" in sentences


def test_a_wrong_name_and_files_in_the_way_are_to_be_renamed(tmp_path):
    write(tmp_path, "x = 1", "torch.py")
    write(tmp_path, "x = 1", "helper.py")
    renamed, shadow = asked(tmp_path, name="mine.ipynb")
    assert "rename it to 02_indexing.ipynb" in renamed
    assert shadow == "torch.py beside the notebook takes the place of the library torch: rename it."


def test_without_the_release_doubled_and_missing_checks_are_still_seen(tmp_path):
    def change(notebook):
        notebook["cells"].append(checks(notebook)[1])
        notebook["cells"].remove(checks(notebook)[0])

    missing, doubled = asked(tmp_path, edited(change), released=None)
    assert "The check of last_row is missing" in missing and "check_column is there 2 times" in doubled


def test_a_notebook_too_large_or_of_another_lecture_is_said_at_once(tmp_path):
    other = json.dumps({"cells": [], "metadata": {}, "nbformat": 4})
    assert "notebook of another lecture" in asked(tmp_path, other)[0]
    (sentence,) = examine(
        write(tmp_path, SOLUTION + " " * 2**20, f"{LECTURE}.ipynb"), RELEASE, LECTURE, largest_mib=1.0
    )
    assert "clear all outputs" in sentence


def test_a_path_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"give the path of a notebook"):
        examine(tmp_path / "nothing.ipynb", RELEASE, LECTURE)
