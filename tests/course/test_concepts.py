"""Nothing of the sources is lost: every concept is mapped to a cell of the lecture that teaches it."""

from pathlib import Path

import jupytext
import pytest

from autograder.exercises import lecture_names, load_lecture

from .concepts import CORRECTED, FACTS, LECTURES, required

SOLUTIONS = Path(__file__).parents[2] / "solutions"
NAMES = lecture_names(SOLUTIONS)


def mapped(name, key):
    """The ids that the cells of a lecture carry under `key`."""
    source = (SOLUTIONS / name / f"{name}.py").read_text(encoding="utf-8")
    return {id for cell in jupytext.reads(source, fmt="py:percent").cells for id in cell.metadata.get(key, [])}


@pytest.mark.parametrize("name", NAMES)
def test_every_id_in_a_lecture_is_known(name):
    exercises = {id for exercise in load_lecture(name, SOLUTIONS).exercises for id in exercise.concepts}
    assert mapped(name, "concepts") | exercises <= set(LECTURES)
    assert mapped(name, "facts") <= FACTS


@pytest.mark.parametrize("name", NAMES)
def test_a_lecture_teaches_every_concept_that_belongs_to_it(name):
    assert required(name) <= mapped(name, "concepts")


@pytest.mark.parametrize("name", sorted(set(CORRECTED) & set(NAMES)))
def test_a_lecture_puts_right_what_its_source_has_wrong(name):
    assert CORRECTED[name] <= mapped(name, "facts")


def test_every_concept_belongs_to_a_lecture():
    assert [id for id, lectures in LECTURES.items() if not lectures] == ["L-G"]
