"""The stepper has autograd's numbers, and shows each of them not before its step."""

import pytest
import torch

from lecture_pictures import DrawingError, chain_step
from lecture_pictures.chain import STEPS, gradients_at, values_at

PLACES = [1.0, 0.0, -2.5, 0.5, 1000.0]


@pytest.mark.parametrize("x", PLACES)
def test_values_and_gradients_are_autograds(x):
    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    g = leaf * leaf + 1
    h = torch.log(g)
    k = torch.sin(h)
    found = torch.autograd.grad(k, (leaf, g, h, k))
    gradients, _ = gradients_at(x)
    values = values_at(x)
    for name, tensor, gradient in zip("xghk", (leaf, g, h, k), found, strict=True):
        assert values[name] == pytest.approx(tensor.item(), abs=1e-12)
        assert gradients[name] == pytest.approx(gradient.item(), abs=1e-12)


@pytest.mark.parametrize("x", PLACES)
@pytest.mark.parametrize("step", range(STEPS + 1))
def test_every_step_is_legible(step, x, legible):
    legible(chain_step(step, x))


def test_forward_comes_before_backward_and_each_step_adds_one_number():
    unknown = [chain_step(step).text.count("not known yet") for step in range(STEPS + 1)]
    assert unknown == [7, 6, 5, 4, 3, 2, 1, 0]
    assert "dk/dk not known yet" in chain_step(3).text and "k = 0.6390" in chain_step(3).text


def test_the_last_step_gives_the_derivative_from_kept_values():
    text = chain_step(7).text
    assert "backward: dk/dx = dk/dg · 2·x = 0.3846 · 2.0000 = 0.7692" in text
    assert "h = log(g) keeps g, used as 1 / g = 0.5000" in text


@pytest.mark.parametrize(
    ("step", "x", "said"),
    [
        (8, 1.0, "step is 8, expected 0 to 7"),
        (-1, 1.0, "step is -1"),
        (1, float("nan"), "x is nan"),
        (1, "1", "x is '1'"),
        (1, 1e9, "between -1e6 and 1e6"),
    ],
)
def test_a_step_that_does_not_exist_is_refused(step, x, said):
    with pytest.raises(DrawingError) as refused:
        chain_step(step, x)
    assert said in str(refused.value)
