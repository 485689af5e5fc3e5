"""The row map's step is torch.optim.Adagrad's, and untouched rows stay bitwise as they were."""

import pytest
import torch

from lecture_pictures import DrawingError, adagrad_row_map
from lecture_pictures.adagrad import adagrad_step


def coo(indices, values, shape):
    return torch.sparse_coo_tensor(indices, values, shape, check_invariants=True)


ENTRIES = coo([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 4))
ROWS = coo([[1, 4, 1]], [[1.0, 2.0], [0.5, -1.0], [1.0, 1.0]], (6, 2))


@pytest.mark.parametrize("grad", [ENTRIES, ROWS], ids=["entries", "rows"])
def test_the_step_is_torchs(grad):
    start = torch.arange(grad.numel(), dtype=torch.float32).view(grad.shape)
    param = torch.nn.Parameter(start.clone())
    optimizer = torch.optim.Adagrad([param], lr=0.1, initial_accumulator_value=0.5)
    param.grad = grad.clone()
    with torch.sparse.check_sparse_tensor_invariants():  # torch warns where nobody chose
        optimizer.step()
    step = adagrad_step(start, torch.full(grad.shape, 0.5), grad)
    torch.testing.assert_close(step.new_param, param.detach())
    torch.testing.assert_close(step.new_state, optimizer.state[param]["sum"])
    assert torch.equal(step.new_param[~step.given], start[~step.given])
    assert step.touched == sorted(set(grad.coalesce().indices()[0].tolist()))


def test_a_stored_zero_gradient_touches_its_row():
    grad = coo([[1], [0]], [0.0], (2, 1))
    text = adagrad_row_map(torch.ones(2, 1), torch.zeros(2, 1), grad).text
    assert "1 of 2 rows touched" in text and "[1,0]: grad 0.0, state 0.0 → 0.0" in text and "row 0: not touched" in text


def test_duplicates_are_added_before_they_are_squared():
    text = adagrad_row_map(torch.ones(6, 2), torch.zeros(6, 2), ROWS).text
    assert "an index was given more than once" in text
    assert "[1,0]: grad 2.0, state 0.0 → 4.0" in text
    assert "more than once" not in adagrad_row_map(torch.ones(2, 4), torch.zeros(2, 4), ENTRIES).text


def test_the_callers_tensors_are_left_alone():
    param, state = torch.ones(6, 2), torch.zeros(6, 2)
    adagrad_row_map(param, state, ROWS)
    assert param._version == 0 and state._version == 0 and not ROWS.is_coalesced()


@pytest.mark.parametrize(
    ("shape", "grad"),
    [
        ((2, 4), ENTRIES),
        ((6, 2), ROWS),
        ((0, 2), coo(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0, 2), (0, 2))),
        ((3, 1), coo(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), (3, 1))),
        ((12, 4), coo([[0, 11]], [[1e-8] * 4, [12345.678] * 4], (12, 4))),
    ],
)
def test_every_step_is_drawn_legibly(shape, grad, legible):
    legible(adagrad_row_map(torch.full(shape, -1234.5), torch.full(shape, 0.001), grad))


@pytest.mark.parametrize(
    ("param", "state", "grad", "lr", "said"),
    [
        (
            torch.ones(2, 4),
            torch.zeros(2, 4),
            torch.ones(2, 4),
            0.1,
            "grad is torch.strided",
        ),
        (torch.ones(2, 3), torch.zeros(2, 4), ENTRIES, 0.1, "param (2, 3), state (2, 4), grad (2, 4): they must agree"),
        (torch.ones(2, 4), torch.zeros(2, 4) - 1, ENTRIES, 0.1, "must be 0 or more"),
        (torch.ones(2, 4), torch.zeros(2, 4), ENTRIES, -0.1, "lr is -0.1"),
        (torch.ones(2, 4), torch.zeros(2, 4).double(), ENTRIES, 0.1, "they must agree"),
        (torch.ones(4), torch.zeros(4), ENTRIES, 0.1, "expected a matrix of floats"),
        (torch.ones(13, 1), torch.ones(13, 1), coo([[0]], [[1.0]], (13, 1)), 0.1, "at most (12, 4) is drawn"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_way_out(param, state, grad, lr, said):
    with pytest.raises(DrawingError) as refused:
        adagrad_row_map(param, state, grad, lr)
    assert said in str(refused.value)
