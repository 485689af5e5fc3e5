"""A small course in a folder of its own, built once: solved notebook, released notebook, configuration."""

import shutil
from pathlib import Path

import pytest

from autograder import notebooks
from autograder.exercises import load_lecture
from autograder.settings import load_settings

ROOT = Path(__file__).parents[2]
TINY = "10_tiny"


@pytest.fixture(scope="session")
def built_course(tmp_path_factory):
    """The folder of a course with one small lecture, its notebook executed; not to be changed."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(Path(__file__).parent / "fixtures" / "solutions", root / "solutions")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    notebooks.build(load_lecture(TINY, root / "solutions"))
    return root


@pytest.fixture
def course(built_course, tmp_path):
    """A copy of the built course, to be changed at will."""
    return Path(shutil.copytree(built_course, tmp_path / "course_folder"))


@pytest.fixture
def settings(course):
    return load_settings(course)


@pytest.fixture
def lecture(course):
    return load_lecture(TINY, course / "solutions")
