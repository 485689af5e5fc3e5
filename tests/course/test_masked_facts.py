"""What lecture 05 says holds for the torch that is installed, and what its references hide never matters."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.masked
import torch.nn.functional as F

import maskedtensor_ref
from autograder import judge, wire
from autograder.exercises import VISIBLE_SEED, load_lecture
from maskedtensor_ref import as_masked_tensor, masked_tensor
from maskedtensor_ref.differences import DIFFERENCES

LECTURE = load_lecture("05_masked_overview", Path(__file__).parents[2] / "solutions")
NAN, INF = float("nan"), float("inf")
SOME = torch.tensor([True, False])
PACKAGES = [pytest.param(torch.masked, id="prototype"), pytest.param(maskedtensor_ref, id="ours")]
both = pytest.mark.parametrize("package", PACKAGES)


@pytest.fixture(autouse=True)
def the_prototype_may_warn():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The PyTorch API of MaskedTensors")
        warnings.filterwarnings("ignore", message="It is not recommended to create a MaskedTensor")
        warnings.filterwarnings("ignore", message=".* is not implemented in __torch_dispatch__")
        yield


def cases(id):
    return [case for seed in (VISIBLE_SEED, 1, 2, 3) for case in LECTURE[id].all_cases(seed)]


def grad(y, x):
    return torch.autograd.grad(y.sum(), x)[0]


def same(masked, data, mask):
    assert masked.get_mask().tolist() == mask
    torch.testing.assert_close(masked.to_tensor(0), torch.where(torch.tensor(mask), torch.tensor(data), 0.0))


# ---- facts, by their number in the curriculum ------------------------------------------------------------------------


def test_the_prototype_warns_at_every_construction_and_ours_never():  # F-38
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            torch.masked.masked_tensor(torch.ones(2), SOME)
            masked_tensor(torch.ones(2), SOME)
    assert len(caught) == 2 and all("prototype stage" in str(w.message) for w in caught)


@both
def test_as_masked_tensor_keeps_the_history_and_copies(package):  # F-39
    x, data = torch.ones(2, requires_grad=True), torch.ones(2)
    assert package.as_masked_tensor(3 * x, SOME).requires_grad
    assert not package.masked_tensor((3 * x).detach(), SOME).requires_grad
    for make in (package.masked_tensor, package.as_masked_tensor):
        assert make(data, SOME).get_data().data_ptr() != data.data_ptr()


@pytest.mark.parametrize(("package", "first"), [(torch.masked, 1.0), (maskedtensor_ref, 14.0)])
def test_a_write_through_a_slice_is_lost_in_the_prototype_only(package, first):  # F-40
    mt = package.masked_tensor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[True, False], [True, True]]))
    mt[0][0] = 9
    mt[0].add_(5)
    assert mt.to_tensor(0).tolist() == [[first, 0.0], [3.0, 4.0]]


@both
def test_to_tensor_fills_what_get_data_shows(package):  # F-41
    m = package.masked_tensor(torch.tensor([1.0, NAN]), SOME)
    assert m.to_tensor(-1).tolist() == [1.0, -1.0] and m.get_data().isnan().any()


@both
def test_the_gradient_of_where_is_nan_at_90_and_100_and_masked_with_masks(package):  # F-42
    x = torch.tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100], requires_grad=True)
    plain = grad(torch.where(x < 0, torch.exp(x), torch.ones_like(x)), x)
    assert plain.isnan().tolist() == [False] * 9 + [True] * 2 and plain[2:9].tolist() == [0.0] * 7
    data, below = x.detach(), x.detach() < 0
    mx = package.masked_tensor(data, below, requires_grad=True)
    my = package.masked_tensor(torch.ones_like(data), ~below, requires_grad=True)
    torch.where(below, torch.exp(mx), my).sum().backward()
    same(mx.grad, data.exp().where(below, 0).tolist(), below.tolist())


def test_the_prototype_prints_too_few_digits():  # F-42
    assert "0.0000" in repr(torch.masked.masked_tensor(torch.tensor([4.54e-05]), torch.tensor([True])))
    assert "4.54" in repr(masked_tensor(torch.tensor([4.54e-05]), torch.tensor([True])))


@both
def test_the_four_issues_with_masks(package):  # F-43
    a = package.masked_tensor(torch.tensor(0.5), torch.tensor(True), requires_grad=True)
    y = torch.where(torch.tensor(False), a / 0, torch.ones(()))
    assert y.to_tensor(0).item() == 1 and not torch.autograd.grad(y, a)[0].get_mask()
    x, divisor = torch.ones(2, requires_grad=True), torch.tensor([0.0, 1.0])
    package.as_masked_tensor(x / divisor, divisor != 0).sum().backward()
    same(x.grad, [0.0, 1.0], [False, True])
    numbers, b = torch.tensor([1.0, 2.0, NAN]), torch.tensor(1.0, requires_grad=True)
    total = (package.masked_tensor(numbers, ~numbers.isnan()) * b).sum()
    assert float(torch.autograd.grad(total, b)[0]) == 3


def test_the_four_issues_without_masks_give_nan():  # F-43
    a, x, b = (torch.ones(n, requires_grad=True) for n in (1, 2, 1))
    divisor, numbers = torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0, NAN])
    assert grad(torch.where(torch.tensor(False), a / 0, 1), a).isnan().all()
    assert grad((x / divisor)[divisor != 0], x).isnan().tolist() == [True, False]
    for function in (torch.nansum, torch.nanmean):
        y = function(numbers * b)
        assert y.isfinite() and grad(y, b).isnan().all()


def test_a_function_of_torch_masked_cures_only_what_stands_behind_it():
    x = torch.tensor([-1.0, 100.0], requires_grad=True)
    assert grad(torch.masked.sum(torch.exp(x), mask=x < 0), x).isnan().tolist() == [False, True]
    assert grad(torch.exp(torch.masked.logsumexp(x, 0, mask=x < 0)), x).isfinite().all()


@pytest.mark.parametrize(("optimiser", "error"), [(torch.optim.SGD, ValueError), (torch.optim.Adagrad, TypeError)])
def test_optimisers_fail_on_the_masked_gradients_of_the_prototype(optimiser, error):  # F-44
    w = torch.ones(2, requires_grad=True)
    torch.masked.as_masked_tensor(2 * w, SOME).sum().backward()
    with pytest.raises(error):
        optimiser([w], lr=0.1).step()
    w = torch.ones(2, requires_grad=True)
    as_masked_tensor(2 * w, SOME).sum().backward()
    optimiser([w], lr=0.1).step()
    assert w[0] != 1 and w[1] == 1


def test_what_torch_makes_of_a_softmax_over_nothing():  # F-45
    x, nothing = torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2, dtype=torch.bool)
    assert x.masked_fill(~nothing, -INF).softmax(1).isnan().all()
    assert torch.masked.softmax(x, 1, mask=nothing).isnan().all()
    for package in (torch.masked, maskedtensor_ref):
        p = package.masked_tensor(x, nothing).softmax(1)
        assert not p.get_mask().any() and p.to_tensor(0).tolist() == [[0.0, 0.0]]
    assert torch.masked.masked_tensor(x, nothing).softmax(1).get_data().isnan().all()
    words = torch.ones(1, 2, 4)
    assert not F.scaled_dot_product_attention(words, words, words, attn_mask=torch.zeros(1, 2, 2).bool()).any()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_over_padding_is_nan_only_with_weights(training, need_weights):  # F-45
    attention = torch.nn.MultiheadAttention(4, 1, batch_first=True).train(training)
    words, hidden = torch.randn(1, 2, 4, requires_grad=True), torch.ones(1, 2, dtype=torch.bool)
    out, _ = attention(words, words, words, key_padding_mask=hidden, need_weights=need_weights)
    assert bool(out.isnan().any()) is bool(grad(out, words).isnan().any()) is need_weights


def test_a_position_of_the_prototype_is_a_float():  # F-46
    y = torch.arange(16.0) * torch.arange(16.0).fmod(4)
    theirs, ours = (torch.argmin(p.masked_tensor(y, y != 0)) for p in (torch.masked, maskedtensor_ref))
    assert (theirs.dtype, ours.dtype) == (torch.float32, torch.int64) and ours.item() == theirs.get_data() == 1
    assert torch.masked.argmin(y, 0, mask=y != 0).dtype == torch.float32


def test_which_functions_that_skip_nan_there_are():  # F-47
    names = {"nansum", "nanmean", "nanmedian", "nanquantile", "nan_to_num", "nan_to_num_"}
    assert {name for name in dir(torch) if name.startswith("nan")} == {"nan", *names}


WORKING = "sum mean prod amin amax argmin argmax var std".split()
LACKING = "max min median any relu".split()


@pytest.mark.parametrize("name", WORKING + LACKING)
def test_what_the_prototype_can_do(name):  # F-48
    m = torch.masked.masked_tensor(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([True, False, True]))
    if name in WORKING:
        assert getattr(m, name)().get_mask()
    else:
        with pytest.raises(TypeError):
            getattr(m, name)()


@pytest.mark.parametrize("name", ["cumsum", "logsumexp", "log_softmax", "matmul"])
def test_what_else_the_prototype_cannot_do(name):  # F-48
    m = torch.masked.masked_tensor(torch.tensor([1.0, 2.0]), SOME)
    with pytest.raises(TypeError):
        getattr(m, name)(torch.ones(2) if name == "matmul" else 0)
    assert name == "matmul" or hasattr(torch.masked, name)


@both
def test_the_mean_of_nothing_is_masked(package):
    empty = torch.full((4,), NAN)
    assert torch.nanmean(empty).isnan()
    assert not torch.mean(package.masked_tensor(empty, ~empty.isnan())).get_mask()


def test_the_four_conventions_of_a_mask():
    m = masked_tensor(torch.tensor([1.0, 2.0]), SOME)
    assert m.numpy().mask.tolist() == [False, True]
    value = torch.tensor([[[1.0], [5.0]]])
    query = torch.zeros(1, 1, 1)
    out = F.scaled_dot_product_attention(query, torch.zeros(1, 2, 1), value, attn_mask=torch.tensor([[[True, False]]]))
    assert out.item() == 1  # True counts
    attention = torch.nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
    _, weights = attention(query, value, value, key_padding_mask=torch.tensor([[False, True]]))
    assert weights.tolist() == [[[1.0, 0.0]]]  # True hides


def test_what_the_lecture_quotes_is_in_the_list_of_differences():
    source = (LECTURE.folder / "05_masked_overview.py").read_text(encoding="utf-8")
    quoted = [line.split('"')[1] for line in source.splitlines() if line.startswith('why("')]
    assert len(quoted) == 4 and set(quoted) <= {d.call for d in DIFFERENCES}


# ---- what is hidden never matters ------------------------------------------------------------------------------------

READS_A_MASK = {  # exercise: where its mask is, and where what it hides, as places among the arguments
    "guarded_quotient": (0, 2),
    "safe_softmax": (1, 0),
    "mean_and_variance": (1, 0),
    "reduced": (1, 0),
    "argmin_of_counted": (1, 0),
    "masked_mse": (2, 1),
}
DANGEROUS = (NAN, INF, -INF, 1e30)


def seen(exercise, function, case):
    message = wire.pack_question([case], exercise.arguments, driver=exercise.driver_text, gradient=exercise.gradient)
    return judge.seen_by(function, message, exercise.facts_text)[0]


def poison_found(exercise, function):
    """How often poison changes what `function` does, and how often it was tried."""
    mask_at, hidden_at = READS_A_MASK[exercise.id]
    tried, found = 0, 0
    for case in exercise.all_cases(VISIBLE_SEED) + exercise.all_cases(1):
        mask, x = case[mask_at], case[hidden_at]
        if mask.all() or not x.is_floating_point() or mask.shape != x.shape:
            continue
        clean = torch.where(mask, x.detach(), 0.5).requires_grad_(x.requires_grad)
        expected = seen(exercise, function, (*case[:hidden_at], clean, *case[hidden_at + 1 :]))
        for worst in DANGEROUS:
            poison = torch.where(mask, x.detach(), torch.tensor(worst, dtype=x.dtype)).requires_grad_(x.requires_grad)
            came = seen(exercise, function, (*case[:hidden_at], poison, *case[hidden_at + 1 :]))
            found += judge.rules(exercise).difference(expected, replace(came, inputs=expected.inputs)) is not None
            tried += 1
    return found, tried


@pytest.mark.parametrize("id", READS_A_MASK)
def test_poison_under_the_mask_changes_neither_result_nor_gradient(id):
    found, tried = poison_found(LECTURE[id], LECTURE[id].function)
    assert found == 0 and tried > 30


@pytest.mark.parametrize("id", ["safe_softmax", "mean_and_variance", "argmin_of_counted", "masked_mse"])
def test_poison_finds_a_leak(id):
    leaky = next(wrong.function for wrong in LECTURE[id].wrong_answers if wrong.code == "M22")
    assert poison_found(LECTURE[id], leaky)[0] > 10


@pytest.mark.parametrize("id", ["masked_batch", "shares", "write_row"])
def test_poison_inside_a_masked_tensor_does_not_change_the_result(id):
    function = LECTURE[id].function
    for case in cases(id):
        for worst in DANGEROUS:
            before = function(*(c.clone() if isinstance(c, torch.Tensor) else c for c in case))
            if id == "masked_batch":
                mask, dtype = before.get_mask(), case[0].dtype
                fill = torch.tensor(worst, dtype=dtype) if dtype.is_floating_point else torch.tensor(77, dtype=dtype)
                after = function(torch.where(mask, case[0], fill), case[1])
            else:
                m, *rest = case
                fill = torch.tensor(worst, dtype=m.dtype) if m.dtype.is_floating_point else torch.tensor(77)
                after = function(masked_tensor(torch.where(m.get_mask(), m.get_data(), fill), m.get_mask()), *rest)
            assert torch.equal(before.get_mask(), after.get_mask())
            assert torch.equal(before.to_tensor(0), after.to_tensor(0))


@pytest.mark.parametrize("id", [*READS_A_MASK, "masked_batch", "shares", "write_row"])
def test_the_visible_cases_poison_what_is_hidden(id):
    text = repr([[getattr(c, "get_data", lambda c=c: c)() for c in case] for case in LECTURE[id].visible_cases()])
    assert "nan" in text or "inf" in text or "e+30" in text


# ---- the references against torch ------------------------------------------------------------------------------------


def test_safe_softmax_is_the_softmax_of_what_counts():
    for x, mask, dim in cases("safe_softmax"):
        found, mask = LECTURE["safe_softmax"](x, mask, dim), mask.expand_as(x)
        expected = torch.zeros_like(x)
        rows = zip(*(t.movedim(dim, -1).reshape(-1, x.shape[dim]) for t in (x, mask, expected)), strict=True)
        kept = [torch.zeros_like(m, dtype=x.dtype).masked_scatter(m, v[m].softmax(0)) for v, m, _ in rows]
        if kept:
            expected = torch.stack(kept).reshape(found.movedim(dim, -1).shape).movedim(-1, dim)
        torch.testing.assert_close(found, expected, equal_nan=True)


def test_mean_and_variance_are_those_of_what_counts():
    for x, mask, dim in cases("mean_and_variance"):
        mean, variance, defined = LECTURE["mean_and_variance"](x, mask, dim)
        m = masked_tensor(x, mask)
        assert torch.equal(defined, m.mean(dim).get_mask())
        spread = m.var(dim, correction=0).to_tensor(0)
        for found, expected in ((mean, m.mean(dim).to_tensor(0)), (variance, spread)):  # a NaN that counts stays one
            torch.testing.assert_close(found[defined], expected[defined], rtol=1e-4, atol=1e-5, equal_nan=True)


def test_reductions_and_positions_are_those_of_what_counts():
    for x, mask, which, dim in cases("reduced"):
        for v, m, r in zip(
            *(t.movedim(dim, -1).reshape(-1, x.shape[dim]) for t in (x, mask)),
            LECTURE["reduced"](x, mask, which, dim).reshape(-1),
            strict=True,
        ):
            if m.any():
                kept = v[m].double()
                assert r.item() == {"max": kept.max, "min": kept.min, "prod": kept.prod}[which]().item()
    for x, mask, dim in cases("argmin_of_counted"):
        found = LECTURE["argmin_of_counted"](x, mask, dim).unsqueeze(dim)
        assert mask.gather(dim, found).all()
        assert torch.equal(x.gather(dim, found), torch.where(mask, x, INF).amin(dim, keepdim=True))


def test_the_masked_loss_is_the_mean_square_of_what_is_known():
    for prediction, target, mask in cases("masked_mse"):
        loss = LECTURE["masked_mse"](prediction, target, mask)
        if mask.any():
            torch.testing.assert_close(loss, F.mse_loss(prediction[mask], target[mask]), equal_nan=True)
        else:
            assert loss == 0 and not grad(loss, prediction).any()
