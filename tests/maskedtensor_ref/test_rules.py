"""Properties of the rules over the table: spellings, layouts, dtypes, slices and gradients."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, tensor

from maskedtensor_ref import MaskedTensor, mask_policy, masked_tensor
from maskedtensor_ref.table import OPS, QUALIFIED, RULES, SPACES

LAYOUTS = {"strided": lambda m: m, "coo": MaskedTensor.to_sparse_coo, "csr": MaskedTensor.to_sparse_csr}
UNARY = """abs neg exp log1p sqrt sin cos tanh sigmoid relu square reciprocal erf sign ceil floor round isnan
    logical_not""".split()
BINARY = "add sub mul div maximum minimum pow atan2 hypot fmod remainder eq lt ge copysign logaddexp xlogy".split()
REDUCTIONS = (
    "sum prod mean var std amax amin argmax argmin any all nansum nanmean logsumexp count_nonzero median max min "
    "norm nanmedian mode"
).split()


@pytest.fixture
def pair():
    """Positive data of shape (4, 5), and a mask with an empty row."""
    g = torch.Generator().manual_seed(0)
    mask = torch.rand(4, 5, generator=g) > 0.4
    mask[2] = False
    return torch.rand(4, 5, generator=g, dtype=torch.float64) + 0.1, mask


def flat(out):
    """The MaskedTensors in a result."""
    return [out] if isinstance(out, MaskedTensor) else list(out)


def assert_same(a, b):
    for x, y in zip(flat(a), flat(b), strict=True):
        x, y = x.to_dense().detach(), y.to_dense().detach()
        assert torch.equal(x.get_mask(), y.get_mask())
        torch.testing.assert_close(x.to_tensor(0), y.to_tensor(0), equal_nan=True)


def test_every_name_in_the_table_exists():
    missing = []
    for _, names in OPS:
        for name in names.split():
            space, _, short = name.rpartition(".")
            homes = [QUALIFIED[space]] if space else SPACES.values()
            if not any(hasattr(h, s) for h in homes for s in (short, f"__{short}__")):
                missing.append(name)
    assert not missing


def test_a_name_has_one_rule():
    rows = [name for _, names in OPS for name in names.split()]
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_spellings_agree(name, pair):
    data, mask = pair
    m = masked_tensor(data, mask)
    args = () if name in UNARY else (masked_tensor(data.flip(0), mask),)
    spellings = [f for home in (torch, Tensor, F, torch.special) if (f := getattr(home, name, None)) and f in RULES]
    results = [f(m, *args) for f in spellings] + [getattr(torch.ops.aten, name)(m, *args)]
    for r in results[1:]:
        assert_same(r, results[0])


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", UNARY)
def test_a_unary_operation_is_the_same_in_every_layout(name, layout, pair):
    m = masked_tensor(*pair)
    out = getattr(LAYOUTS[layout](m), name)()
    assert out.layout == LAYOUTS[layout](m).layout
    assert_same(out, getattr(m, name)())


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("other", ["same places", "other places", "plain", "number", "row"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "pow", "lt"])
def test_a_binary_operation_is_the_same_in_every_layout(name, other, layout, pair):
    if name == "maximum" and other == "number":
        pytest.skip("torch.maximum takes no number")
    data, mask = pair
    m = masked_tensor(data, mask)
    second = {
        "same places": masked_tensor(data + 1, mask),
        "other places": masked_tensor(data + 1, mask),
        "plain": data + 1,
        "number": 2,
        "row": data[0],
    }[other]
    s = LAYOUTS[layout](m)
    sparse = LAYOUTS[layout](second) if isinstance(second, MaskedTensor) else second
    if other == "same places":
        sparse = s + 0
        second = m
    assert_same(getattr(torch, name)(s, sparse), getattr(torch, name)(m, second))


@pytest.mark.filterwarnings("ignore:(std|var).*degrees of freedom")  # torch's, about one element
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_is_the_operation_on_the_specified_elements(name, dim, layout, pair):
    data, mask = pair
    if name in ("any", "all"):
        data = data > 0.5
    if (name == "mode" and dim is None) or (name == "logsumexp" and dim is None):
        pytest.skip("torch has no such call")
    m = LAYOUTS[layout](masked_tensor(data, mask))
    f = {"nanmean": torch.nanmean}.get(name, getattr(Tensor, name, None))
    got = f(m) if dim is None else f(m, dim=dim)
    got = got[0] if isinstance(got, tuple) else got
    slices = (
        [(data.reshape(-1), mask.reshape(-1))]
        if dim is None
        else [(d, k) for d, k in zip(data.unbind(1 - dim % 2), mask.unbind(1 - dim % 2), strict=True)]
    )
    for value, (d, k) in zip(got.tolist() if dim is not None else [got.tolist()], slices, strict=True):
        if not k.any():
            assert value is None
            continue
        if name in ("argmax", "argmin"):
            expected = k.nonzero()[f(d[k])].item()
        else:
            expected = f(d[k], 0) if name in ("mode", "logsumexp") else f(d[k])
            expected = expected[0].item() if isinstance(expected, tuple) else expected.item()
        assert value == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "var", "std", "amax", "amin", "norm", "softmax", "sin", "cumsum"]
)
def test_gradients_are_right_in_every_layout(name, layout, pair):
    data, mask = pair

    def f(values):
        full = torch.zeros_like(data).index_put(mask.nonzero(as_tuple=True), values)
        m = LAYOUTS[layout](_differentiable(full, mask))
        out = getattr(m, name)(*(() if name == "sin" else (1,)))
        return out.to_dense().to_tensor(0)

    assert torch.autograd.gradcheck(f, data[mask].requires_grad_())
    assert torch.autograd.gradgradcheck(f, data[mask].requires_grad_())


def _differentiable(full, mask):
    """full under mask, without the door that makes gradients masked, which gradcheck does not read."""
    return torch.where(mask, masked_tensor(torch.zeros_like(full), mask), 0) + full


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.sum(),
        lambda m: m.sin().sum(),
        lambda m: m.mean(1).sum(),
        lambda m: (m * m).amax(0).sum(),
        lambda m: (m @ torch.ones(5, 2, dtype=m.dtype)).sum(),
        lambda m: m.to_dense().exp().sum(),
    ],
)
def test_a_leaf_gradient_has_the_layout_and_the_mask_of_the_leaf(call, layout, pair):
    m = LAYOUTS[layout](masked_tensor(*pair)).detach().requires_grad_()
    call(m).backward()
    assert isinstance(m.grad, MaskedTensor) and m.grad.layout == m.layout
    assert torch.equal(m.grad.to_dense().get_mask(), m.to_dense().get_mask())
    dense = m.detach().to_dense().requires_grad_()
    call(dense).backward()
    assert_same(m.grad, dense.grad)


FLOATS = torch.float16, torch.bfloat16, torch.float32, torch.float64
INTEGERS = torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64
ALL = (*FLOATS, *INTEGERS, torch.bool, torch.complex64, torch.complex128)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "name", ["add", "mul", "eq", "sum", "sum(1)", "prod(0)", "neg", "amax(1)", "argmax(1)", "cumsum(0)", "abs"]
)
def test_every_dtype_in_every_layout(name, layout, dtype):
    data = torch.arange(1, 13).reshape(3, 4).to(dtype)
    mask = tensor([[True, False, True, True], [False] * 4, [True, True, False, True]])
    name, _, dim = name.partition("(")
    args = (data,) if name in ("add", "mul", "eq") else (int(dim[:-1]),) if dim else ()
    f = getattr(torch, name)
    try:
        expected = f(data, *args)
    except RuntimeError:
        pytest.skip(f"torch has no {name} for {dtype}")
    poisoned = data.clone()
    poisoned[~mask] = True if dtype == torch.bool else 77
    m, p = (LAYOUTS[layout](masked_tensor(d, mask)) for d in (data, poisoned))
    args = (m,) if args and isinstance(args[0], Tensor) else args
    out = f(m, *args)
    assert out.dtype == expected.dtype
    assert_same(out, f(p, *((p,) if args and isinstance(args[0], MaskedTensor) else args)))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 4), (1,), (2, 0, 3)])
@pytest.mark.parametrize("fill", [True, False])
@pytest.mark.parametrize(
    "name", ["sin", "add", "sum", "mean", "prod", "std", "softmax", "cumsum", "sort", "repr", "clone", "reshape"]
)
def test_empty_scalar_and_fully_masked_inputs(name, fill, shape):
    m = masked_tensor(torch.ones(shape), torch.full(shape, fill), requires_grad=True)
    call = {
        "add": lambda: m + m,
        "softmax": lambda: m.softmax(0),
        "cumsum": lambda: m.cumsum(0),
        "sort": lambda: m.sort()[0],
        "repr": lambda: m * int(bool(repr(m))),
        "reshape": lambda: m.reshape(-1),
    }.get(name, lambda: getattr(m, name)())
    out = call()
    if out.requires_grad:
        out.sum().backward()
        assert (m.grad.shape == m.shape and not m.grad.to_tensor(0).isnan().any()) or name in ("std",)
    if not fill:
        assert not out.get_mask().any()


@pytest.mark.parametrize("name", ["sum", "mean", "softmax", "matmul", "where", "sort", "add", "std", "index"])
def test_meta_tensors_go_through_every_class(name):
    m = masked_tensor(torch.empty(3, 3, device="meta"), torch.empty(3, 3, dtype=torch.bool, device="meta"))
    other = masked_tensor(torch.empty(3, 3, device="meta"), torch.empty(3, 3, dtype=torch.bool, device="meta"))
    out = {
        "softmax": lambda: m.softmax(0),
        "matmul": lambda: m @ m,
        "where": lambda: torch.where(m > 0, m, 0.0),
        "sort": lambda: m.sort()[0],
        "add": lambda: m + other,
        "index": lambda: m[0, 1:],
    }.get(name, lambda: getattr(m, name)())()
    assert out.is_meta and out.get_mask().is_meta and out.get_mask().shape == out.shape


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("name", UNARY + REDUCTIONS)
def test_the_gpu_agrees_with_the_cpu(name, pair):
    data, mask = pair
    data = data > 0.5 if name in ("any", "all") else data
    m = masked_tensor(data, mask)
    f = {"nanmean": torch.nanmean}.get(name, getattr(Tensor, name, None))
    args = () if name in UNARY else (1,)
    for a, b in zip(flat(f(m.cuda(), *args)), flat(f(m, *args)), strict=True):
        assert_same(a.cpu(), b)


def test_large_tensors_select_by_bits_as_small_ones_do_by_where():
    for dtype, other in itertools.product((torch.float32, torch.float64, torch.bfloat16, torch.int64), (0, 1, "low")):
        data = (torch.randn(200, 150) * 10).to(dtype)
        other = (-math.inf if dtype.is_floating_point else -9) if other == "low" else other
        if dtype.is_floating_point:
            data[::3] = math.nan
        mask = torch.rand(200, 150) > 0.5
        from maskedtensor_ref.pair import select

        for d, k in (
            (data, mask),
            (data.t(), mask.t()),
            (data[:, ::1], mask),
            (data.expand(2, 200, 150), mask.expand(2, 200, 150)),
        ):
            expected = torch.where(k, d, torch.tensor(other, dtype=dtype))
            torch.testing.assert_close(select(k, d, other), expected, rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(
                select(k, d, expected.clone()), torch.where(k, d, expected), rtol=0, atol=0, equal_nan=True
            )


def test_extremes_among_equals_are_found_among_the_specified():
    m = masked_tensor(tensor([9.0, -math.inf, -math.inf]), tensor([False, False, True]))
    assert m.argmax().item() == 2 and m.max(0).indices.item() == 2
    big = torch.zeros(2**24 + 3)
    big[-1] = 1
    assert masked_tensor(big, big > -1).argmax().item() == 2**24 + 2


def test_a_zero_that_is_stored_is_specified():
    data = tensor([[0.0, 1.0], [2.0, 0.0]])
    m = masked_tensor(data, tensor([[True, False], [True, False]]))
    for convert in LAYOUTS.values():
        assert convert(m).tolist() == [[0, None], [2, None]]
        assert convert(m).count_nonzero().item() == 1 and convert(m).mean().item() == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.sum(dim=(-1, -2)),
        lambda m: m.sum(()),
        lambda m: m.sum(dim=None),
        lambda m: m.prod((0, 1)),
        lambda m: torch.sum(input=m),
        lambda m: m.sum(axis=(0, 1)),
        lambda m: m.sum((0, 1), keepdim=True),
    ],
)
def test_every_spelling_of_the_dimensions(call):
    m = masked_tensor(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([[True, False], [True, True]]))
    assert call(m).get_data().sum().item() in (8.0, 12.0)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((0, False), {}),
        ((False,), {}),
        ((0,), {"correction": 0}),
        ((), {"correction": 2}),
        (((0, 1), True, True), {}),
        ((), {"unbiased": False}),
    ],
)
def test_var_takes_every_overload(args, kwargs):
    data = torch.rand(4, 3, dtype=torch.float64)
    m = masked_tensor(data, torch.ones(4, 3, dtype=torch.bool))
    for name in ("var", "std"):
        torch.testing.assert_close(getattr(m, name)(*args, **kwargs).to_tensor(0), getattr(data, name)(*args, **kwargs))


def test_policies_agree_on_equal_masks_and_obey_their_laws():
    data = torch.arange(1.0, 5.0)
    a = masked_tensor(data, tensor([True, True, False, False]))
    b = masked_tensor(data, tensor([True, False, True, False]))
    for name in ("match", "intersection", "union"):
        with mask_policy(name):
            assert (a + a).tolist() == [2, 4, None, None]
            assert (a + 1).get_mask()[:2].all()
    with mask_policy("intersection"):
        assert (a * b).tolist() == (b * a).tolist() == [1, None, None, None]
    with mask_policy("union"):
        assert (a * b).tolist() == (b * a).tolist() == [1, 2, 3, None]
        assert (a - b).tolist() == [0, 2, -3, None]
        assert torch.maximum(a, b).tolist() == [1, 2, 3, None]
        assert ((a + b) + a).tolist() == (a + (b + a)).tolist()
        assert (a + b).sum().item() == a.sum().item() + b.sum().item()
        assert (a + torch.ones(4)).tolist() == [2, 3, 1, 1]
        with pytest.raises(ValueError, match="no identity"):
            torch.atan2(a, b)
    with pytest.raises(ValueError, match="'intersection'"), mask_policy("and"):
        pass
    with pytest.raises(ValueError, match="match"):
        a + b


def test_a_policy_ends_with_its_block_also_after_an_error():
    with pytest.raises(KeyError), mask_policy("union"):
        raise KeyError
    a, b = (masked_tensor(torch.ones(2), tensor(k)) for k in ([True, False], [False, True]))
    with pytest.raises(ValueError, match="Input masks must match"):
        a + b


def test_masks_of_different_shape_match_after_broadcasting():
    row = masked_tensor(torch.ones(3), tensor([True, False, True]))
    block = masked_tensor(torch.ones(2, 3), tensor([True, False, True]).expand(2, 3))
    assert (row + block).tolist() == [[2, None, 2]] * 2
    assert (block - block.mean()).tolist() == [[0, None, 0]] * 2


def test_layout_conversions_are_exact_and_differentiable():
    data = torch.arange(12.0).reshape(3, 4)
    mask = data % 3 == 0
    m = masked_tensor(data, mask, requires_grad=True)
    for out in (
        m.to_sparse_coo(),
        m.to_sparse_csr(),
        m.to_sparse(),
        m.to_sparse(1),
        m.to_sparse(layout=torch.sparse_csr),
    ):
        assert torch.equal(out.to_dense().get_mask(), mask)
        m.grad = None
        out.to_dense().sum().backward()
        assert m.grad.to_tensor(0).equal(mask.float())


def test_hybrid_coo_keeps_masks_inside_its_values():
    data = torch.arange(12.0).reshape(3, 4)
    mask = tensor([[True, False, True, True], [False] * 4, [False, False, False, True]])
    m = masked_tensor(data, mask).to_sparse(1)
    assert m.get_data().sparse_dim() == 1 and m.get_data()._nnz() == 2
    assert torch.equal(m.to_dense().get_mask(), mask)
    assert (m * 2).sum(1).tolist() == [10, None, 22] and (m + data).sum().item() == 2 * data[mask].sum()


def test_contractions_are_specified_where_a_term_is_complete():
    a = masked_tensor(tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([[True, False], [False, False]]))
    b = masked_tensor(tensor([[5.0, 6.0], [7.0, 8.0]]), tensor([[True, False], [True, True]]))
    assert (a @ b).tolist() == [[5, None], [None, None]]
    assert (torch.ones(2, 2) @ b).tolist() == [[12, 8], [12, 8]]
    assert torch.einsum("ij,jk->ik", a, b).tolist() == (a @ b).tolist()


def test_sorts_put_what_is_not_specified_last_and_scans_keep_its_place():
    m = masked_tensor(tensor([3.0, 9.0, 1.0, 2.0]), tensor([True, False, True, True]))
    assert m.sort().values.tolist() == [1, 2, 3, None] and m.sort().indices.tolist() == [2, 3, 0, None]
    assert m.sort(descending=True).values.tolist() == [3, 2, 1, None]
    assert m.topk(2).values.tolist() == [3, 2] and m.median().item() == 2
    assert m.cumsum(0).tolist() == [3, None, 4, 6] and m.cummax(0).values.tolist() == [3, None, 3, 3]
    assert m.quantile(0.5).item() == 2


def test_standard_deviation_of_equal_elements_has_gradient_zero():
    m = masked_tensor(torch.ones(3), tensor([True, True, False]), requires_grad=True)
    m.std().backward()
    assert m.grad.tolist() == [0, 0, None]


def test_a_hidden_condition_chooses_nothing_for_a_gradient_either():
    seen = []
    for hidden in (True, False):
        a, b = (masked_tensor(torch.ones(3), torch.ones(3, dtype=torch.bool), requires_grad=True) for _ in range(2))
        condition = masked_tensor(tensor([True, False, hidden]), tensor([True, True, False]))
        torch.where(condition, a * 2, b * 3).sum().backward()
        seen.append((a.grad.tolist(), b.grad.tolist()))
    assert seen[0] == seen[1] == ([2, None, None], [None, 3, None])


def test_a_policy_finds_operands_that_are_keywords():
    a, b = (masked_tensor(tensor([1.0, 2.0]), tensor(k)) for k in ([True, False], [False, True]))
    with mask_policy("union"):
        assert torch.add(input=a, other=b).tolist() == a.add(other=b).tolist() == [1, 2]
        assert a.sub(alpha=2, other=b).tolist() == [1, -4]
        assert torch.add(a, other=torch.ones(2)).tolist() == [2, 1]


def test_operands_may_be_keywords(pair):
    m, edges = masked_tensor(*pair), tensor([0.3, 0.6], dtype=torch.float64)
    assert_same(torch.cat(tensors=[m, m]), torch.cat([m, m]))
    assert_same(torch.bucketize(input=m, boundaries=edges), torch.bucketize(m, edges))
    assert_same(torch.searchsorted(sorted_sequence=edges, input=m), torch.searchsorted(edges, m))
    assert_same(torch.where(condition=m > 0.5, input=m, other=m), m)
    assert torch.equal(input=m, other=m) and torch.allclose(input=m, other=m)
    assert_same(torch.dist(input=m, other=m + 1), torch.dist(m, m + 1))
    assert_same(F.pairwise_distance(x1=m, x2=m + 1), F.pairwise_distance(m, m + 1))
    assert_same(F.cosine_similarity(x1=m, x2=m), F.cosine_similarity(m, m))
    assert_same(torch.linalg.multi_dot(tensors=[m, m.t()]), m @ m.t())
    square = m @ m.t()
    assert_same(torch.addmm(input=square, mat2=m.t(), mat1=m), torch.addmm(square, m, m.t()))


def test_the_mode_takes_no_square_of_memory():
    data, mask = torch.randint(0, 9, (50_000,)), torch.rand(50_000) > 0.5
    value, index = masked_tensor(data, mask).mode()
    assert value.item() == data[mask].mode().values.item()
    assert index.item() == (mask & (data == value.item())).nonzero()[-1].item()


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_the_options_of_unique(name):
    data, mask = tensor([3, 9, 3, 1, 1, 7]), tensor([True, False, True, True, True, False])
    f = getattr(torch, name)
    options = (True,) if name == "unique_consecutive" else (True, True)
    for values, inverse, *_ in (
        f(masked_tensor(data, mask), *options),
        f(masked_tensor(data, mask), return_inverse=True),
    ):
        assert values[inverse.get_data()][mask].equal(data[mask]) and inverse.get_mask().equal(mask)
    assert f(masked_tensor(data, mask), return_counts=True)[1].sum().item() == 4
    with pytest.raises(NotImplementedError, match=f"{name} with dim compares whole slices"):
        f(masked_tensor(data, mask), dim=0)


def test_integers_are_gathered_too():
    zeros, index = torch.zeros(3, dtype=torch.int64), tensor([0, 0, 2])
    m = masked_tensor(tensor([1, 2, 3]), tensor([True, False, True]))
    assert zeros.index_add(0, index, m).tolist() == zeros.scatter_add(0, index, m).tolist() == [1, 0, 3]
    assert zeros.scatter_reduce(0, index, m, "prod", include_self=False).tolist() == [1, 0, 3]
    with pytest.raises(TypeError, match="the index of index_add is masked"):
        zeros.index_add(0, m, index)


def test_a_large_conjugate_is_read_as_what_it_stands_for():
    data, mask = torch.randn(20_000, dtype=torch.complex128), torch.rand(20_000) > 0.5
    m = masked_tensor(data, mask, requires_grad=True)
    torch.testing.assert_close(m.conj().sum().get_data(), data[mask].conj().sum())
    torch.testing.assert_close(m.conj().imag.sum().get_data(), -data.imag[mask].sum())
    (m.conj() * m).real.sum().backward()
    torch.testing.assert_close(m.grad.to_tensor(0)[mask], 2 * data[mask])


def test_the_quantile_of_integers_is_refused_as_torch_refuses_it():
    with pytest.raises(RuntimeError, match=r"must be either float or double dtype, got torch\.int64"):
        masked_tensor(tensor([1, 2]), tensor([True, True])).quantile(0.5)


def test_small_dtypes_keep_their_values():
    m = masked_tensor(tensor(7, dtype=torch.uint8), tensor(True)).to_sparse_coo()
    assert m.to_dense().dtype == torch.uint8 and (m + m).to_dense().item() == 14
    ones = masked_tensor(torch.ones(2, 3, dtype=torch.int64), tensor([[True, False, True], [False] * 3]))
    torch.testing.assert_close(ones.logsumexp(1).to_tensor(0), tensor([1 + math.log(2), 0]))
    whole = masked_tensor(tensor([[1, 2, 4], [3, 5, 9]]), torch.ones(2, 3, dtype=torch.bool))
    torch.testing.assert_close(whole.cov().get_data(), whole.get_data().cov())
    assert torch.addmv(whole[:, 0], whole, whole[0], beta=0, alpha=2).tolist() == [42, 98]
    byte, yes = whole.byte(), whole[:, :2].bool()
    assert torch.addmv(byte[:, 0], byte, byte[0]).dtype == torch.uint8
    assert torch.addbmm(byte[:, :2], byte[None], byte.t()[None]).dtype == torch.uint8
    assert torch.addr(yes, yes[0], yes[0], beta=True, alpha=True).dtype == torch.bool
    padded = torch.constant_pad_nd(whole.cfloat(), (1, 0), 1j)
    assert padded.get_mask().all() and padded[0, 0].item() == 1j
    for dtype in (torch.float16, torch.bfloat16):
        m = masked_tensor(torch.full((1, 9), 3.0, dtype=dtype), torch.arange(9)[None] % 3 != 1)
        assert F.avg_pool1d(m, 3).tolist() == [[3, 3, 3]]
