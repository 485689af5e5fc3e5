"""A class made of the wrong answers shows each misconception with its share in the class report."""

import pytest

from autograder import analysis, judge
from autograder.records import Report

from .test_exercises import LECTURES, SEEDS, verdict


@pytest.mark.parametrize("lecture", LECTURES, ids=lambda lecture: lecture.name)
def test_a_class_made_of_wrong_answers_shows_the_right_shares(lecture):
    coded = [exercise for exercise in lecture.exercises if not exercise.written]
    reports = []
    for exercise in coded:  # the first wrong answer is handed in by three students, every other one by one
        asked = judge.question(exercise, SEEDS[0])
        for place, wrong in enumerate(exercise.wrong_answers):
            given = verdict(asked, wrong.function)
            for copy in range(3 if place == 0 else 1):
                reports.append(Report(f"{exercise.id}-{place}-{copy}", lecture.name, "graded", (given,)))
    for item in analysis.items(lecture, reports):
        exercise = lecture[item.id]
        if exercise.written:
            continue
        expected = {wrong.code: 3 if place == 0 else 1 for place, wrong in enumerate(exercise.wrong_answers)}
        assert {loss.code: loss.count for loss in item.losses} == expected
        assert item.full == 0 and item.graded == len(exercise.wrong_answers) + 2
        assert item.losses[0].text == exercise.wrong_answers[0].message
