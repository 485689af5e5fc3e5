"""A known mistake is recognised alone, beside another one, and not where something else went wrong."""

import time

import pytest
import torch

from autograder import probe, wire
from autograder.diagnosis import NAMES, NOT_ALONE, Misconception, Rules, diagnose

CASES = [(torch.tensor([1.0]), 2), (torch.tensor([1.0, -2.0]), 3), (torch.tensor([]), 2)]
RULES = Rules("scaled", ("x", "k"))


def scaled(x, k):
    return k * x


def called(function):
    return tuple(wire.read_seen(probe.answer(function, wire.pack_question(CASES, ["x", "k"]))))


def known(**functions):
    return [Misconception(code, f"It is {code}.", called(function)) for code, function in functions.items()]


def added(x, k):
    return k + x


def of_the_first(x, k):
    return k * x[:1]


def code(function, misconceptions):
    return diagnose(RULES, called(scaled), called(function), [], misconceptions, len(CASES)).code


def test_a_known_mistake_is_recognised():
    assert code(lambda x, k: x + k, known(first=of_the_first, added=added)) == "added"


def test_a_known_mistake_is_recognised_beside_another_one():
    def negative_as_well(x, k):
        return x + k if len(x) < 2 else -x - k

    mistakes = known(first=of_the_first, added=added)
    assert code(negative_as_well, mistakes) == "added"
    said = [
        diagnose(RULES, called(scaled), called(f), [], mistakes, len(CASES)).likely for f in (negative_as_well, added)
    ]
    assert said == [f"{NOT_ALONE} It is added.", "It is added."]


def test_what_two_known_mistakes_would_do_is_told_of_neither():
    def wrong_here(x, k):
        return k + x if len(x) == 1 else k * x

    def both(x, k):
        return k + x if len(x) == 1 else x

    assert code(both, known(added=wrong_here, other=lambda x, k: wrong_here(x, k) * 1)) == ""


def test_a_mistake_that_shows_where_the_answer_is_right_is_not_named():
    assert code(lambda x, k: k + x if len(x) == 1 else k * x, known(added=added)) == ""


def test_another_error_of_the_same_type_is_another_mistake():
    class Given:
        def __mul__(self, other):
            return NotImplemented

    def unsupported(x, k):
        return Given() * k

    def missing(x, k):
        return scaled(x)

    assert code(missing, known(unsupported=unsupported)) == ""


def test_a_recursion_without_end_is_one_wherever_it_ends():
    def deep(x, k):
        return deep(x, k)

    def compared(x, k):
        return [x] == [compared(x, k)]

    assert code(compared, known(deep=deep)) == "deep"


def test_names_that_a_student_chooses_do_not_hide_an_error():
    class Theirs:
        pass

    class Ours:
        pass

    assert code(lambda x, k: Theirs().shift, known(bare=lambda x, k: Ours().shift)) == "bare"
    assert code(lambda x, k: None.shift, known(bare=lambda x, k: Ours().shift)) == ""


@pytest.mark.parametrize("letter", ["a", "<", "A", "1", "a.", "a ", "a()"])
def test_what_a_long_error_says_is_read_in_no_time(letter):
    started = time.perf_counter()
    NAMES.sub("_", letter * 20_000)
    assert time.perf_counter() - started < 0.5  # letter by letter it takes two seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f() takes 2", "_ takes _"),
        ("torch.nn.Linear has no x", "_ has no x"),
        ("<class 'Foo'> is no Tensor", "<class '_'> is no Tensor"),
        ("a.b.c() of Net", "_() of _"),
    ],
)
def test_names_and_numbers_of_an_error_say_nothing(text, said):
    assert NAMES.sub("_", text) == said
