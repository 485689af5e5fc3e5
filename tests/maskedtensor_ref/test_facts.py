"""The facts that the lectures teach, as torch.masked's tutorials and public issues state them."""

import math

import pytest
import torch
from torch import tensor

from maskedtensor_ref import MaskedTensor, as_masked_tensor, is_masked_tensor, mask_policy, masked_tensor

T, F = True, False
nan = math.nan


def specified(m, digits=4):
    """A MaskedTensor as rounded lists, None where nothing is specified."""

    def rounded(x):
        return [rounded(y) for y in x] if isinstance(x, list) else x if x is None else round(x, digits)

    return rounded(m.tolist())


def test_where_of_exp_has_a_gradient_only_where_exp_was_chosen():
    data = tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100])
    mx = masked_tensor(data, data < 0, requires_grad=True)
    my = masked_tensor(torch.ones_like(data), data >= 0, requires_grad=True)
    out = torch.where(data < 0, torch.exp(mx), my)
    out.sum().backward()
    assert specified(mx.grad, 7) == [4.54e-05, 0.0067379] + [None] * 9
    assert specified(my.grad) == [None, None] + [1.0] * 9
    assert "4.5400e-05" in repr(mx.grad)
    x = data.clone().requires_grad_()
    torch.where(x < 0, torch.exp(x), torch.ones_like(x)).sum().backward()
    assert x.grad.isnan().tolist() == [F] * 9 + [T, T]


def test_a_branch_that_is_not_chosen_gives_no_gradient():
    a = masked_tensor(torch.randn(()), tensor(True), requires_grad=True)
    b = torch.tensor(False)
    c = torch.ones(())
    out = torch.where(b, a / 0, c)
    out.backward()
    assert out.item() == 1
    assert a.grad.tolist() is None
    x = tensor(0.5, requires_grad=True)
    torch.where(b, x / 0, c).backward()
    assert x.grad.isnan()


def test_division_by_a_masked_zero_leaves_a_masked_gradient():
    x = tensor([1.0, 1.0], requires_grad=True)
    div = tensor([0.0, 1.0])
    as_masked_tensor(x / div, div != 0).sum().backward()
    assert isinstance(x.grad, MaskedTensor) and is_masked_tensor(x.grad)
    assert x.grad.tolist() == [None, 1.0]
    plain = tensor([1.0, 1.0], requires_grad=True)
    (plain / div)[div != 0].sum().backward()
    assert plain.grad[0].isnan()


@pytest.mark.parametrize("reduce", ["sum", "nansum"])
def test_a_masked_nan_does_not_reach_the_factor(reduce):
    a, b = tensor([1.0, 2.0, nan]), tensor(1.0, requires_grad=True)
    getattr(as_masked_tensor(a * b, ~a.isnan()), reduce)().backward()
    assert b.grad.item() == 3.0
    c = tensor(1.0, requires_grad=True)
    torch.nansum(a * c).backward()
    assert c.grad.isnan()


def test_masked_factor_times_plain_scalar():
    a, b = tensor([1.0, 2.0, nan]), tensor(1.0, requires_grad=True)
    (masked_tensor(a, ~a.isnan()) * b).sum().backward()
    assert type(b.grad) is torch.Tensor and b.grad.item() == 3.0


def test_mean_and_argmin_over_what_is_not_zero():
    x = torch.arange(16.0)
    y = x * x.fmod(4)
    m = masked_tensor(y, y != 0)
    assert round(m.mean().item(), 4) == 16.6667
    assert m.argmin().item() == 1 and m.argmin().dtype == torch.int64
    hidden = masked_tensor(y, torch.zeros_like(y, dtype=torch.bool))
    assert hidden.mean().tolist() is None
    assert repr(hidden.mean()) == "MaskedTensor(--)"


def test_softmax_of_a_column_with_nothing_specified_is_unspecified():
    torch.manual_seed(0)
    data = torch.randn(3, 3)
    mask = tensor([[T, F, F], [T, F, T], [F, F, F]])
    out = masked_tensor(data, mask).softmax(0)
    assert torch.equal(out.get_mask(), mask)
    assert torch.allclose(out.sum(0).to_tensor(0), tensor([1.0, 0.0, 1.0]))
    assert data.masked_fill(~mask, -math.inf).softmax(0)[:, 1].isnan().all()


@pytest.fixture
def dense():
    return masked_tensor(tensor([[0.0, 0, 3], [4, 0, 5]]), tensor([[F, F, T], [F, F, T]]))


def test_coo_stores_what_is_specified(dense):
    m = dense.to_sparse_coo()
    assert m.is_sparse and m.is_sparse_coo() and not m.is_sparse_csr()
    assert m.get_data().indices().tolist() == [[0, 1], [2, 2]]
    assert m.get_data().values().tolist() == [3, 5]
    assert m.get_mask().layout == torch.sparse_coo


def test_csr_stores_what_is_specified(dense):
    m = dense.to_sparse_csr()
    assert m.is_sparse and m.is_sparse_csr() and not m.is_sparse_coo()
    assert m.get_data().crow_indices().tolist() == [0, 1, 2]
    assert m.get_data().col_indices().tolist() == [2, 2]


@pytest.mark.parametrize("layout", ["to_dense", "to_sparse_coo", "to_sparse_csr"])
def test_every_layout_gives_the_same_answers(dense, layout):
    m = getattr(dense, layout)()
    assert specified(m.sin()) == [[None, None, 0.1411], [None, None, -0.9589]]
    assert m.sum().tolist() == 8
    assert m.sum(1).tolist() == [3, 5]
    assert m.amin().tolist() == 3


@pytest.mark.parametrize("layout", ["to_dense", "to_sparse_coo", "to_sparse_csr"])
def test_binary_operations_with_equal_masks(layout):
    a, b = torch.zeros(2, 3), torch.zeros(2, 3)
    mask = tensor([[F, F, T], [T, F, F]])
    a[mask], b[mask] = tensor([20.0, 40.0]), tensor([3.0, 5.0])
    a, b = (getattr(masked_tensor(t, mask), layout)() for t in (a, b))
    assert specified(a / b) == [[None, None, 6.6667], [8.0, None, None]]
    assert specified(a * b) == [[None, None, 60.0], [200.0, None, None]]


def test_explicit_coo_keeps_a_stored_value_that_is_not_specified():
    i = tensor([[0, 1, 1], [2, 0, 2]])
    data = torch.sparse_coo_tensor(i, tensor([3.0, 4, 5]), (2, 3), check_invariants=True)
    mask = torch.sparse_coo_tensor(i, tensor([T, F, T]), (2, 3), check_invariants=True)
    m = masked_tensor(data, mask)
    assert m.get_data()._nnz() == 3 and m.get_data().coalesce().values().tolist() == [3, 4, 5]
    assert m.tolist() == [[None, None, 3], [None, None, 5]]
    assert m.sum().tolist() == 8


def test_a_mask_may_store_a_subset_of_the_places_of_the_data():
    data = tensor([[0.0, 0, 3], [4, 0, 5]])
    mask = tensor([[F, F, T], [F, F, T]])
    for convert in ("to_sparse_coo", "to_sparse_csr"):
        m = masked_tensor(getattr(data, convert)(), getattr(mask, convert)())
        assert m.tolist() == [[None, None, 3], [None, None, 5]]
        assert m.get_data()._nnz() == 2


def adagrad():
    i = tensor([[0, 1, 1], [2, 0, 2]])
    grad = torch.sparse_coo_tensor(i, tensor([3.0, 4, 5]), (2, 4), check_invariants=True).coalesce()
    return torch.arange(8.0).reshape(2, 4), torch.full((2, 4), 0.5), grad


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # torch.optim.Adagrad's own sparse path
def test_adagrad_dense_sparse_and_masked_agree():
    results = {}
    for form in ("dense", "sparse", "masked"):
        param, _, grad = adagrad()
        param = torch.nn.Parameter(param)
        optimiser = torch.optim.Adagrad([param], lr=0.1, eps=1e-10, initial_accumulator_value=0.5)
        mask = torch.sparse_coo_tensor(
            grad.indices(), torch.ones(3, dtype=torch.bool), grad.shape, is_coalesced=True, check_invariants=True
        )
        param.grad = {
            "dense": grad.to_dense(),
            "sparse": grad,
            "masked": masked_tensor(grad, mask).to_dense(),
        }[form]
        optimiser.step()
        results[form] = param.detach(), optimiser.state[param]["sum"]
    param, state = results["masked"]
    for form in ("dense", "sparse"):
        torch.testing.assert_close(results[form], (param, state))
    assert state[0, 2] == 9.5 and state[1, 0] == 16.5 and state[1, 2] == 25.5
    assert [round(float(param[p]), 4) for p in ((0, 2), (1, 0), (1, 2))] == [1.9027, 3.9015, 5.9010]
    assert float(state[0, 0]) == 0.5 and float(param[0, 3]) == 3


def test_adagrad_written_with_masked_tensors():
    param, state, grad = adagrad()
    mask = torch.sparse_coo_tensor(
        grad.indices(), torch.ones(3, dtype=torch.bool), grad.shape, is_coalesced=True, check_invariants=True
    )
    g = masked_tensor(grad, mask)
    total = g.pow(2) + state
    std = total.sqrt() + 1e-10
    new = param + (g / std) * -0.1
    assert total.is_sparse_coo() and total.get_data().values().tolist() == [9.5, 16.5, 25.5]
    assert [round(v, 4) for v in std.get_data().values().tolist()] == [3.0822, 4.0620, 5.0498]
    assert [round(v, 4) for v in new.get_data().values().tolist()] == [1.9027, 3.9015, 5.9010]
    param.add_(g / std, alpha=-0.1)
    assert round(float(param[0, 2]), 4) == 1.9027 and float(param[0, 3]) == 3


def test_three_policies_for_unequal_masks():
    data, mask = torch.arange(5.0), tensor([T, T, F, T, F])
    a, b = masked_tensor(data, mask), masked_tensor(data, ~mask)
    with pytest.raises(ValueError, match=r"Input masks must match.*first differ at \(0,\).*mask_policy"):
        a + b
    with mask_policy("intersection"):
        assert (a + b).tolist() == [None] * 5
    with mask_policy("union"):
        assert (a + b).tolist() == [0, 1, 2, 3, 4]


def test_sum_of_sums_differs_from_the_sum_of_a_sum_under_intersection():
    data = torch.arange(4.0)
    a, b = masked_tensor(data, tensor([T, T, F, F])), masked_tensor(data, tensor([T, F, T, F]))
    with mask_policy("intersection"):
        assert (a + b).sum().item() == 0
    with mask_policy("union"):
        assert (a + b).sum().item() == 3
    assert (a.sum() + b.sum()).item() == 3


def test_reductions_of_the_advanced_tutorial():
    m = masked_tensor(torch.arange(12.0).reshape(3, 4), tensor([[F, F, F, T], [F, T, F, F], [F, F, T, T]]))
    for name, expected in {
        "sum": [3, 5, 21],
        "mean": [3, 5, 10.5],
        "prod": [3, 5, 110],
        "amin": [3, 5, 10],
        "amax": [3, 5, 11],
    }.items():
        assert getattr(m, name)(1).tolist() == expected


def test_slicing_of_the_overview():
    data = torch.arange(24).reshape(2, 3, 4)
    m = masked_tensor(data.float(), data % 2 == 0)
    assert m[0].tolist() == [[0, None, 2, None], [4, None, 6, None], [8, None, 10, None]]
    assert m[:, :, 2:4].tolist()[1] == [[14, None], [18, None], [22, None]]
    assert m.to_tensor(-1)[0, 0].tolist() == [0, -1, 2, -1]
