"""The index overlay: its badge is whether storage is shared, its cells are what torch takes."""

import pytest
import torch

from lecture_pictures import DrawingError, index_overlay
from lecture_pictures.indexing import overlay, twin_of

A = torch.arange(12).view(4, 3)
H = torch.arange(100).view(10, 10)
C = torch.arange(24).view(2, 3, 4)
CASES = {
    "slices": (A, (slice(1, 3), slice(1, 2)), "VIEW"),
    "steps": (H, (slice(None, None, 2), slice(1, 5, 3)), "VIEW"),
    "list and slice": (H, ([0, 1, 3, 4, 7], slice(1, 5, 3)), "COPY"),
    "row mask": (H, H[:, 0] == 20, "COPY"),
    "full mask": (A, A % 7 == 0, "COPY"),
    "a number": (A, 2, "VIEW"),
    "a negative number": (A, -1, "VIEW"),
    "a list of one": (A, [2], "COPY"),
    "one element": (A, (1, 2), "VIEW"),
    "ellipsis": (C, (..., 0), "VIEW"),
    "None": (torch.arange(3), (None, slice(None)), "VIEW"),
    "a tensor of numbers": (A, torch.tensor([[0, 1], [3, 3]]), "COPY"),
    "a 0-d tensor": (A, torch.tensor(1), "VIEW"),
    "number, slice, list": (C, (0, slice(None), [0, 1]), "COPY"),
    "duplicates": (torch.arange(3), [1, 1, 1], "COPY"),
    "empty slice": (A, slice(2, 2), "VIEW"),
    "empty list": (A, [], "COPY"),
    "empty tensor": (torch.empty(0, 3), slice(0, 1), "EMPTY"),
    "0-d": (torch.tensor(3.5), (), "VIEW"),
    "0-d with ellipsis": (torch.tensor(3.5), ..., "VIEW"),
    "a view indexed again": (A.t()[1:], (slice(None), slice(None, None, 2)), "VIEW"),
    "True": (torch.arange(2), True, "COPY"),
    "range": (torch.arange(5), range(0, 5, 2), "COPY"),
}
NAMES = list(CASES)


@pytest.mark.parametrize("name", NAMES)
def test_the_badge_is_whether_storage_is_shared(name, seen):
    a, index, badge = CASES[name]
    picture = index_overlay(a, index)
    assert badge in seen(picture) and f"{badge}: b " in picture.text
    if badge != "EMPTY":
        shared = a[index].untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
        assert (badge == "VIEW") == shared


@pytest.mark.parametrize("name", NAMES)
def test_every_overlay_is_legible(name, legible):
    a, index, _ = CASES[name]
    legible(index_overlay(a, index, write=77 if a[index].numel() else None))


@pytest.mark.parametrize("name", NAMES)
def test_each_element_of_the_result_comes_from_where_it_says(name):
    a, index, _ = CASES[name]
    o = overlay(a, index)
    assert len(o.source) == a[index].numel()
    for i, j in o.source.items():
        assert a[index][i] == a[j]


@pytest.mark.parametrize("name", [n for n in NAMES if CASES[n][0][CASES[n][1]].numel()])
def test_a_write_shows_in_the_tensor_exactly_if_it_does_in_torch(name):
    a, index, _ = CASES[name]
    before, twin = a.clone(), a.clone()
    result = twin[index]
    result[(0,) * result.dim()] = 77
    text = index_overlay(a, index, write=77).text
    assert ("changes a as well" in text) == (not torch.equal(twin, before))
    assert ("leaves a as it was" in text) == torch.equal(twin, before)


def test_writing_the_value_that_is_there_is_not_called_a_copy():
    assert "held that value already" in index_overlay(A, 0, write=0).text


def test_the_tensor_that_was_given_is_never_written_to():
    a = A.clone()
    index_overlay(a, slice(0, 2), write=77)
    assert torch.equal(a, A) and a._version == 0


def test_a_twin_keeps_the_layout(views):
    for t in views:
        twin = twin_of(t)
        assert torch.equal(twin, t)
        assert (twin.stride(), twin.storage_offset()) == (t.stride(), t.storage_offset())


def test_taken_elements_are_bracketed_in_the_words():
    assert "a =   0    1    2\n      3  [ 4]   5\n      6  [ 7]   8\n" in index_overlay(A, CASES["slices"][1]).text


def test_the_shape_is_the_one_of_torch_where_numpy_differs():
    assert "shape (2, 3, 4) → (3, 2)" in index_overlay(C, (0, slice(None), [0, 1])).text


@pytest.mark.parametrize(
    ("a", "index", "write", "said"),
    [
        (A, 9, None, "a of shape (4, 3) does not take the index [9]"),
        (A, slice(None, None, -1), None, "step must be greater than zero"),
        (A, "row", None, "does not take the index [row]"),
        (A, slice(2, 2), 1, "b has no element to write to"),
        (A, 0, "x", "write is 'x', expected a number that fits torch.int64"),
        (torch.zeros(11, 11), 0, None, "a has 121 elements, at most 120 are drawn"),
        (torch.zeros(1, 1, 1, 1), 0, None, "a has 4 dimensions, at most 3 are drawn"),
        (torch.arange(100), torch.zeros(200, dtype=torch.int64), None, "has 200 elements"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(a, index, write, said):
    with pytest.raises(DrawingError) as refused:
        index_overlay(a, index, write)
    assert said in str(refused.value)
