"""What lecture 04 says holds for the torch that is installed, and its references agree with autograd."""

import warnings
from pathlib import Path

import pytest
import torch
from torch.utils.tensorboard import SummaryWriter

from autograder import events
from autograder.exercises import VISIBLE_SEED, load_lecture

LECTURE = load_lecture("04_graphs", Path(__file__).parents[2] / "solutions")


def cases(id):
    return [case for seed in (VISIBLE_SEED, 1, 2, 3) for case in LECTURE[id].all_cases(seed)]


def chain(x):
    return torch.sin(torch.log(x * x + 1))


# ---- facts, by their number in the curriculum ------------------------------------------------------------------------


def test_the_old_constructor_makes_floats_of_anything_and_a_vector_of_a_number():  # F-28
    assert torch.Tensor([1]).dtype == torch.float32 and torch.Tensor(3).shape == (3,)


def test_integers_cannot_require_a_gradient():  # F-29
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1], requires_grad=True)
    x = torch.tensor([1.0])
    x.requires_grad = True
    assert x.is_leaf and x.requires_grad


def test_leaves_gradients_and_repeated_backward():  # F-30
    x = torch.tensor([1.0], requires_grad=True)
    g = x * x + 1
    k = torch.sin(torch.log(g))
    assert (x.is_leaf, g.is_leaf, k.is_leaf, (torch.ones(2) * 3).is_leaf) == (True, False, False, True)
    k.backward()
    assert round(x.grad.item(), 4) == 0.7692
    with pytest.raises(RuntimeError, match="second time"):
        k.backward()
    chain(x).backward()
    assert round(x.grad.item(), 4) == 1.5385
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert g.grad is None


def test_in_a_chain_the_order_of_multiplying_changes_nothing():  # F-31
    first, second, third = torch.tensor([0.5]), torch.tensor([3.0]), torch.tensor([-2.0])
    assert torch.equal((first * second) * third, first * (second * third))


def test_add_graph_warns_three_times_and_takes_modules_only(tmp_path):  # F-32
    with warnings.catch_warnings(record=True) as caught, SummaryWriter(str(tmp_path)) as writer:
        warnings.simplefilter("always")
        writer.add_graph(torch.nn.Tanh(), torch.ones(2))
        with pytest.raises(AttributeError):
            writer.add_graph(torch.sin, torch.ones(2))
    deprecated = [w for w in caught if w.category is DeprecationWarning and "torch.jit" in str(w.message)]
    assert len(deprecated) >= 3


def test_logging_twice_to_a_folder_makes_two_graphs_of_one_run(tmp_path):  # F-33
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            with SummaryWriter(str(tmp_path)) as writer:
                writer.add_graph(torch.nn.Tanh(), torch.ones(2))
    assert len(events.run([path.read_bytes() for path in tmp_path.iterdir()])["graphs"]) == 2


def test_the_graphs_of_the_lecture_can_be_read_from_their_files():  # F-34
    seen = LECTURE["logged_graphs"].driver(LECTURE["logged_graphs"].function, torch.ones(2, 3))
    runs = {name: events.run(files)["graphs"] for name, files in seen["runs"].items()}
    operations = {name: [line.split("(")[0] for line in graphs[0]][1:-1] for name, graphs in runs.items()}
    assert operations == {"ournet": ["mul", "add", "log", "sin"], "sequential": ["tanh", "relu", "softmax"]}


def test_a_module_without_an_init_needs_no_super_call():  # F-35
    class Net(torch.nn.Module):
        def forward(self, x):
            return chain(x)

    assert Net()(torch.zeros(1)).item() == 0


def test_small_steps_are_worse_in_float32_and_not_in_float64():
    x = torch.tensor(1.0)
    slopes = {h: (((x + h) ** 2 - x**2) / h).item() for h in (1e-4, 1e-6, 1e-8)}
    assert {h: round(s, 5) for h, s in slopes.items()} == {1e-4: 2.00033, 1e-6: 1.90735, 1e-8: 0.0}
    wide = x.double()
    assert abs((((wide + 1e-8) ** 2 - wide**2) / 1e-8).item() - 2) < 1e-7


# ---- the references against autograd ---------------------------------------------------------------------------------


def test_the_derivatives_are_those_of_autograd():
    functions = {
        "power": lambda x, p: x**p,
        "exp": lambda x, p: x.exp(),
        "log": lambda x, p: x.log(),
        "sin": lambda x, p: x.sin(),
    }
    for rule, x, p in cases("derivative"):
        x = x.detach().requires_grad_()
        expected = torch.autograd.grad(functions[rule](x, p).sum(), x, allow_unused=True, materialize_grads=True)[0]
        torch.testing.assert_close(LECTURE["derivative"](rule, x, p).detach(), expected, equal_nan=True)


def test_the_backward_pass_is_that_of_autograd():
    for (x,) in cases("forward_pass"):
        x = x.detach().clone().requires_grad_()
        g, h, _ = LECTURE["forward_pass"](x)
        expected = torch.autograd.grad(chain(x).sum(), x)[0]
        torch.testing.assert_close(LECTURE["backward_pass"](x, g, h)[2].detach(), expected, equal_nan=True)


def test_the_little_autograd_is_right_about_its_cases():
    exercise = LECTURE["Value"]
    for formula, a, b in cases("Value"):
        seen = exercise.driver(exercise.function, formula, a, b)
        leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (a, b)]

        def chained(v, n):
            for _ in range(n):
                v = v + 1
            return v

        result = eval(formula, {"a": leaves[0], "b": leaves[1], "chained": chained})
        grads = torch.autograd.grad(result, leaves, allow_unused=True, materialize_grads=True)
        expected = [result.item(), *(g.item() for g in grads)]
        assert list(seen.values()) == pytest.approx(expected, rel=1e-9, abs=1e-12), formula


def test_leaves_are_what_torch_calls_leaves():
    exercise = LECTURE["leaf_report"]

    def both(tensors):
        report = exercise.function(tensors)
        assert {name: leaf for name, (leaf, _) in report.items()} == {name: t.is_leaf for name, t in tensors.items()}
        total = sum((t.sum() for t in tensors.values() if t.requires_grad), torch.zeros(()))
        if total.requires_grad:
            total.backward()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            filled = {name: t.grad is not None for name, t in tensors.items()}
        assert {name: kept for name, (_, kept) in report.items()} == filled

    for (made,) in cases("leaf_report"):
        exercise.driver(both, made)
