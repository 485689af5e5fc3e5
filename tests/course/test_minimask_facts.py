"""What lecture 09 says holds for the torch that is installed, and its references agree with numpy.ma, torch.masked and maskedtensor_ref."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.masked

import maskedtensor_ref
from autograder.exercises import VISIBLE_SEED, load_lecture
from autograder.preload import Hidden

LECTURE = load_lecture("09_minimask", Path(__file__).parents[2] / "solutions")
SOURCE = (LECTURE.folder / "09_minimask.py").read_text(encoding="utf-8")
NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def as_in_the_setup_cell():
    before = torch.sparse.check_sparse_tensor_invariants.is_enabled()
    torch.sparse.check_sparse_tensor_invariants.enable()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The PyTorch API of MaskedTensors is in prototype", UserWarning)
        warnings.filterwarnings("ignore", "It is not recommended to create a MaskedTensor", UserWarning)
        yield
    if not before:
        torch.sparse.check_sparse_tensor_invariants.disable()


def cases(id):
    return [case for seed in (VISIBLE_SEED, 1, 2, 3) for case in LECTURE[id].all_cases(seed)]


def pair(rng, *shape, density=0.6):
    return torch.randn(shape, generator=rng), torch.rand(shape, generator=rng) < density


def agree(mine, mask, theirs, their_mask):
    """Whether two masked results specify the same elements with the same values."""
    same = torch.equal(mask, torch.as_tensor(their_mask))
    return same and torch.allclose(mine[mask], torch.as_tensor(theirs)[mask], atol=1e-5, equal_nan=True)


# ---- the references beside others, where the policies agree ------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_intersection_is_what_numpy_does(seed):
    rng = torch.Generator().manual_seed(seed)
    (a, p), (b, q) = pair(rng, 3, 1), pair(rng, 4)
    theirs = np.ma.array(a.numpy(), mask=~p.numpy()) * np.ma.array(b.numpy(), mask=~q.numpy())
    assert agree(*LECTURE["binary"]("mul", a, p, b, q, "intersection"), theirs.data, ~np.ma.getmaskarray(theirs))


@pytest.mark.parametrize("seed", range(10))
def test_match_is_what_torch_masked_does(seed):
    rng = torch.Generator().manual_seed(seed)
    (a, p), (b, _) = pair(rng, 3, 4), pair(rng, 3, 4)
    theirs = torch.masked.masked_tensor(a, p) + torch.masked.masked_tensor(b, p)
    assert agree(*LECTURE["binary"]("add", a, p, b, p.clone(), "match"), theirs.get_data(), theirs.get_mask())


@pytest.mark.parametrize("policy", ["match", "intersection", "union"])
def test_two_operands_are_what_maskedtensor_ref_makes_of_them(policy):
    for name, a, p, b, q, wanted in cases("binary"):
        if wanted != policy or name == "remainder":
            continue
        try:
            mine = LECTURE["binary"](name, a, p, b, q, policy)
        except (ValueError, RuntimeError) as error:
            mine = type(error)
        try:
            with maskedtensor_ref.mask_policy(policy):
                theirs = getattr(torch, name)(
                    maskedtensor_ref.masked_tensor(a, p), maskedtensor_ref.masked_tensor(b, q)
                )
        except (ValueError, RuntimeError, NotImplementedError):
            assert isinstance(mine, type), (name, policy)
            continue
        if isinstance(mine, type):  # union of an operation that the lecture leaves out
            assert policy == "union" and name not in ("add", "mul")
            continue
        assert agree(*mine, theirs.get_data(), theirs.get_mask()), (name, a, p, b, q)


def test_reductions_are_those_of_maskedtensor_ref():
    for name, data, mask, dim, keepdim in cases("reduction"):
        value, defined = LECTURE["reduction"](name, data, mask, dim, keepdim)
        data = data if data.is_floating_point() or name != "mean" else data.float()
        over = tuple(range(data.dim())) if dim is None else dim
        theirs = getattr(maskedtensor_ref.masked_tensor(data, mask), name)(over, keepdim=keepdim)
        assert agree(value, defined, theirs.get_data(), theirs.get_mask()), (name, data, mask, dim)


def test_a_network_s_steps_are_those_of_maskedtensor_ref():
    for name, x, mask, y, y_mask in cases("layer"):
        values, there = LECTURE["layer"](name, x, mask, y, y_mask)
        masked = maskedtensor_ref.masked_tensor(x, mask)
        if name == "matmul":
            theirs = masked @ maskedtensor_ref.masked_tensor(y, y_mask)
        else:
            theirs = torch.relu(masked) if name == "relu" else torch.log_softmax(masked, -1)
        assert agree(values, there, theirs.get_data(), theirs.get_mask()), (name, x, mask)


def test_coo_and_dense_storage_mean_the_same():
    for name, a, b, dim in cases("coo_rule"):
        if max(a.shape) > 1000:
            continue
        there = lambda c: torch.sparse_coo_tensor(c.indices(), torch.ones_like(c.values()), c.shape).to_dense() > 0
        dense = lambda c: (c.coalesce().to_dense(), there(c.coalesce()))
        result = LECTURE["coo_rule"](name, a, b, dim)
        if dim is not None:
            wanted = LECTURE["reduction"](name, *dense(a), dim, False)
            assert agree(*result, *wanted), (name, a, dim)
        else:
            wanted = (
                LECTURE["unary"](name, *dense(a))
                if b is None
                else LECTURE["binary"](name, *dense(a), *dense(b), "intersection")
            )
            assert agree(*dense(result), *wanted), (name, a, b)


# ---- what the lecture says of torch ------------------------------------------------------------------------------------


def test_integers_as_a_mask_name_elements():
    x, careless = torch.tensor([10.0, 20.0, 30.0]), torch.tensor([1, 0, 1])
    assert x[careless].tolist() == [20, 10, 20] and (~careless).tolist() == [-2, -1, -2]


def test_integers_refuse_to_divide_by_what_lies_under_a_mask():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.tensor([7, 8]) % torch.tensor([4, 0])


def test_torch_masked_does_not_broadcast_masks():
    ones = lambda *shape: torch.masked.masked_tensor(torch.ones(shape), torch.ones(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match="masks must match"):
        ones(2, 1) + ones(3)


def test_slices_of_torch_masked_are_copies():
    m = torch.masked.masked_tensor(torch.tensor([[1.0, 2.0]]), torch.ones(1, 2, dtype=torch.bool))
    m[0][1] = 5
    assert m.get_data().tolist() == [[1, 2]]


@pytest.mark.parametrize(("optimiser", "error"), [(torch.optim.SGD, ValueError), (torch.optim.Adagrad, TypeError)])
def test_no_optimiser_takes_a_gradient_of_torch_masked(optimiser, error):
    w = torch.nn.Parameter(torch.ones(2))
    with warnings.catch_warnings(action="ignore"):
        torch.masked.as_masked_tensor(w * w, torch.tensor([True, False])).sum().backward()
        with pytest.raises(error):
            optimiser([w], lr=0.1).step()


@pytest.mark.parametrize(
    "call",
    [torch.relu, lambda m: torch.matmul(m, torch.ones(2, 1)), lambda m: torch.log_softmax(m, 1)],
    ids=["relu", "matmul", "log_softmax"],
)
def test_torch_masked_lacks_what_a_network_needs(call):
    with warnings.catch_warnings(action="ignore"), pytest.raises((TypeError, NotImplementedError, RuntimeError)):
        call(torch.masked.masked_tensor(torch.ones(2, 2), torch.eye(2) == 1))


def test_a_missing_factor_times_infinity_is_nan_in_matmul_as_the_lecture_admits():
    x, y = torch.tensor([[1.0, 2.0]]), torch.tensor([[INF], [3.0]])
    values, there = LECTURE["layer"]("matmul", x, torch.tensor([[False, True]]), y, torch.ones(2, 1) == 1)
    assert there.all() and values.isnan().all()


def test_a_class_without_torch_function_is_no_operand():
    with pytest.raises(TypeError):
        torch.sqrt(object())


def test_a_plain_tensor_plus_a_foreign_object_asks_that_object():
    asked = []

    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return "answered"

    assert torch.ones(2) + Foreign() == "answered" and asked[0].__name__ in ("add", "__add__")


def test_filling_each_operand_by_its_own_mask_leaks():
    x, d = torch.tensor([NAN], requires_grad=True), torch.tensor([0.0], requires_grad=True)
    y = torch.where(torch.tensor([False]), x, 1) / torch.where(torch.tensor([True]), d, 1)
    torch.where(torch.tensor([False]), y, 0).sum().backward()
    assert d.grad.isnan().all()


# ---- what the lecture promises of itself -------------------------------------------------------------------------------


def test_what_is_to_be_built_cannot_be_imported():
    assert LECTURE.without == ("maskedtensor_ref",)
    with pytest.raises(ModuleNotFoundError):
        Hidden(LECTURE.without).find_spec("maskedtensor_ref.policy")


def test_the_notebook_imports_nothing_that_is_hidden():
    code = "\n".join(line for line in SOURCE.splitlines() if not line.startswith("#"))
    assert not re.search(r"\bmaskedtensor_ref\b", code)


def test_every_exercise_that_builds_refuses_the_finished_class():
    for exercise in LECTURE.exercises:
        assert exercise.written or "MaskedTensor" in exercise.forbidden, exercise.id


def test_the_levels_are_as_many_exercises_as_the_notebook_says():
    graded = [exercise.number for exercise in LECTURE.exercises if not exercise.written]
    assert (graded.index("9.4") + 1, graded.index("9.7") + 1, len(graded)) == (5, 8, 11)
    assert "5 exercises are Bronze" in " ".join(SOURCE.replace("\n# ", " ").split())
    assert "8 are Silver, 11 are Gold" in " ".join(SOURCE.replace("\n# ", " ").split())


def test_no_milestone_but_the_two_that_say_so_needs_another():
    assert {e.id: e.needs for e in LECTURE.exercises if e.needs and not e.written} == {
        "MiniMask": ("checked",),
        "fit": ("layer",),
    }


@pytest.mark.parametrize("id", ["unary", "binary", "reduction", "safe", "layer"])
def test_nothing_under_a_mask_reaches_a_result(id):
    """Poison of another kind than the case's, through the reference."""
    for case in cases(id):
        if id == "unary":
            name, data, mask = case
            if not data.is_floating_point():
                continue
            one = LECTURE[id](name, torch.where(mask, data, 1.0), mask)
            two = LECTURE[id](name, torch.where(mask, data, NAN), mask)
        elif id == "reduction":
            name, data, mask, dim, keepdim = case
            if not data.is_floating_point():
                continue
            one = LECTURE[id](name, torch.where(mask, data, 1.0), mask, dim, keepdim)
            two = LECTURE[id](name, torch.where(mask, data, -INF), mask, dim, keepdim)
        elif id == "layer":
            name, x, mask, y, y_mask = case
            fill = lambda t, m, v: t if t is None else torch.where(m, t, v)
            one = LECTURE[id](name, fill(x, mask, 1.0), mask, fill(y, y_mask, 1.0), y_mask)
            two = LECTURE[id](name, fill(x, mask, NAN), mask, fill(y, y_mask, INF), y_mask)
        elif id == "safe":
            name, operands, masks = case
            one, two = (
                LECTURE[id](name, [torch.where(m, x, v) for x, m in zip(operands, masks, strict=True)], masks)
                for v in (1.0, NAN)
            )
        else:
            name, a, p, b, q, policy = case
            if not a.is_floating_point() or not b.is_floating_point():
                continue
            try:
                one = LECTURE[id](name, torch.where(p, a, 1.0), p, torch.where(q, b, 1.0), q, policy)
            except (ValueError, RuntimeError):
                continue
            two = LECTURE[id](name, torch.where(p, a, NAN), p, torch.where(q, b, INF), q, policy)
        assert agree(*one, *two), case


def test_functions_written_in_c_look_at_their_arguments_before_they_ask():
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "asked"

    assert torch.sum(Foreign(), dim=0) == "asked"
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.sum(Foreign(), dim="a")


def test_there_are_more_than_a_thousand_functions_to_override():
    assert sum(map(len, torch.overrides.get_overridable_functions().values())) > 1000
