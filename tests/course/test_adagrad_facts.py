"""What lecture 07 says holds for the torch that is installed, and its references agree with torch.optim.Adagrad."""

import warnings
from pathlib import Path

import pytest
import torch
import torch.masked

import maskedtensor_ref
from autograder import judge, probe, wire
from autograder.exercises import VISIBLE_SEED, load_lecture
from autograder.records import Reply

LECTURE = load_lecture("07_adagrad", Path(__file__).parents[2] / "solutions")
LR, EPS = 0.1, 1e-10
INDICES = torch.tensor([[0, 1, 1], [2, 0, 2]])
PACKAGES = pytest.mark.parametrize(
    "package", [torch.masked, maskedtensor_ref], ids=["torch.masked", "maskedtensor_ref"]
)


@pytest.fixture(autouse=True)
def as_in_the_setup_cell():
    """What the lecture's setup cell chooses."""
    before = torch.sparse.check_sparse_tensor_invariants.is_enabled()
    torch.sparse.check_sparse_tensor_invariants.enable()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CS[CR] tensor support is in beta", UserWarning)
        warnings.filterwarnings("ignore", "The PyTorch API of MaskedTensors is in prototype", UserWarning)
        yield
    if not before:
        torch.sparse.check_sparse_tensor_invariants.disable()


def cases(id):
    return [case for seed in (VISIBLE_SEED, 1, 2, 3) for case in LECTURE[id].all_cases(seed)]


def gradient(values=(3.0, 4.0, 5.0)):
    return torch.sparse_coo_tensor(INDICES, torch.tensor(values), (2, 4)).coalesce()


def everything(grad):
    return torch.sparse_coo_tensor(grad.indices(), torch.ones(len(grad.values())).bool(), grad.shape).coalesce()


def start():
    return torch.arange(8.0).view(2, 4), torch.full((2, 4), 0.5)


def published(grad, masked_tensor):
    """The masked step as it was first published: parameter, state, std."""
    param, state = start()
    mask = (grad.to_dense() != 0).to_sparse()
    masked_grad = masked_tensor(grad, mask)
    state = state + masked_grad.pow(2).get_data()
    std = masked_tensor(state.to_sparse(), mask).sqrt().add(EPS)
    return param.add((masked_grad / std).get_data(), alpha=-LR), state, std


def stock(param, state, grad, lr, eps):
    """One step of torch.optim.Adagrad: parameter and state after it."""
    param = torch.nn.Parameter(param.clone())
    adagrad = torch.optim.Adagrad([param], lr=lr, eps=eps)
    adagrad.state[param]["sum"] = state.clone()
    param.grad = grad
    adagrad.step()
    return param.detach(), adagrad.state[param]["sum"]


# ---- facts, by their number in the curriculum ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("optimiser", "error", "words"),
    [
        (torch.optim.Adagrad, TypeError, "addcmul_"),
        (torch.optim.SGD, ValueError, "kwargs"),
        (torch.optim.Adam, TypeError, "lerp_"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_stock_optimisers_refuse_the_masked_gradients_of_torch_masked(optimiser, error, words):  # F-44
    w = torch.nn.Parameter(torch.ones(2))
    torch.masked.as_masked_tensor(w * w, torch.tensor([True, False])).sum().backward()
    with pytest.raises(error, match=words):
        optimiser([w], lr=0.1).step()


@PACKAGES
def test_no_package_takes_csc(package):  # F-50
    eye = torch.eye(2).to_sparse_csc()
    with pytest.raises(TypeError, match="sparse_csc is not supported"):
        package.masked_tensor(eye, eye.bool())


@PACKAGES
def test_the_published_step_agrees_with_the_sparse_one_up_to_rounding(package):  # F-52
    param, state, std = published(gradient(), package.masked_tensor)
    other, other_state = start()
    LECTURE["sparse_step"](other, other_state, gradient(), LR, EPS)
    assert torch.equal(state, other_state) and 0 <= (param - other).abs().max() < 5e-7
    assert [round(v, 4) for v in std.get_data().coalesce().values().tolist()] == [3.0822, 4.0620, 5.0498]
    assert [round(float(param[p]), 4) for p in ((0, 2), (1, 0), (1, 2))] == [1.9027, 3.9015, 5.9010]
    assert [float(state[p]) for p in ((0, 2), (1, 0), (1, 2))] == [9.5, 16.5, 25.5]


def test_one_rounding_and_two_differ_in_the_last_digit():  # F-52
    q, tenth = torch.tensor(4.0) / (torch.tensor(16.5).sqrt() + EPS), torch.tensor(0.1)
    once, twice = (4 - tenth.double() * q.double()).float(), 4 - tenth * q
    assert (twice - once).item() == pytest.approx(2.4e-7, rel=0.01)


def test_the_published_step_converts_and_makes_much_more_than_the_parameter():  # F-53
    counts = probe._CountOps()
    grad = gradient()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with counts:
            published(grad, maskedtensor_ref.masked_tensor)
    assert counts.counts["aten._to_dense.default"] >= 1 and counts.counts["aten._to_sparse.default"] == 2


@PACKAGES
def test_a_mask_from_the_values_loses_a_stored_zero(package):  # F-54
    grad = gradient((3.0, 0.0, 5.0))
    _, _, std = published(grad, package.masked_tensor)
    assert std.get_mask().to_dense().sum() == 2 and grad._nnz() == 3


def test_torch_takes_sparse_gradients_of_dense_parameters_and_no_decay_with_them():  # F-55
    param, state = start()
    grad = gradient()
    new, _ = stock(param, state, grad, LR, EPS)
    assert not torch.equal(new, param)
    p = torch.nn.Parameter(param)
    p.grad = grad
    with pytest.raises(RuntimeError, match="weight_decay option is not compatible with sparse gradients"):
        torch.optim.Adagrad([p], weight_decay=0.1).step()


def test_what_sparse_tensors_can_do():  # F-56
    g = gradient()
    assert g.sqrt().is_sparse and (g / 2).is_sparse
    with pytest.raises(RuntimeError, match="Sparse division requires a scalar"):
        g / g
    with pytest.raises(RuntimeError, match="not supported"):
        g + 1
    for name in ("exp", "cos"):
        with pytest.raises(NotImplementedError):
            getattr(g, name)()


def test_in_place_addition_of_masked_tensors():  # F-57
    g = gradient()
    dense = torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    assert dense.add_(dense).get_data()[0] == 2
    peer = torch.masked.masked_tensor(g, everything(g))
    with pytest.raises(RuntimeError, match="uncoalesced"):
        peer.add_(peer)
    ours = maskedtensor_ref.masked_tensor(g, everything(g))
    assert ours.add_(ours).get_data().values().tolist() == [6, 8, 10]


def test_public_names_refuse_what_is_not_coalesced():  # F-58
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.tensor([1.0, 2.0]), (1,))
    with pytest.raises(RuntimeError, match="uncoalesced"):
        twice.indices()
    with pytest.raises(RuntimeError, match="uncoalesced"):
        twice.values()
    assert twice._values().tolist() == [1, 2] and twice.coalesce().values().tolist() == [3]


def test_the_warnings_that_the_setup_cell_is_about_are_there():
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with pytest.warns(UserWarning, match="The PyTorch API of MaskedTensors is in prototype"):
            torch.masked.masked_tensor(torch.ones(1), torch.tensor([True]))


def test_an_impossible_index_is_an_error_where_invariants_are_checked():
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch.sparse_coo_tensor(torch.tensor([[5]]), torch.tensor([1.0]), (2,))


@pytest.mark.parametrize(("optimiser", "rests"), [("Adagrad", True), ("Adam", False), ("MaskedAdam", True)])
def test_a_word_that_comes_up_no_more_rests_or_goes_on(optimiser, rests):
    from maskedtensor_ref.optim import MaskedAdam

    make = MaskedAdam if optimiser == "MaskedAdam" else getattr(torch.optim, optimiser)
    w = torch.nn.Parameter(torch.ones(3))
    steps = make([w], lr=0.1)
    for mask in ([True, True, False], [True, False, False]):
        w.grad = maskedtensor_ref.masked_tensor(torch.ones(3), torch.tensor(mask))
        before = w.detach().clone()
        steps.step()
    assert bool(w[1] == before[1]) is rests and w[2] == 1


@pytest.mark.parametrize(("optimiser", "rests"), [("SGD", True), ("Adagrad", True), ("AdamW", False)])
def test_a_decay_that_is_part_of_the_gradient_is_masked_with_it(optimiser, rests):
    w = torch.nn.Parameter(torch.ones(2))
    w.grad = maskedtensor_ref.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    getattr(torch.optim, optimiser)([w], lr=0.1, weight_decay=0.5).step()
    assert w[0] < 1 and bool(w[1] == 1) is rests


def test_adam_refuses_sparse_layouts():
    w = torch.nn.Parameter(torch.ones(2, 4))
    w.grad = maskedtensor_ref.masked_tensor(gradient(), everything(gradient()))
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        torch.optim.Adam([w]).step()


def test_missing_over_missing_is_missing():
    x = maskedtensor_ref.masked_tensor(torch.tensor([0.0, 6.0]), torch.tensor([False, True]))
    assert (x / x).tolist() == [None, 1.0]


# ---- the references against torch.optim.Adagrad ----------------------------------------------------------------------


def test_the_dense_step_is_torchs():
    for param, state, grads, lr, eps in cases("dense_step"):
        theirs, their_state = param, state
        for grad in grads:
            theirs, their_state = stock(theirs, their_state, grad.clone(), lr, eps)
            LECTURE["dense_step"](param, state, grad, lr, eps)
        torch.testing.assert_close((param, state), (theirs, their_state), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("id", ["sparse_step", "any_layout_step"])
def test_the_step_on_a_sparse_gradient_is_torchs(id):
    layouts = set()
    for param, state, grad, lr, eps in cases(id):
        layouts.add(grad.layout)
        plain = grad.to_sparse_coo() if grad.layout == torch.sparse_csr else grad
        theirs, their_state = stock(param, state, plain.clone(), lr, eps)
        LECTURE[id](param, state, grad, lr, eps)
        torch.testing.assert_close((param, state), (theirs, their_state), rtol=1e-5, atol=1e-6)
    assert id == "sparse_step" or layouts == {torch.strided, torch.sparse_coo, torch.sparse_csr}


def test_the_masked_step_is_the_dense_step_where_it_is_specified_and_none_elsewhere():
    for param, state, grad, lr, eps in cases("masked_step"):
        g, mask = grad.to_tensor(0), grad.to_dense().get_mask()
        new, new_state, std = LECTURE["masked_step"](param, state, grad, lr, eps)
        torch.testing.assert_close(new_state, state + g * g)
        torch.testing.assert_close(new[mask], (param - lr * g / ((state + g * g).sqrt() + eps))[mask])
        assert torch.equal(new[~mask], param[~mask]) and std.layout == grad.layout
        assert torch.equal(std.to_dense().get_mask(), mask)


def test_a_masked_gradient_in_stock_adagrad_is_the_masked_step():
    param, state = start()
    grad = maskedtensor_ref.masked_tensor(gradient(), everything(gradient()))
    new, new_state, _ = LECTURE["masked_step"](param, state, grad, LR, EPS)
    for given in (grad, grad.to_dense()):
        torch.testing.assert_close(stock(param, state, given, LR, EPS), (new, new_state))
    LECTURE["dense_step"](param, state, grad, LR, EPS)
    torch.testing.assert_close((param, state), (new, new_state))


def test_the_three_meanings_part_where_a_zero_is_stored():
    apart = 0
    for case in cases("three_meanings"):
        dense, stored, nonzero = LECTURE["three_meanings"](*case)
        assert ((stored == dense) | (stored == case[0])).all() and ((nonzero == stored) | (nonzero == case[0])).all()
        apart += not torch.equal(dense, stored) and not torch.equal(stored, nonzero)
    assert apart >= 10


def test_training_moves_used_rows_only_and_the_loss_falls():
    words, targets = torch.tensor([0, 2]), torch.eye(2)
    trained, losses = LECTURE["train_embedding"](torch.zeros(4, 2), [(words, targets)] * 20, 0.5)
    assert losses[-1] < losses[0] / 10 and trained[[1, 3]].eq(0).all() and trained[[0, 2]].ne(0).any(1).all()


# ---- what the checks see ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["masked_step", "where_step"])
def test_every_poison_is_among_the_visible_cases_and_among_the_hidden_ones(id):
    def hidden(case):
        if id == "where_step":
            values, mask = case[2], case[3]
        else:  # of a sparse one: what it stores
            data, mask = case[2].get_data(), case[2].get_mask()
            values, mask = (data, mask) if data.layout == torch.strided else (data._values(), mask._values())
        return values[~mask].flatten().tolist()

    def kinds(cases):
        found = [v for case in cases for v in hidden(case)]
        return any(v != v for v in found), float("inf") in found, any(1e29 < v < 1e31 for v in found)

    assert kinds(LECTURE[id].visible_cases()) == kinds(LECTURE[id].all_cases(5)) == (True, True, True)


@pytest.mark.parametrize("id", ["sparse_step", "any_layout_step"])
def test_a_tensor_of_the_size_of_the_parameter_is_noticed_in_a_visible_case(id):
    def wasteful(param, state_sum, grad, lr, eps):
        torch.zeros_like(param)
        LECTURE[id](param, state_sum, grad, lr, eps)

    asked = judge.visible_question(LECTURE[id])
    given = judge.verdict(asked, judge.Answers(id, judge.seen_by(wasteful, asked.message, LECTURE[id].facts_text)), [])
    assert given.score == 0 and "bytes of new memory" in given.message


def test_a_sparse_input_of_any_layout_makes_no_warning_and_no_difference_in_what_is_counted():
    grad = gradient()
    message = wire.pack_question([(grad,), (grad.to_sparse_csr(),)], ["grad"])
    torch.sparse.check_sparse_tensor_invariants.disable()

    def made(grad):
        return torch.sparse_coo_tensor(INDICES, torch.ones(3), (2, 4))

    first = wire.read_seen(probe.answer(made, message))
    second = wire.read_seen(probe.answer(made, message))
    assert [seen.ops for seen in first] == [seen.ops for seen in second]
    assert not any(seen.warnings for seen in (*first, *second))


def test_the_dense_step_is_tried_on_thirty_cases_and_more():
    assert len(LECTURE["dense_step"].all_cases(7)) >= 30


def test_a_card_names_operations_as_people_write_them():
    assert LECTURE["sparse_step"].properties[0].text == "does not call to_dense, to_sparse"


@pytest.mark.parametrize("came", ["None", "0", "(0, 0)"])
@pytest.mark.parametrize("id", ["show_and_fix", "train_embedding", "eps_example", "cost_report"])
def test_of_a_pair_that_is_none_nobody_is_told_to_look_for_keys(id, came):
    """What the check finds out about a pair it keeps in a dict of its own, which the task does not name."""
    exercise = next(e for e in LECTURE.exercises if e.id == id)
    asked = judge.visible_question(exercise)
    text = f"def {id}(*arguments):\n    return {came}\n"
    space = {}
    exec(text, space)
    reply = Reply(id, probe.answer(space[id], asked.message))
    given = judge.verdict(asked, judge.answers(asked, reply), [text])
    assert given.score == 0 and given.message and "dict" not in given.message and "keys" not in given.message
