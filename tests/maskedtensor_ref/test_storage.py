"""Views, in-place writes, copies, files, processes and text."""

import copy
import io
import pickle
import warnings

import pytest
import torch
from torch import tensor
from torch.utils.data import DataLoader, Dataset

from maskedtensor_ref import MaskedTensor, as_masked_tensor, masked_tensor
from maskedtensor_ref.tensor import rebuilt

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
    with torch.serialization.safe_globals([rebuilt]):
        assert torch.load(io.BytesIO(file.getvalue()), weights_only=True)["m"].tolist() == m.tolist()


def test_a_module_with_a_masked_parameter_goes_through_its_state():
    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(masked_tensor(torch.ones(3), tensor([T, F, T])))
    other = copy.deepcopy(layer)
    (layer.weight * 3).sum().backward()
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    assert layer.weight.tolist() == [-2, None, -2] and other.weight.tolist() == [1, None, 1]
    other.load_state_dict(layer.state_dict())
    assert other.weight.tolist() == [-2, None, -2] and list(layer.state_dict()) == ["weight"]


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
