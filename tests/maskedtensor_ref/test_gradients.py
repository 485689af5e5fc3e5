"""Gradients: of masked leaves, of what enters through as_masked_tensor, of layers in front, and optimisers' steps."""

import copy
import math

import pytest
import torch
import torch.nn as nn
from torch import tensor
from torch.nn.utils import clip_grad_norm_

from maskedtensor_ref import MaskedTensor, as_masked_tensor, mask_policy, masked_tensor
from maskedtensor_ref.optim import MaskedAdam

T, F = True, False
A, B = tensor([T, T, F, F]), tensor([F, T, T, F])


def leaf(n=4):
    return torch.ones(n, requires_grad=True)


def test_a_leaf_used_under_two_masks_accumulates_both():
    w = leaf()
    as_masked_tensor(w, A).sum().backward()
    as_masked_tensor(w, B).sum().backward()
    assert w.grad.tolist() == [1, 2, 1, None]


def test_two_masks_in_one_graph():
    w = leaf()
    (as_masked_tensor(w, A).sum() + as_masked_tensor(w, B).sum()).backward()
    assert w.grad.tolist() == [1, 2, 1, None]


@pytest.mark.parametrize("masked_first", [T, F])
def test_once_masked_and_once_plain(masked_first):
    w = leaf()
    uses = [lambda: as_masked_tensor(w * 2, A).sum().backward(), lambda: (w * 3).sum().backward()]
    for use in uses if masked_first else uses[::-1]:
        use()
    got = w.grad.to_tensor(-1) if isinstance(w.grad, MaskedTensor) else w.grad
    assert got.tolist() == [5, 5, 3, 3]


def test_once_masked_and_once_plain_in_one_graph():
    w = leaf()
    (as_masked_tensor(w * 2, A).sum() + (w * 3).sum()).backward()
    got = w.grad.to_tensor(-1) if isinstance(w.grad, MaskedTensor) else w.grad
    assert got.tolist() == [5, 5, 3, 3]


def test_a_masked_leaf_accumulates_under_its_own_mask():
    x = masked_tensor(torch.ones(4), torch.ones(4, dtype=torch.bool), requires_grad=True)
    with mask_policy("intersection"):
        ((x * masked_tensor(torch.ones(4), A)).sum() + (x * masked_tensor(torch.ones(4), B)).sum()).backward()
    assert x.grad.tolist() == [1, 2, 1, 0]


def test_a_plain_operand_gets_a_plain_gradient_without_poison():
    for hidden in (math.nan, math.inf, 0.0, 1e30):
        b = tensor([2.0, 0.0, 2.0], requires_grad=True)
        m = masked_tensor(tensor([1.0, hidden, 3.0]), tensor([T, F, T]), requires_grad=True)
        (m / b).sum().backward()
        assert type(b.grad) is torch.Tensor and b.grad.tolist() == [-0.25, 0, -0.75]
        assert m.grad.tolist() == [0.5, None, 0.5]


def test_backward_of_more_than_one_element_starts_from_what_is_specified():
    b = torch.ones(3, requires_grad=True)
    m = masked_tensor(torch.full((3,), 2.0), tensor([T, F, T]))
    (m * b).backward(tensor([1.0, math.nan, 1.0]))
    assert b.grad.tolist() == [2, 0, 2]
    with pytest.raises(RuntimeError, match="gradient="):
        (m * b).backward()


LAYERS = {
    "linear": lambda: nn.Linear(6, 6),
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "softmax": lambda: nn.Softmax(-1),
    "log_softmax": lambda: nn.LogSoftmax(-1),
    "layer_norm": lambda: nn.LayerNorm(6),
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "leaky_relu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "dropout": lambda: nn.Dropout(0.0),
    "batch_norm": lambda: nn.BatchNorm1d(6),
    "rms_norm": lambda: nn.RMSNorm(6),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_in_front_of_a_masked_loss_trains(name):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), LAYERS[name](), nn.Linear(6, 6), LAYERS[name]()).double()
    ref, x, mask = copy.deepcopy(net), torch.randn(5, 4, dtype=torch.float64), torch.rand(5, 6) > 0.5
    as_masked_tensor(net(x), mask).pow(2).sum().backward()
    (ref(x).pow(2) * mask).sum().backward()
    for p, q in zip(net.parameters(), ref.parameters(), strict=True):
        g = p.grad.to_tensor(0) if isinstance(p.grad, MaskedTensor) else p.grad
        torch.testing.assert_close(g, q.grad)


def test_embedding_convolution_and_matmul_train():
    table = nn.Embedding(5, 3)
    as_masked_tensor(table(tensor([1, 1, 4])), tensor([[T, F, T]] * 3)).sum().backward()
    assert table.weight.grad.tolist() == [[0] * 3, [2, 0, 2], [0] * 3, [0] * 3, [1, 0, 1]]
    conv = nn.Conv1d(1, 1, 2, bias=False)
    as_masked_tensor(conv(torch.ones(1, 1, 4)), tensor([[[T, F, T]]])).sum().backward()
    assert conv.weight.grad.flatten().tolist() == [2, 2]
    w = torch.ones(2, 2, requires_grad=True)
    as_masked_tensor(torch.eye(2) @ w, tensor([[T, F], [F, F]])).sum().backward()
    g = w.grad.to_tensor(0) if isinstance(w.grad, MaskedTensor) else w.grad
    assert g.tolist() == [[1, 0], [0, 0]]


def test_autograd_functions_and_hooks():
    m = masked_tensor(tensor([1.0, 2.0, 3.0]), tensor([T, F, T]), requires_grad=True)
    (g,) = torch.autograd.grad((m * m).sum(), m, create_graph=True)
    assert g.tolist() == [2, None, 6]
    (h,) = torch.autograd.grad(g.sum(), m)
    assert h.tolist() == [2, None, 2]
    torch.autograd.backward((m * m).sum())
    assert m.grad.tolist() == [2, None, 6]
    m.grad = None
    seen = []
    m.register_hook(lambda g: seen.append(g) or g * 2)
    (m * 1).sum().backward()
    assert seen[0].tolist() == [1, None, 1] and m.grad.tolist() == [2, None, 2]
    m.grad = m.detach()
    assert m.grad.tolist() == [1, None, 3]
    y = m * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, None, 1] and not y.is_leaf and m.is_leaf


@pytest.mark.parametrize("name", ["maximum", "minimum", "sinc", "tanh", "sigmoid", "where", "softmax", "std"])
def test_gradients_that_crash_the_peer(name):
    data = torch.rand(3, 4, dtype=torch.float64)
    mask = tensor([[T, F, T, T], [T, T, T, F], [F, T, T, T]])
    m, p = masked_tensor(data, mask, requires_grad=True), data.clone().requires_grad_()
    f = {
        "maximum": lambda x: torch.maximum(x, x * 0.5),
        "minimum": lambda x: torch.minimum(x, x * 0.5),
        "where": lambda x: x.where(data > 0.5, x * 2),
        "softmax": lambda x: x.softmax(1),
        "std": lambda x: x.std(1),
    }.get(name, lambda x: getattr(torch, name)(x))
    out = f(m)
    (out * out).sum().backward()
    if name in ("softmax", "std"):
        rows = torch.stack(
            [torch.autograd.grad((f(p[i][mask[i]][None]) ** 2).sum(), p, retain_graph=True)[0] for i in range(3)]
        )
        expected = rows.sum(0)
    else:
        (expected,) = torch.autograd.grad(((f(p) ** 2) * mask).sum(), p)
    torch.testing.assert_close(m.grad.to_tensor(0), expected * mask)


STOCK = {"SGD": torch.optim.SGD, "Adagrad": torch.optim.Adagrad, "MaskedAdam": MaskedAdam}


def stepped(optimiser, mask=A, steps=1, **options):
    w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    o = optimiser([w], lr=0.1, **options)
    for _ in range(steps):
        o.zero_grad()
        as_masked_tensor(w * w, mask).sum().backward()
        o.step()
    return w.detach(), o.state[w]


@pytest.mark.parametrize("name", STOCK)
def test_a_step_moves_only_what_is_specified(name):
    w, state = stepped(STOCK[name], steps=3)
    assert w[2:].tolist() == [3, 4] and (w[:2] < tensor([1.0, 2.0])).all()
    for s in state.values():
        if isinstance(s, torch.Tensor) and s.dim():
            assert s[2:].tolist() == [0, 0]


@pytest.mark.parametrize("name", STOCK)
def test_a_step_is_the_plain_step_where_it_moves(name):
    plain = {"MaskedAdam": torch.optim.Adam}.get(name, STOCK[name])
    w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    o = plain([w], lr=0.1)
    for _ in range(3):
        o.zero_grad()
        (w * w).sum().backward()
        o.step()
    torch.testing.assert_close(stepped(STOCK[name], steps=3)[0][:2], w.detach()[:2])
    torch.testing.assert_close(stepped(STOCK[name], torch.ones(4, dtype=torch.bool), 3)[0], w.detach())


@pytest.mark.parametrize(
    ("optimiser", "options"), [(torch.optim.Adam, {}), (torch.optim.AdamW, {}), (torch.optim.SGD, {"momentum": 0.9})]
)
def test_state_driven_optimisers_move_what_has_gone_missing(optimiser, options):
    w = nn.Parameter(torch.ones(4))
    o = optimiser([w], lr=0.1, **options)
    (w * w).sum().backward()
    o.step()
    before = w.detach().clone()
    o.zero_grad()
    as_masked_tensor(w * w, A).sum().backward()
    o.step()
    assert (w.detach()[2:] < before[2:]).all()


def test_masked_adam_takes_sparse_gradients_and_refuses_bad_options():
    w = nn.Parameter(torch.ones(4, 2))
    g = masked_tensor(torch.ones(4, 2), tensor([[F, F], [T, T], [F, F], [F, F]]))
    for grad in (g, g.to_sparse_coo(), g.to_sparse(1)):
        p = nn.Parameter(w.detach().clone())
        p.grad = grad
        MaskedAdam([p], lr=0.1).step()
        torch.testing.assert_close(p.detach(), tensor([[1.0, 1.0], [0.9, 0.9], [1.0, 1.0], [1.0, 1.0]]))
    for options in ({"lr": -1}, {"betas": (1.0, 0.9)}, {"eps": -1}):
        with pytest.raises(ValueError, match=r"must be"):
            MaskedAdam([w], **options)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize(
    "sparse", [lambda g: g, lambda g: g.to_sparse_coo(), lambda g: g.to_sparse(1)], ids=["strided", "coo", "hybrid"]
)
def test_adagrad_steps_on_masked_gradients_of_every_layout(sparse):
    p = nn.Parameter(torch.ones(3, 2))
    p.grad = sparse(masked_tensor(torch.full((3, 2), 2.0), tensor([[F, F], [T, F], [T, T]])))
    o = torch.optim.Adagrad([p], lr=0.1)
    o.step()
    torch.testing.assert_close(p.detach(), tensor([[1.0, 1.0], [0.9, 1.0], [0.9, 0.9]]))
    assert o.state[p]["sum"].tolist() == [[0, 0], [4, 0], [4, 4]]


def test_adagrad_steps_on_a_sparse_masked_gradient_where_invariants_are_checked():
    p = nn.Parameter(torch.ones(2, 2))
    p.grad = masked_tensor(torch.full((2, 2), 2.0), tensor([[F, F], [T, F]])).to_sparse_coo()
    with torch.sparse.check_sparse_tensor_invariants():
        torch.optim.Adagrad([p], lr=0.1).step()
    torch.testing.assert_close(p.detach(), tensor([[1.0, 1.0], [0.9, 1.0]]))


@pytest.mark.parametrize("kind", ["masked", "mixed", "hidden"])
def test_clip_grad_norm_counts_what_is_specified(kind):
    w, v = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(2))
    mask = torch.zeros(4, dtype=torch.bool) if kind == "hidden" else A
    loss = as_masked_tensor(w * 3, mask).sum().to_tensor(0) if kind == "hidden" else as_masked_tensor(w * 3, mask).sum()
    (loss + (v * 4).sum() if kind != "masked" else loss).backward()
    total = clip_grad_norm_([w, v], 1.0)
    expected = {"masked": 18**0.5, "mixed": 50**0.5, "hidden": 32**0.5}[kind]
    assert float(total) == pytest.approx(expected)
    assert w.grad.get_mask().equal(mask)
    if kind == "masked":
        assert w.grad.tolist()[:2] == pytest.approx([2**-0.5] * 2, rel=1e-4)


def test_zero_grad_can_fill_with_zeros():
    w = nn.Parameter(torch.ones(4))
    as_masked_tensor(w, A).sum().backward()
    torch.optim.SGD([w], lr=1.0).zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0, 0, None, None]


def test_a_gradient_that_is_set_keeps_what_is_missing_missing():
    m = masked_tensor(torch.ones(3), tensor([T, F, T]), requires_grad=True)
    m.grad = masked_tensor(tensor([math.nan, 1.0, 1.0]), tensor([F, T, T]))
    assert m.grad.tolist() == [None, None, 1]
    (m * 2).sum().backward()
    assert m.grad.tolist() == [2, None, 3]
    for convert in (MaskedTensor.to_sparse_coo, MaskedTensor.to_sparse_csr):
        s = convert(masked_tensor(torch.ones(2, 2), tensor([[T, F], [T, T]]))).detach().requires_grad_()
        for g in (s * 2, s.to_dense() * 2, torch.full((2, 2), 2.0)):
            s.grad = g.detach()
            assert s.grad.layout == s.layout and s.grad.tolist() == [[2, None], [2, 2]]
        dense = s.detach().to_dense().requires_grad_()
        dense.grad = s.grad
        assert dense.grad.tolist() == [[2, None], [2, 2]]


def test_a_plain_number_takes_what_a_sparse_one_specifies():
    p = torch.tensor(1.0)
    p.add_(masked_tensor(tensor(2.0), tensor(T)).to_sparse_coo())
    p.add_(masked_tensor(tensor(2.0), tensor(F)).to_sparse_coo())
    assert p.item() == 3
