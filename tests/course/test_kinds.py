"""What a check says of another kind of result: in the task's words, also where our driver keeps what it finds in a dict."""

import pytest
import torch

from autograder import probe
from autograder.check import Checker, CheckFailed
from autograder.compare import KEYS, difference
from autograder.judge import seen_by, visible_question

from .test_exercises import LECTURES, SOLUTIONS


class Thing:
    """An object of no kind that a task asks for."""


CAME = {
    "nothing": None,
    "a number": 1,
    "a text": "text",
    "a tensor": torch.ones(2),
    "a tensor of one number": torch.tensor(1.0),
    "a tuple of one": (torch.ones(2),),
    "a pair": (torch.ones(2), torch.ones(2)),
    "a triple of numbers": [1, 2, 3],
    "an empty list": [],
    "a set": {1},
    "a function": print,
    "an object": Thing(),
}


def returns_dicts(exercise):
    """Whether a dict, or a list of them, is what the student's own function is asked for."""
    came = []

    def watched(*arguments):
        came.append(exercise.function(*arguments))
        return came[-1]

    probe.answer(watched, visible_question(exercise).message)
    return any(isinstance(item, dict) for one in came for item in (one if isinstance(one, list) else [one]))


DRIVEN = [
    pytest.param(lecture.name, exercise, id=f"{lecture.name}-{exercise.id}")
    for lecture in LECTURES
    for exercise in lecture.exercises
    if (exercise.driver or exercise.teller) and exercise.id.islower()  # a class is asked for by a name with a capital
]


def said(exercise, answer):
    """(path, expected, got, next step) of every visible case that `answer` fails."""
    message = visible_question(exercise).message
    expected, got = (seen_by(f, message, exercise.facts_text) for f in (exercise.function, answer))
    found = [difference(e, g, exercise.properties, exercise.tolerance) for e, g in zip(expected, got, strict=True)]
    return [(one.path, one.expected, one.got, one.next_step) for one in found if one]


@pytest.mark.parametrize(("lecture", "exercise"), DRIVEN)
def test_nobody_is_told_of_a_dict_that_no_task_asked_for(lecture, exercise):
    if returns_dicts(exercise):
        return
    for name, value in CAME.items():
        for path, expected, got, next_step in said(exercise, lambda *_, value=value: value):
            told = f"{name}: {path}: expected {expected}, got {got}. {next_step}"
            assert expected != "a dict" and "{'" not in got and next_step != KEYS, told
            assert "NoneType" not in got and "object has no attribute" not in got, told  # an error of the driver's own


@pytest.mark.parametrize(
    ("lecture", "id", "came", "expected"),
    [
        ("03_activations", "counter_example", [3, -1], r"result\['a tensor'\]: .* got a list: \[3, -1\]"),
        ("03_activations", "entropy", (1, 2), r"expected ValueError, got no error, but \(1, 2\)"),
        ("04_graphs", "graph_nodes", None, r"result\['a list of nodes'\]: .* got None"),
        ("04_graphs", "graph_nodes", ["AddBackward0"], r"result\['a list of nodes'\]: .*\['AddBackward0'\]"),
        ("04_graphs", "log_square", None, r"result\['value'\]: expected a tensor of shape .*, got None"),
        ("04_graphs", "logged_graphs", None, r"result\['folders with runs'\]: expected 'ournet, sequential', got 'none'"),
        ("05_masked_overview", "quotients", (1, 2), r"result\['three results \(indexed, safe, masked\)'\]: .*\(1, 2\)"),
    ],
)
def test_a_part_is_called_what_it_is(lecture, id, came, expected):
    def answer(*arguments):
        return came

    answer.__name__ = id
    with pytest.raises(CheckFailed, match=expected):
        Checker(lecture, SOLUTIONS / lecture)(answer)
