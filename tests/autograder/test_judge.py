"""Verdicts: decided from data, in a process that never saw the student's code."""

from pathlib import Path

import pytest
import torch

from autograder import judge, probe
from autograder.exercises import case_seed, load_lecture
from autograder.properties import no_loops
from autograder.records import FAILURES, Reply
from autograder.source_rules import LOOP_ATTRIBUTES, NO_COPY, broken_rule

SOLUTIONS = Path(__file__).parents[2] / "solutions"


@pytest.fixture(scope="module")
def lecture():
    return load_lecture("02_indexing", SOLUTIONS)


@pytest.fixture(scope="module")
def asked(lecture):
    return judge.question(lecture["every_kth_of_last_row"], 5)


def verdict(asked, function, cells=()):
    return judge.verdict(
        asked, judge.answers(asked, Reply(asked.exercise.id, probe.answer(function, asked.message))), cells
    )


def test_the_reference_earns_every_point(asked):
    given = verdict(asked, asked.exercise.function)
    assert (given.score, given.message, given.codes) == (given.points, "", ())


def test_a_recognised_misconception_is_named_with_its_message(asked):
    wrong = asked.exercise.wrong_answers[0]
    given = verdict(asked, wrong.function)
    assert given.score == 0 and given.codes == (wrong.code,) and wrong.message in given.message


def test_an_unknown_error_gets_the_next_step_and_no_code(asked):
    given = verdict(asked, lambda x, k: x[-1, ::k].clone() + 100)
    assert given.score == 0 and given.codes == () and "expected" in given.message


def test_an_answer_right_on_the_visible_cases_only_loses_and_hears_no_hidden_value(asked):
    visible = [x.tolist() for x, k in asked.exercise.visible_cases()]
    given = verdict(asked, lambda x, k: x[-1, ::k] if x.tolist() in visible else x[-1, ::k] + 0.123)
    assert given.score == 0 and "hidden case" in given.message
    assert "0.123" not in given.message and "[" not in given.message
    assert "smallest failing input" not in given.message  # which is not shown


def test_what_is_expected_is_what_a_function_does_on_all_cases_and_the_visible_ones_are_alike_for_all(lecture):
    drawn = lambda *case: torch.rand(3)
    values = lambda seen: [case.result.value.tolist() for case in seen]
    ada, bob = (judge.question(lecture["keep_row"], seed) for seed in (5, 500))
    for asked in (ada, bob):
        assert values(judge.expected(asked, drawn)) == values(judge.seen_by(drawn, asked.message))
    (of_ada, of_bob), shown = (values(judge.expected(asked, drawn)) for asked in (ada, bob)), ada.visible
    assert of_ada[:shown] == of_bob[:shown] and not any(value in of_bob for value in of_ada[shown:])


def test_a_process_runs_the_visible_cases_once_and_the_hidden_ones_of_each_student(lecture):
    calls = []
    counted = lambda *case: calls.append(case)
    ada, bob = (judge.question(lecture["keep_row"], seed) for seed in (5, 500))
    judge.expected(ada, counted), judge.expected(bob, counted)
    assert len(calls) == ada.visible + (ada.cases - ada.visible) + (bob.cases - bob.visible)


@pytest.mark.parametrize("failure", FAILURES)
def test_an_absent_reply_is_a_verdict_with_its_reason(asked, failure):
    given = judge.verdict(asked, judge.answers(asked, Reply(asked.exercise.id, failure=failure)), ())
    assert given.score == 0 and given.message == FAILURES[failure]


def test_a_reply_to_another_question_earns_nothing(lecture, asked):
    other = judge.question(lecture["keep_row"], 5)
    replayed = probe.answer(other.exercise.function, other.message)
    given = judge.verdict(asked, judge.answers(asked, Reply(asked.exercise.id, replayed)), ())
    assert given.score == 0


def test_a_reply_replayed_from_another_student_earns_nothing(lecture):
    exercise = lecture["every_kth_of_last_row"]
    theirs, ours = (judge.question(exercise, case_seed(1, name, exercise.id)) for name in ("ada", "bob"))
    replayed = probe.answer(exercise.function, theirs.message)
    assert judge.verdict(ours, judge.answers(ours, Reply(exercise.id, replayed)), ()).score == 0


def test_rules_about_the_source_count_where_the_values_are_right(lecture):
    exercise = lecture["multiples_of"]
    asked = judge.question(exercise, 5)
    loop = "def multiples_of(x, k):\n    for v in x:\n        pass\n    return x[x % k == 0]"
    assert verdict(asked, exercise.function, [loop]).score == 0
    assert (
        verdict(
            asked, exercise.function, ["%time 1\n!ls\n" + loop, "def multiples_of(x, k): return x[x % k == 0]"]
        ).score
        > 0
    )
    assert (
        verdict(asked, exercise.function, ["def multiples_of(x, k): return h(x)", "h = lambda x: [v for v in x]"]).score
        == 0
    )


def test_cases_are_reproducible_from_the_seed_and_differ_between_students(lecture):
    exercise = lecture["every_kth_of_last_row"]
    message = lambda *key: judge.question(exercise, case_seed(*key, exercise.id)).message
    assert message(1, "ada") == message(1, "ada")
    assert len({message(1, "ada"), message(2, "ada"), message(1, "bob")}) == 3


def test_another_attempt_gets_other_cases_and_the_same_files_the_same_ones():
    assert case_seed(1, "ada", "f", "digest") == case_seed(1, "ada", "f", "digest")
    assert case_seed(1, "ada", "f", "digest") != case_seed(1, "ada", "f", "other digest")


REFUSED = {  # a line of an answer, and what its refusal has to name
    "return torch.tensor([v * 2 for v in x])": "no Python loop",
    "while len(x): x = x[1:]": "no Python loop",
    "return torch.tensor(x.tolist())": "no copy of the elements to Python or NumPy",
    "return torch.from_numpy(x.numpy())": "no copy of the elements to Python or NumPy",
    "return x.clone().apply_(abs)": "no call of a Python function for each element",
    "return torch.stack(list(map(abs, x)))": "no call of a Python function for each element",
    "return eval('x.abs()')": "no code inside a text",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_loop_is_refused_by_the_name_of_what_it_is(line):
    found = broken_rule([f"def f(x):\n    {line}"], "f", [no_loops])
    assert found.expected == REFUSED[line] and found.got.endswith("in line 2")


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused_as_a_loop_is_told_that_a_copy_is_refused_as_well(line):
    next_step = broken_rule([f"def f(x):\n    {line}"], "f", [no_loops]).next_step
    assert "loop over elements" in next_step and ".tolist()" in next_step and ".numpy()" in next_step


COPIES = [name for name, wanted in LOOP_ATTRIBUTES.items() if wanted == NO_COPY]


@pytest.mark.parametrize("name", [name for name in COPIES if not name.startswith("_")])
def test_the_card_names_every_copy_that_counts_as_a_loop(name):
    assert "loop" in no_loops.text and f"`.{name}()`" in no_loops.text


def test_one_number_taken_from_a_tensor_is_no_loop():
    assert broken_rule(["def f(x):\n    return x.sum().item()"], "f", [no_loops]) is None


def test_why_nothing_came_back_is_told_with_what_came_instead(asked):
    told = judge.answers(asked, Reply(asked.exercise.id, failure="unanswered", detail="KeyboardInterrupt: x")).failure
    assert told == f"{FAILURES['unanswered']} What came instead: KeyboardInterrupt: x."
    gone = Reply(asked.exercise.id, failure="died", detail=f"KeyError: {asked.exercise.id!r}")
    assert judge.answers(asked, gone).failure == FAILURES["died"], "its cell ended the kernel, so it has no function"


@pytest.mark.parametrize(
    ("cell", "earned"),
    [
        ("exec('def multiples_of(x, k): return x[x % k == 0]')", False),
        ("def multiples_of(x, k):\n    return x[x % k == 0]", True),
    ],
)
def test_an_answer_whose_text_cannot_be_read_earns_nothing_where_its_text_counts(lecture, cell, earned):
    asked = judge.question(lecture["multiples_of"], 5)
    given = verdict(asked, asked.exercise.function, [cell])
    assert (given.score == given.points) is earned and ("no definition of multiples_of" in given.message) is not earned


def test_where_every_construct_is_allowed_an_answer_may_be_defined_anyhow(asked):
    given = verdict(asked, asked.exercise.function, ["exec(text)"])
    assert given.score == given.points
