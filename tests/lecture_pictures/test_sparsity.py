"""The three layouts hold what torch's own sparse tensors hold, and cost what they cost."""

import warnings

import pytest
import torch

from lecture_pictures import DrawingError, sparse_layouts
from lecture_pictures.sparsity import stored


def coo(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=True)


def csr(matrix):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "beta state", once a process
        return matrix.to_sparse_csr()


MATRICES = {
    "diagonal": torch.eye(3, 4),
    "all zero": torch.zeros(2, 3),
    "full": torch.arange(1, 7).view(2, 3),
    "empty rows at both ends": torch.tensor([[0.0, 0], [1, 2], [0, 0]]),
    "no rows": torch.zeros(0, 3),
    "no columns": torch.zeros(3, 0),
    "bools": torch.tensor([[True, False]]),
    "NaN is stored": torch.tensor([[float("nan"), 0.0]]),
    "transposed": torch.arange(6.0).view(2, 3).t(),
    "wide": torch.arange(64.0).view(1, 64),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
def test_every_matrix_is_drawn_legibly_and_alike_in_every_layout(name, layout, legible):
    matrix = MATRICES[name]
    given = {"strided": lambda m: m, "coo": torch.Tensor.to_sparse_coo, "csr": csr}[layout](matrix)
    picture = sparse_layouts(given)
    legible(picture)
    assert picture == sparse_layouts(matrix)


@pytest.mark.parametrize("name", MATRICES)
def test_the_arrays_and_their_bytes_are_torchs(name):
    matrix = MATRICES[name]
    s = stored(matrix)
    _, ours, rows = s.layouts
    theirs, compressed = matrix.to_sparse_coo().coalesce(), csr(matrix)
    assert [list(map(int, ours.arrays[k])) for k in ("row", "column")] == theirs.indices().tolist()
    assert list(map(int, rows.arrays["row starts"])) == compressed.crow_indices().tolist()
    assert list(map(int, rows.arrays["column"])) == compressed.col_indices().tolist()
    assert ours.bytes == theirs.indices().nbytes + theirs.values().nbytes
    assert rows.bytes == compressed.crow_indices().nbytes + compressed.col_indices().nbytes + compressed.values().nbytes
    assert s.layouts[0].bytes == matrix.numel() * matrix.element_size()


def test_an_array_that_ends_on_a_line_is_not_named_on_the_next():
    assert sparse_layouts(MATRICES["wide"]).svg.count(">row starts<") == 1


def test_a_stored_zero_is_told_from_a_place_that_is_not_stored(legible):
    picture = sparse_layouts(coo([[0, 1], [1, 0]], [0.0, 2.0], (2, 2)))
    legible(picture)
    assert "[0,1]: a stored zero" in picture.text and "missing" not in picture.text
    assert "m =    .   0.0\n     2.0     ." in picture.text


def test_duplicates_are_shown_in_coo_and_summed_in_csr(legible):
    picture = sparse_layouts(coo([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 5.0], (2, 2)))
    legible(picture)
    assert "[0,1]: stored more than once" in picture.text
    assert "COO value: 1.0 2.0 5.0" in picture.text and "CSR value: 3.0 5.0" in picture.text


def test_drawing_never_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparse_layouts(torch.eye(2))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[1]], "m is a list"),
        (torch.zeros(3), "m is (3,), expected a matrix"),
        (torch.zeros(9, 9), "81 cells"),
        (torch.zeros(2, 2, device="meta"), "on meta"),
        (coo([[0]], [[1.0, 2.0]], (2, 2)), "single numbers as entries"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(given, said):
    with pytest.raises(DrawingError) as refused:
        sparse_layouts(given)
    assert said in str(refused.value)
