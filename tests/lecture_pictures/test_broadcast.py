"""The broadcast expander agrees with torch about shapes, strides and values."""

from itertools import product

import pytest
import torch

from lecture_pictures import DrawingError, broadcast
from lecture_pictures.broadcast import aligned

SHAPES = [(), (1,), (3,), (0,), (1, 3), (2, 1), (2, 3), (2, 1, 3), (2, 2, 1)]
PAIRS = list(product(SHAPES, SHAPES))


def common(a, b):
    try:
        return tuple(torch.broadcast_shapes(a, b))
    except RuntimeError:
        return None


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_common_shape_is_torchs(first, second):
    shape = tuple(column.size for column in aligned(first, second))
    assert shape == common(first, second) if common(first, second) is not None else None in shape


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_every_pair_of_shapes_is_drawn_legibly_whether_it_fits_or_not(first, second, legible):
    a, b = torch.ones(first), torch.full(second, 2.0)
    picture = broadcast(a, b)
    legible(picture)
    assert ("do not fit" in picture.title) == (common(first, second) is None)
    if common(first, second) is not None:
        wide = a.expand(common(first, second))
        assert f"a: strides {a.stride()} → {wide.stride()}; " in picture.text


def test_stored_and_repeated_elements_are_told_apart():
    text = broadcast(torch.tensor([[10], [20]]), torch.arange(2)).text
    assert "a =  10  (10)\n     20  (20)" in text
    assert "b =  0   1\n    (0) (1)" in text
    assert "result =  10   11\n          20   21" in text
    assert "b: strides (1,) → (0, 1); 2 elements held, 4 places filled" in text


def test_the_rule_of_each_dimension_is_said():
    text = broadcast(torch.ones(3, 2, 1), torch.ones(2, 2)).text
    assert "dim -3: 3 and none: the missing one is added, 3 long" in text
    assert "dim -2: 2 and 2: equal, stays 2" in text
    assert "dim -1: 1 and 2: the 1 is stretched to 2" in text
    assert "dim -1: 2 and 3: they differ and neither is 1" in broadcast(torch.ones(3, 2), torch.ones(3)).text


@pytest.mark.parametrize("operation", ["+", "-", "*", "/"])
def test_the_result_is_torchs(operation):
    a, b = torch.tensor([[8.0], [2.0]]), torch.tensor([4.0])
    result = {"+": (12.0, 6.0), "-": (4.0, -2.0), "*": (32.0, 8.0), "/": (2.0, 0.5)}[operation]
    words = broadcast(a, b, operation).text.splitlines()[-2:]
    assert [float(line.split()[-1]) for line in words] == list(result)


@pytest.mark.parametrize(
    ("a", "b", "operation", "said"),
    [
        (torch.ones(2), torch.ones(2), "@", "operation is '@', expected one of +, -, *, /"),
        (torch.ones(9, 1), torch.ones(9), "+", "the result has shape (9, 9), at most 64 elements"),
        (torch.ones(2) > 0, torch.ones(2) > 0, "-", "bool - bool"),
        (torch.ones(65), torch.ones(1), "+", "a has 65 elements"),
        ([1], torch.ones(1), "+", "a is a list"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(a, b, operation, said):
    with pytest.raises(DrawingError) as refused:
        broadcast(a, b, operation)
    assert said in str(refused.value)
