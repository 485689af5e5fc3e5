"""A small lecture: for the engine's tests its exercises, for those of the workflow a course of its own, built once."""

import json
import shutil
from pathlib import Path

import pytest

from autograder import checks_writer, notebooks
from autograder.checks import FILE
from autograder.exercises import load_lecture
from autograder.settings import load_settings

ROOT = Path(__file__).parents[2]
FIXTURES = Path(__file__).parent / "fixtures" / "solutions"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The lecture 10_tiny, with its checks.json, in a folder of its own."""
    folder = tmp_path_factory.mktemp("solutions")
    shutil.copytree(FIXTURES / "10_tiny", folder / "10_tiny")
    lecture = load_lecture("10_tiny", folder)
    (folder / "10_tiny" / FILE).write_text(checks_writer.to_json(lecture), encoding="utf-8")
    return lecture


@pytest.fixture(scope="session")
def tiny_settings(tiny, tmp_path_factory):
    """Short limits, and trusted code where there is no sandbox: the tests' own code runs here."""
    return load_settings(
        tmp_path_factory.mktemp("course"),
        solutions=tiny.folder.parent,
        cell_seconds=3,
        submission_seconds=60,
        trust_code=True,
    )


@pytest.fixture(scope="session")
def handed_in(tiny):
    """Builds a notebook as JSON text: the solved one, with some answers replaced and cells put in after the setup."""

    def build(answers=(), extra=(), blank=False):
        cells = json.loads(json.dumps(notebooks.solved(tiny)))["cells"]
        for cell in cells:
            graded = cell["metadata"].get("nbgrader", {})
            if blank and graded.get("solution"):
                head = cell["source"].split("### BEGIN")[0]
                cell["source"] = (
                    head + "raise NotImplementedError()" if cell["cell_type"] == "code" else "YOUR ANSWER HERE"
                )
            cell["source"] = dict(answers).get(graded.get("grade_id"), cell["source"])
        after = next(i for i, c in enumerate(cells) if c["metadata"].get("nbgrader", {}).get("grade_id") == "setup") + 1
        new = [
            {
                "cell_type": "code",
                "source": text,
                "metadata": {},
                "outputs": [],
                "execution_count": None,
                "id": f"new{i}",
            }
            for i, text in enumerate(extra)
        ]
        return json.dumps(
            {"cells": cells[:after] + new + cells[after:], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        )

    return build


@pytest.fixture(scope="session")
def built_course(tmp_path_factory):
    """The folder of a course with one small lecture, its notebook executed; not to be changed."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(FIXTURES, root / "solutions")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    notebooks.build(load_lecture("10_tiny", root / "solutions"))
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
    return load_lecture("10_tiny", course / "solutions")
