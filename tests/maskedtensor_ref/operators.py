"""Trials of one entry of torch's operator database: plain agreement, and poison under the mask."""

import itertools
import warnings

import torch
from torch.testing import make_tensor

from maskedtensor_ref import MaskedTensor, masked_tensor

POISONS = float("nan"), float("inf"), 1e30
SAMPLES = 4


def name_of(op):
    """name or name.variant, as the database has it."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def dtype_of(op):
    """The dtype an entry is tried in: float64 where it can be, for tight comparisons."""
    for dtype in (torch.float64, torch.float32, torch.complex128, torch.int64, torch.bool):
        if dtype in op.supported_dtypes("cpu"):
            return dtype
    return None


def samples_of(op):
    """The first samples of an entry, with gradients where it has them, spread over its list."""
    dtype = dtype_of(op)
    grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), 60))
    step = max(1, len(every) // SAMPLES)
    return every[::step][:SAMPLES]


def leaves(x):
    """The tensors of a nested argument."""
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for y in x for t in leaves(y)]
    if isinstance(x, dict):
        return [t for y in x.values() for t in leaves(y)]
    return []


def masked(x, mask_of, poison=None):
    """The same argument with every floating, complex, integer tensor masked, poisoned where it is unspecified."""
    if isinstance(x, torch.Tensor):
        if x.layout != torch.strided:
            return x
        mask = mask_of(x)
        data = x.detach().clone()
        if poison is not None:
            p = poison if data.is_floating_point() or data.is_complex() else (True if data.dtype == torch.bool else 7)
            data[~mask] = p
        return masked_tensor(data, mask, requires_grad=x.requires_grad)
    if isinstance(x, (list, tuple)):
        return type(x)([masked(y, mask_of, poison) for y in x])
    return x


def plain(x):
    """A fresh leaf for every tensor of a nested argument."""
    if isinstance(x, torch.Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad)
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        return type(x)([plain(y) for y in x])
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return x


def call(op, first, args, kwargs):
    """The flat results of a call, and the gradients of everything in it that has one."""
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = op.op(first, *args, **kwargs)
        results = leaves(out) if not isinstance(out, (bool, int, float)) else [torch.tensor(out)]
        roots = [r for r in results if r.requires_grad]
        if roots:
            total = 0
            for i, r in enumerate(roots):
                r = r.abs() if r.is_complex() else r
                s = (r * (i + 1)).sum()
                s = s.to_tensor(0) if isinstance(s, MaskedTensor) else s
                total = total + s
            total.backward()
    grads = [t.grad for t in leaves([first, args, kwargs]) if t.requires_grad]
    return results, grads


def split(t):
    """Data and mask of a result, plain or masked."""
    if isinstance(t, MaskedTensor):
        t = t.to_dense().detach()
        return t.get_data(), t.get_mask()
    return t.detach() if t.layout == torch.strided else t.detach().to_dense(), torch.ones(t.shape, dtype=torch.bool)


def same(got, expected, what, tolerance=1e-7):
    """Raise AssertionError unless masks are equal and specified values close."""
    assert len(got) == len(expected), f"{what}: {len(got)} results, expected {len(expected)}"
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        if a is None or b is None:
            assert a is b or (split(a if b is None else b)[0] == 0).all(), f"{what} {i}: a gradient is missing"
            continue
        (x, m), (y, n) = split(a), split(b)
        assert m.shape == n.shape, f"{what} {i}: shape {tuple(m.shape)}, expected {tuple(n.shape)}"
        assert torch.equal(m, n), f"{what} {i}: mask {m.tolist()}, expected {n.tolist()}"[:300]
        x, y = (torch.where(m, t, torch.zeros((), dtype=t.dtype)) for t in (x, y))
        torch.testing.assert_close(
            x, y, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda s, i=i: f"{what} {i}: {s}"
        )


def missing_is_zero(grads):
    """Gradients as plain tensors: what no path specifies counts as zero."""
    return [g.to_tensor(0) if isinstance(g, MaskedTensor) else g for g in grads]


def random_mask(seed):
    """From a tensor to a mask that depends on the shape and the seed only."""

    def mask_of(x):
        g = torch.Generator().manual_seed(seed)
        return torch.rand(x.shape, generator=g) > 0.4

    return mask_of


def all_true(x):
    """The mask that specifies everything."""
    return torch.ones(x.shape, dtype=torch.bool)


def agrees(op, sample):
    """An all-true mask gives what plain torch gives, forward and backward."""
    tolerance = 1e-7 if dtype_of(op) in (torch.float64, torch.complex128) else 1e-4
    rest = plain(sample.args), plain(sample.kwargs)
    expected = call(op, plain(sample.input), *rest)
    rest = plain(sample.args), plain(sample.kwargs)
    got = call(op, masked(sample.input, all_true), *rest)
    if any(t.numel() == 0 for t in leaves([sample.input, sample.args])):
        return True  # a slice with no element is unspecified, not zero
    if all(e.isnan().all() and not split(g)[1].any() for g, e in zip(got[0], expected[0], strict=True)):
        return True  # a mean over nothing is unspecified, not NaN
    same(got[0], expected[0], "result", tolerance)
    same(missing_is_zero(got[1]), missing_is_zero(expected[1]), "gradient", tolerance)
    return any(isinstance(r, MaskedTensor) for r in got[0])


def ignores_poison(op, sample, every_operand=False):
    """What lies under the mask changes neither results nor gradients."""
    seen = []
    for poison in (None, *POISONS):
        mask_of = random_mask(3)
        args, kwargs = plain(sample.args), plain(sample.kwargs)
        if every_operand:
            shape = leaves(sample.input)[0].shape
            args = [
                masked(a, mask_of, poison)
                if isinstance(a, torch.Tensor) and a.shape == shape and a.dtype == leaves(sample.input)[0].dtype
                else a
                for a in args
            ]
        try:
            seen.append(call(op, masked(sample.input, mask_of, poison), args, kwargs))
        except (ValueError, TypeError) as refusal:  # unequal masks, or an option masked: refused
            if not every_operand and "unspecified" not in str(refusal):
                raise
            return
    for other in seen[1:]:
        same(other[0], seen[0][0], "poisoned result", 0)
        same(other[1], seen[0][1], "poisoned gradient", 1e-12)


def random_tensor(*shape, dtype=torch.float64, **kwargs):
    """make_tensor on the CPU."""
    return make_tensor(shape, device="cpu", dtype=dtype, **kwargs)
