"""Writes `checks.json` from a lecture's exercises: the visible cases, and what reference and wrong answers did on them."""

import base64
import json

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
