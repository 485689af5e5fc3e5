"""The stride explorer never reads outside its storage."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lecture_pictures import DrawingError, stride_view
from lecture_pictures.strides import Strided, clipped, limits, stride_states

CELLS = 12
numbers = st.integers(-3, 30)
wishes = st.integers(1, 3).flatmap(
    lambda n: st.builds(Strided, st.tuples(*[numbers] * n), st.tuples(*[numbers] * n), numbers)
)


def inside(view):
    return view.last_cell is None or 0 <= view.offset <= view.last_cell < CELLS


@given(wishes)
def test_a_clipped_view_stays_inside_the_storage(wish):
    view = clipped(CELLS, wish)
    assert inside(view) and min(view.size) >= 1 and min((*view.stride, view.offset)) >= 0


@given(wishes)
def test_a_legal_view_is_not_clipped(wish):
    view = clipped(CELLS, wish)
    assert clipped(CELLS, view) == view


@given(wishes)
def test_each_limit_is_legal_and_one_more_is_not(wish):
    view = clipped(CELLS, wish)
    most = limits(CELLS, view)

    def with_one(part, d, value):
        numbers = list(getattr(view, part))
        numbers[d] = value
        return Strided(**({"size": view.size, "stride": view.stride, "offset": view.offset} | {part: tuple(numbers)}))

    assert inside(Strided(view.size, view.stride, most.offset))
    assert not inside(Strided(view.size, view.stride, most.offset + 1))
    for d in range(len(view.size)):
        assert inside(with_one("size", d, most.size[d])) and inside(with_one("stride", d, most.stride[d]))
        if view.stride[d]:
            assert not inside(with_one("size", d, most.size[d] + 1))
        if view.size[d] > 1:
            assert not inside(with_one("stride", d, most.stride[d] + 1))


@given(wishes)
def test_what_is_drawn_is_what_torch_reads(wish):
    view = clipped(CELLS, wish)
    if torch.Size(view.size).numel() > 96:
        return
    picture = stride_view(view.size, view.stride, view.offset, CELLS)
    t = torch.arange(CELLS).as_strided(view.size, view.stride, view.offset)
    assert f"contiguous: {'yes' if t.is_contiguous() else 'no'}" in picture.text
    for cell in set(t.flatten().tolist()):
        assert f"cell {cell}: v[" in picture.text


def test_the_call_that_makes_the_view_is_shown(seen):
    picture = stride_view((2, 2), (8, 2), 1)
    assert "v = torch.arange(12).as_strided((2, 2), (8, 2), 1)" in picture.text.splitlines()
    assert "v = torch.arange(12).as_strided((2, 2), (8, 2), 1)" in seen(picture)


@pytest.mark.parametrize(
    "view", [((3, 4), (4, 1), 0), ((12,), (1,), 0), ((2, 2, 3), (6, 3, 1), 0), ((), (), 11), ((0, 2), (9, 9), 12)]
)
def test_views_of_every_rank_are_legible(view, legible):
    legible(stride_view(*view))


def test_the_fixed_states_are_legible_one_by_one(legible):
    assert stride_states().text.count("Stride explorer") == 4


@pytest.mark.parametrize(
    ("size", "stride", "offset", "cells", "said"),
    [
        ((3, 4), (4, 1), 1, 12, "would read cell 12, the storage has 12 cells, 0 to 11"),
        ((2,), (-1,), 1, 12, "no negative number"),
        ((2, 2), (1,), 0, 12, "one for each dimension"),
        ((0,), (1,), 13, 12, "offset 13 lies outside"),
        ((1,), (1,), 0, 100, "cells is 100, expected 1 to 48"),
    ],
)
def test_an_illegal_view_is_refused_with_a_way_out(size, stride, offset, cells, said):
    with pytest.raises(DrawingError) as refused:
        stride_view(size, stride, offset, cells)
    assert said in str(refused.value)
