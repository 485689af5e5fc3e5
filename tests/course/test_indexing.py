"""The references of lecture 02 against what they are references of: torch and Python's integers."""

import math
from pathlib import Path

import pytest
import torch

from autograder import notebooks
from autograder.exercises import load_lecture

LECTURE = load_lecture("02_indexing", Path(__file__).parents[2] / "solutions")
SEEDS = range(1, 41)


def cases(id):
    return [case for seed in SEEDS for case in LECTURE[id].all_cases(seed)]


def test_result_shape_is_the_shape_that_torch_gives():
    for shape, index in cases("result_shape"):
        assert LECTURE["result_shape"](shape, index) == tuple(torch.empty(shape)[index].shape), (shape, index)


def test_the_indices_of_result_shape_tell_torch_from_numpy():
    apart = 0
    for shape, index in cases("result_shape"):
        apart += torch.empty(shape)[index].shape != torch.empty(shape).numpy()[index].shape
    assert apart >= len(SEEDS)


def test_without_a_number_torch_and_numpy_agree_on_shapes():
    for shape, index in cases("result_shape"):
        if not any(isinstance(item, int) for item in index):
            assert torch.empty(shape)[index].shape == torch.empty(shape).numpy()[index].shape


def test_perfect_squares_are_those_of_integer_roots():
    for (x,) in cases("perfect_squares"):
        expected = [v for v in x.flatten().tolist() if v >= 0 and math.isqrt(v) ** 2 == v]
        assert LECTURE["perfect_squares"](x).tolist() == expected


def test_the_neighbours_of_a_square_look_like_squares_in_float32_on_every_processor():
    """They are one float32. Close roots of different numbers would be rounded in one way here and in another there."""
    x = torch.tensor([30000**2, 30000**2 + 1, 30000**2 - 1])
    assert len(set(x.float().tolist())) == 1 and (torch.sqrt(x) % 1 == 0).all()
    assert any(torch.equal(case[0], x) for case in LECTURE["perfect_squares"].visible_cases())
    cells = notebooks.read(notebooks.stored_path(LECTURE)).cells
    (told,) = (cell.outputs[0].text for cell in cells if cell.source.startswith("n = torch.tensor([30000**2,"))
    assert "whole?  tensor([True, True, True])" in told


def test_a_square_root_in_float64_is_no_test_even_if_it_is_rounded_first():
    n = 2**27 + 1
    x = torch.tensor([n * n + 1])
    assert (x.double().sqrt() % 1 == 0).all() and LECTURE["perfect_squares"](x).numel() == 0


def test_counts_and_one_hot_rows_are_those_of_torch():
    for values, bins in cases("histogram"):
        assert torch.equal(LECTURE["histogram"](values, bins), torch.bincount(values, minlength=bins))
    for labels, classes in cases("one_hot"):
        expected = torch.nn.functional.one_hot(labels, classes).float()
        assert torch.equal(LECTURE["one_hot"](labels, classes), expected)


def test_compact_is_the_mask_as_an_index():
    for x, mask in cases("compact"):
        torch.testing.assert_close(LECTURE["compact"](x, mask), x[mask], equal_nan=True)


@pytest.mark.parametrize("x", [torch.arange(6.0).view(2, 3), torch.arange(6.0).view(3, 2).t()])
def test_a_grid_that_leaves_the_tensor_leaves_it_as_it_was(x):
    before = x.clone()
    with pytest.raises(IndexError):
        LECTURE["set_grid"](x, [0, 1], [0, 5], -1)
    assert torch.equal(x, before)
