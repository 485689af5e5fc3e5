"""The memory ruler says what the tensor says of itself."""

from itertools import product

import pytest
import torch

from lecture_pictures import DrawingError, memory_ruler
from lecture_pictures.ruler import reach

A = torch.arange(9).view(3, 3)
NAMED = {
    "whole": A,
    "block": A[1:3, 1:3],
    "rows": A[1:3],
    "transposed": A.t(),
    "one row transposed": A[:1].t(),
    "expanded": torch.arange(3.0).expand(2, 3),
    "0-d": torch.tensor(2.5),
    "0-d inside": A[1, 2],
    "empty at the end": A[3:],
    "empty storage": torch.empty(0, 3),
    "wrapped": torch.arange(40).view(5, 8)[::2, 1::3],
    "3-d": torch.arange(24).view(2, 3, 4)[:, ::2],
    "4-d": torch.arange(16).view(2, 2, 2, 2),
    "bool": torch.tensor([True, False]),
    "complex": torch.tensor([1 + 2j, -3.5j]),
    "half": torch.tensor([float("nan"), float("-inf"), -0.0], dtype=torch.float16),
    "large": torch.arange(1000)[3:5],
    "wide numbers": torch.tensor([1234567, -1234567, 2**40]),
    "a parameter": torch.nn.Parameter(torch.ones(2, 2)),
    "bytes of another dtype": torch.arange(2, dtype=torch.int64).view(torch.int16)[1:],
}


@pytest.mark.parametrize("t", NAMED.values(), ids=NAMED.keys())
def test_every_kind_of_strided_tensor_is_drawn_legibly(t, legible):
    legible(memory_ruler(t))


def test_the_verdict_is_the_tensors_own(views, seen):
    for t in [*NAMED.values(), *views]:
        picture = memory_ruler(t)
        assert f"contiguous: {'yes' if t.is_contiguous() else 'no'}" in picture.text
        assert ("CONTIGUOUS" in seen(picture)) == t.is_contiguous()
        assert ("NOT CONTIGUOUS" in seen(picture)) == (not t.is_contiguous())


def test_an_element_lies_at_offset_plus_index_times_stride(views):
    for t in [*NAMED.values(), *views]:
        r = reach(t)
        assert list(r.address) == list(product(*map(range, t.shape)))
        for index, cell in r.address.items():
            assert cell == t.storage_offset() + sum(i * s for i, s in zip(index, t.stride(), strict=True))
            assert torch.equal(t.as_strided((), (), cell), t[index]) or t[index].isnan()


def test_the_first_gap_is_where_the_next_element_is_not_in_the_next_cell():
    assert "after [0,1] in cell 5 comes [1,0] in cell 7; contiguous would be cell 6" in memory_ruler(A[1:3, 1:3]).text


def test_bytes_seen_and_bytes_kept_are_told_apart():
    text = memory_ruler(A[1:3, 1:3], "b").text
    assert "b: 4 elements × 8 = 32 bytes of int64" in text
    assert "storage: 9 cells = 72 bytes kept in memory" in text
    assert "offset 4 (32 bytes in)" in text


def test_cells_between_are_skipped_and_cells_around_are_outside():
    text = memory_ruler(A[1:3, 1:3], "b").text
    assert "cells 0 to 3: outside: 0 1 2 3" in text
    assert "cell 6: skipped: 6" in text
    assert "cell 7: b[1,0]: 7" in text
    assert "cells 5 to 8: outside: 5 6 7 8" in memory_ruler(A[:2, :2]).text


def test_a_cell_reached_by_several_indices_names_them_all(seen):
    picture = memory_ruler(torch.arange(3).expand(2, 3), "e")
    assert "cell 1: e[0,1] and e[1,1]: 1" in picture.text
    assert seen(picture).count("×2") == 3
    assert "stride[0] = 0 (stays)" in seen(picture)
    said = "×n: n indices reach the cell; the first one is written"
    assert said in seen(picture) and said not in seen(memory_ruler(A))


def test_every_cell_of_a_small_storage_is_drawn_with_its_number(views, seen):
    for t in views:
        cells = t.untyped_storage().nbytes() // t.element_size()
        words = seen(memory_ruler(t))
        assert all(words.count(str(cell)) >= 1 for cell in range(cells))


def test_the_rest_of_a_large_storage_is_counted():
    assert "and 980 more cells that t does not reach" in memory_ruler(torch.arange(1000)[3:5]).text


def test_the_tensor_is_left_alone():
    t = torch.arange(4.0, requires_grad=True)
    memory_ruler(t)
    assert t.requires_grad and t._version == 0 and t.tolist() == [0, 1, 2, 3]


def test_the_same_tensor_gives_the_same_text_every_time():
    assert memory_ruler(A.clone()) == memory_ruler(A.clone())


def test_a_name_with_markup_is_written_out(legible):
    picture = memory_ruler(A, "a<b>&\x00")
    legible(picture)
    assert "a<b>&?" in picture.title and "<b>" not in picture.svg


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1, 2], "t is a list, expected a torch.Tensor"),
        (torch.eye(2).to_sparse(), "torch.sparse_coo, expected torch.strided"),
        (torch.empty(2, device="meta"), "meta device and has no values"),
        (torch.tensor([1j]).conj(), "resolve_conj()"),
        (torch.arange(200), "t has 200 elements, at most 96 are drawn"),
        (torch.arange(200)[150:152], "t reaches cell 151 of its storage"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(given, said):
    with pytest.raises(DrawingError) as refused:
        memory_ruler(given)
    assert said in str(refused.value)
