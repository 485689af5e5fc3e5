"""What lecture 08 says holds for the torch and the NumPy that are installed, and its references agree with our package."""

import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.masked
import torch.nn.functional as F

import maskedtensor_ref
from autograder import facts, judge, probe, wire
from autograder.exercises import VISIBLE_SEED, load_lecture
from maskedtensor_ref import is_masked_tensor, mask_policy, masked_tensor

LECTURE = load_lecture("08_masked_semantics", Path(__file__).parents[2] / "solutions")
NAN, INF = float("nan"), float("inf")
EVERY_SECOND = torch.tensor([True, False, True, False])
DATA = torch.tensor([[2.0, 7.0, 5.0], [4.0, 1.0, 3.0], [6.0, 8.0, 9.0]])
MASK = torch.tensor([[True, False, True], [True, True, True], [False, False, False]])
PACKAGES = [pytest.param(torch.masked, id="prototype"), pytest.param(maskedtensor_ref, id="ours")]
both = pytest.mark.parametrize("package", PACKAGES)


@pytest.fixture(autouse=True)
def the_prototype_may_warn():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The PyTorch API of MaskedTensors")
        warnings.filterwarnings("ignore", message=".* is not implemented in __torch_dispatch__")
        warnings.filterwarnings("ignore", message="It is not recommended to create a MaskedTensor")
        yield


def cases(id):
    return [case for seed in (VISIBLE_SEED, 1, 2, 3) for case in LECTURE[id].all_cases(seed)]


def same(found, expected):
    assert is_masked_tensor(found) and found.dtype == expected.dtype
    assert torch.equal(found.get_mask(), expected.get_mask())
    torch.testing.assert_close(found.to_tensor(0), expected.to_tensor(0), equal_nan=True)


# ---- what True says: V-01 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convention", ["attn_mask", "key_padding_mask", "additive", "additive for modules"])
def test_a_converted_mask_hides_the_second_key_from_attention(convention):
    counts, values = torch.tensor([[True, False]]), torch.tensor([[[1.0], [5.0]]])
    mask = LECTURE["convert_mask"](counts, "MaskedTensor", convention.removesuffix(" for modules"))
    query, keys = torch.zeros(1, 1, 1), torch.zeros(1, 2, 1)
    if convention in ("attn_mask", "additive"):
        out = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        assert out.item() == 1
    else:
        attention = torch.nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
        _, weights = attention(query, values, values, key_padding_mask=mask)
        assert weights.tolist() == [[[1.0, 0.0]]]


def test_attn_mask_of_the_module_is_the_other_way_round():
    values = torch.tensor([[[1.0], [5.0]]])
    attention = torch.nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
    _, weights = attention(torch.zeros(1, 1, 1), values, values, attn_mask=torch.tensor([[False, True]]))
    assert weights.tolist() == [[[1.0, 0.0]]]  # True hides


def test_a_number_in_an_additive_mask_shifts_and_hides_nothing():
    query, keys, values = torch.zeros(1, 1, 1), torch.zeros(1, 2, 1), torch.tensor([[[1.0], [5.0]]])
    out = F.scaled_dot_product_attention(query, keys, values, attn_mask=torch.tensor([[[0.0, 0.5]]]))
    shares = torch.tensor([0.0, 0.5]).softmax(0)
    torch.testing.assert_close(out.flatten(), (shares * values.flatten()).sum(0, keepdim=True))


def test_every_conversion_can_be_undone():
    names = ["MaskedTensor", "attn_mask", "numpy.ma", "key_padding_mask", "additive"]
    convert, counts = LECTURE["convert_mask"], torch.tensor([True, False, True])
    for one, other in itertools.product(names, names):
        given = convert(counts, "MaskedTensor", one)
        assert torch.equal(convert(convert(given, one, other), other, "MaskedTensor"), counts)
    m = masked_tensor(torch.ones(3), counts)
    assert m.numpy().mask.tolist() == convert(counts, "MaskedTensor", "numpy.ma").tolist()


# ---- two masks: V-02, V-03, V-04, V-07 -------------------------------------------------------------------------------


def test_numpy_adds_where_both_count():
    x, y = np.arange(1.0, 5), np.arange(10.0, 50, 10)
    hidden = ~EVERY_SECOND.numpy()
    total = np.ma.array(x, mask=hidden) + np.ma.array(y, mask=~hidden)
    assert total.mask.all()
    assert total.data.tolist() == x.tolist()  # what lies under it: no sum
    other = np.ma.array(x, mask=hidden) + np.ma.array(y, mask=[False, False, True, True])
    assert other.mask.tolist() == [False, True, True, True] and other[0] == 11


@both
def test_masks_that_differ_are_refused(package):
    data = torch.ones(4)
    with pytest.raises(ValueError, match="match" if package is torch.masked else "first"):
        package.masked_tensor(data, EVERY_SECOND) + package.masked_tensor(data, ~EVERY_SECOND)


@both
def test_what_is_wanted_instead_can_be_said(package):
    one, two = package.masked_tensor(torch.ones(4), EVERY_SECOND), package.masked_tensor(torch.ones(4), ~EVERY_SECOND)
    assert (one.to_tensor(0) + two.to_tensor(0)).tolist() == [1, 1, 1, 1]
    assert not (one.get_mask() & two.get_mask()).any()


def test_a_plain_tensor_goes_with_any_mask():
    m = masked_tensor(torch.ones(4), EVERY_SECOND)
    assert (m + torch.ones(4)).tolist() == (m + 1).tolist() == [2, None, 2, None]


def test_a_union_reads_a_missing_measurement_as_zero():
    measured, forecast = (
        masked_tensor(torch.zeros(1), torch.tensor([False])),
        masked_tensor(torch.ones(1), torch.tensor([True])),
    )
    with mask_policy("union"):
        assert (measured - forecast).tolist() == [-1]


@pytest.mark.parametrize(("id", "policy"), [("intersection_add", "intersection"), ("union", "union")])
def test_the_references_do_what_the_policies_of_the_package_do(id, policy):
    for a, b, *operation in cases(id):
        with mask_policy(policy):
            expected = a * b if operation == ["mul"] else a + b
        same(LECTURE[id](a, b, *operation), expected)


# ---- laws: V-06 ------------------------------------------------------------------------------------------------------

SIDES = {
    "a + b = b + a": lambda a, b, c: (a + b, b + a),
    "sum(a + b) = sum(a) + sum(b)": lambda a, b, c: ((a + b).sum(), a.sum() + b.sum()),
    "mean(a + b) = mean(a) + mean(b)": lambda a, b, c: ((a + b).mean(), a.mean() + b.mean()),
    "(a + b) - b = a": lambda a, b, c: ((a + b) - b, a),
    "a * (b + c) = a * b + a * c": lambda a, b, c: (a * (b + c), a * b + a * c),
}
TABLE = {  # the policies under which a law fails for some masks
    "a + b = b + a": set(),
    "sum(a + b) = sum(a) + sum(b)": {"intersection"},
    "mean(a + b) = mean(a) + mean(b)": {"intersection", "union"},
    "(a + b) - b = a": {"intersection", "union"},
    "a * (b + c) = a * b + a * c": {"union"},
}


def operands(random):
    return [
        masked_tensor(torch.randint(-9, 9, (3,), generator=random).float(), torch.rand(3, generator=random) < 0.5)
        for _ in range(3)
    ]


def apart(law, policy, three):
    """Whether the two sides of a law differ, by the package."""
    with mask_policy(policy):
        left, right = SIDES[law](*three)
    return not torch.equal(left.get_mask(), right.get_mask()) or bool(
        ((left.to_tensor(0) - right.to_tensor(0)).abs() > 0.5).any()
    )


@pytest.mark.parametrize("law", TABLE)
@pytest.mark.parametrize("policy", ["intersection", "union"])
def test_which_laws_hold_under_which_policy(law, policy):
    random = torch.Generator().manual_seed(0)
    fails = any(apart(law, policy, operands(random)) for _ in range(200))
    assert fails is (policy in TABLE[law])
    answer = LECTURE["broken_law"](law, policy, 3)
    assert (answer is not None) is fails
    if fails:
        assert apart(law, policy, (*answer, answer[-1])[:3])


@pytest.mark.parametrize("law", TABLE)
def test_with_equal_masks_every_law_holds(law):
    random = torch.Generator().manual_seed(1)
    for _ in range(50):
        a, b, c = operands(random)
        equal = [masked_tensor(t.get_data(), a.get_mask()) for t in (a, b, c)]
        assert not apart(law, "match", equal) and LECTURE["broken_law"](law, "strict", 3) is None


@pytest.mark.parametrize("policy", ["intersection", "union"])
@pytest.mark.parametrize("law", TABLE)
def test_the_facts_about_an_example_are_what_the_package_computes(law, policy):
    exercise, random = LECTURE["broken_law"], torch.Generator().manual_seed(2)
    question = wire.pack_question([(law, policy, 3)], exercise.arguments)
    for _ in range(40):
        three = operands(random)
        given = three[: 3 if "c" in law else 2]
        said = facts.told(probe.answer(lambda *case, given=given: given, question), question, exercise.facts_text)
        (seen,) = wire.read_seen(said)
        assert seen.result["the two sides differ by more than rounding"] is apart(law, policy, three)


def test_numpy_breaks_the_law_of_the_sum():
    a = np.ma.array([1.0, 2.0], mask=[False, False])
    b = np.ma.array([10.0, 20.0], mask=[False, True])
    assert (a + b).sum() == 11 and a.sum() + b.sum() == 13


# ---- reductions: V-05, O-19 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amin", "amax"])
def test_five_reductions_agree_in_three_libraries(name):
    ours, theirs = (getattr(p.masked_tensor(DATA, MASK), name)(1) for p in (maskedtensor_ref, torch.masked))
    numpys = getattr(masked_tensor(DATA, MASK).numpy(), name.removeprefix("a"))(1)
    assert ours.get_mask().tolist() == theirs.get_mask().tolist() == (~numpys.mask).tolist() == [True, True, False]
    assert ours.to_tensor(0).tolist() == theirs.to_tensor(0).tolist() == pytest.approx(numpys.filled(0).tolist())


def test_an_identity_changes_nothing_and_hides_no_smaller_number():
    for reduction, dtype in itertools.product(
        ("sum", "prod", "amax", "amin"),
        (torch.float32, torch.float16, torch.int8, torch.uint8, torch.int64, torch.bool),
    ):
        element = LECTURE["identity"](reduction, dtype)
        if dtype == torch.bool:
            worst = torch.tensor([False, True])
        elif dtype.is_floating_point:
            worst = torch.tensor([-INF, INF, 2.0, -3.0], dtype=dtype)
        else:
            worst = torch.tensor([torch.iinfo(dtype).min, torch.iinfo(dtype).max, 2], dtype=dtype)
        for x in worst:
            with_it, without = (getattr(torch, reduction)(t, 0) for t in (torch.stack([x, element]), x[None]))
            assert torch.equal(with_it, without), (reduction, dtype, x)


def test_the_maximum_over_several_dimensions_is_that_of_the_package():
    for x, mask, dim, keepdim in cases("masked_amax"):
        if x.numel():
            values, defined = LECTURE["masked_amax"](x, mask, dim, keepdim)
            same(masked_tensor(values, defined), masked_tensor(x, mask).amax(dim if dim is not None else (), keepdim))


@both
def test_a_maximum_over_nothing_is_undefined_where_torch_and_both_packages_refuse(package):
    nothing = torch.zeros(2, 0)
    for refuses in (nothing, package.masked_tensor(nothing, nothing > 0)):
        with pytest.raises(IndexError, match="non-zero size"):
            refuses.amax(1)
    values, defined = LECTURE["masked_amax"](nothing, nothing > 0, 1, False)
    assert values.tolist() == [-INF, -INF] and defined.tolist() == [False, False]


# ---- what works: F-48, F-60 ------------------------------------------------------------------------------------------

AGREES = "exp sqrt sum mean prod amax var std".split()
RAISES = "max min median any relu".split()


def verdict(operation):
    return LECTURE["support"](operation, DATA, MASK)


@pytest.mark.parametrize("name", AGREES + RAISES)
def test_the_support_matrix(name):  # F-48
    assert verdict(getattr(torch.Tensor, name)) == ("agrees" if name in AGREES else "raises")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda m: m.cumsum(0), "raises"),
        (lambda m: m.log_softmax(1), "raises"),
        (lambda m: m @ torch.ones(3), "raises"),
        (lambda m: m + m, "agrees"),
        (lambda m: m.argmax(), "differs"),
        (lambda m: m.sum((-1, -2)), "raises"),
        (lambda m: m.sum((0, 1)), "agrees"),
        (lambda m: m.amax((-2, -1)), "raises"),
        (lambda m: m.std(0, False), "differs"),
    ],
)
def test_more_of_the_support_matrix(operation, expected):  # F-60
    assert verdict(operation) == expected


@pytest.mark.parametrize(("dims", "mask"), [((1, 2), [True, False]), ((-2, -1), [True, True])])
def test_a_sum_over_negative_dimensions_of_a_cube_has_a_wrong_mask(dims, mask):  # F-60
    cube, left = torch.arange(8.0).view(2, 2, 2), torch.zeros(2, 2, 2, dtype=torch.bool)
    left[0, :, 0] = True
    assert torch.masked.masked_tensor(cube, left).sum(dim=dims).get_mask().tolist() == mask
    assert masked_tensor(cube, left).sum(dim=dims).get_mask().tolist() == [True, False]


def test_the_backward_pass_of_maximum_never_ends():  # F-60
    pair = [torch.masked.masked_tensor(DATA, MASK, requires_grad=True) for _ in range(2)]
    with pytest.raises(RecursionError):
        torch.maximum(*pair).sum().backward()


def test_the_prototype_compares_masks_as_they_came():  # F-60
    yes = torch.ones(3, 3, dtype=torch.bool)
    with pytest.raises(ValueError):
        torch.masked.masked_tensor(DATA, yes) - torch.masked.masked_tensor(DATA[0], yes[0])
    assert (masked_tensor(DATA, yes) - masked_tensor(DATA[0], yes[0])).get_mask().all()


def test_a_mean_may_be_subtracted_from_what_it_was_made_of():
    m = masked_tensor(DATA, MASK)
    assert torch.equal((m - m.mean()).get_mask(), MASK)
    peer = torch.masked.masked_tensor(DATA, MASK)
    with pytest.raises(ValueError):
        peer - peer.mean()


def test_every_answer_of_the_probe_occurs_among_the_cases_of_every_seed():
    exercise = LECTURE["support"]
    for seed in (VISIBLE_SEED, 5, 6):
        message = wire.pack_question(exercise.all_cases(seed), exercise.arguments, driver=exercise.driver_text)
        answers = [seen.result for seen in judge.seen_by(exercise.function, message)]
        assert {answers.count(a) >= 2 for a in ("agrees", "differs", "raises")} == {True}
        assert set(answers) == {"agrees", "differs", "raises"}


# ---- shapes and comparisons ------------------------------------------------------------------------------------------


def test_what_the_broadcast_step_returns_or_refuses_is_what_the_strict_policy_says():
    came = set()
    for a, b in cases("broadcast_masks"):
        try:
            x, y = LECTURE["broadcast_masks"](a, b)
        except ValueError as error:
            came.add("refused")
            with pytest.raises((ValueError, RuntimeError)):
                a + b
            assert "[" in str(error) or str(tuple(a.shape)) in str(error)
            continue
        came.add("returned")
        if is_masked_tensor(a) or is_masked_tensor(b):
            same(x + y, a + b)
        else:
            assert x.get_mask().all() and torch.equal((x + y).to_tensor(0), a + b)
    assert came == {"refused", "returned"}


def test_assert_close_looks_at_no_mask():
    seen = torch.masked.masked_tensor(torch.tensor([1.0, 7.0]), torch.tensor([True, False]))
    torch.testing.assert_close(seen, torch.tensor([1.0, 7.0]))
    with pytest.raises(Exception) as raised:
        torch.testing.assert_close(seen, torch.tensor([2.0, 7.0]))
    assert not isinstance(raised.value, AssertionError)


def test_every_way_to_differ_is_among_the_visible_pairs():
    words = []
    for actual, expected, rtol, atol in LECTURE["assert_masked_close"].visible_cases():
        try:
            LECTURE["assert_masked_close"](actual, expected, rtol, atol)
            words.append("")
        except AssertionError as error:
            words.append(str(error).split(":")[0])
    assert {*words} == {"", "type", "shape", "dtype", "layout", "mask", "values"}
    assert words.count("") >= 3


# ---- what is hidden never matters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "id", ["intersection_add", "union", "masked_amax", "support", "broadcast_masks", "assert_masked_close"]
)
def test_every_poison_is_under_a_mask_of_the_visible_cases_and_of_the_hidden_ones(id):
    def hidden(case):
        tensors = [t for t in case if isinstance(t, torch.Tensor)]
        pairs = [(t.to_dense().get_data(), t.to_dense().get_mask()) for t in tensors if is_masked_tensor(t)]
        pairs += [(x, m) for x, m in itertools.pairwise(tensors) if not is_masked_tensor(x) and m.dtype == torch.bool]
        return [v for x, m in pairs if x.shape == m.shape for v in x[~m].flatten().tolist()]

    for some in (LECTURE[id].visible_cases(), LECTURE[id].all_cases(5)):
        found = [v for case in some for v in hidden(case)]
        assert any(v != v for v in found) and (
            INF in found or 1e30 in [round(v / 1e25) * 1e25 for v in found if abs(v) < INF]
        )


@pytest.mark.parametrize("worst", [NAN, INF, 1e30])
def test_poison_changes_no_result(worst):
    def poisoned(t):
        if not is_masked_tensor(t) or not t.dtype.is_floating_point or t.layout != torch.strided:
            return t
        return masked_tensor(t.get_data().masked_fill(~t.get_mask(), worst), t.get_mask())

    for id in ("intersection_add", "union"):
        for a, b, *rest in cases(id):
            same(LECTURE[id](poisoned(a), poisoned(b), *rest), LECTURE[id](a, b, *rest))
    for x, mask, dim, keepdim in cases("masked_amax"):
        if x.dtype.is_floating_point:
            found = LECTURE["masked_amax"](x.masked_fill(~mask, worst), mask, dim, keepdim)
            for one, other in zip(found, LECTURE["masked_amax"](x, mask, dim, keepdim), strict=True):
                torch.testing.assert_close(one, other, equal_nan=True)
