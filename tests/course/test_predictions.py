"""The predictions of every lecture: numbered, and kept, in the order in which its notebook asks them."""

import ast

import pytest

from autograder import notebooks

from .test_exercises import LECTURES


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_predictions_are_numbered_and_kept_in_the_order_in_which_they_are_asked(lecture):
    cells = notebooks.read(notebooks.stored_path(lecture)).cells
    asked = [ast.literal_eval(call.args[0]) for cell in cells for call in notebooks.predictions_in(cell)]
    retrieval, new = ([id for id in asked if id.startswith(letter)] for letter in "RP")
    assert asked == [*retrieval, *new]
    assert retrieval == [f"R{n}" for n, _ in enumerate(retrieval, start=1)]
    assert new == [f"P{n}" for n, _ in enumerate(new, start=1)]
    assert [prediction.id for prediction in lecture.predictions] == asked


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_a_question_stands_before_the_cell_that_asks_for_its_letter(lecture):
    cells = notebooks.read(notebooks.stored_path(lecture)).cells
    for number, cell in enumerate(cells):
        for call in notebooks.predictions_in(cell):
            question = f"**Prediction {ast.literal_eval(call.args[0])}**"
            assert question in "\n".join(before.source for before in cells[max(0, number - 6) : number])


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_no_letter_is_a_good_guess(lecture):
    """Whoever always says b learns nothing; half of a lecture's answers is the most that one letter gets."""
    letters = "".join(prediction.answer for prediction in lecture.predictions)
    assert max(map(letters.count, letters)) <= (len(letters) + 1) // 2, letters
    assert not any(3 * letter in letters for letter in letters), letters


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_how_to_answer_is_said_once(lecture):
    cells = notebooks.read(notebooks.stored_path(lecture)).cells
    told = [cell.source for cell in cells if cell.cell_type == "markdown" and "in quotes, in place of" in cell.source]
    assert len(told) == 1 and f"**Prediction {lecture.predictions[0].id}**" in told[0]
