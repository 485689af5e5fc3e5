"""The references of lecture 03 against what they are references of: torch, in float64."""

from pathlib import Path

import pytest
import torch

from autograder.check import Checker, CheckFailed
from autograder.exercises import load_lecture

LECTURE = load_lecture("03_activations", Path(__file__).parents[2] / "solutions")
SEEDS = range(1, 21)


def cases(id):
    return [case for seed in SEEDS for case in LECTURE[id].all_cases(seed)]


def wide(x):
    return x.detach().double().requires_grad_()


def gradient(y, x):
    return torch.autograd.grad(y.sum(), x)[0]


def test_the_stable_sigmoid_is_the_sigmoid_and_so_is_its_gradient():
    for (x,) in cases("stable_sigmoid"):
        if x.dtype == torch.float16:
            continue
        y, z = LECTURE["stable_sigmoid"](x), wide(x)
        torch.testing.assert_close(y.double(), torch.sigmoid(z), rtol=1e-5, atol=1e-6)
        if x.requires_grad:
            torch.testing.assert_close(gradient(y, x).double(), gradient(torch.sigmoid(z), z), rtol=1e-4, atol=1e-6)


def test_the_stable_sigmoid_passes_gradcheck():
    x = torch.tensor([-5.0, 0.1, 5.0, -0.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(LECTURE["stable_sigmoid"].function, (x,))


def test_my_softmax_is_softmax_and_does_not_see_a_shift():
    for x, dim in cases("my_softmax"):
        if x.dtype == torch.float16:
            continue
        p = LECTURE["my_softmax"](x, dim)
        torch.testing.assert_close(p.double(), torch.softmax(wide(x), dim), rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(LECTURE["my_softmax"](x + 64, dim), p, rtol=1e-3, atol=1e-4)


def test_the_loss_is_cross_entropy_with_its_gradient():
    for logits, labels in cases("log_softmax_and_loss"):
        log_p, loss = LECTURE["log_softmax_and_loss"](logits, labels)
        torch.testing.assert_close(log_p, torch.log_softmax(logits, 1))
        other = torch.nn.functional.cross_entropy(logits, labels)
        torch.testing.assert_close(loss, other)
        if logits.requires_grad:
            torch.testing.assert_close(gradient(loss, logits), gradient(other, logits), rtol=1e-5, atol=1e-6)


def test_entropy_is_that_of_the_distribution_and_grows_with_the_temperature():
    for logits, temperature in cases("entropy"):
        if temperature <= 0:
            continue
        found = LECTURE["entropy"](logits, temperature)
        torch.testing.assert_close(
            found, torch.distributions.Categorical(logits=logits / temperature).entropy(), rtol=1e-4, atol=1e-5
        )
        assert (LECTURE["entropy"](logits, 1.5 * temperature) >= found - 1e-5).all()


def test_my_relu_is_relu_where_relu_takes_the_dtype():
    for (x,) in cases("MyReLU"):
        y, expected = LECTURE["MyReLU"].function.functional(x), torch.relu(x)
        torch.testing.assert_close(y, expected, equal_nan=True)
        if x.requires_grad:
            torch.testing.assert_close(gradient(y, x), gradient(torch.relu(x), x))


@pytest.mark.parametrize("claim", ["never negative", "always defined", "shift changes nothing", "keeps the order"])
@pytest.mark.parametrize("x", [[1.0, 2.0], [5.0, 5.0], [-1.0, -1.0], [float("nan"), 1.0], [1.0, 2.0, 3.0]])
def test_a_claim_fails_only_for_a_counter_example_to_it(claim, x):
    found = LECTURE["counter_example"].teller(torch.tensor(x), claim, 2)
    expected = {"shift changes nothing": [[1.0, 2.0]]}.get(claim, [])
    assert found["the claim fails"] is (x in expected)


def test_a_shift_that_leads_to_no_result_is_no_counter_example():
    found = LECTURE["counter_example"].teller(torch.tensor([1.0, -3.0]), "shift changes nothing", 2)
    assert found["finite floats"] and not found["the claim fails"]


def test_the_card_of_the_figure_names_what_is_looked_at():
    assert "alt text" in LECTURE["sigmoid_figure"].properties[0].text


class Called(torch.nn.Module):
    @staticmethod
    def functional(x):
        return torch.relu(x)

    def forward(self, x):
        return self.functional(x)


def test_a_name_that_is_forbidden_is_found_in_a_class_in_the_notebook_too():
    Called.__name__ = "MyReLU"
    check = Checker("03_activations", LECTURE.folder)
    with pytest.raises(CheckFailed, match="your code: expected no relu, got relu in line"):
        check(Called)
