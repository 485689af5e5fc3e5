"""How long a lecture takes is said once, at the head of its notebook, and is the sum of what its parts say."""

import re

import jupytext
import pytest

from autograder import notebooks

from .test_exercises import LECTURES, SOLUTIONS
from .transcripts import PAGES

HEAD = re.compile(
    r"^\*\*Time\*\* · reading, predictions and pictures about (\d+) minutes · exercises in between (\d+) minutes"
    r"(?: · homework (\d+) minutes \(([\d., ]+)\))?$",
    re.M,
)
CARD = re.compile(r"^\*\*Exercise ([\d.]+)\*\* .* · about (\d+) minutes?( of homework)? ·", re.M)
NOTE = re.compile(r"^\*\*Instructor(?:, (\d+) minutes([^*]*?))?\.\*\*")

every_lecture = pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)


def source(lecture):
    return (SOLUTIONS / lecture.name / f"{lecture.name}.py").read_text(encoding="utf-8")


@every_lecture
def test_the_head_of_a_lecture_adds_up_its_cards_and_its_notes(lecture):
    cells = notebooks.read(notebooks.stored_path(lecture)).cells
    (said,) = HEAD.findall(cells[0].source)
    cards = [card for cell in cells for card in CARD.findall(cell.source)]
    assert len(cards) == len(lecture.exercises)
    assert int(said[1]) == sum(int(minutes) for _, minutes, home in cards if not home)
    assert int(said[2] or 0) == sum(int(minutes) for _, minutes, home in cards if home)
    assert [number for number in said[3].split(", ") if number] == [number for number, _, home in cards if home]
    notes = [NOTE.match(cell.source) for cell in cells if "instructor" in cell.metadata.get("tags", [])]
    assert all(notes), "a note for instructors begins with **Instructor, N minutes.** or **Instructor.**"
    assert abs(int(said[0]) - sum(int(note[1] or 0) for note in notes)) < 5


@every_lecture
def test_a_lecture_says_its_minutes_nowhere_else(lecture):
    text = re.sub(r"\*\*Instructor, \d+ minutes", "", source(lecture))
    assert re.findall(r"\d+ minutes?\b|\b(?:ten|ninety) minutes", text, re.I) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_on_teaching_leaves_the_minutes_of_its_lecture_to_the_notebook(page):
    text = page.read_text(encoding="utf-8").split("## Worked through")[0]
    assert re.findall(r"\b(?:\d+|ten|ninety) minutes|\| minutes \|", text, re.I) == []


@every_lecture
def test_a_note_calls_homework_what_its_card_calls_homework(lecture):
    home, met = [], set()
    for cell in jupytext.reads(source(lecture), fmt="py:percent").cells:
        if "exercise" in cell.metadata:
            met.add(cell.metadata["exercise"])
        if "instructor" in cell.metadata.get("tags", []) and met:
            if "homework" in cell.source.split("Common answers")[0]:
                home += [id for id in met if lecture[id].homework] or [f"none of {sorted(met)}"]
            met = set()
    assert sorted(home) == sorted(exercise.id for exercise in lecture.exercises if exercise.homework)


@every_lecture
def test_the_first_check_is_among_the_first_ten_cells_texts_included(lecture):
    cells = notebooks.read(notebooks.stored_path(lecture)).cells
    seen = [cell.source for cell in cells if "instructor" not in cell.metadata.get("tags", [])]
    assert any(source.startswith("check(") for source in seen[:10])
