"""Agreement with torch.masked where it is right, and the list of differences where it is not."""

import warnings
from pathlib import Path

import pytest
import torch
import torch.masked as peer
from torch import tensor

import maskedtensor_ref as ours
from maskedtensor_ref.differences import DIFFERENCES, rendered

T, F = True, False
DATA = tensor([[0.5, 2.0, 3.0], [4.0, 5.0, 6.0]])
MASK = tensor([[T, F, T], [F, F, T]])


def test_the_document_is_the_list():
    document = Path(ours.__file__).parents[1] / "docs" / "masked_differences.md"
    assert document.read_text() == rendered(), (
        "run: python -m maskedtensor_ref.differences > docs/masked_differences.md"
    )


def test_every_difference_has_a_reason():
    assert len({d.call for d in DIFFERENCES}) == len(DIFFERENCES)
    assert all(d.peer and d.here and d.reason for d in DIFFERENCES)


def test_the_public_names_are_those_of_the_peer():
    for name in ("MaskedTensor", "masked_tensor", "as_masked_tensor", "is_masked_tensor"):
        assert hasattr(peer, name) and name in ours.__all__
    for name in (
        "get_data",
        "get_mask",
        "to_tensor",
        "to_dense",
        "to_sparse",
        "to_sparse_csr",
        "is_sparse",
        "is_sparse_coo",
        "is_sparse_csr",
    ):
        assert hasattr(peer.MaskedTensor, name) and hasattr(ours.MaskedTensor, name)


AGREED = {
    "add": lambda m: m + m,
    "mul plain": lambda m: m * DATA,
    "sin": lambda m: m.sin(),
    "exp": torch.exp,
    "neg": lambda m: -m,
    "sum": lambda m: m.sum(),
    "sum 0": lambda m: m.sum(0),
    "mean 1": lambda m: m.mean(1),
    "amax": lambda m: m.amax(0),
    "amin": lambda m: m.amin(1),
    "prod": lambda m: m.prod(1),
    "softmax": lambda m: torch.softmax(m, 1),
    "index": lambda m: m[0],
    "slice": lambda m: m[:, 1:],
    "transpose": lambda m: m.transpose(0, 1),
    "stack": lambda m: torch.stack([m, m]),
    "where": lambda m: torch.where(MASK, m, m),
    "sqrt": torch.sqrt,
    "var": lambda m: m.var(1),
    "std": lambda m: m.std(0),
    "to_sparse": lambda m: m.to_sparse(),
    "to_sparse_csr": lambda m: m.to_sparse_csr(),
    "ge": lambda m: m >= 3,
}


@pytest.mark.parametrize("name", AGREED)
def test_the_two_agree_where_the_peer_is_right(name):
    results = []
    for library in (peer, ours):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = AGREED[name](library.masked_tensor(DATA, MASK))
            data, mask = (t.to_dense() if t.layout != torch.strided else t for t in (out.get_data(), out.get_mask()))
        results.append((torch.where(mask, data, torch.zeros((), dtype=data.dtype)), mask, out.layout))
    (a, k, layout), (b, n, other) = results
    assert torch.equal(k, n) and layout == other
    torch.testing.assert_close(a, b, equal_nan=True)
