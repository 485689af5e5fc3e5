"""Whether workers are started is told from the times of files."""

import os

import pytest

from autograder.backlog import MOST, backlog
from autograder.files import record_name, records
from autograder.settings import load_settings
from autograder.students import student_id

LECTURE = "02_indexing"


@pytest.fixture
def graded(tmp_path):
    """Settings of a course, and the folder of a class that was graded a second after it was handed in."""
    settings = load_settings(tmp_path)
    for folder in (settings.solutions, settings.course):
        write(folder / LECTURE / "x.py")
    for student in ("ann", "Bob B."):
        write(tmp_path / "class" / student / LECTURE / f"{LECTURE}.ipynb")
        write(records(settings.out, LECTURE) / record_name(student_id(student)), seconds=100)
    return settings, tmp_path / "class"


def write(path, seconds=0):
    """A file that was changed so many seconds after now: when it came where it is can only be now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    moment = path.stat().st_ctime + seconds
    os.utime(path, (moment, moment))


def test_a_class_that_was_graded_has_nothing_to_grade(graded):
    settings, folder = graded
    write(folder / ".DS_Store", 200)
    write(folder / ".hidden" / "x", 200)
    write(settings.solutions / LECTURE / "__pycache__" / "x.pyc", 200)
    assert backlog(folder, LECTURE, settings) == 0


CHANGES = {
    "a new student": lambda settings, folder: write(folder / "cyd" / LECTURE / "x.ipynb"),
    "a file that came later": lambda settings, folder: write(folder / "ann" / LECTURE / "x.csv", 200),
    "a file deep below": lambda settings, folder: write(folder / "ann" / LECTURE / "a" / "b" / "x.csv", 200),
    "a file taken away": lambda settings, folder: os.utime(folder / "ann" / LECTURE, (1e10, 1e10)),
    "a record taken back": lambda settings, folder: (records(settings.out, LECTURE) / record_name("ann")).unlink(),
    "an exercise": lambda settings, folder: write(settings.solutions / LECTURE / "x.py", 200),
    "the release": lambda settings, folder: write(settings.course / LECTURE / "x.py", 200),
    "more than is looked at": lambda settings, folder: [write(folder / "ann" / str(i)) for i in range(MOST + 1)],
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_is_newer_than_its_record_is_likely_to_be_graded(graded, name):
    CHANGES[name](*graded)
    settings, folder = graded
    assert backlog(folder, LECTURE, settings) == 2 + (name == "a new student")


def test_what_was_never_graded_is_to_be_graded_and_what_is_not_there_is_not(graded, tmp_path):
    settings, folder = graded
    assert backlog(folder, "03_other", settings) == 2 and backlog(folder / "ann", LECTURE, settings) == 1
    assert backlog(tmp_path / "none", LECTURE, settings) == 0
