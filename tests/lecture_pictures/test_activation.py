"""The activation plot shows what autograd finds, and marks every place that is not a number."""

import math

import pytest
import torch

from lecture_pictures import DrawingError, activation
from lecture_pictures.activation import POINTS, curve


def naive_sigmoid(x):
    return 1 / (1 + torch.exp(-x))


FUNCTIONS = {
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "log": torch.log,
    "constant": lambda x: 0 * x + 2,
    "all NaN": lambda x: x * float("nan"),
    "steep": lambda x: 1e6 * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("low", "high"), [(-6, 6), (-120, 20), (0.001, 0.002), (5, 1e6)])
def test_every_function_is_drawn_legibly_on_every_range(name, low, high, legible):
    legible(activation({name: FUNCTIONS[name]}, low, high))


def test_values_and_gradients_are_torchs():
    c = curve(torch.sigmoid, "s", -6.0, 6.0, torch.float32)
    x = torch.tensor(c.x)
    assert len(c.x) == POINTS and c.x[60] == 0
    torch.testing.assert_close(torch.tensor(c.value), torch.sigmoid(x))
    torch.testing.assert_close(torch.tensor(c.gradient), torch.sigmoid(x) * (1 - torch.sigmoid(x)))


def test_a_gradient_that_is_nan_is_marked_where_it_is_nan(seen):
    picture = activation({"naive": naive_sigmoid}, -120, 20)
    (run,) = curve(naive_sigmoid, "naive", -120, 20, torch.float32).faults("gradient")
    what, first, last, n = run
    assert what == "NaN" and first == -120 and -90 < last < -88
    x = torch.tensor(last, requires_grad=True)
    naive_sigmoid(x).backward()
    assert x.grad.isnan()
    sentence = f"the gradient of naive is NaN from x = -120.0 to -89.7 ({n} points)"
    assert sentence in picture.text and sentence in seen(picture)


def test_the_same_function_in_float64_is_finite_there():
    picture = activation({"n": naive_sigmoid}, -120, 20, dtype=torch.float64)
    assert "every value and every gradient is finite" in picture.text


def test_infinite_values_are_told_from_nan():
    text = activation({"log": torch.log}, -2, 4).text
    assert "the value of log is NaN from x = -2.0 to -0.05 (40 points)" in text
    assert "the value of log is infinite at x = 0.0 (1 point)" in text


def test_two_places_without_a_value_are_two_sentences():
    text = activation({"asin": torch.asin}, -2, 2).text
    assert "the value of asin is NaN from x = -2.0 to -1.03 (30 points)" in text
    assert "the value of asin is NaN from x = 1.03 to 2.0 (30 points)" in text


def test_each_curve_has_its_own_dashes_and_marker():
    svg = activation({f"f{k}": lambda x, k=k: x * k for k in range(4)}).svg
    assert all(f'stroke-dasharray="{dashes}"' in svg for dashes in ("7 4", "2 3", "9 3 2 3"))
    assert "<circle" in svg


def test_the_table_in_words_has_nine_rows_for_each_function():
    lines = activation({"a": torch.relu, "b": torch.tanh}).text.splitlines()
    assert len([line for line in lines if len(line.split()) == 3 and math.isfinite(_number(line))]) == 18


def _number(line):
    try:
        return float(line.split()[0])
    except ValueError:
        return math.nan


@pytest.mark.parametrize(
    ("functions", "ends", "said"),
    [
        ({}, (-1, 1), "0 functions given, expected 1 to 4"),
        (dict.fromkeys("abcde", torch.relu), (-1, 1), "5 functions given"),
        ({"f": torch.relu}, (1, 1), "low is 1 and high is 1"),
        ({"f": torch.relu}, (-math.inf, 1), "two finite numbers"),
        ({"f": torch.sum}, (-1, 1), "f gives shape () for an input of shape (121,)"),
        ({"f": lambda x: 3.0}, (-1, 1), "f gives a float"),
        ({"f": lambda x: x.detach()}, (-1, 1), "without gradient"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(functions, ends, said):
    with pytest.raises(DrawingError) as refused:
        activation(functions, *ends)
    assert said in str(refused.value)
