"""Every exercise of every lecture: right answers score full, each wrong one loses its points under its own code."""

import math
from pathlib import Path

import pytest

from autograder import fake_gpu, judge, probe, wire
from autograder.exercises import lecture_names, load_lecture, standalone_text
from autograder.records import Reply

SOLUTIONS = Path(__file__).parents[2] / "solutions"
LECTURES = [load_lecture(name, SOLUTIONS) for name in lecture_names(SOLUTIONS)]
EXERCISES = [
    pytest.param(exercise, id=f"{lecture.name}-{exercise.id}")
    for lecture in LECTURES
    for exercise in lecture.exercises
    if not exercise.written
]
SEEDS = (101, 202, 303)  # private: no student's cases are made from them
MOST_CASES = 200
LARGEST_QUESTION = 1 << 20  # bytes

every_exercise = pytest.mark.parametrize("exercise", EXERCISES)


def defined(text, id):
    """The function that an answer defines which is nothing but its text."""
    space = {}
    exec(text, space)
    return space[id]


def verdict(asked, function):
    """The verdict on an answer of ours, handed in as its text."""
    text = standalone_text(function, asked.exercise.id)
    return verdict_on_text(asked, text)


def verdict_on_text(asked, text):
    reply = Reply(asked.exercise.id, probe.answer(defined(text, asked.exercise.id), asked.message))
    return judge.verdict(asked, judge.answers(asked, reply), [text])


@every_exercise
def test_the_reference_scores_full(exercise):
    for seed in SEEDS:
        asked = judge.question(exercise, seed)
        reply = Reply(exercise.id, probe.answer(exercise.function, asked.message))
        given = judge.verdict(asked, judge.answers(asked, reply), [])
        assert (given.score, given.message) == (exercise.points, "")


@every_exercise
def test_every_right_answer_scores_full(exercise):
    for seed in SEEDS:
        asked = judge.question(exercise, seed)
        for right in exercise.right_answers:
            given = verdict(asked, right)
            assert given.score == exercise.points, f"{given.message}\n{standalone_text(right, exercise.id)}"


NEEDS_NUMPY = {  # exercises in which NumPy reads what lies on a GPU, and why that is no fault of their answers
    "same_memory": "in one case a tensor and a NumPy array share their memory, and arrays lie on the CPU",
    "sigmoid_figure": "matplotlib draws NumPy arrays, and arrays lie on the CPU",
}


def faults_on_a_gpu(exercise, answers):
    """What is raised on a pretended GPU by answers that run on the CPU, and where their results lie instead of there."""
    cases = exercise.visible_cases()
    message = wire.pack_question(cases, exercise.arguments, driver=exercise.driver_text, fake_cuda=True, count=False)
    devices = ["cuda"] if any(fake_gpu.leaves(list(case)) for case in cases) else ["cpu"]
    for answer in answers:
        for seen in judge.seen_by(answer, message, exercise.facts_text):
            if not seen.raised and (seen.fake_cuda["raised"] or not set(seen.fake_cuda["devices"]) <= set(devices)):
                yield seen.fake_cuda["message"] or f"a result on {seen.fake_cuda['devices']}"


@every_exercise
def test_every_right_answer_runs_on_a_gpu_and_stays_there(exercise, record_property):
    """Whether its task asks for it or not."""
    record_property("not on a GPU", NEEDS_NUMPY.get(exercise.id, ""))
    faults = set(faults_on_a_gpu(exercise, [exercise.function, *exercise.right_answers]))
    assert faults == ({fake_gpu.NO_NUMPY} if exercise.id in NEEDS_NUMPY else set())


WITHOUT_DEVICE = [  # dense, masked and sparse: what the reference says, and what says the same without a device
    ("one_hot", "classes, device=labels.device)", "classes)", "setitem got a tensor of shape"),
    ("write_row", "dtype=torch.bool, device=m.device)", "dtype=torch.bool)", "where got a tensor of shape"),
    ("row_sums", "c.shape[0], device=values.device)", "c.shape[0])", "repeat_interleave got a tensor of shape"),
]


@pytest.mark.parametrize("id, text, broken, said", WITHOUT_DEVICE)
def test_a_right_answer_that_makes_a_tensor_on_the_cpu_is_found(id, text, broken, said):
    (exercise,) = (exercise for lecture in LECTURES for exercise in lecture.exercises if exercise.id == id)
    reference = "import torch\nfrom maskedtensor_ref import masked_tensor\n" + standalone_text(exercise.function, id)
    assert text in reference
    faults = list(faults_on_a_gpu(exercise, [defined(reference.replace(text, broken), id)]))
    assert faults and all(said in fault for fault in faults), faults


@every_exercise
def test_every_wrong_answer_loses_its_points_under_its_own_code(exercise):
    for seed in SEEDS:
        asked = judge.question(exercise, seed)
        for wrong in exercise.wrong_answers:
            given = verdict(asked, wrong.function)
            assert (given.score, given.codes) == (0, (wrong.code,)), f"{wrong.code}: {given.message or 'full points'}"
            assert given.message.startswith(wrong.message)


@every_exercise
def test_the_visible_cases_alone_catch_nine_in_ten_wrong_answers(exercise, record_property):
    asked = judge.visible_question(exercise)
    missed = [wrong.code for wrong in exercise.wrong_answers if verdict(asked, wrong.function).score]
    count = len(exercise.wrong_answers)
    record_property("caught by visible cases", f"{count - len(missed)} of {count}")
    assert len(missed) <= count // 10, f"only hidden cases catch {missed}"


@every_exercise
def test_a_blank_answer_scores_nothing_and_is_called_unanswered(exercise):
    blank = f"def {exercise.id}(*arguments):\n    raise NotImplementedError()\n"
    given = verdict_on_text(judge.question(exercise, SEEDS[0]), blank)
    assert (given.score, given.codes) == (0, ()) and "not answered yet" in given.message


@every_exercise
def test_equal_seeds_make_equal_cases_and_other_seeds_others(exercise):
    first, again, other = (judge.question(exercise, seed).message for seed in (SEEDS[0], SEEDS[0], SEEDS[1]))
    assert first == again != other


@every_exercise
def test_its_cases_are_few_and_small_enough_to_be_asked_of_hundreds(exercise):
    asked = judge.question(exercise, SEEDS[0])
    assert asked.cases <= MOST_CASES and len(asked.message) <= LARGEST_QUESTION


@every_exercise
def test_there_are_wrong_and_right_answers_enough_or_a_reason(exercise):
    assert len(exercise.wrong_answers) >= 5 or exercise.few_wrong
    assert len(exercise.right_answers) >= 2 or exercise.few_right


@every_exercise
def test_an_exercise_needs_only_what_stands_before_it_in_its_lecture(exercise):
    (lecture,) = (lecture for lecture in LECTURES if exercise in lecture.exercises)
    before = [e.id for e in lecture.exercises[: lecture.exercises.index(exercise)]]
    assert set(exercise.needs) <= set(before)


def test_the_sample_class_finds_its_three_misconceptions():
    lecture = next(lecture for lecture in LECTURES if lecture.name == "02_indexing")
    samples = {w.sample: (e.id, w.code) for e in lecture.exercises for w in e.wrong_answers if w.sample}
    assert samples == {
        "wrong_copy": ("every_kth_of_last_row", "M09"),
        "wrong_rank": ("keep_row", "X-2.5-1"),
        "wrong_duplicates": ("histogram", "M11"),
    }
