"""Views, in-place writes, copies, files, processes and text."""

import copy
import io
import pickle
import threading
import warnings
from math import inf, nan

import pytest
import torch
from torch import tensor
from torch.utils.data import DataLoader, Dataset

from maskedtensor_ref import MaskedTensor, as_masked_tensor, masked_tensor

T, F = True, False


@pytest.fixture
def m():
    return masked_tensor(torch.arange(6.0).reshape(2, 3), tensor([[T, T, T], [T, F, T]]))


def test_views_share_memory_and_writes_show(m):
    m[0].add_(10)
    m[0, 1] = 5.0
    m.t()[2, 1] = 7.0
    m.view(6)[:1].mul_(2)
    assert m.tolist() == [[20, 5, 12], [3, None, 7]]
    assert m[0].get_data().data_ptr() == m.get_data().data_ptr()


def test_constructors_copy(m):
    data, mask = torch.ones(2), tensor([T, F])
    for make in (masked_tensor, as_masked_tensor, MaskedTensor):
        n = make(data, mask)
        n.add_(1)
        assert data.tolist() == [1, 1]
    mask[1] = True
    assert n.tolist() == [2, None]
    assert masked_tensor(data, mask).tolist() == [1, 1]


def test_one_mask_is_shared_by_all_who_are_made_with_it():
    mask = tensor([T, F])
    a, b = masked_tensor(torch.ones(2), mask), masked_tensor(torch.ones(2), mask)
    assert a.get_mask() is b.get_mask() is (a + b).get_mask() is masked_tensor(torch.ones(2), a.get_mask()).get_mask()
    mask.numpy()[1] = True  # unseen by torch's version counter
    assert masked_tensor(torch.ones(2), mask).tolist() == [1, 1]


@pytest.mark.parametrize(
    "write",
    [
        lambda m: m.__setitem__(1, 5.0),
        lambda m: m.__setitem__((1, 1), 0),
        lambda m: m.copy_(torch.ones(2, 3)),
        lambda m: m.__setitem__(0, m[1]),
        lambda m: m.copy_(m.flip(0)),
        lambda m: m.masked_fill_(torch.ones(2, 3, dtype=torch.bool), 0.0),
        lambda m: m[0].mul_(m[1]),
    ],
)
def test_a_write_that_would_change_the_mask_is_refused(write, m):
    before = m.tolist()
    with pytest.raises(ValueError, match=r"torch\.where|Input masks"):
        write(m)
    assert m.tolist() == before


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda m: m.zero_(), [[0, 0, 0], [0, None, 0]]),
        (lambda m: m.fill_(2), [[2, 2, 2], [2, None, 2]]),
        (lambda m: m.sqrt_(), [[0, 1, 2**0.5], [3**0.5, None, 5**0.5]]),
        (lambda m: m.clamp_(max=2), [[0, 1, 2], [2, None, 2]]),
        (lambda m: m.copy_(m * 2), [[0, 2, 4], [6, None, 10]]),
        (lambda m: m.__iadd__(1), [[1, 2, 3], [4, None, 6]]),
        (lambda m: m.masked_fill_(tensor([[T, F, F], [F, F, F]]), 9.0), [[9, 1, 2], [3, None, 5]]),
        (lambda m: torch.relu_(m.neg_()), [[0, 0, 0], [0, None, 0]]),
        (lambda m: torch.nn.functional.relu(m.sub_(2), inplace=True), [[0, 0, 0], [1, None, 3]]),
    ],
)
def test_in_place_operations_write_what_is_specified(write, expected, m):
    hidden = m.get_data()[1, 1].item()
    out = write(m)
    assert out is m or isinstance(out, MaskedTensor)
    for got, row in zip(m.tolist(), expected, strict=True):
        assert got == pytest.approx(row)
    assert m.get_data()[1, 1].item() == hidden


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr"])
def test_in_place_operations_on_sparse_layouts(layout, m):
    s = getattr(m, layout)()
    s.add_(1).mul_(s)
    assert s.tolist() == [[1, 4, 9], [16, None, 36]]


def test_a_plain_tensor_changes_only_where_the_operand_is_specified(m):
    for operand in (m, m.to_sparse_coo(), m.to_sparse_csr(), m.to_sparse(1)):
        p = torch.full((2, 3), 100.0)
        p.add_(operand)
        assert p.tolist() == [[100, 101, 102], [103, 100, 105]]
    p = torch.zeros(2, 3)
    p.copy_(m)
    assert p.tolist() == [[0, 1, 2], [3, 0, 5]]
    p[0] = m[1] * 2
    assert p.tolist() == [[6, 1, 10], [3, 0, 5]]


def test_in_place_writes_have_gradients():
    x = torch.ones(3, requires_grad=True)
    m = masked_tensor(torch.ones(3), tensor([T, F, T])) * x
    m.mul_(3)
    m[0] = m[0] * 2
    m.sum().backward()
    assert x.grad.tolist() == [6, 0, 3]


@pytest.mark.parametrize("layout", ["to_dense", "to_sparse_coo", "to_sparse_csr"])
@pytest.mark.parametrize("grad", [T, F])
def test_copies_and_files(layout, grad, m):
    m = getattr(m, layout)().detach().requires_grad_(grad)
    file = io.BytesIO()
    torch.save({"m": m}, file)
    loads = [
        lambda: pickle.loads(pickle.dumps(m)),
        lambda: copy.deepcopy(m),
        lambda: copy.copy(m),
        lambda: torch.load(io.BytesIO(file.getvalue()), weights_only=False)["m"],
    ]
    for load in loads:
        n = load()
        assert n.tolist() == m.tolist() and n.layout == m.layout and n.requires_grad == grad and n is not m
    assert torch.load(io.BytesIO(file.getvalue()), weights_only=True)["m"].tolist() == m.tolist()
    assert pickle.loads(pickle.dumps(m.detach().requires_grad_() * 2)).tolist() == (m * 2).tolist()


def test_a_module_with_a_masked_parameter_goes_through_its_state():
    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(masked_tensor(torch.ones(3), tensor([T, F, T])))
    other = copy.deepcopy(layer)
    (layer.weight * 3).sum().backward()
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    assert layer.weight.tolist() == [-2, None, -2] and other.weight.tolist() == [1, None, 1]
    other.load_state_dict(layer.state_dict())
    assert other.weight.tolist() == [-2, None, -2] and list(layer.state_dict()) == ["weight"]


def test_a_module_with_masked_parameters_goes_to_other_dtypes_and_devices():
    layer = torch.nn.Linear(3, 2)
    layer.scale = torch.nn.Parameter(masked_tensor(torch.ones(3), tensor([T, F, T])))
    layer.register_buffer("shift", masked_tensor(torch.ones(2), tensor([T, F])))
    torch.nn.init.normal_(layer.scale)
    assert layer.scale[0] != 1 and layer.scale.tolist()[1] is None
    torch.nn.init.constant_(layer.scale, 1.0)
    for move in (lambda n: n.double(), lambda n: n.half(), lambda n: n.to("meta"), lambda n: n.to(torch.bfloat16)):
        moved = move(copy.deepcopy(layer))
        assert moved.scale.dtype == moved.shift.dtype == moved.weight.dtype and moved.scale.requires_grad
        assert moved.scale.device == moved.weight.device and isinstance(moved.scale, MaskedTensor)
        assert isinstance(moved.scale, torch.nn.Parameter)
        assert moved.scale.is_meta or moved.scale.tolist() == [1, None, 1]


class Rows(Dataset):
    """Masked rows of a table."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return masked_tensor(torch.full((3,), float(i)), tensor([T, i % 2 == 0, T]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 1])
def test_data_loader(workers):
    batches = list(DataLoader(Rows(), batch_size=2, num_workers=workers))
    assert [b.tolist() for b in batches] == [[[0, 0, 0], [1, None, 1]], [[2, 2, 2], [3, None, 3]]]


def test_shared_memory_does_not_crash(m):
    assert m.share_memory_() is m and m.is_shared()


def test_numpy_and_python(m):
    import numpy

    a = m.numpy()
    assert isinstance(a, numpy.ma.MaskedArray) and a.mask.tolist() == [[F, F, F], [F, T, F]] and a.sum() == 11
    with pytest.raises(TypeError, match="drop the mask"):
        numpy.asarray(m)
    assert numpy.asarray(m[0]).tolist() == [0, 1, 2]
    assert float(m[0, 1]) == 1 and int(m[0, 2]) == 2 and bool(m[0, 1]) and [r.tolist() for r in m] == m.tolist()
    assert len(m) == 2 and 1.0 in m and 4.0 not in m
    for convert in (float, int, bool, MaskedTensor.item, complex):
        with pytest.raises(ValueError, match="unspecified"):
            convert(m[1, 1])


def test_repr_shows_dashes_digits_and_what_is_not_usual(m):
    assert repr(m) == "MaskedTensor([[ 0.,  1.,  2.],\n              [ 3., --,  5.]])".replace("[ ", "[").replace(
        "  ", " "
    ) or "--" in repr(m)
    assert (
        repr(masked_tensor(tensor([4.54e-05, 1.0, 2.0]), tensor([T, F, F])))
        == "MaskedTensor([4.5400e-05,         --,         --])"
    )
    assert repr(masked_tensor(tensor(1), tensor(F))) == "MaskedTensor(--)"
    assert repr(masked_tensor(torch.ones(0), torch.ones(0, dtype=torch.bool))) == "MaskedTensor([])"
    big = repr(masked_tensor(torch.rand(100, 100), torch.rand(100, 100) > 0.5))
    assert "..." in big and len(big) < 1500
    assert "grad_fn=<" in repr(masked_tensor(torch.ones(1), tensor([T]), requires_grad=True) * 2)
    text = repr(m.half().to_sparse_coo())
    assert "dtype=torch.float16" in text and "layout=torch.sparse_coo" in text
    assert f"{m[0, 1]:.2f}" == "1.00"


def test_devices_and_dtypes_keep_the_mask(m):
    for out in (
        m.double(),
        m.to(torch.int32),
        m.cpu(),
        m.to("cpu"),
        m.type(torch.float16),
        m.to(masked_tensor(torch.ones(1).int(), tensor([T]))),
    ):
        assert out.get_mask() is m.get_mask()
    assert m.to("meta").get_mask().is_meta and m.to(torch.int32).dtype == torch.int32
    assert m.clone().get_mask() is m.get_mask() and m.detach().data.shape == (2, 3)


def test_nothing_warns_on_normal_use(m):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        n = masked_tensor(torch.ones(2), tensor([T, F]), requires_grad=True)
        (n.exp() / 2).sum().backward()
        repr(n.grad)
        m.to_sparse_csr().get_data()


def test_history_that_is_cut_is_worth_a_warning():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="It is not recommended to create a MaskedTensor"):
        assert not masked_tensor(x, tensor([T, F])).requires_grad


def test_inference_mode_leaves_nothing_behind_that_training_trips_over():
    data, mask = torch.arange(6.0).reshape(2, 3), tensor([[T, F, T], [T, T, F]])
    sparse = masked_tensor(data, mask).to_sparse_csr().detach().requires_grad_()
    with torch.inference_mode():
        inner = masked_tensor(torch.arange(3.0), tensor([T, F, T]))
        assert (inner + 1).sum().item() == 4 and (inner + masked_tensor(torch.ones(3), inner.get_mask())).tolist()[
            1
        ] is None
        assert inner.to_sparse_coo().get_mask().to_dense().tolist() == [T, F, T]
        assert masked_tensor(data, mask).sum().item() == 9 and sparse.sum(1).tolist() == [2, 7]
    m = masked_tensor(data, mask, requires_grad=True)
    (m.exp().sum() + sparse.sum(0).sum()).backward()
    assert m.grad is not None and sparse.grad.to_dense().tolist() == [[1, None, 1], [1, 1, None]]


@pytest.fixture
def crossed():
    """Data in rows, and a mask that is laid out in columns."""
    return masked_tensor(torch.arange(12.0).reshape(3, 4), (torch.arange(12).reshape(4, 3) % 3 != 0).t())


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        (lambda m: m.view(12), lambda m: m.reshape(12)),
        (lambda m: m.view(2, 6), lambda m: m.reshape(2, 6)),
        (lambda m: m.view_as(torch.zeros(6, 2)), lambda m: m.reshape(6, 2)),
        (lambda m: m.unflatten(1, (2, 2)), lambda m: m.reshape(3, 2, 2)),
        (lambda m: m.as_strided((2, 2), (4, 1), 1), lambda m: m[:2, 1:3]),
    ],
)
def test_a_mask_may_be_laid_out_otherwise_than_the_data(move, expected, crossed):
    assert move(crossed).tolist() == expected(crossed).tolist()


def test_a_scatter_by_strides_goes_where_the_data_goes(crossed):
    rows = crossed.tolist()
    out = torch.as_strided_scatter(crossed, torch.ones(2, 2), (2, 2), (4, 1))
    assert out.tolist() == [[1, 1, *rows[0][2:]], [1, 1, *rows[1][2:]], rows[2]]


def test_a_view_of_memory_outside_is_unspecified():
    m = masked_tensor(torch.arange(6.0), torch.ones(6, dtype=torch.bool))[1:3]
    assert m.as_strided((4,), (1,), 0).tolist() == [None, 1, 2, None]


def test_a_mask_may_store_more_than_the_data():
    data, mask = tensor([[0.0, 0, 3], [4, 0, 5]]), tensor([[T, F, T], [T, F, T]])
    for convert in ("to_sparse_coo", "to_sparse_csr"):
        assert masked_tensor(getattr(data, convert)(), getattr(mask, convert)()).tolist() == [
            [0, None, 3],
            [4, None, 5],
        ]
    assert masked_tensor(torch.zeros(3).to_sparse(), mask[0].to_sparse()).tolist() == [0, None, 0]


def test_indices_of_another_integer_dtype_are_the_same_places():
    crow, col = tensor([0, 1, 2], dtype=torch.int32), tensor([2, 0], dtype=torch.int32)
    data = torch.sparse_csr_tensor(crow, col, tensor([3.0, 4.0]), (2, 3), check_invariants=True)
    mask = torch.sparse_csr_tensor(crow.long(), col.long(), tensor([T, F]), (2, 3), check_invariants=True)
    assert masked_tensor(data, mask).tolist() == [[None, None, 3], [None, None, None]]


def huge(values):
    """A COO tensor of a million times a million elements, of which three are stored."""
    places = tensor([[0, 5, 10**6 - 1], [1, 2, 10**6 - 1]])
    return torch.sparse_coo_tensor(places, values, (10**6, 10**6), is_coalesced=True, check_invariants=True)


def test_what_is_stored_is_all_that_a_huge_sparse_tensor_costs():
    m = masked_tensor(huge(tensor([1.0, 2, 3])), huge(tensor([T, F, T])))
    assert [getattr(m, f)().item() for f in ("sum", "mean", "amax", "max", "median", "argmin")] == [4, 2, 3, 3, 1, 1]
    assert m.argmax().item() == 10**12 - 1 and m.quantile(0.5).item() == 2 and m.equal(m.clone())
    few = huge(tensor([T, F, T])).coalesce()
    few = torch.sparse_coo_tensor(few.indices()[:, ::2], few.values()[::2], few.shape, check_invariants=True)
    assert masked_tensor(m.get_data(), few).sum().item() == 4
    assert "[--, 1., --, ..., --, --, --]" in repr(m) and "nnz=3" in repr(m)


def test_a_sparse_tensor_that_stores_nothing_has_nothing_specified():
    m = masked_tensor(torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bool))
    for sparse in (m.to_sparse_coo(), m.to_sparse_csr(), m.to_sparse(1)):
        for name in ("sum", "mean", "prod", "amax", "amin", "max", "argmax", "std", "median", "nanmedian", "aminmax"):
            out = getattr(sparse, name)()
            assert (out[0] if isinstance(out, tuple) else out).tolist() is None, name
        assert sparse.quantile(0.5).tolist() is None


def test_two_threads_share_masks_and_places():
    indices = torch.arange(40).expand(2, 40)
    coo = lambda values: torch.sparse_coo_tensor(indices, values, (40, 40), is_coalesced=True, check_invariants=True)
    first = masked_tensor(coo(torch.ones(40)), coo(torch.arange(40) % 2 == 0))
    second = masked_tensor(first.get_data(), coo(torch.arange(40) % 4 == 0))
    second._pair.places = first._pair.places  # as results of one tensor share them
    failures = []

    def work(m, expected):
        failures.extend(1 for _ in range(300) if m.to_dense().sum().item() != expected)

    threads = [threading.Thread(target=work, args=args) for args in ((first, 20), (second, 10)) * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_what_is_not_finite_is_written_as_torch_writes_it():
    assert (
        repr(masked_tensor(tensor([nan, 1.0, 2.0, -inf]), tensor([T, F, T, T])))
        == "MaskedTensor([ nan,   --,   2., -inf])"
    )
    assert "4.5400e-05+1.0000e+00j" in repr(masked_tensor(tensor([4.54e-05 + 1j]), tensor([T])))
    assert repr(masked_tensor(tensor([1 - 2j]), tensor([T]))) == "MaskedTensor([1.-2.j], dtype=torch.complex64)"


def test_assignment_fits_as_torch_fits_it(m):
    m[0] = masked_tensor(tensor([[4.0, 5, 6]]), tensor([[T, T, T]]))
    m[:, ::2] += masked_tensor(tensor(1.0), tensor(T))
    assert m.tolist() == [[5, 5, 7], [4, None, 6]]
    p = torch.zeros(3)
    p[:] = m[1:]
    assert p.tolist() == [4, 0, 6]
    with pytest.raises(RuntimeError, match=r"a value of shape \(2, 3\) does not fit into shape \(3,\)"):
        m[0] = m


def test_python_asks_as_it_asks_torch(m):
    assert [r.tolist() for r in reversed(m)] == m.tolist()[::-1]
    assert torch.is_nonzero(m[0, 1]) and (m == None) is False  # noqa: E711
    with pytest.raises(RuntimeError, match="`in` got None, expected a number or a tensor"):
        None in m  # noqa: B015
