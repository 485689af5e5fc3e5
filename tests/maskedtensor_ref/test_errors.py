"""Wrong use: the right exception, and a message that says what was given, what was expected and the cure."""

import re
import subprocess
import sys

import pytest
import torch
from torch import tensor

from maskedtensor_ref import as_masked_tensor, is_masked_tensor, mask_policy, masked_tensor
from maskedtensor_ref.table import RULES, full_name

T, F = True, False
DATA, MASK = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bool)
COO = {"check_invariants": True}


def coo(places, size=(2, 3), values=None):
    places = tensor(places).t()
    values = torch.ones(places.shape[1]) if values is None else values
    return torch.sparse_coo_tensor(places, values, size, **COO)


CONSTRUCTIONS = {
    "data is a list": ([1.0], MASK, TypeError, "data must be a Tensor, got list: use torch.tensor"),
    "mask is a list": (DATA, [T], TypeError, "mask must be a Tensor, got list"),
    "data is masked": (masked_tensor(DATA, MASK), MASK, TypeError, "and not a MaskedTensor: take its get_data"),
    "mask is masked": (DATA, masked_tensor(MASK, MASK), TypeError, "and not a MaskedTensor"),
    "mask is uint8": (DATA, MASK.byte(), TypeError, r"mask must have dtype bool, got torch.uint8: use mask.bool\(\)"),
    "mask is smaller": (DATA, MASK[:, :2], ValueError, r"data has shape \(2, 3\), mask \(2, 2\): mask.expand_as"),
    "mask has another rank": (
        DATA,
        MASK[0],
        ValueError,
        r"data.dim\(\) must equal mask.dim\(\). data has shape \(2, 3\), mask \(3,\)",
    ),
    "mask is sparse": (
        DATA,
        MASK.to_sparse_coo(),
        TypeError,
        "data is torch.strided, mask is torch.sparse_coo: convert",
    ),
    "data is sparse": (DATA.to_sparse_coo(), MASK, TypeError, "data and mask must have the same layout"),
    "mask is elsewhere": (DATA, MASK.to("meta"), ValueError, "data is on cpu, mask on meta: use mask.to"),
    "mask stores more": (
        coo([[0, 0], [1, 1]]),
        coo([[0, 0], [1, 2]], values=tensor([T, T])),
        ValueError,
        r"mask stores an element at \(1, 2\) where data stores none.*sparse_mask",
    ),
}


@pytest.mark.parametrize("make", [masked_tensor, as_masked_tensor])
@pytest.mark.parametrize("case", CONSTRUCTIONS)
def test_construction(case, make):
    data, mask, error, message = CONSTRUCTIONS[case]
    with pytest.raises(error, match=message):
        make(data, mask)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_layouts_that_are_not_supported_are_named():
    square = torch.eye(4)
    for layout, options in ((torch.sparse_csc, {}), (torch.sparse_bsr, {"blocksize": (2, 2)})):
        data = square.to_sparse(layout=layout, **options)
        with pytest.raises(TypeError, match=re.escape(str(layout))):
            masked_tensor(
                data, data.bool() if layout == torch.sparse_csc else (square != 0).to_sparse(layout=layout, **options)
            )


def test_integers_have_no_gradients():
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        masked_tensor(DATA.long(), MASK, requires_grad=True)


@pytest.fixture
def m():
    return masked_tensor(torch.arange(6.0).reshape(2, 3), tensor([[T, T, T], [T, F, T]]))


CALLS = {
    "an unknown function": (
        lambda m: torch.linalg.lstsq(m, m),
        NotImplementedError,
        "no rule for torch.linalg.lstsq.*to_tensor",
    ),
    "a method": (lambda m: m.multinomial(1), NotImplementedError, "no rule for torch.Tensor.multinomial"),
    "resizing": (lambda m: m.resize_(3), NotImplementedError, "no rule for torch.Tensor.resize_"),
    "transposing in place": (lambda m: m.t_(), NotImplementedError, "no rule for torch.Tensor.t_"),
    "a layer": (lambda m: torch.nn.LSTM(3, 2)(m), NotImplementedError, "no rule for"),
    "out": (
        lambda m: torch.add(m, 1, out=torch.ones(2, 3)),
        NotImplementedError,
        "add got out=, which MaskedTensor refuses",
    ),
    "out of a reduction": (lambda m: torch.sum(m, 0, out=torch.ones(3)), NotImplementedError, "out="),
    "a masked index": (lambda m: m[m > 1], TypeError, "__getitem__ got a MaskedTensor as an index.*to_tensor"),
    "a masked index of a plain tensor": (lambda m: DATA[m > 1], TypeError, "MaskedTensor as an index"),
    "a masked index in an assignment": (lambda m: m.__setitem__(m > 1, 0), TypeError, "MaskedTensor as index"),
    "masks that differ": (
        lambda m: m + m.flip(1).flip(0),
        ValueError,
        r"Input masks must match.*add first differ at \(0, 1\)",
    ),
    "CSR of three dimensions": (
        lambda m: m[None].to_sparse_csr(),
        ValueError,
        "Only 2D tensors can be converted to the SparseCsr layout",
    ),
    "contiguous of sparse": (
        lambda m: m.to_sparse_coo().contiguous(),
        ValueError,
        "MaskedTensors with sparse data do not have is_contiguous, and contiguous neither",
    ),
    "is_contiguous of sparse": (lambda m: m.to_sparse_csr().is_contiguous(), ValueError, "do not have is_contiguous"),
    "values of strided": (lambda m: m.values(), RuntimeError, "expects a sparse layout.*to_sparse_coo"),
    "assignment to sparse": (lambda m: m.to_sparse_coo().__setitem__(0, 1.0), NotImplementedError, "to_dense"),
    "a dimension too far": (lambda m: m.sum(2), IndexError, r"range of \[-2, 1\], but got 2"),
    "a dimension twice": (lambda m: m.sum((0, -2)), RuntimeError, "twice"),
    "an order of complex numbers": (lambda m: m.cfloat().amax(), RuntimeError, r"complex64 has no order.*take \.abs"),
    "mean of integers": (lambda m: m.long().mean(), RuntimeError, "Got: torch.int64; give dtype"),
    "an in-place cast": (lambda m: m.long().add_(0.5), RuntimeError, "can't be cast to the desired output type"),
    "an in-place shape": (lambda m: m[0].add_(torch.ones(2, 3)), RuntimeError, "does not fit into the shape"),
    "a reduction of a loss": (
        lambda m: torch.nn.functional.mse_loss(m, DATA, reduction="most"),
        ValueError,
        "'most' is not a valid value",
    ),
    "an interpolation": (
        lambda m: m.quantile(0.5, interpolation="nearby"),
        ValueError,
        "'nearby': expected one of linear",
    ),
    "a masked option": (
        lambda m: torch.nn.functional.softmax(m, m),
        TypeError,
        r"softmax got a MaskedTensor where it takes none \(.*'dim'.*must be int, not MaskedTensor",
    ),
    "a masked operand beside a plain one": (
        lambda m: torch.quantile(DATA, m[0, 0]),
        TypeError,
        r"quantile got a MaskedTensor where it takes none \(of its other operands\)",
    ),
    "a masked default": (lambda m: m.to_tensor(m), TypeError, "give a number"),
    "the value of nothing": (lambda m: m[1, 1].item(), ValueError, "unspecified"),
    "the value of many": (lambda m: m.item(), RuntimeError, "6 elements"),
    "length of a number": (lambda m: len(m[0, 0]), TypeError, "0-d"),
    "k too large": (lambda m: m.topk(9), RuntimeError, "k is 9"),
    "softmax of integers": (
        lambda m: m.long().softmax(0),
        RuntimeError,
        "softmax expects a floating dtype, got torch.int64",
    ),
    "softmax over an empty dimension": (
        lambda m: masked_tensor(torch.ones(2, 0), torch.ones(2, 0, dtype=torch.bool)).softmax(2),
        IndexError,
        "range",
    ),
    "another policy": (
        lambda m: mask_policy("or").__enter__(),
        ValueError,
        "'or': expected one of 'match', 'intersection', 'union'",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call(case, m):
    call, error, message = CALLS[case]
    before = m.tolist()
    with pytest.raises(error, match=message):
        call(m)
    assert m.tolist() == before


def test_softmax_over_an_empty_dimension_is_empty():
    assert masked_tensor(torch.ones(2, 0), torch.ones(2, 0, dtype=torch.bool)).softmax(1).shape == (2, 0)


def test_every_function_of_torch_has_a_rule_or_is_refused_by_name(m):
    refused = 0
    with torch.no_grad():
        for functions in torch.overrides.get_overridable_functions().values():
            for f in functions:
                if f in RULES or full_name(f).endswith("_"):
                    continue
                try:
                    f(m)
                except NotImplementedError as e:
                    refused += "no rule for" in str(e)
                except (TypeError, RuntimeError, ValueError, AttributeError, IndexError, AssertionError):
                    pass  # arguments are missing: torch's parser was first
    assert refused > 20


def test_another_type_with_its_own_protocol_is_asked(m):
    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "other"

    assert torch.add(m, Other()) == "other"


def test_a_subclass_stays_itself(m):
    class Mine(type(m)):
        pass

    out = Mine(DATA, MASK) + 1
    assert type(out) is Mine and is_masked_tensor(out) and not is_masked_tensor(DATA)


def test_importing_is_light():
    code = (
        "import torch, sys; had = set(sys.modules); import maskedtensor_ref; "
        "print([n for n in set(sys.modules) - had if not n.startswith('maskedtensor_ref')])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_scatter_with_a_reduction_is_refused_rather_than_read_poison(m):
    with pytest.raises(NotImplementedError, match="use scatter_reduce"):
        m.scatter(1, tensor([[1], [1]]), torch.ones(2, 1), reduce="add")
    out = m.scatter_reduce(1, tensor([[1], [1]]), torch.ones(2, 1), reduce="sum")
    assert out.tolist() == [[0, 2, 2], [3, 1, 5]]
