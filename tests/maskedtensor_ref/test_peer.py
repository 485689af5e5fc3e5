"""What PyTorch's own tests demand of torch.masked, demanded of this package."""

import itertools
import warnings

import pytest
import torch
from torch import tensor
from torch.masked._ops import _combine_input_and_mask
from torch.masked.maskedtensor.binary import BINARY_NAMES, NATIVE_BINARY_FNS, NATIVE_INPLACE_BINARY_FNS
from torch.masked.maskedtensor.reductions import REDUCE_NAMES
from torch.masked.maskedtensor.unary import NATIVE_INPLACE_UNARY_FNS, NATIVE_UNARY_FNS, UNARY_NAMES
from torch.testing import make_tensor

from maskedtensor_ref import MaskedTensor, as_masked_tensor, masked_tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

T, F = True, False
LAYOUTS = {"strided": lambda m: m, "coo": MaskedTensor.to_sparse_coo, "csr": MaskedTensor.to_sparse_csr}
SHAPES = (), (2,), (3, 5), (3, 2, 1, 2)


def in_order(functions):
    """By name: the peer collects them in sets."""
    return sorted(functions, key=lambda f: f.__name__)


def assert_specified(m, t, tolerance=1e-5):
    """The specified elements of m are those of t."""
    mask, data = m.to_dense().get_mask(), m.to_dense().get_data().detach()
    t = t.detach().to_dense() if t.layout != torch.strided else t.detach()
    assert data.dtype == t.dtype and data.shape == t.shape
    torch.testing.assert_close(
        data.masked_fill(~mask, 0), t.masked_fill(~mask, 0), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def assert_masked(m, data, mask):
    assert m.to_dense().get_mask().equal(tensor(mask))
    assert_specified(m, tensor(data, dtype=m.dtype))


def arguments(name):
    """Two operands inside the domain of an operation, and its options."""
    name, options = name.rstrip("_"), {}
    a, b = torch.randn(10, 10), torch.randn(10, 10)
    if name in ("log", "log10", "log1p", "log2", "sqrt"):
        a = a.abs()
    if name in ("rsqrt", "acosh", "arccosh"):
        a = a.abs() + 1
    if name in ("acos", "arccos", "asin", "arcsin", "logit", "atanh", "arctanh", "erfinv"):
        a = a.abs().mul(0.5).clamp(0, 1)
    if name.startswith("bitwise"):
        a, b = a.mul(3).abs().to(torch.int64), b.abs().to(torch.int64)
    if name in ("clamp", "clip"):
        options = {"min": -0.5, "max": 0.5}
    return a, 2.0 if name == "pow" else b, options


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", in_order(NATIVE_UNARY_FNS + NATIVE_INPLACE_UNARY_FNS), ids=lambda f: f.__name__)
def test_unary(f, layout):
    a, b, options = arguments(f.__name__)
    rest = (b,) if isinstance(b, float) else ()
    m = LAYOUTS[layout](masked_tensor(a, torch.rand(10, 10) > 0.5))
    out = f(m, *rest, **options)
    assert_specified(out, f(a.clone(), *rest, **options))
    assert (out is m) == f.__name__.endswith("_")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("second", ["masked", "plain"])
@pytest.mark.parametrize("f", in_order(NATIVE_BINARY_FNS + NATIVE_INPLACE_BINARY_FNS), ids=lambda f: f.__name__)
def test_binary(f, second, layout):
    a, b, _ = arguments(f.__name__)
    mask = torch.rand(10, 10) > 0.5
    m, other = LAYOUTS[layout](masked_tensor(a, mask)), LAYOUTS[layout](masked_tensor(b, mask))
    out = f(m, other if second == "masked" else b)
    assert_specified(out, f(a.clone(), b))
    assert (out is m) == f.__name__.endswith("_")


@pytest.mark.parametrize("name", ["add", "add_"])
def test_masks_must_match(name):
    a, b = (masked_tensor(torch.randn(10), tensor([T, k] * 5)) for k in (T, F))
    with pytest.raises(ValueError, match="Input masks must match"):
        getattr(torch.ops.aten, name)(a, b)


ENTRIES = [op for op in op_db if op.name in {*UNARY_NAMES, *BINARY_NAMES, *REDUCE_NAMES}]
DTYPES = torch.float32, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int64, torch.bool, torch.complex64


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", ENTRIES, ids=lambda op: f"{op.name}.{op.variant_test_name}".rstrip("."))
def test_the_operators_of_the_peer_in_every_dtype(op, layout):
    for dtype in DTYPES:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        tolerance = 2e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-4
        for sample in itertools.islice(op.sample_inputs("cpu", dtype), 12):
            x, mask = sample.input, make_tensor(sample.input.shape, device="cpu", dtype=torch.bool)
            if (layout == "csr" and x.dim() != 2) or x.numel() == 0:
                continue
            m = LAYOUTS[layout](masked_tensor(x, mask))
            if op.name in REDUCE_NAMES:
                reduce(op, m, x, mask, tolerance)
            elif not sample.args or (torch.is_tensor(sample.args[0]) and sample.args[0].shape == x.shape):
                rest = [LAYOUTS[layout](masked_tensor(a, mask)) if torch.is_tensor(a) else a for a in sample.args]
                expected = op(x, *sample.args, **sample.kwargs)
                assert_specified(op(m, *rest, **sample.kwargs), expected, tolerance)
                assert_specified(op(m, *sample.args, **sample.kwargs), expected, tolerance)


def reduce(op, m, x, mask, tolerance):
    """A full reduction is that of the specified elements; one along a dimension reads the missing as the identity."""
    if not mask.any() or not mask.dim():
        return
    expected = op(x[mask])
    if op.name.startswith("arg"):
        expected = mask.flatten().nonzero()[expected].reshape(())
    assert_specified(op(m), expected, tolerance)
    if op.name in ("sum", "prod") or (op.name in ("amax", "amin") and x.dtype != torch.bool):
        assert_specified(op(m, -1), op(_combine_input_and_mask(op.op, x, mask), -1), tolerance)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("there", ["to_sparse_coo", "to_sparse_csr"])
def test_conversions_and_their_gradients(there, shape):
    if there == "to_sparse_csr" and len(shape) != 2:
        pytest.skip("CSR is two-dimensional")
    data, mask = (
        make_tensor(shape, device="cpu", dtype=torch.float32),
        make_tensor(shape, device="cpu", dtype=torch.bool),
    )
    m = masked_tensor(data, mask, requires_grad=True)
    places = getattr(mask, there)()
    s = masked_tensor(data.sparse_mask(places), places, requires_grad=True)
    for leaf, out in ((m, getattr(m, there)().to_dense()), (s, s.to_dense())):
        assert_specified(out, data)
        out.sum().backward()
        assert leaf.grad.layout == leaf.layout
        assert_specified(leaf.grad, torch.ones(shape))


@pytest.mark.parametrize(
    ("data", "mask", "message"),
    [
        (([0, 1, 1], [2, 0, 2]), ([0, 1, 1], [2, 1, 2]), "both sparse COO tensors but do not have the same indices"),
        (([0, 2, 3], [0, 1, 2]), ([0, 1, 3], [0, 1, 2]), "both sparse CSR tensors but do not share either crow or col"),
        (([0, 1, 3], [0, 1, 2]), ([0, 2, 3], [1, 2, 3]), "both sparse CSR tensors but do not share either crow or col"),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_indices_must_agree(data, mask, message):
    def sparse(indices, values):
        if "COO" in message:
            return torch.sparse_coo_tensor(tensor(indices), values, (2, 4), check_invariants=True)
        return torch.sparse_csr_tensor(*map(tensor, indices), values, (2, 4), check_invariants=True)

    with pytest.raises(ValueError, match=message):
        masked_tensor(sparse(data, torch.ones(3)), sparse(mask, tensor([T, T, T])))


def test_contiguous():
    data = torch.as_strided(torch.randn(3, 3), (2, 2), (1, 2))
    m = masked_tensor(data, data > 0)
    assert not as_masked_tensor(data.t(), (data > 0).t()).t().contiguous().t().is_contiguous()
    assert m.contiguous().is_contiguous() and m.contiguous().get_data().is_contiguous()
    for call in ("is_contiguous", "contiguous"):
        with pytest.raises(ValueError, match="MaskedTensors with sparse data do not have is_contiguous"):
            getattr(m.to_sparse_coo(), call)()


D = [[0.0, 1, 2, 6], [3, 4, 5, 7]]
M = [[T, F, F, T], [F, T, F, T]]


@pytest.mark.parametrize(
    ("name", "total", "columns", "gradient"),
    [
        ("sum", 17, [0, 4, 0, 13], [[1, 0, 0, 1], [0, 1, 0, 1]]),
        ("mean", 4.25, [0, 4, 0, 6.5], [[0.25, 0, 0, 0.25], [0, 0.25, 0, 0.25]]),
        ("prod", 0, [0, 4, 1, 42], [[168, 0, 0, 0], [0, 0, 0, 0]]),
        ("amax", 7, [0, 4, 0, 7], [[0, 0, 0, 0], [0, 0, 0, 1]]),
        ("amin", 0, [0, 4, 0, 6], [[1, 0, 0, 0], [0, 0, 0, 0]]),
    ],
)
def test_reductions_and_their_gradients(name, total, columns, gradient):
    m = masked_tensor(tensor(D), tensor(M), requires_grad=True)
    assert_masked(getattr(m, name)(), total, True)
    assert_masked(getattr(m, name)(dim=0), columns, [T, T, F, T])
    getattr(m, name)().backward()
    assert_masked(m.grad, gradient, M)


def test_all_and_the_questions_that_autograd_asks():
    data = [[T, T, F, F], [F, T, T, T]]
    m = masked_tensor(tensor(data), tensor(M))
    assert_masked(m.all(), F, T)
    assert_masked(m.all(dim=0), [T, T, T, F], [T, T, F, T])
    assert_masked(m._is_any_true(), T, T)
    assert_masked(m._is_all_true(), F, T)
    assert_masked(masked_tensor(tensor(data), tensor(M) & False)._is_any_true(), F, T)
    with pytest.raises(ValueError, match="expected a boolean tensor"):
        masked_tensor(tensor(D), tensor(M))._is_any_true()


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomalies_are_looked_for_in_masked_gradients():
    x = torch.rand(2, 4, requires_grad=True)
    with torch.autograd.detect_anomaly():
        masked_tensor(tensor(D), tensor(M), requires_grad=True).sum().backward()
        as_masked_tensor(x.tanh() * x, tensor(M)).sum().backward()
    assert x.grad is not None


def test_who_has_gradients():
    data, mask = tensor(D, requires_grad=True), tensor(M)
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        m = masked_tensor(data, mask, requires_grad=True)
    m.mean().backward()
    assert data.grad is None and m.grad is not None
    as_masked_tensor(data, mask).mean().backward()
    assert_masked(data.grad, [[0.25, 0, 0, 0.25], [0, 0.25, 0, 0.25]], M)
    for m in (masked_tensor(data.detach(), mask), as_masked_tensor(data.detach(), mask)):
        with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
            m.mean().backward()
