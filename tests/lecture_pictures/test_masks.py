"""The mask grid shows what counts, and whether what is hidden reaches a result."""

import pytest
import torch

from lecture_pictures import DrawingError, mask_grid
from lecture_pictures.masks import poisoned

NAN = float("nan")
DATA = torch.tensor([[1.0, 2.0, NAN], [3.0, -4.0, 5.0]])
MASK = torch.tensor([[True, False, False], [True, True, False]])


def selected_sum(data, mask):
    return data.where(mask, 0).sum()


def leaky_sum(data, mask):
    return (data * mask).sum()


DRAWN = {
    "matrix": (DATA, MASK),
    "row": (torch.arange(5), torch.arange(5) > 2),
    "0-d counting": (torch.tensor(1.5), torch.tensor(True)),
    "0-d hidden": (torch.tensor(NAN), torch.tensor(False)),
    "empty": (torch.zeros(0, 3), torch.ones(0, 3, dtype=torch.bool)),
    "nothing hidden": (DATA, torch.ones(2, 3, dtype=torch.bool)),
    "everything hidden": (DATA, torch.zeros(2, 3, dtype=torch.bool)),
    "3-d": (torch.arange(12.0).view(2, 2, 3), torch.arange(12).view(2, 2, 3) % 2 == 0),
    "bools": (torch.tensor([True, False]), torch.tensor([True, False])),
    "complex": (torch.tensor([1 + 1j, complex(NAN, 0)]), torch.tensor([True, False])),
    "expanded": (torch.ones(1, 3).expand(2, 3), MASK),
    "transposed": (DATA.t(), MASK.t()),
}


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("name", DRAWN)
def test_every_mask_is_drawn_legibly(name, poison, legible):
    data, mask = DRAWN[name]
    legible(mask_grid(data, mask, poison))
    legible(mask_grid(data, mask, poison, lambda d, m: d, called="same"))


def test_what_counts_shows_its_value_and_what_is_hidden_does_not(seen):
    picture = mask_grid(DATA, MASK)
    assert "x =   1.0      ·   ⚡nan\n      3.0   -4.0      ·" in picture.text
    assert "5.0" not in seen(picture) and "2.0" not in seen(picture)
    assert picture.svg.count("<circle") == 3  # two hidden cells and the sample in the key


def test_poison_reaches_exactly_what_is_hidden():
    for data, mask in DRAWN.values():
        bad = poisoned(data, mask)
        assert torch.equal(bad[mask], data[mask]) or bad[mask].isnan().equal(data[mask].isnan())
        assert (bad.dtype == data.dtype and not torch.equal(bad[~mask], data[~mask])) or mask.all()


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (selected_sum, "NO LEAK: what is hidden does not matter"),
        (leaky_sum, "LEAK: what is hidden changes the result"),
        (lambda d, m: 1 + 1e-7 * d.nan_to_num(7).sum(), "LEAK: what is hidden changes the result"),
        (lambda d, m: d.where(m, 0), "NO LEAK: what is hidden does not matter"),
        (lambda d, m: d.flatten()[0] / 0 * 0, "NO LEAK: what is hidden does not matter"),
        (lambda d, m: d.new_zeros(0), "NO LEAK: what is hidden does not matter"),
        (lambda d, m: d[m] if d.isnan().any() else d, "LEAK: what is hidden changes the result"),
    ],
)
def test_the_verdict_is_whether_the_result_changed(function, verdict, seen):
    picture = mask_grid(DATA.nan_to_num(), MASK, True, function)
    assert verdict in picture.text.splitlines()
    assert verdict.split(":")[0] in seen(picture)


def test_integers_are_poisoned_with_the_largest_number():
    data = torch.arange(3)
    assert poisoned(data, data > 0).tolist() == [2**63 - 1, 1, 2]
    assert "LEAK" in mask_grid(data, data > 0, True, lambda d, m: d.max()).text


def test_a_function_that_writes_to_its_input_does_not_reach_the_callers_tensors():
    data, mask = DATA.clone(), MASK.clone()
    mask_grid(data, mask, True, lambda d, m: d.zero_().sum() + m.logical_not_().sum())
    assert torch.equal(data.nan_to_num(), DATA.nan_to_num()) and torch.equal(mask, MASK)
    assert data._version == 0 and mask._version == 0


@pytest.mark.parametrize(
    ("data", "mask", "function", "said"),
    [
        (DATA, MASK.int(), None, "the mask is torch.int32, expected torch.bool"),
        (DATA, [True], None, "the mask is list"),
        (DATA, MASK[:1], None, "the mask is (1, 3), x is (2, 3): they must agree"),
        (torch.zeros(65), torch.zeros(65) > 0, None, "x has 65 elements"),
        (DATA, MASK, lambda d, m: d @ d, "f failed on the data: RuntimeError"),
        (DATA, MASK, lambda d, m: d.repeat(20, 20), "the result of f has 2400 elements"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(data, mask, function, said):
    with pytest.raises(DrawingError) as refused:
        mask_grid(data, mask, True, function)
    assert said in str(refused.value)
