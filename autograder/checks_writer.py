"""Writes `checks.json` from a lecture's exercises: the visible cases, and what reference and wrong answers did on them."""

import base64
import json

import torch

from . import checks, facts, judge, probe, wire
from .exercises import Lecture


def to_json(lecture: Lecture) -> str:
    """The text of checks.json: the same for the same exercises, run after run."""
    exercises = [_exercise(exercise) for exercise in lecture.exercises if not exercise.written]
    written = [
        {"id": e.id, "number": e.number, "points": e.points, "hints": list(e.hints)}
        for e in lecture.exercises
        if e.written
    ]
    predictions = [
        {"id": p.id, "question": p.question, "choices": {k: list(v) for k, v in p.choices.items()}, "answer": p.answer}
        for p in lecture.predictions
    ]
    data = {"format": checks.FORMAT, "lecture": lecture.name, "exercises": exercises, "written": written}
    return json.dumps(data | {"predictions": predictions}, indent=1) + "\n"


def same(one: str, other: str) -> bool:
    """Whether two texts of checks.json say the same: processors round the last digit of what functions return differently."""
    if one == other:
        return True
    try:
        return _same(*(_opened(json.loads(text)) for text in (one, other)))
    except (ValueError, LookupError, TypeError):  # one of them is damaged
        return False


def _opened(data):
    """The same data with what functions returned as trees and tensors."""
    for exercise in data["exercises"]:
        exercise["expected"] = _message(exercise["expected"])
        for wrong in exercise["wrong"]:
            wrong["seen"] = _message(wrong["seen"])
    return data


def _same(one, other):
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, torch.Tensor):
        return (one.dtype, one.shape) == (other.dtype, other.shape) and _close(one, other)
    return one == other


def _close(one, other):
    try:
        torch.testing.assert_close(one, other, equal_nan=True)
    except AssertionError:
        return False
    return True


def _exercise(exercise):
    asked = judge.visible_question(exercise)
    return {
        "id": exercise.id,
        "number": exercise.number,
        "points": exercise.points,
        "arguments": list(exercise.arguments),
        "properties": [[wanted.name, *wanted.arguments] for wanted in exercise.properties],
        "tolerance": exercise.tolerance,
        "forbidden": list(exercise.forbidden),
        "hints": list(exercise.hints),
        "hidden": len(exercise.all_cases(1)),
        **({"facts": exercise.facts_text} if exercise.teller else {}),
        "question": _text(asked.message),
        "expected": _answer(exercise.function, asked),
        "wrong": [
            {
                "code": wrong.code,
                "message": wrong.message,
                "breaks": judge.refused_construct(exercise, wrong),
                "seen": _answer(wrong.function, asked),
            }
            for wrong in exercise.wrong_answers
        ],
    }


def _answer(function, asked):
    answer = probe.answer(function, asked.message)
    return _text(wire.without_times(facts.told(answer, asked.message, asked.exercise.facts_text)))


def _text(message: bytes) -> str:
    return base64.b64encode(message).decode()


def _message(text: str) -> tuple:
    return wire.opened(base64.b64decode(text))
