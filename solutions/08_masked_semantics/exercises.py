"""The exercises of lecture 08, advanced semantics of masks: references, cases, wrong and right answers, predictions."""

import torch

from autograder.exercises import exercise, prediction, written
from autograder.properties import device_agnostic, no_loops, op_budget
from maskedtensor_ref import is_masked_tensor, masked_tensor

NAN, INF = float("nan"), float("inf")
POISON = (NAN, INF, -INF, 1e30)  # what a case puts under the mask: none of it may reach a result
HIDES = ("numpy.ma", "key_padding_mask")  # conventions in which True hides; in the other bool ones it counts
CONVENTIONS = ("MaskedTensor", "attn_mask", *HIDES, "additive")


def masked(values, mask):
    """A MaskedTensor of lists, floats unless the values say otherwise."""
    return masked_tensor(torch.as_tensor(values), torch.as_tensor(mask))


def drawn(rng, *shape, dtype=torch.float32, density=0.6):
    """A random MaskedTensor with poison under its mask, in floats; in integers with the largest one."""
    mask = rng.mask(*shape, density=density)
    if not dtype.is_floating_point:
        data = rng.integers(*shape, low=-5, high=5).to(dtype)
        return masked_tensor(torch.where(mask, data, True if dtype == torch.bool else torch.iinfo(dtype).max), mask)
    data = rng.normal(*shape, dtype=dtype)
    return masked_tensor(torch.where(mask, data, torch.tensor(rng.choice(POISON), dtype=dtype)), mask)


def shapes_that_fit(rng):
    """Two random shapes that broadcast."""
    whole = [rng.integer(1, 4) for _ in range(rng.integer(1, 3))]
    pair = [tuple(n if rng.integer(0, 3) else 1 for n in whole) for _ in range(2)]
    short = rng.integer(0, 1)
    pair[short] = pair[short][rng.integer(0, len(whole) - 1) :]
    return pair


# ---- 8.1 ------------------------------------------------------------------------------------------------------------


@exercise(
    "8.1",
    points=2,
    minutes=5,
    stars=1,
    concepts=["V-01"],
    properties=[no_loops, device_agnostic],
    visible=8,
    hints=[
        'Two steps: read the mask you are given as "what counts", then write "what counts" in the convention that is '
        "wanted. Then there are five conventions to think about, and not twenty pairs.",
        "~ turns a bool tensor round. Of an additive mask, compare with float('-inf'). torch.where(counts, 0.0, "
        "float('-inf')) writes one.",
        'counts = mask != float("-inf") if given == "additive" else ~mask if given in ("numpy.ma", ___) else ___; then '
        'for "additive" torch.where(counts, ___, ___), for the two that hide ~counts, else counts',
    ],
)
def convert_mask(mask, given, wanted):
    counts = mask != -INF if given == "additive" else mask.logical_xor(torch.tensor(given in HIDES, device=mask.device))
    if wanted == "additive":
        return torch.where(counts, 0.0, -INF)
    return counts.logical_not() if wanted in HIDES else counts


def in_convention(counts, convention):
    """A mask that says what `counts` says."""
    if convention == "additive":
        return torch.zeros(counts.shape).masked_fill(~counts, -INF)
    return ~counts if convention in HIDES else counts.clone()


@convert_mask.cases
def _(rng):
    yield torch.tensor([True, True, False]), "MaskedTensor", "numpy.ma"
    yield torch.tensor([True, False, False]), "numpy.ma", "key_padding_mask"
    yield torch.tensor([False, True]), "key_padding_mask", "attn_mask"
    yield torch.tensor([[True, False], [True, True]]), "attn_mask", "MaskedTensor"
    yield torch.tensor([False, True, True]), "MaskedTensor", "additive"
    yield torch.tensor([0.0, -INF, 0.0]), "additive", "MaskedTensor"
    yield torch.tensor([0.5, -INF, -2.0]), "additive", "key_padding_mask"
    yield torch.tensor([True, False, False]), "key_padding_mask", "additive"
    yield torch.tensor(True), "attn_mask", "numpy.ma"
    yield torch.tensor([], dtype=torch.bool), "numpy.ma", "additive"
    yield torch.tensor([True, False]).expand(3, 2), "attn_mask", "key_padding_mask"
    yield torch.tensor([[1e30, -INF], [-1e30, 0.0]]).t(), "additive", "attn_mask"
    for given in CONVENTIONS:
        for wanted in CONVENTIONS:
            shape = [rng.integer(1, 4) for _ in range(rng.integer(1, 3))]
            yield in_convention(rng.mask(*shape), given), given, wanted


@convert_mask.wrong(
    "M23",
    "The mask came back as it was. In numpy.ma and in key_padding_mask True hides; in a MaskedTensor and in attn_mask "
    "True counts. Between the two kinds it has to be turned round: ~mask.",
)
def _(mask, given, wanted):
    import torch

    counts = mask != float("-inf") if given == "additive" else mask
    return torch.where(counts, 0.0, float("-inf")) if wanted == "additive" else counts


@convert_mask.wrong(
    "X-8.1-1",
    "Every mask was turned round, also where both conventions say the same. First ask what True means on either side.",
)
def _(mask, given, wanted):
    import torch

    counts = mask == float("-inf") if given == "additive" else mask
    return torch.where(counts, float("-inf"), 0.0) if wanted == "additive" else ~counts


@convert_mask.wrong(
    "X-8.1-2",
    "You read key_padding_mask as if True counted. It names the padding: True hides.",
)
def _(mask, given, wanted):
    import torch

    counts = mask != float("-inf") if given == "additive" else ~mask if given == "numpy.ma" else mask
    if wanted == "additive":
        return torch.where(counts, 0.0, float("-inf"))
    return ~counts if wanted == "numpy.ma" else counts


@convert_mask.wrong(
    "X-8.1-3",
    "You read attn_mask as if True hid. For scaled_dot_product_attention True says that this key may be looked at: it "
    "counts. (The older nn.MultiheadAttention reads its own attn_mask the other way; here it is that of the function.)",
)
def _(mask, given, wanted):
    import torch

    counts = mask != float("-inf") if given == "additive" else mask if given == "MaskedTensor" else ~mask
    if wanted == "additive":
        return torch.where(counts, 0.0, float("-inf"))
    return counts if wanted == "MaskedTensor" else ~counts


@convert_mask.wrong(
    "X-8.1-4",
    "Your additive mask has minus infinity where something counts. It is added to scores before a softmax: adding 0 "
    "changes nothing, adding minus infinity takes the element out.",
)
def _(mask, given, wanted):
    import torch

    hides = ("numpy.ma", "key_padding_mask")
    counts = mask != float("-inf") if given == "additive" else ~mask if given in hides else mask
    if wanted == "additive":
        return torch.where(counts, float("-inf"), 0.0)
    return ~counts if wanted in hides else counts


@convert_mask.wrong(
    "X-8.1-5",
    ".bool() is True for every number that is not 0, minus infinity included, so the additive mask was read the wrong "
    "way round. Ask for minus infinity itself.",
)
def _(mask, given, wanted):
    import torch

    hides = ("numpy.ma", "key_padding_mask")
    counts = mask.bool() if given == "additive" else ~mask if given in hides else mask
    if wanted == "additive":
        return torch.where(counts, 0.0, float("-inf"))
    return ~counts if wanted in hides else counts


@convert_mask.wrong(
    "X-8.1-6",
    "A number like 0.5 in an additive mask shifts a score and hides nothing. Only minus infinity hides: do not ask for "
    "`== 0`.",
)
def _(mask, given, wanted):
    import torch

    hides = ("numpy.ma", "key_padding_mask")
    counts = mask == 0 if given == "additive" else ~mask if given in hides else mask
    if wanted == "additive":
        return torch.where(counts, 0.0, float("-inf"))
    return ~counts if wanted in hides else counts


@convert_mask.wrong(
    "X-8.1-7",
    "0 times infinity is NaN, so your additive mask is NaN where something counts. Choose the two numbers with "
    "torch.where.",
)
def _(mask, given, wanted):
    hides = ("numpy.ma", "key_padding_mask")
    counts = mask != float("-inf") if given == "additive" else ~mask if given in hides else mask
    if wanted == "additive":
        return (~counts).float() * float("-inf")
    return ~counts if wanted in hides else counts


@convert_mask.wrong(
    "X-8.1-8",
    "A large negative number is not minus infinity: whoever reads this mask and asks for minus infinity finds nothing "
    "hidden in it.",
)
def _(mask, given, wanted):
    import torch

    hides = ("numpy.ma", "key_padding_mask")
    counts = mask != float("-inf") if given == "additive" else ~mask if given in hides else mask
    if wanted == "additive":
        return torch.where(counts, 0.0, -1e9)
    return ~counts if wanted in hides else counts


@convert_mask.wrong(
    "M10",
    "A mask of 0 and 1 is a tensor of integers. For an index and for `~` that is another thing than a bool tensor: keep "
    "the dtype bool.",
)
def _(mask, given, wanted):
    import torch

    hides = ("numpy.ma", "key_padding_mask")
    counts = mask != float("-inf") if given == "additive" else ~mask if given in hides else mask
    if wanted == "additive":
        return torch.where(counts, 0.0, float("-inf"))
    return 1 - counts.int() if wanted in hides else counts.int()


@convert_mask.wrong(
    "X-8.1-9",
    "An additive mask is wanted here, and a bool tensor came. It has to be float32, 0 where something counts and minus "
    "infinity elsewhere.",
)
def _(mask, given, wanted):
    hides = ("numpy.ma", "key_padding_mask")
    counts = mask != float("-inf") if given == "additive" else ~mask if given in hides else mask
    return ~counts if wanted in hides else counts


@convert_mask.right
def _(mask, given, wanted):
    import torch

    hides = ("numpy.ma", "key_padding_mask")
    if given == "additive":
        mask = torch.isneginf(mask)
    hidden = mask if given in (*hides, "additive") else ~mask
    if wanted == "additive":
        return torch.zeros_like(hidden, dtype=torch.float32).masked_fill(hidden, float("-inf"))
    return hidden.clone() if wanted in hides else hidden.logical_not()


@convert_mask.right
def _(mask, given, wanted):
    import torch

    true_counts = {"MaskedTensor": True, "attn_mask": True, "numpy.ma": False, "key_padding_mask": False}
    counts = mask > float("-inf") if given == "additive" else mask == true_counts[given]
    if wanted == "additive":
        return torch.log(counts.float())  # log(1) is 0, log(0) minus infinity
    return counts == true_counts[wanted]


# ---- 8.2 ------------------------------------------------------------------------------------------------------------


@exercise(
    "8.2",
    points=2,
    minutes=8,
    stars=2,
    concepts=["V-02", "V-07"],
    properties=[op_budget(20)],
    forbidden=["mask_policy"],
    visible=7,
    hints=[
        "Data and mask can be computed apart from each other. What stands under the mask of the result does not matter, "
        "so the data is just the sum of the data.",
        "get_data() and get_mask() take a MaskedTensor apart. The masks are bool tensors: & is True where both are, and "
        "broadcasts as + does. masked_tensor(data, mask) puts the two together again.",
        "return masked_tensor(a.get_data() + b.get_data(), a.get_mask() ___ b.get_mask())",
    ],
)
def intersection_add(a, b):
    both = torch.logical_and(a.get_mask(), b.get_mask())
    return masked_tensor(a.get_data().add(b.get_data()), both)


@intersection_add.cases
def _(rng):
    yield masked([1.0, 2.0, 3.0], [True, True, False]), masked([10.0, 20.0, 30.0], [True, False, False])
    yield masked([1.0, NAN], [True, False]), masked([INF, 5.0], [False, True])
    yield masked([[1.0, 2.0], [NAN, 4.0]], [[True, True], [False, True]]), masked([10.0, 1e30], [True, False])
    yield masked([2.0, 5.0, 1.0], [True, True, False]), masked([-2.0, 1.0, 7.0], [True, True, True])  # 0 is a value
    yield masked([NAN, 1.0], [True, True]), masked([1.0, 1.0], [True, False])  # this NaN counts
    yield masked([[1.0], [2.0]], [[True], [False]]), masked([[10.0, 20.0, 30.0]], [[True, False, True]])
    yield masked([1e30, INF], [False, False]), masked([1.0, 2.0], [True, True])
    yield masked(2.0, True), masked(3.0, False)
    yield masked(2.0, True), masked(3.0, True)
    yield masked_tensor(torch.zeros(0, 3), torch.ones(0, 3) > 0), masked([1.0, 2.0, 3.0], [True, False, True])
    yield masked([1, 2, 3], [True, False, True]), masked([0.5, 0.5, NAN], [True, True, False])
    yield drawn(rng, 3, dtype=torch.int64), drawn(rng, 2, 3, dtype=torch.int64)
    yield drawn(rng, 4, dtype=torch.bool), drawn(rng, 4, dtype=torch.bool)
    yield drawn(rng, 3, 2).t(), drawn(rng, 2, 3)
    yield drawn(rng, 1, 3).expand(2, 3), drawn(rng, 2, 3)
    yield drawn(rng, 20, 30), drawn(rng, 30)
    for _ in range(20):
        first, second = shapes_that_fit(rng)
        dtype = rng.choice([torch.float32, torch.float64, torch.int32])
        yield drawn(rng, *first, dtype=dtype), drawn(rng, *second, dtype=dtype)


@intersection_add.wrong(
    "M23",
    "Your mask is True where *either* operand counts. That is right for NumPy's masks, where True hides; here True "
    "counts, and a sum of both needs both.",
)
def _(a, b):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(a.get_data() + b.get_data(), a.get_mask() | b.get_mask())


@intersection_add.wrong(
    "M30",
    "The result has the mask of the first operand. What b hides is not there either: the mask of a + b needs both masks.",
)
def _(a, b):
    from maskedtensor_ref import masked_tensor

    data = a.get_data() + b.get_data()
    return masked_tensor(data, a.get_mask().expand(data.shape))


@intersection_add.wrong(
    "X-8.2-1",
    "The result has the mask of the second operand. What a hides is not there either: the mask of a + b needs both masks.",
)
def _(a, b):
    from maskedtensor_ref import masked_tensor

    data = a.get_data() + b.get_data()
    return masked_tensor(data, b.get_mask().expand(data.shape))


@intersection_add.wrong(
    "X-8.2-2",
    "A plain tensor came, with 0 for what is missing. Then nobody can tell a 0 that counts from a hole: hand out a "
    "MaskedTensor.",
)
def _(a, b):
    return a.to_tensor(0) + b.to_tensor(0)


@intersection_add.wrong(
    "X-8.2-3",
    "a + b refuses as soon as the masks differ. That is the rule of MaskedTensor; write NumPy's rule yourself, with the "
    "data and the masks.",
)
def _(a, b):
    return a + b


@intersection_add.wrong(
    "M24",
    "You took a sum of 0 for a hole. 0 is a value: the mask comes from the masks, never from the values.",
)
def _(a, b):
    from maskedtensor_ref import masked_tensor

    data = a.to_tensor(0) + b.to_tensor(0)
    return masked_tensor(data, (data != 0) & a.get_mask() & b.get_mask())


@intersection_add.wrong(
    "M22",
    "You took a NaN for the sign of a hole. Under a mask there may be anything, 5 or 1e30 as well as NaN, and a NaN may "
    "count. Only the masks know.",
)
def _(a, b):
    from maskedtensor_ref import masked_tensor

    data = a.get_data() + b.get_data()
    return masked_tensor(data, ~data.isnan())


@intersection_add.wrong(
    "X-8.2-4",
    "Your mask is True where the two masks *agree*, and so also where both hide. Wanted is where both count.",
)
def _(a, b):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(a.get_data() + b.get_data(), a.get_mask() == b.get_mask())


@intersection_add.wrong(
    "X-8.2-5",
    "Python's `and` asks one question of a whole tensor, and with several elements torch refuses to answer. `&` asks at "
    "each place.",
)
def _(a, b):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(a.get_data() + b.get_data(), a.get_mask() and b.get_mask())


@intersection_add.wrong(
    "X-8.2-6",
    "The two operands have different shapes here. + and & broadcast by themselves; a mask alone has the shape of its "
    "own operand, and does not fit the sum.",
)
def _(a, b):
    from maskedtensor_ref import masked_tensor

    mask = a.get_mask().clone()
    mask &= b.get_mask()
    return masked_tensor(a.get_data() + b.get_data(), mask)


@intersection_add.wrong(
    "X-8.2-7",
    "Element by element it comes out right, with many operations for a few numbers. + and & work on whole tensors.",
)
def _(a, b):
    import torch

    from maskedtensor_ref import masked_tensor

    x, y = torch.broadcast_tensors(a.get_data(), b.get_data())
    m, k = torch.broadcast_tensors(a.get_mask(), b.get_mask())
    data, mask = x + y, torch.zeros_like(m)
    for place in torch.ones_like(m).nonzero().tolist():
        at = tuple(place)
        if m[at] and k[at]:
            data[at], mask[at] = x[at] + y[at], True
    return masked_tensor(data, mask)


@intersection_add.right
def _(a, b):
    from maskedtensor_ref import as_masked_tensor

    hidden = ~a.get_mask() | ~b.get_mask()
    return as_masked_tensor(a.to_tensor(0) + b.to_tensor(0), ~hidden)


@intersection_add.right
def _(a, b):
    import torch

    from maskedtensor_ref import MaskedTensor

    x, y = torch.broadcast_tensors(a.get_data(), b.get_data())
    return MaskedTensor(x + y, a.get_mask() * b.get_mask())  # a product of bools is "and"


# ---- 8.3 ------------------------------------------------------------------------------------------------------------


@exercise(
    "8.3",
    points=3,
    minutes=8,
    stars=2,
    concepts=["V-04"],
    needs=["intersection_add"],
    properties=[op_budget(20)],
    forbidden=["mask_policy"],
    visible=8,
    hints=[
        "Where one operand is missing, the other is to stay as it is. Which number changes nothing when it is added, and "
        "which when it is multiplied by?",
        "a.to_tensor(number) is plain, with your number wherever a hides. | is True where at least one mask is.",
        'nothing = 0 if operation == "add" else ___; x, y = a.to_tensor(nothing), b.to_tensor(___); '
        "return masked_tensor(x + y or x * y, a.get_mask() ___ b.get_mask())",
    ],
)
def union(a, b, operation):
    act, nothing = {"add": (torch.add, 0), "mul": (torch.mul, 1)}[operation]
    either = torch.logical_or(a.get_mask(), b.get_mask())
    return masked_tensor(act(a.to_tensor(nothing), b.to_tensor(nothing)), either)


@union.cases
def _(rng):
    yield masked([1.0, 2.0, 3.0], [True, True, False]), masked([10.0, 20.0, 30.0], [True, False, False]), "add"
    yield masked([1.0, 2.0, 3.0], [True, True, False]), masked([10.0, 20.0, 30.0], [True, False, False]), "mul"
    yield masked([1.0, NAN], [True, False]), masked([INF, 5.0], [False, True]), "add"
    yield masked([[1.0, 2.0], [3.0, 4.0]], [[True, True], [False, True]]), masked([10.0, 1e30], [True, False]), "add"
    yield masked([0.0, 3.0], [True, False]), masked([4.0, 5.0], [True, True]), "mul"  # 0 is a value
    yield masked([NAN, 7.0], [True, False]), masked([1.0, 8.0], [True, False]), "add"  # this NaN counts
    yield masked([[2.0], [3.0]], [[True], [False]]), masked([[5.0, 7.0, 9.0]], [[True, False, True]]), "mul"
    yield masked([INF, -INF], [True, False]), masked([1.0, INF], [False, False]), "add"
    yield masked(2.0, True), masked(3.0, False), "mul"
    yield masked(2.0, False), masked(3.0, False), "add"
    yield masked_tensor(torch.zeros(0, 3), torch.ones(0, 3) > 0), masked([1.0, 2.0, 3.0], [True, False, True]), "mul"
    yield masked([1, 2, 3], [True, False, True]), masked([0.5, 0.5, NAN], [True, True, False]), "add"
    yield drawn(rng, 3, dtype=torch.int64), drawn(rng, 2, 3, dtype=torch.int64), "mul"
    yield drawn(rng, 4, dtype=torch.bool), drawn(rng, 4, dtype=torch.bool), "add"
    yield drawn(rng, 3, 2).t(), drawn(rng, 2, 3), "mul"
    yield drawn(rng, 1, 3).expand(2, 3), drawn(rng, 2, 3), "add"
    yield drawn(rng, 20, 30), drawn(rng, 30), "mul"
    for k in range(20):
        first, second = shapes_that_fit(rng)
        dtype = rng.choice([torch.float32, torch.float64, torch.int32])
        yield drawn(rng, *first, dtype=dtype), drawn(rng, *second, dtype=dtype), ("add", "mul")[k % 2]


@union.wrong(
    "X-8.3-1",
    "A missing factor was read as 0, and 0 wipes out the factor that is there. The number that changes nothing in a "
    "product is 1.",
)
def _(a, b, operation):
    from maskedtensor_ref import masked_tensor

    x, y = a.to_tensor(0), b.to_tensor(0)
    return masked_tensor(x + y if operation == "add" else x * y, a.get_mask() | b.get_mask())


@union.wrong(
    "M30",
    "Your result is masked as soon as *one* operand is missing. That is the intersection. In a union one operand is "
    "enough: |.",
)
def _(a, b, operation):
    from maskedtensor_ref import masked_tensor

    nothing = 0 if operation == "add" else 1
    x, y = a.to_tensor(nothing), b.to_tensor(nothing)
    return masked_tensor(x + y if operation == "add" else x * y, a.get_mask() & b.get_mask())


@union.wrong(
    "M22",
    "What lies under a mask has come into the result: get_data() gives it along, NaN or whatever it is. to_tensor(number) "
    "puts your number there.",
)
def _(a, b, operation):
    from maskedtensor_ref import masked_tensor

    x, y = a.get_data(), b.get_data()
    return masked_tensor(x + y if operation == "add" else x * y, a.get_mask() | b.get_mask())


@union.wrong(
    "X-8.3-2",
    "Where both operands are missing your result still counts, and says 0 or 1. Nobody measured that: there the result "
    "has to be masked.",
)
def _(a, b, operation):
    import torch

    from maskedtensor_ref import masked_tensor

    nothing = 0 if operation == "add" else 1
    x, y = a.to_tensor(nothing), b.to_tensor(nothing)
    data = x + y if operation == "add" else x * y
    return masked_tensor(data, torch.ones_like(data, dtype=torch.bool))


@union.wrong(
    "X-8.3-3",
    "The numbers are there, but as a plain tensor: what both operands miss is a number like any other then. Put them "
    "under the mask of either.",
)
def _(a, b, operation):
    nothing = 0 if operation == "add" else 1
    x, y = a.to_tensor(nothing), b.to_tensor(nothing)
    return x + y if operation == "add" else x * y


@union.wrong(
    "M24",
    "The mask was made of the values, with `!= 0` or the like. A 0 that counts is a value; only the masks know what is "
    "missing.",
)
def _(a, b, operation):
    from maskedtensor_ref import masked_tensor

    nothing = 0 if operation == "add" else 1
    x, y = a.to_tensor(nothing), b.to_tensor(nothing)
    data = x + y if operation == "add" else x * y
    return masked_tensor(data, (data != 0) & (a.get_mask() | b.get_mask()))


@union.wrong(
    "X-8.3-4",
    "Where both are there you took one of them. The union fills in for what is missing; where nothing is missing it is "
    "the ordinary sum or product.",
)
def _(a, b, operation):
    import torch

    from maskedtensor_ref import masked_tensor

    x, y = torch.broadcast_tensors(a.get_data(), b.get_data())
    m, k = torch.broadcast_tensors(a.get_mask(), b.get_mask())
    return masked_tensor(torch.where(m, x, y), m | k)


@union.wrong(
    "X-8.3-5",
    "NaN was replaced, and 1e30 or 7 under the mask was not; and a NaN that counts was lost. Junk need not look like "
    "junk: let the masks choose.",
)
def _(a, b, operation):
    import torch

    from maskedtensor_ref import masked_tensor

    nothing = 0 if operation == "add" else 1
    x, y = (torch.nan_to_num(t.get_data(), nothing) for t in (a, b))
    return masked_tensor(x + y if operation == "add" else x * y, a.get_mask() | b.get_mask())


@union.wrong(
    "X-8.3-6",
    "a + b and a * b refuse as soon as the masks differ. Fill in first, combine the plain tensors, and mask the result.",
)
def _(a, b, operation):
    return a + b if operation == "add" else a * b


@union.wrong(
    "X-8.3-7",
    'The operation was not looked at: this is always the sum. operation says "add" or "mul".',
)
def _(a, b, operation):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(a.to_tensor(0) + b.to_tensor(0), a.get_mask() | b.get_mask())


@union.right
def _(a, b, operation):
    import torch

    from maskedtensor_ref import masked_tensor

    x, y = torch.broadcast_tensors(a.get_data(), b.get_data())
    m, k = torch.broadcast_tensors(a.get_mask(), b.get_mask())
    both = x + y if operation == "add" else x * y
    return masked_tensor(torch.where(m & k, both, torch.where(m, x, y)), m | k)


@union.right
def _(a, b, operation):
    from maskedtensor_ref import as_masked_tensor

    fill = int(operation == "mul")
    x, y = (t.get_data().masked_fill(~t.get_mask(), fill) for t in (a, b))
    hidden = ~a.get_mask() & ~b.get_mask()
    return as_masked_tensor(x.mul(y) if fill else x.add(y), ~hidden)


# ---- 8.4 ------------------------------------------------------------------------------------------------------------

LAWS = (
    "a + b = b + a",
    "sum(a + b) = sum(a) + sum(b)",
    "mean(a + b) = mean(a) + mean(b)",
    "(a + b) - b = a",
    "a * (b + c) = a * b + a * c",
)
POLICIES = ("strict", "intersection", "union")


@exercise(
    "8.4",
    points=4,
    minutes=12,
    stars=3,
    concepts=["V-06"],
    needs=["intersection_add", "union"],
    visible=9,
    hints=[
        "Take two elements, give a a hole at one and b a hole at the other, and work both sides out by hand for each "
        "policy. The strict policy is the easy one: what it does not refuse has equal masks.",
        "The sum of a union loses nothing: every number that is there is in it once. A mean divides by how many count, "
        "and that changes. (a + b) - b has the mask of a + b: when is that the mask of a? In the union's a * b, 1 is read for a "
        "missing b.",
        'if policy == "strict" or law == "a + b = b + a" or (law.startswith("sum") and policy == ___) or (law.startswith('
        '"a *") and policy == ___): return None; first = torch.arange(n) == 0; a = masked_tensor(torch.full((n,), 50.0), '
        "first); b = masked_tensor(torch.full((n,), 50.0), ___); and a c that counts everywhere.",
    ],
)
def broken_law(law, policy, n):
    holds = {("sum(a + b) = sum(a) + sum(b)", "union"), ("a * (b + c) = a * b + a * c", "intersection")}
    if policy == "strict" or law == "a + b = b + a" or (law, policy) in holds:
        return None
    head, numbers = torch.arange(n) < 1, torch.full((n,), 50.0)
    operands = [masked_tensor(numbers, mask) for mask in (head, ~head, head | ~head)]
    return operands[: 3 if "c" in law else 2]


@broken_law.facts
def _(answer, law, policy, n):
    import torch

    count = 3 if law.endswith("a * c") else 2
    several = isinstance(answer, (list, tuple)) and len(answer) == count
    told = {
        "what you say of the law": "it holds" if answer is None else "it fails",
        f"{count} operands": answer is None or several or answer,
        "each a strided MaskedTensor of shape (n,)": answer is None,
        "float32, finite and from -100 to 100 where specified": answer is None,
        "the two sides differ by more than rounding": answer is None,
    }
    if not several or not all(getattr(t, "kind", "") == "masked" and t.layout == "strided" for t in answer):
        return told
    parts = [(t.parts["data"].value, t.parts["mask"].value) for t in answer]
    if not all(tuple(t.shape) == (n,) for pair in parts for t in pair):
        return told
    told["each a strided MaskedTensor of shape (n,)"] = True
    if not all(d.dtype == torch.float32 and m.dtype == torch.bool and (d[m].abs() <= 100).all() for d, m in parts):
        return told
    told["float32, finite and from -100 to 100 where specified"] = True

    def of_two(act, missing):
        def combined(x, y):
            if policy != "union":
                return act(x[0], y[0]), x[1] & y[1]
            return act(torch.where(x[1], x[0], missing), torch.where(y[1], y[0], missing)), x[1] | y[1]

        return combined

    def total(x):
        return torch.where(x[1], x[0], 0).sum(), x[1].any()

    def mean(x):
        return total(x)[0] / x[1].sum().clamp(min=1), x[1].any()

    add, sub, mul = of_two(torch.add, 0), of_two(torch.sub, 0), of_two(torch.mul, 1)
    a, b, c = [(d.double(), m) for d, m in (*parts, parts[-1])[:3]]
    left, right = {
        "a + b": (add(a, b), add(b, a)),
        "sum": (total(add(a, b)), add(total(a), total(b))),
        "mean": (mean(add(a, b)), add(mean(a), mean(b))),
        "(a + b) - b": (sub(add(a, b), b), a),
        "a * ": (mul(a, add(b, c)), add(mul(a, b), mul(a, c))),
    }[next(start for start in ("sum", "mean", "(a + b) - b", "a * ", "a + b") if law.startswith(start))]
    apart = bool((left[1] != right[1]).any() or ((left[0] - right[0]).abs() > 0.5)[left[1]].any())
    return told | {"the two sides differ by more than rounding": apart}


@broken_law.cases
def _(rng):
    yield LAWS[1], "intersection", 2
    yield LAWS[1], "union", 2
    yield LAWS[1], "strict", 3
    yield LAWS[0], "intersection", 2
    yield LAWS[2], "union", 3
    yield LAWS[3], "intersection", 2
    yield LAWS[3], "union", 4
    yield LAWS[4], "union", 2
    yield LAWS[4], "intersection", 3
    for policy in POLICIES:
        for law in LAWS:
            yield law, policy, rng.integer(2, 40)


@broken_law.wrong(
    "M30",
    "You say that every law holds. Each of them holds as long as the masks are equal; give a and b different holes, and "
    "work both sides out.",
)
def _(law, policy, n):
    return None


@broken_law.wrong(
    "X-8.4-1",
    "In your example the operands have the same mask, so all policies agree and every law holds. The holes have to be at "
    "different places.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    if policy == "strict" or law == "a + b = b + a":
        return None
    if (law.startswith("sum") and policy == "union") or (law.startswith("a *") and policy == "intersection"):
        return None
    m = masked_tensor(torch.full((n,), 50.0), torch.arange(n) == 0)
    return [m, m, m][: 3 if law.startswith("a *") else 2]


@broken_law.wrong(
    "X-8.4-2",
    "You give an example for every law. Some of them hold, and then there is none: return None.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    first, numbers = torch.arange(n) == 0, torch.full((n,), 50.0)
    a, b, c = (masked_tensor(numbers, mask) for mask in (first, ~first, first | True))
    return [a, b, c][: 3 if law.startswith("a *") else 2]


@broken_law.wrong(
    "X-8.4-3",
    "You have intersection and union exchanged. The intersection leaves out a number as soon as its partner is missing; "
    "the union leaves out nothing.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    if policy == "strict" or law == "a + b = b + a":
        return None
    if (law.startswith("sum") and policy == "intersection") or (law.startswith("a *") and policy == "union"):
        return None
    first, numbers = torch.arange(n) == 0, torch.full((n,), 50.0)
    a, b, c = (masked_tensor(numbers, mask) for mask in (first, ~first, first | True))
    return [a, b, c][: 3 if law.startswith("a *") else 2]


@broken_law.wrong(
    "X-8.4-4",
    "You say that a union obeys every law. It keeps every number, so sums come out; but a mean divides by how many "
    "count, and a mask that has grown does not shrink again.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    if policy != "intersection" or law == "a + b = b + a" or law.startswith("a *"):
        return None
    first, numbers = torch.arange(n) == 0, torch.full((n,), 50.0)
    return [masked_tensor(numbers, first), masked_tensor(numbers, ~first)]


@broken_law.wrong(
    "X-8.4-5",
    "(a + b) - b has the mask of a + b. In a union that is larger than the mask of a only if b is there where a is "
    "*not*: your a has no hole.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    if policy == "strict" or law == "a + b = b + a":
        return None
    if (law.startswith("sum") and policy == "union") or (law.startswith("a *") and policy == "intersection"):
        return None
    first, numbers = torch.arange(n) == 0, torch.arange(n) * 1.0 + 50 - torch.arange(n) % 2 * 100
    a, b, c = (masked_tensor(numbers.clamp(-100, 100), mask) for mask in (first | True, first, first | True))
    if law.startswith("a *"):
        return [a, b, c]
    return [a, b]


@broken_law.wrong(
    "X-8.4-6",
    "Your operands always have the same length. n says how long they are to be.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    if policy == "strict" or law == "a + b = b + a":
        return None
    if (law.startswith("sum") and policy == "union") or (law.startswith("a *") and policy == "intersection"):
        return None
    first, numbers = torch.tensor([True, False]), torch.tensor([50.0, 50.0])
    a, b, c = (masked_tensor(numbers, mask) for mask in (first, ~first, first | True))
    return [a, b, c][: 3 if law.startswith("a *") else 2]


@broken_law.wrong(
    "X-8.4-7",
    "Under the strict policy your operands are refused, so they are no example: a law can only fail where both sides "
    "exist. With equal masks each of these laws holds.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    if law == "a + b = b + a":
        return None
    if (law.startswith("sum") and policy == "union") or (law.startswith("a *") and policy == "intersection"):
        return None
    first, numbers = torch.arange(n) == 0, torch.full((n,), 50.0)
    a, b, c = (masked_tensor(numbers, mask) for mask in (first, ~first, first | True))
    return [a, b, c][: 3 if law.startswith("a *") else 2]


@broken_law.wrong(
    "X-8.4-8",
    "Plain tensors came. They count everywhere, so no policy has anything to decide: give each operand its mask, with "
    "masked_tensor(data, mask).",
)
def _(law, policy, n):
    import torch

    if policy == "strict" or law == "a + b = b + a":
        return None
    if (law.startswith("sum") and policy == "union") or (law.startswith("a *") and policy == "intersection"):
        return None
    return [torch.full((n,), 50.0)] * (3 if law.startswith("a *") else 2)


@broken_law.wrong(
    "X-8.4-9",
    "This law has three operands: a, b and c.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    if policy == "strict" or law == "a + b = b + a":
        return None
    if (law.startswith("sum") and policy == "union") or (law.startswith("a *") and policy == "intersection"):
        return None
    first, numbers = torch.arange(n) == 0, torch.full((n,), 50.0)
    return [masked_tensor(numbers, mask) for mask in (first, ~first)]


@broken_law.wrong(
    "X-8.4-10",
    "NaN or infinity that counts breaks every law of arithmetic, with and without masks. The task is about masks: "
    "specified numbers from -100 to 100.",
)
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    if policy == "strict" or law == "a + b = b + a":
        return None
    if (law.startswith("sum") and policy == "union") or (law.startswith("a *") and policy == "intersection"):
        return None
    first, numbers = torch.arange(n) == 0, torch.full((n,), float("inf"))
    a, b, c = (masked_tensor(numbers, mask) for mask in (first, ~first, first | True))
    return [a, b, c][: 3 if law.startswith("a *") else 2]


@broken_law.right
def _(law, policy, n):
    import torch

    from maskedtensor_ref import mask_policy, masked_tensor

    sides = {
        "a + b = b + a": lambda a, b, c: (a + b, b + a),
        "sum(a + b) = sum(a) + sum(b)": lambda a, b, c: ((a + b).sum(), a.sum() + b.sum()),
        "mean(a + b) = mean(a) + mean(b)": lambda a, b, c: ((a + b).mean(), a.mean() + b.mean()),
        "(a + b) - b = a": lambda a, b, c: ((a + b) - b, a),
        "a * (b + c) = a * b + a * c": lambda a, b, c: (a * (b + c), a * b + a * c),
    }[law]
    two = torch.tensor([[True, True], [True, False], [False, True]])
    for masks in torch.cartesian_prod(torch.arange(3), torch.arange(3), torch.arange(3)).tolist():
        operands = []
        for number, kind in enumerate(masks):
            mask = torch.ones(n, dtype=torch.bool)
            mask[:2] = two[kind]
            data = torch.full((n,), 2.0)
            data[0] = 40.0 + 10 * number
            operands.append(masked_tensor(data, mask))
        if policy == "strict":
            continue
        with mask_policy(policy):
            left, right = sides(*operands)
        apart = not torch.equal(left.get_mask(), right.get_mask())
        if apart or bool(((left.to_tensor(0) - right.to_tensor(0)).abs() > 0.5).any()):
            return tuple(operands[: 3 if "c" in law else 2])
    return None


@broken_law.right
def _(law, policy, n):
    import torch

    from maskedtensor_ref import masked_tensor

    fails = {
        "intersection": ("sum(a + b) = sum(a) + sum(b)", "mean(a + b) = mean(a) + mean(b)", "(a + b) - b = a"),
        "union": ("mean(a + b) = mean(a) + mean(b)", "(a + b) - b = a", "a * (b + c) = a * b + a * c"),
    }
    if law not in fails.get(policy, ()):
        return None
    left, right = torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool)
    left[0], right[1] = True, True
    junk = torch.full((n,), float("nan"))
    a = masked_tensor(torch.where(left, -30.0, junk), left)
    b = masked_tensor(torch.where(right, 70.0, junk), right)
    c = masked_tensor(torch.where(left, 3.0, junk), left)
    return (a, b, c) if "c" in law else (a, b)


# ---- 8.5 ------------------------------------------------------------------------------------------------------------


@exercise(
    "8.5",
    points=2,
    minutes=8,
    stars=2,
    concepts=["V-05"],
    visible=9,
    hints=[
        "Ask of each reduction: which number may I add to the list without changing the result? For a maximum it must be "
        "no larger than any number of the dtype.",
        "Floats have float('-inf') and float('inf'). Integers have torch.iinfo(dtype).min and .max. bool has False and "
        "True, and torch.iinfo refuses it. torch.tensor(number, dtype=dtype) has shape (). A mean has no such number.",
        'if reduction not in ("sum", "prod", "amax", "amin"): raise ValueError(...); then 0, 1, or for amax: ___ if '
        "dtype.is_floating_point, False if dtype == torch.bool, else torch.iinfo(dtype).___",
    ],
)
def identity(reduction, dtype):
    if dtype.is_floating_point:
        low, high = -INF, INF
    else:
        low, high = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    numbers = {"sum": 0, "prod": 1, "amax": low, "amin": high}
    if reduction not in numbers:
        raise ValueError(f"{reduction} has no identity")
    return torch.tensor(numbers[reduction], dtype=dtype)


@identity.cases
def _(rng):
    yield "sum", torch.float32
    yield "prod", torch.int64
    yield "amax", torch.float32
    yield "amin", torch.int32
    yield "amax", torch.uint8
    yield "amax", torch.int8
    yield "amin", torch.bool
    yield "mean", torch.float32
    yield "amin", torch.float64
    dtypes = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool".split()
    pairs = [(reduction, getattr(torch, dtype)) for reduction in ("sum", "prod", "amax", "amin") for dtype in dtypes]
    pairs += [("mean", torch.float64), ("median", torch.float32), ("std", torch.float32), ("argmax", torch.int64)]
    for place in rng.permutation(len(pairs)).tolist():
        yield pairs[place]


@identity.wrong(
    "M24",
    "0 is the identity of a sum alone. The maximum of -3 and 0 is 0, so a 0 in the list changes it: for a maximum take "
    "something that is no larger than any number.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    return torch.tensor(1 if reduction == "prod" else 0, dtype=dtype)


@identity.wrong(
    "X-8.5-1",
    "amax and amin are exchanged. The identity of a maximum is the *smallest* thing there is: anything else wins "
    "against it.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor({"sum": 0, "prod": 1, "amax": high, "amin": low}[reduction], dtype=dtype)


@identity.wrong(
    "X-8.5-2",
    "torch.finfo(dtype).min is the smallest *finite* number. A list that holds nothing but minus infinity has the maximum "
    "minus infinity, and yours would change it.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    if dtype.is_floating_point:
        low, high = torch.finfo(dtype).min, torch.finfo(dtype).max
    else:
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor({"sum": 0, "prod": 1, "amax": low, "amin": high}[reduction], dtype=dtype)


@identity.wrong(
    "X-8.5-3",
    "There is no infinity among the integers, so torch refuses to make one. The smallest integer of the dtype does the "
    "same: torch.iinfo(dtype).min.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    numbers = {"sum": 0, "prod": 1, "amax": float("-inf"), "amin": float("inf")}
    return torch.tensor(numbers[reduction], dtype=dtype)


@identity.wrong(
    "X-8.5-4",
    "A number of Python came. It has no dtype; wanted is a tensor that has the dtype asked for.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return {"sum": 0, "prod": 1, "amax": low, "amin": high}[reduction]


@identity.wrong(
    "X-8.5-5",
    "Your tensor has shape (1,). A single number has shape (): torch.tensor(number), without brackets around it.",
    sample="wrong_rank",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor([{"sum": 0, "prod": 1, "amax": low, "amin": high}[reduction]], dtype=dtype)


@identity.wrong(
    "X-8.5-6",
    "The dtype was chosen by torch, from the number. Say dtype=dtype: an int64 among int8 numbers turns all of them into "
    "int64.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor({"sum": 0, "prod": 1, "amax": low, "amin": high}[reduction])


@identity.wrong(
    "X-8.5-7",
    "A 0 in a product makes all of it 0. The number that changes nothing there is 1.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor({"sum": 0, "prod": 0, "amax": low, "amin": high}[reduction], dtype=dtype)


@identity.wrong(
    "X-8.5-8",
    "A mean has no identity: the mean of 4 and 8 is 6, and whatever you add to the list counts as a third number. Raise a "
    "ValueError for what is none of the four reductions.",
)
def _(reduction, dtype):
    import torch

    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor({"prod": 1, "amax": low, "amin": high}.get(reduction, 0), dtype=dtype)


@identity.wrong(
    "X-8.5-9",
    "torch.iinfo knows no bool. Its smallest value is False and its largest True; give bool a line of its own.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    return torch.tensor({"sum": 0, "prod": 1, "amax": low, "amin": high}[reduction], dtype=dtype)


@identity.wrong(
    "X-8.5-10",
    "The smallest int8 is -128, not -127, and unsigned integers have nothing below 0: -iinfo.max is not iinfo.min.",
)
def _(reduction, dtype):
    import torch

    if reduction not in ("sum", "prod", "amax", "amin"):
        raise ValueError(f"{reduction} has no identity")
    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = (0, 1) if dtype == torch.bool else (-torch.iinfo(dtype).max, torch.iinfo(dtype).max)
    return torch.tensor({"sum": 0, "prod": 1, "amax": low, "amin": high}[reduction], dtype=dtype)


@identity.wrong(
    "X-8.5-11",
    "What is none of the four reductions ended in another error than ValueError. Look at the name first, and raise the "
    "ValueError yourself.",
)
def _(reduction, dtype):
    import torch

    if dtype.is_floating_point:
        low, high = float("-inf"), float("inf")
    else:
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    return torch.tensor({"sum": 0, "prod": 1, "amax": low, "amin": high}[reduction], dtype=dtype)


@identity.right
def _(reduction, dtype):
    import torch

    if reduction == "sum":
        return torch.zeros((), dtype=dtype)
    if reduction == "prod":
        return torch.ones((), dtype=dtype)
    if reduction not in ("amax", "amin"):
        raise ValueError(f"the reduction {reduction!r} has no identity")
    if dtype == torch.bool:
        return torch.tensor(reduction == "amin")
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    number = torch.tensor(limits.min if reduction == "amax" else limits.max, dtype=dtype)
    return number * float("inf") if dtype.is_floating_point else number


@identity.right
def _(reduction, dtype):
    import torch

    match reduction:
        case "sum" | "prod":
            return torch.full((), int(reduction == "prod"), dtype=dtype)
        case "amax" | "amin":
            least = reduction == "amax"
            if dtype.is_floating_point:
                return torch.tensor(float("-inf" if least else "inf"), dtype=dtype)
            if dtype == torch.bool:
                return torch.tensor(not least)
            return torch.tensor(getattr(torch.iinfo(dtype), "min" if least else "max"), dtype=dtype)
    raise ValueError("only sums, products and extremes have an identity")


# ---- 8.6 ------------------------------------------------------------------------------------------------------------


@exercise(
    "8.6",
    points=4,
    minutes=15,
    stars=3,
    homework=True,
    concepts=["V-05", "O-19"],
    needs=["identity"],
    properties=[op_budget(30), device_agnostic],
    forbidden=["masked_tensor", "as_masked_tensor", "MaskedTensor"],
    visible=13,
    hints=[
        "Fill with the identity, in the dtype of x, and take the ordinary maximum. What is defined the mask alone says: "
        "where at least one element counts.",
        "torch.amax and Tensor.any take one dimension or a tuple, negative numbers too, and keepdim. What amax refuses is "
        "a dimension of length 0: there nothing is to be found, and the result is full of the identity. One way round it: "
        "put one more slice that holds the identity behind x, with torch.cat.",
        "filled = torch.where(mask, x, low); then for each dimension d of dim: filled = torch.cat([filled, a slice of low "
        "with length 1 along d], d).amax(d, keepdim=True), mask = mask.any(d, keepdim=___); at the end, unless keepdim, "
        ".squeeze(tuple of the dimensions)",
    ],
)
def masked_amax(x, mask, dim, keepdim):
    low = -INF if x.is_floating_point() else 0 if x.dtype is torch.bool else torch.iinfo(x.dtype).min
    every = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    values = x.masked_fill(~mask, low)
    for d in every:
        slim = [1 if k == d % x.dim() else n for k, n in enumerate(values.shape)]
        values = torch.cat([values, values.new_full(slim, low)], d).amax(d, keepdim=True)
        mask = mask.any(d, keepdim=True)
    gone = () if keepdim else tuple(every)
    return values.squeeze(gone), mask.squeeze(gone)


@masked_amax.cases
def _(rng):
    three = torch.arange(12.0).view(2, 3, 2)
    yield torch.tensor([[-1.0, 5.0], [-3.0, NAN]]), torch.tensor([[True, False], [True, False]]), (0, 1), False
    yield torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[True, True], [False, False]]), 1, False
    yield three, three % 5 != 0, (-2, -1), False
    yield three, three < 6, (0, -1), True
    yield -three, three % 2 == 0, (-1, 0), False
    yield torch.tensor([[3, -7], [9, 2]], dtype=torch.int8), torch.tensor([[False, True], [False, False]]), -1, False
    yield torch.tensor([-INF, 1.0]), torch.tensor([True, False]), None, False  # minus infinity counts
    yield torch.tensor([NAN, 1.0]), torch.tensor([True, True]), 0, False  # this NaN counts
    nothing = torch.zeros(
        2, 0, 1, 1, 1, 1
    )  # the smallest failing input is shown: one with few dims would hide all others
    yield nothing, nothing > 0, (-1, -2, -3, -4, -5), False
    yield torch.tensor([INF, 1e30, -2.0]), torch.tensor([False, False, True]), 0, True
    yield torch.tensor([[True, False], [True, True]]), torch.tensor([[False, True], [True, True]]), 0, False
    yield torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[True, False], [False, False]]), None, True
    yield torch.tensor([2.0, NAN], dtype=torch.float64), torch.tensor([False, False]), (0,), False
    yield torch.tensor(3.0), torch.tensor(True), None, False
    yield torch.zeros(0, 3, 2), torch.zeros(0, 3, 2, dtype=torch.bool), (0, 2), True
    yield torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool), 1, False
    yield torch.tensor([0, 200], dtype=torch.uint8), torch.tensor([False, False]), 0, False
    yield torch.tensor([torch.iinfo(torch.int64).min, 5]), torch.tensor([True, False]), 0, False
    yield rng.normal(3, 4).t(), rng.mask(4, 3), (0, 1), False
    yield rng.normal(1, 3).expand(4, 3), rng.mask(4, 3), -2, False
    yield rng.normal(30, 40), rng.mask(30, 40), (1,), False
    for k in range(18):
        shape = [rng.integer(1, 4) for _ in range(rng.integer(1, 4))]
        dims = rng.permutation(len(shape)).tolist()[: rng.integer(1, len(shape))]
        dim = tuple(d - len(shape) * rng.integer(0, 1) for d in dims)
        mask = rng.mask(*shape, density=rng.choice([0.2, 0.6]))
        if k % 3 == 0:
            x = rng.integers(*shape, dtype=rng.choice([torch.int16, torch.int64]))
        else:
            x = torch.where(mask, rng.normal(*shape) - 3, rng.choice(POISON))
        yield x, mask, dim[0] if len(dim) == 1 else dim, rng.choice([True, False])


@masked_amax.wrong(
    "M24",
    "What is hidden was read as 0. Where all that counts is negative, this 0 wins. Fill with the identity of a maximum.",
)
def _(x, mask, dim, keepdim):
    import torch

    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, x, 0).amax(dims, keepdim), mask.any(dims, keepdim)


@masked_amax.wrong(
    "M22",
    "Multiplying by the mask does not hide: 0 times NaN is NaN, and where nothing but negative numbers count the 0 wins. "
    "Choose with torch.where.",
)
def _(x, mask, dim, keepdim):
    dims = tuple(range(x.dim())) if dim is None else dim
    return (x * mask).amax(dims, keepdim), mask.any(dims, keepdim)


@masked_amax.wrong(
    "M14",
    "You reduced the dimensions that were to stay. dim names those that go.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    gone = set(range(x.dim())) if dim is None else {d % x.dim() for d in ((dim,) if isinstance(dim, int) else dim)}
    stay = tuple(sorted(set(range(x.dim())) - gone))
    filled = torch.where(mask, x, low)
    return (filled.amax(stay, keepdim), mask.any(stay, keepdim)) if stay else (filled, mask)


@masked_amax.wrong(
    "M23",
    "The mask was read the wrong way round: the maximum of what is hidden came. True counts.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, low, x).amax(dims, keepdim), (~mask).any(dims, keepdim)


@masked_amax.wrong(
    "X-8.6-1",
    "Only the first of several dimensions was reduced. dim may be a tuple: all of its dimensions go.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    first = dims[0] if isinstance(dims, tuple) and dims else dims
    return torch.where(mask, x, low).amax(first, keepdim), mask.any(first, keepdim)


@masked_amax.wrong(
    "X-8.6-2",
    "You reduce one dimension after the other, and after each the rest have other numbers: dimension 2 has become "
    "dimension 1. Keep them (keepdim=True) until the last one is done, or hand torch the whole tuple.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    filled = torch.where(mask, x, low)
    for d in range(x.dim()) if dim is None else (dim,) if isinstance(dim, int) else dim:
        filled, mask = filled.amax(d, keepdim), mask.any(d, keepdim)
    return filled, mask


@masked_amax.wrong(
    "X-8.6-3",
    "Your second result is True only where *everything* counts. One element is enough for a maximum: any, not all.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, x, low).amax(dims, keepdim), mask.all(dims, keepdim)


@masked_amax.wrong(
    "X-8.6-4",
    "Minus infinity turns integers into floats, or torch refuses it. The identity has to be of the dtype of x: "
    "torch.iinfo(x.dtype).min for integers, False for bool.",
)
def _(x, mask, dim, keepdim):
    import torch

    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, x, float("-inf")).amax(dims, keepdim), mask.any(dims, keepdim)


@masked_amax.wrong(
    "X-8.6-5",
    "You read off the values whether anything was there. A maximum may *be* minus infinity, or the smallest integer: ask "
    "the mask.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    values = torch.where(mask, x, low).amax(dims, keepdim)
    return values, values != low


@masked_amax.wrong(
    "X-8.6-6",
    "keepdim was not used: if it is True, every dimension that was reduced stays with length 1, in both results.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, x, low).amax(dims), mask.any(dims)


@masked_amax.wrong(
    "X-8.6-7",
    "amax refuses a dimension of length 0, for it has no largest element. With a mask that is no special case: nothing "
    "counts, so the result is the identity, and not defined. Put the identity in as one element more.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, x, low).amax(dims, keepdim), mask.any(dims, keepdim)


@masked_amax.wrong(
    "X-8.6-8",
    "torch.finfo(x.dtype).min is a finite number, and larger than minus infinity: where minus infinity is all that "
    "counts, it wins.",
)
def _(x, mask, dim, keepdim):
    import torch

    limits = torch.finfo if x.is_floating_point() else torch.iinfo
    low = False if x.dtype == torch.bool else limits(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, x, low).amax(dims, keepdim), mask.any(dims, keepdim)


@masked_amax.wrong(
    "X-8.6-9",
    "A NaN that counts was lost. Where the mask is True everything counts, and a NaN there is one that you want to see: "
    "leave the values alone.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    keep = mask & ~x.isnan()
    return torch.where(keep, x, low).amax(dims, keepdim), keep.any(dims, keepdim)


@masked_amax.wrong(
    "X-8.6-10",
    "This is the smallest element. amax is the largest, and what loses against everything is its identity.",
)
def _(x, mask, dim, keepdim):
    import torch

    high = float("inf") if x.is_floating_point() else True if x.dtype == torch.bool else torch.iinfo(x.dtype).max
    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, x, high).amin(dims, keepdim), mask.any(dims, keepdim)


@masked_amax.wrong(
    "X-8.6-11",
    "A loop over the elements: right, and many operations for a few numbers. Fill, and let torch find the maximum of "
    "each slice.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    n = x.dim()
    gone = sorted(range(n) if dim is None else {d % n for d in ((dim,) if isinstance(dim, int) else dim)})
    stay = [d for d in range(n) if d not in gone]
    flat, marks = (
        t.permute(*stay, *gone).reshape(*[x.shape[d] for d in stay], -1) if x.numel() else None for t in (x, mask)
    )
    shape = [x.shape[d] for d in stay]
    values, found = torch.full(shape, low, dtype=x.dtype), torch.zeros(shape, dtype=torch.bool)
    if flat is not None:
        for place in torch.ones(shape).nonzero().tolist():
            counted = flat[tuple(place)][marks[tuple(place)]]
            if len(counted):
                values[tuple(place)], found[tuple(place)] = counted.amax(), True
    if keepdim:
        whole = [1 if d in gone else x.shape[d] for d in range(n)]
        values, found = values.reshape(whole), found.reshape(whole)
    return values, found


@masked_amax.wrong(
    "X-8.6-12",
    "For bool your values are integers: torch.where(mask, x, 0) of a bool x takes the dtype of the number. False is the "
    "identity there, and stays bool.",
)
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else 0 if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.where(mask, x, low).amax(dims, keepdim), mask.any(dims, keepdim)


@masked_amax.wrong(
    "X-8.6-13",
    "torch.masked.amax does most of it, and refuses bool and dimensions of length 0. Those are the cases in which the "
    "identity has to be put in by you.",
)
def _(x, mask, dim, keepdim):
    import torch
    import torch.masked

    dims = tuple(range(x.dim())) if dim is None else dim
    return torch.masked.amax(x, dim, keepdim=keepdim, mask=mask), mask.any(dims, keepdim)


@masked_amax.right
def _(x, mask, dim, keepdim):
    import torch

    low = float("-inf") if x.is_floating_point() else False if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    dims = tuple(range(x.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    filled, found = torch.where(mask, x, low), mask
    if any(x.shape[d] == 0 for d in dims):
        gone = {d % x.dim() for d in dims}
        shape = [1 if k in gone else n for k, n in enumerate(x.shape) if keepdim or k not in gone]
        return x.new_full(shape, low), mask.new_zeros(shape)
    if not dims:
        return filled, found
    return torch.amax(filled, dims, keepdim=keepdim), torch.any(mask, dims, keepdim=keepdim)


@masked_amax.right
def _(x, mask, dim, keepdim):
    import math

    import torch

    low = float("-inf") if x.is_floating_point() else 0 if x.dtype == torch.bool else torch.iinfo(x.dtype).min
    n = x.dim()
    gone = list(range(n)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    last = list(range(-len(gone), 0))
    kept = list(x.movedim(gone, last).shape[: n - len(gone)]) if gone else list(x.shape)
    size = math.prod(x.shape[d] for d in gone)
    row, marks = (t.movedim(gone, last).reshape(*kept, size) if gone else t[..., None] for t in (x, mask))
    values = torch.cat([row.masked_fill(~marks, low), row.new_full((*kept, 1), low)], -1).amax(-1)
    found = marks.sum(-1) > 0
    if keepdim:
        for d in sorted(d % n for d in gone):
            values, found = values.unsqueeze(d), found.unsqueeze(d)
    return values, found


# ---- 8.7 ------------------------------------------------------------------------------------------------------------


@exercise(
    "8.7",
    points=3,
    minutes=10,
    stars=2,
    homework=True,
    concepts=["V-05"],
    visible=10,
    hints=[
        "Make the prototype's MaskedTensor and ours of the same data and mask, let the operation work on each, and "
        "compare. Only the prototype is on trial: what it raises, whatever it is, is an answer.",
        "try: ... except Exception: ... catches every error of an operation. Compare dtypes, then masks with torch.equal, "
        "then values only where the mask is True: result.get_data()[mask], with torch.allclose(..., equal_nan=True).",
        'try: theirs = operation(torch.masked.masked_tensor(data, mask)) except Exception: return "raises"; ours = '
        "operation(masked_tensor(data, mask)); counts = ours.get_mask(); same = theirs.dtype == ours.dtype and "
        "torch.equal(theirs.get_mask(), ___) and torch.allclose(theirs.get_data()[counts], ___[counts], equal_nan=True)",
    ],
)
def support(operation, data, mask):
    import torch.masked

    prototype = torch.masked.masked_tensor(data, mask)
    try:
        theirs = operation(prototype)
    except Exception:
        return "raises"
    ours = operation(masked_tensor(data, mask))
    if (theirs.dtype, theirs.shape) != (ours.dtype, ours.shape) or not torch.equal(theirs.get_mask(), ours.get_mask()):
        return "differs"
    pair = (m.get_data()[ours.get_mask()].double() for m in (theirs, ours))
    return "agrees" if torch.allclose(*pair, equal_nan=True) else "differs"


@support.call
def _(support, name, options, data, mask):
    import torch

    def operation(m):
        given = [m if isinstance(option, str) and option == "m" else option for option in options]
        return getattr(torch.Tensor, name)(m, *given)

    return support(operation, data, mask)


def grid(rng, *shape):
    """Data and mask of which no slice is empty, with something dangerous under the mask."""
    mask = rng.mask(*shape)
    mask.view(-1)[0], mask.view(-1)[-1] = True, False
    return torch.where(mask, rng.normal(*shape).abs() + 0.5, rng.choice(POISON)), mask


@support.cases
def _(rng):
    data = torch.tensor([[1.0, NAN, 3.0], [4.0, 5.0, 1e30]])
    mask = torch.tensor([[True, False, True], [True, True, False]])
    yield "exp", (), data.clone(), mask.clone()
    yield "relu", (), data.clone(), mask.clone()
    yield "argmax", (1,), data.clone(), mask.clone()
    yield "amax", ((-2, -1),), data.clone(), mask.clone()
    yield "sum", (1,), data.clone(), mask.clone()
    yield "no_such_operation", (), data.clone(), mask.clone()
    yield "mul", ("m",), torch.tensor([1.0, NAN, INF]), torch.tensor([True, True, False])  # this NaN counts
    cube, corner = torch.arange(8.0).view(2, 2, 2), torch.tensor([[[True, False], [True, False]], [[False] * 2] * 2])
    yield "sum", ((-1, -2),), torch.where(corner, cube, NAN), corner
    yield "std", (0, False), data.clone(), mask.clone()
    yield "mean", (1,), data.clone(), torch.tensor([[True, False, True], [False, False, False]])
    names = [
        *[(name, ()) for name in "abs neg exp sqrt sin ceil log1p square sum prod mean".split()],
        *[("sum", (0,)), ("amax", (1,)), ("amin", (0,)), ("mean", (1,)), ("prod", (0,)), ("add", ("m",))],
        *[
            ("div", (2.0,)),
            ("sub", ("m",)),
            ("pow", (2,)),
            ("amax", ((1, 0),)),
            ("argmin", (0,)),
            ("argmax", (0,)),
            ("mean", ((-1, -2),)),
        ],
        *[(name, ()) for name in "relu max min median any flip_me no_such_name".split()],
        *[
            ("cumsum", (0,)),
            ("logsumexp", (1,)),
            ("log_softmax", (1,)),
            ("matmul", (torch.ones(3),)),
            ("amin", ((-1, -2),)),
        ],
        *[("sum", ((-2, -1),)), ("amax", ((-1, -3),)), ("norm", ()), ("std", (0, False))],
    ]
    for place in rng.permutation(len(names)).tolist():
        name, options = names[place]
        shape = (2, 2, 2) if place % 2 and name in ("sum", "mean", "amax", "amin") else (rng.integer(2, 3), 3)
        yield (name, options, *grid(rng, *shape))


@support.wrong(
    "X-8.7-1",
    "An error got out. A prototype fails in many ways, TypeError is only one of them: catch Exception, for whatever is "
    "raised is the answer.",
)
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    try:
        theirs = operation(torch.masked.masked_tensor(data, mask))
    except TypeError:
        return "raises"
    ours = operation(masked_tensor(data, mask))
    counts = ours.get_mask()
    if theirs.dtype != ours.dtype or not torch.equal(theirs.get_mask(), counts):
        return "differs"
    same = torch.allclose(theirs.get_data()[counts], ours.get_data()[counts], equal_nan=True)
    return "agrees" if same else "differs"


@support.wrong(
    "M29",
    'You took "no error" for "right". The dangerous operations are those that return something wrong without a word: '
    "compare with our package.",
    sample="wrong_duplicates",
)
def _(operation, data, mask):
    import torch.masked

    try:
        operation(torch.masked.masked_tensor(data, mask))
    except Exception:
        return "raises"
    return "agrees"


@support.wrong(
    "M22",
    "You compared what lies under the masks, too. It may differ without meaning anything: compare values only where the "
    "mask is True.",
)
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    try:
        theirs = operation(torch.masked.masked_tensor(data, mask))
    except Exception:
        return "raises"
    ours = operation(masked_tensor(data, mask))
    if theirs.dtype != ours.dtype or not torch.equal(theirs.get_mask(), ours.get_mask()):
        return "differs"
    return "agrees" if torch.allclose(theirs.get_data(), ours.get_data(), equal_nan=True) else "differs"


@support.wrong(
    "X-8.7-2",
    "The values agree, the masks do not, and you looked at the values only. A 0 that counts and a hole filled with 0 are "
    "two answers.",
)
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    try:
        theirs = operation(torch.masked.masked_tensor(data, mask))
    except Exception:
        return "raises"
    ours = operation(masked_tensor(data, mask))
    if theirs.dtype != ours.dtype:
        return "differs"
    x, y = theirs.to_tensor(0), ours.to_tensor(0)
    return "agrees" if x.shape == y.shape and torch.allclose(x, y, equal_nan=True) else "differs"


@support.wrong(
    "X-8.7-3",
    "The masks agree, and you did not look at the values.",
)
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    try:
        theirs = operation(torch.masked.masked_tensor(data, mask))
    except Exception:
        return "raises"
    ours = operation(masked_tensor(data, mask))
    return "agrees" if torch.equal(theirs.get_mask(), ours.get_mask()) else "differs"


@support.wrong(
    "X-8.7-4",
    "The numbers agree, the dtypes do not. A position in float32 is no index: compare dtypes, too.",
)
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    try:
        theirs = operation(torch.masked.masked_tensor(data, mask))
    except Exception:
        return "raises"
    ours = operation(masked_tensor(data, mask))
    counts = ours.get_mask()
    if not torch.equal(theirs.get_mask(), counts):
        return "differs"
    x, y = (t.get_data()[counts].double() for t in (theirs, ours))
    return "agrees" if torch.allclose(x, y, equal_nan=True) else "differs"


@support.wrong(
    "X-8.7-5",
    "You compared with the operation on the plain data, in which what is hidden takes part. The one to compare with is our "
    "MaskedTensor.",
)
def _(operation, data, mask):
    import torch
    import torch.masked

    try:
        theirs = operation(torch.masked.masked_tensor(data, mask))
    except Exception:
        return "raises"
    plain = operation(data)
    if theirs.dtype != plain.dtype or theirs.shape != plain.shape:
        return "differs"
    return "agrees" if torch.allclose(theirs.to_tensor(0), plain, equal_nan=True) else "differs"


@support.wrong(
    "X-8.7-6",
    "Two NaN that count were taken for a difference: NaN is equal to nothing, not even to itself. Say equal_nan=True.",
)
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    try:
        theirs = operation(torch.masked.masked_tensor(data, mask))
    except Exception:
        return "raises"
    ours = operation(masked_tensor(data, mask))
    counts = ours.get_mask()
    if theirs.dtype != ours.dtype or not torch.equal(theirs.get_mask(), counts):
        return "differs"
    return "agrees" if torch.allclose(theirs.get_data()[counts], ours.get_data()[counts]) else "differs"


@support.wrong(
    "X-8.7-7",
    "An operation that raises and one that answers wrongly are two things: the first tells you, the second does not. "
    'Return "raises" for the first.',
)
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    try:
        theirs = operation(torch.masked.masked_tensor(data, mask))
        ours = operation(masked_tensor(data, mask))
        counts = ours.get_mask()
        same = theirs.dtype == ours.dtype and torch.equal(theirs.get_mask(), counts)
        same = same and torch.allclose(theirs.get_data()[counts], ours.get_data()[counts], equal_nan=True)
    except Exception:
        same = False
    return "agrees" if same else "differs"


@support.wrong(
    "X-8.7-8",
    "Nothing was caught: the first operation that the prototype refuses ends your function. Put the call into try, and "
    'return "raises" from except.',
)
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    theirs, ours = operation(torch.masked.masked_tensor(data, mask)), operation(masked_tensor(data, mask))
    counts = ours.get_mask()
    if theirs.dtype != ours.dtype or not torch.equal(theirs.get_mask(), counts):
        return "differs"
    same = torch.allclose(theirs.get_data()[counts], ours.get_data()[counts], equal_nan=True)
    return "agrees" if same else "differs"


@support.right
def _(operation, data, mask):
    import torch
    import torch.masked

    from maskedtensor_ref import masked_tensor

    try:
        theirs = operation(torch.masked.MaskedTensor(data.clone(), mask.clone()))
    except Exception:
        return "raises"
    ours = operation(masked_tensor(data, mask))
    try:
        torch.testing.assert_close(theirs.get_mask(), ours.get_mask())
        torch.testing.assert_close(theirs.to_tensor(0), ours.to_tensor(0), equal_nan=True)
    except AssertionError:
        return "differs"
    return "agrees"


@support.right
def _(operation, data, mask):
    import torch
    import torch.masked

    import maskedtensor_ref

    came = []
    for package in (torch.masked, maskedtensor_ref):
        try:
            m = operation(package.masked_tensor(data, mask))
            came.append((m.dtype, m.get_mask().tolist(), m.get_data().double()))
        except Exception:
            return "raises"
    (kind, where, x), (other_kind, other_where, y) = came
    if kind != other_kind or where != other_where:
        return "differs"
    where = torch.tensor(where, device=x.device)
    close = torch.isclose(x, y, equal_nan=True) | ~where
    return "agrees" if bool(close.all()) else "differs"


# ---- 8.8 ------------------------------------------------------------------------------------------------------------


@exercise(
    "8.8",
    points=4,
    minutes=15,
    stars=3,
    homework=True,
    concepts=["V-03"],
    needs=["intersection_add"],
    visible=11,
    hints=[
        "Stretch first, compare afterwards: what the strict rule compares are the masks in the common shape. A plain tensor "
        "has no say: it counts wherever the other one does.",
        "torch.broadcast_shapes gives the common shape, or a RuntimeError, which you turn into a ValueError with both "
        "shapes in its message. expand(shape) stretches data and mask. (m != k).nonzero() lists the places where two "
        "masks differ, in order; .tolist() of its first row is what the message needs.",
        "shape = torch.broadcast_shapes(a.shape, ___); masks = [t.get_mask().expand(___) for t in (a, b) if "
        'is_masked_tensor(t)]; if there are two and not torch.equal(*masks): raise ValueError(f"... first at '
        '{(masks[0] != masks[1]).nonzero()[0].tolist()}"); return two masked tensors under masks[0], or under a mask of '
        "True where there is none",
    ],
)
def broadcast_masks(a, b):
    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"{tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    masks = [t.get_mask().expand(shape) for t in (a, b) if is_masked_tensor(t)]
    masks = masks or [torch.ones(shape, dtype=torch.bool, device=a.device)]
    apart = (masks[0] ^ masks[-1]).nonzero()
    if len(apart):
        raise ValueError(f"masks that differ, at {apart[0].tolist()} for the first time")
    plain = [t.get_data() if is_masked_tensor(t) else t for t in (a, b)]
    return tuple(masked_tensor(t.expand(shape), masks[0]) for t in plain)


@broadcast_masks.call
def _(broadcast_masks, a, b):
    try:
        return {"returned": broadcast_masks(a, b)}
    except ValueError as error:
        return {"raised": str(error)}


@broadcast_masks.facts
def _(result, a, b):
    import re

    text = result.get("raised") if isinstance(result, dict) else None
    came = result.get("returned") if isinstance(result, dict) else None
    told = {"two operands or a ValueError": "a ValueError", "first": None, "second": None}
    if not isinstance(text, str):
        pair = isinstance(came, (list, tuple)) and len(came) == 2
        told = {"two operands or a ValueError": "two operands" if pair else came}
        told["first"], told["second"] = came if pair else (None, None)
        text = ""
    place = re.search(r"\[\d*(?:, \d+)*\]", text)
    both = all(str(tuple(t.shape)) in text for t in (a, b))
    told["a place in its message, as a list"] = place[0] if place else "none"
    return told | {"both shapes in its message": both or place is not None}


@broadcast_masks.cases
def _(rng):
    ones = torch.ones(2, 3, dtype=torch.bool)
    yield masked_tensor(torch.arange(6.0).view(2, 3), ones), masked_tensor(torch.tensor([10.0, 20.0, 30.0]), ones[0])
    yield masked([[1.0, NAN], [3.0, 1e30]], [[True, False], [True, False]]), masked([5.0, INF], [True, False])
    yield masked([1.0, 2.0, NAN], [True, True, False]), masked([1.0, INF, 3.0], [True, False, True])
    yield masked([[1.0, 2.0], [3.0, 4.0]], [[True, True], [False, True]]), masked([5.0, 6.0], [True, True])
    yield masked([[1.0, NAN, 3.0]], [[True, False, True]]), torch.tensor([[1.0], [2.0]])
    yield masked([1.0, 2.0], [True, True]), masked([1.0, 2.0, 3.0], [True, True, True])
    yield torch.tensor([1.0, 2.0]), masked([[NAN, 4.0]], [[False, True]])
    yield torch.tensor([1.0, 2.0]), torch.tensor([[3.0], [4.0]])
    yield masked([[1.0], [2.0]], [[True], [False]]), masked([[1.0, 2.0], [NAN, INF]], [[True, True], [False, False]])
    yield masked([NAN, 1.0], [True, True]), masked([1.0, 1.0], [True, True])  # this NaN counts
    yield torch.ones(2, 2), masked([1.0, 2.0, 3.0], [True, False, True])
    yield masked(2.0, True), masked(3.0, False)
    yield masked(2.0, False), masked(3.0, False)
    yield masked_tensor(torch.zeros(0, 3), torch.ones(0, 3) > 0), masked([1.0, 2.0, 3.0], [True, False, True])
    yield drawn(rng, 3, dtype=torch.int64), torch.tensor([[0.5], [1.5]])
    yield drawn(rng, 3, 2).t(), rng.normal(3)
    for k in range(20):
        first, second = shapes_that_fit(rng)
        shape = torch.broadcast_shapes(first, second)
        row = rng.mask(shape[-1]) if rng.integer(0, 1) else torch.ones(shape[-1], dtype=torch.bool)
        pair = [
            masked_tensor(rng.normal(*s), row.expand(s) if s[-1] == len(row) else row.new_ones(s))
            for s in (first, second)
        ]
        if k % 4 == 0:
            pair[k % 8 // 4] = rng.normal(*(first, second)[k % 8 // 4])
        if k % 5 == 0:
            pair[1] = masked_tensor(rng.normal(*shape), rng.mask(*shape))
        if k % 7 == 0:
            pair[0] = drawn(rng, *shape, len(row) + 2)
        yield tuple(pair)


@broadcast_masks.wrong(
    "X-8.8-1",
    "Masks of different shape are refused, before they are stretched: a (2, 3) of True and a (3,) of True say the same. "
    "(torch.masked makes this mistake.) Expand first, compare then.",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    masks = [t.get_mask() for t in (a, b) if is_masked_tensor(t)]
    if len(masks) == 2 and masks[0].shape != masks[1].shape:
        raise ValueError("the masks differ in shape")
    masks = masks or [torch.ones(shape, dtype=torch.bool)]
    apart = (masks[0] != masks[-1]).nonzero()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    data = [t.get_data() if is_masked_tensor(t) else t for t in (a, b)]
    return tuple(masked_tensor(t.expand(shape), masks[0].expand(shape)) for t in data)


@broadcast_masks.wrong(
    "M30",
    "Masks that differ were quietly made one, with &. That is the intersection; the strict rule refuses, with a "
    "ValueError.",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    mask = torch.ones(shape, dtype=torch.bool, device=a.device)
    for t in (a, b):
        mask = mask & t.get_mask() if is_masked_tensor(t) else mask
    return tuple(masked_tensor((t.get_data() if is_masked_tensor(t) else t).expand(shape), mask) for t in (a, b))


@broadcast_masks.wrong(
    "X-8.8-2",
    "A plain tensor was refused or failed: it has no get_mask(). It counts everywhere, and so it takes the mask of the "
    "other operand. is_masked_tensor(t) tells which kind t is.",
)
def _(a, b):
    import torch

    from maskedtensor_ref import masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    masks = [t.get_mask().expand(shape) for t in (a, b)]
    apart = (masks[0] != masks[1]).nonzero()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    return tuple(masked_tensor(t.get_data().expand(shape), masks[0]) for t in (a, b))


@broadcast_masks.wrong(
    "X-8.8-3",
    "A plain tensor was given a mask of True, and then refused because the other mask is not all True. It counts "
    "everywhere, so there is nothing to agree on: it takes the other mask.",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    a, b = (t if is_masked_tensor(t) else masked_tensor(t, torch.ones_like(t, dtype=torch.bool)) for t in (a, b))
    masks = [t.get_mask().expand(shape) for t in (a, b)]
    apart = (masks[0] != masks[1]).nonzero()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    return tuple(masked_tensor(t.get_data().expand(shape), masks[0]) for t in (a, b))


@broadcast_masks.wrong(
    "X-8.8-4",
    "Your message does not say *where* the masks differ. Whoever reads it has to find out: put the first place into it, "
    "as a list like [0, 1].",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    masks = [t.get_mask().expand(shape) for t in (a, b) if is_masked_tensor(t)] or [torch.ones(shape).bool()]
    if not torch.equal(masks[0], masks[-1]):
        raise ValueError(f"the masks of {tuple(a.shape)} and {tuple(b.shape)} differ")
    data = [t.get_data() if is_masked_tensor(t) else t for t in (a, b)]
    return tuple(masked_tensor(t.expand(shape), masks[0]) for t in data)


@broadcast_masks.wrong(
    "X-8.8-5",
    "Shapes that do not broadcast ended in torch's own RuntimeError. Turn it into a ValueError whose message names both "
    "shapes.",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    shape = torch.broadcast_shapes(a.shape, b.shape)
    masks = [t.get_mask().expand(shape) for t in (a, b) if is_masked_tensor(t)] or [torch.ones(shape).bool()]
    apart = (masks[0] != masks[-1]).nonzero()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    data = [t.get_data() if is_masked_tensor(t) else t for t in (a, b)]
    return tuple(masked_tensor(t.expand(shape), masks[0]) for t in data)


@broadcast_masks.wrong(
    "X-8.8-6",
    "The ValueError for shapes that do not fit has to name both of them, as tuples: which one is wrong the reader knows, "
    "not you.",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError("the shapes do not fit") from None
    masks = [t.get_mask().expand(shape) for t in (a, b) if is_masked_tensor(t)] or [torch.ones(shape).bool()]
    apart = (masks[0] != masks[-1]).nonzero()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    data = [t.get_data() if is_masked_tensor(t) else t for t in (a, b)]
    return tuple(masked_tensor(t.expand(shape), masks[0]) for t in data)


@broadcast_masks.wrong(
    "X-8.8-7",
    "The two operands came back in their own shapes. Both are to have the common one: expand data and mask.",
    sample="wrong_copy",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    masks = [t.get_mask().expand(shape) for t in (a, b) if is_masked_tensor(t)]
    apart = (masks[0] != masks[-1]).nonzero() if masks else ()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    return tuple(t if is_masked_tensor(t) else masked_tensor(t, torch.ones_like(t, dtype=torch.bool)) for t in (a, b))


@broadcast_masks.wrong(
    "X-8.8-8",
    "A place is a list with one number for each dimension. A place in the flattened mask, or a row of another order, helps "
    "nobody: take the first row of (m != k).nonzero().",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    masks = [t.get_mask().expand(shape) for t in (a, b) if is_masked_tensor(t)] or [torch.ones(shape).bool()]
    apart = (masks[0] != masks[-1]).flatten().nonzero()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    data = [t.get_data() if is_masked_tensor(t) else t for t in (a, b)]
    return tuple(masked_tensor(t.expand(shape), masks[0]) for t in data)


@broadcast_masks.wrong(
    "M22",
    "You told what counts from the values: a NaN that counts was hidden, or junk that is no NaN was let through. Take "
    "get_mask().",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    data = [(t.get_data() if is_masked_tensor(t) else t).expand(shape) for t in (a, b)]
    masks = [t.isfinite() for t, one in zip(data, (a, b), strict=True) if is_masked_tensor(one)] or [
        torch.ones(shape).bool()
    ]
    apart = (masks[0] != masks[-1]).nonzero()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    return tuple(masked_tensor(t, masks[0]) for t in data)


@broadcast_masks.wrong(
    "X-8.8-9",
    "Plain tensors came. Stretched data without its mask has forgotten what counts: return two MaskedTensors.",
)
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor

    try:
        shape = torch.broadcast_shapes(a.shape, b.shape)
    except RuntimeError:
        raise ValueError(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit") from None
    masks = [t.get_mask().expand(shape) for t in (a, b) if is_masked_tensor(t)] or [torch.ones(shape).bool()]
    apart = (masks[0] != masks[-1]).nonzero()
    if len(apart):
        raise ValueError(f"the masks differ, first at {apart[0].tolist()}")
    return tuple((t.to_tensor(0) if is_masked_tensor(t) else t).expand(shape) for t in (a, b))


@broadcast_masks.right
def _(a, b):
    import torch

    from maskedtensor_ref import as_masked_tensor, is_masked_tensor

    shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
    data = [t.get_data() if is_masked_tensor(t) else t for t in (a, b)]
    try:
        x, y = torch.broadcast_tensors(*data)
    except RuntimeError as error:
        raise ValueError("no common shape of " + shapes) from error
    known = [t.get_mask() for t in (a, b) if is_masked_tensor(t)]
    whole = torch.ones_like(x, dtype=torch.bool)
    if not known:
        return [as_masked_tensor(x, whole), as_masked_tensor(y, whole)]
    m, k = (t.expand_as(x) for t in (known[0], known[-1]))
    if (m != k).any():
        place = torch.unravel_index((m != k).flatten().int().argmax(), x.shape)
        raise ValueError(f"at {[int(i) for i in place]} one of {shapes} counts and the other does not")
    return [as_masked_tensor(x, m), as_masked_tensor(y, m)]


@broadcast_masks.right
def _(a, b):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    def opened(t):
        return (t.get_data(), t.get_mask()) if is_masked_tensor(t) else (t, None)

    (x, m), (y, k) = opened(a), opened(b)
    try:
        shape = (torch.zeros_like(x, dtype=torch.bool) | torch.zeros_like(y, dtype=torch.bool)).shape
    except RuntimeError:
        raise ValueError(f"a has shape {tuple(x.shape)}, b has {tuple(y.shape)}") from None
    if m is None and k is None:
        m = torch.ones(shape, dtype=torch.bool, device=x.device)
    m, k = (k if m is None else m), (m if k is None else k)
    m, k = m.broadcast_to(shape), k.broadcast_to(shape)
    for place in (m != k).nonzero():
        raise ValueError(f"the masks differ, first at {place.tolist()}")
    return masked_tensor(x.broadcast_to(shape), m), masked_tensor(y.broadcast_to(shape), m)


# ---- 8.9 ------------------------------------------------------------------------------------------------------------


@exercise(
    "8.9",
    points=5,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["V-07", "V-08"],
    needs=["broadcast_masks"],
    visible=12,
    hints=[
        "Six questions, one after the other, from the coarse to the fine: type, shape, dtype, layout, mask, values. The "
        "first that is answered with no ends the comparison, and its word begins the message.",
        "is_masked_tensor(t); t.shape, t.dtype, t.layout; t.to_dense().get_mask() and .get_data(), in whatever layout; "
        "torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True) says it place by place. Where the mask is False "
        "nothing is compared. (wrong).nonzero()[0].tolist() is the first place.",
        'for word in ("shape", "dtype", "layout"): if getattr(actual, word) != getattr(expected, word): raise '
        'AssertionError(f"{word}: {getattr(actual, word)} came, ___ was expected"); then m and k, the two masks, with '
        "(m != k).nonzero(); at last far = m & ~torch.isclose(x, y, rtol=___, atol=___, equal_nan=___)",
    ],
)
def assert_masked_close(actual, expected, rtol, atol):
    pair = actual, expected
    if not all(map(is_masked_tensor, pair)):
        raise AssertionError(f"type: {' and '.join(type(t).__name__ for t in pair)} instead of two MaskedTensors")
    for what in ("shape", "dtype", "layout"):
        came, wanted = (tuple(t.shape) if what == "shape" else getattr(t, what) for t in pair)
        assert came == wanted, f"{what}: {came} came, and {wanted} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    wrong = m ^ k
    assert not wrong.any(), f"mask: it differs at {wrong.nonzero()[0].tolist()} for the first time"
    wrong = m & ~torch.isclose(x, y, rtol, atol, equal_nan=True)
    if wrong.any():
        place = wrong.nonzero()[0].tolist()
        raise AssertionError(f"values: at {place} {x[tuple(place)]} came, and {y[tuple(place)]} was expected")


@assert_masked_close.call
def _(assert_masked_close, actual, expected, rtol, atol):
    try:
        return {"returned": assert_masked_close(actual, expected, rtol, atol)}
    except AssertionError as error:
        return {"raised": str(error)}


@assert_masked_close.facts
def _(result, actual, expected, rtol, atol):
    import re

    text = result.get("raised") if isinstance(result, dict) else None
    if not isinstance(text, str):
        return {
            "the two are": "let through",
            "the message begins with": "",
            "the first place in the message, as a list": "",
            "the message holds what both have": True,
        }
    word = (re.findall(r"[a-z]+", text.lower()) or [""])[0].removesuffix("s")
    place = re.search(r"\[\d*(?:, \d+)*\]", text) if word in ("mask", "value") else None
    both = True
    if word in ("shape", "dtype", "layout"):
        said = [str(getattr(t, word)) for t in (actual, expected)]
        both = all(s.removeprefix("torch.").removeprefix("Size(").rstrip(")").strip("[]") in text for s in said)
    told = {"the two are": "found to differ", "the message begins with": word}
    return told | {
        "the first place in the message, as a list": place[0] if place else "none",
        "the message holds what both have": both,
    }


def coo(indices, values, mask, shape):
    """A COO MaskedTensor that stores each of values."""
    parts = [
        torch.sparse_coo_tensor(torch.tensor(indices), torch.tensor(p), shape, check_invariants=True)
        for p in (values, mask)
    ]
    return masked_tensor(*(part.coalesce() for part in parts))


@assert_masked_close.cases
def _(rng):
    near, mask = (1e-5, 1e-8), [True, False, True]
    yield masked([1.0, 7.0, 3.0], mask), masked([1.0, NAN, 3.0], mask), *near
    yield masked([1.0, 2.0, 3.0], mask), masked([1.0, 2.0, 3.0], [True, True, True]), *near
    yield masked([1.0, 0.0, 3.5], mask), masked([1.0, 0.0, 3.0], mask), *near
    yield masked([1.0, 0.0, 3.0], mask), torch.tensor([1.0, 0.0, 3.0]), *near
    yield torch.tensor([1.0, 2.0]), masked([1.0, 2.0], [True, True]), *near
    yield masked([2.0, 2.0], [True, True]), masked([[2.0, 2.0]], [[True, True]]), *near
    yield masked([1, 2], [True, False]), masked([1.0, 2.0], [True, False]), *near
    yield masked([[4.0, 0.0]], [[True, False]]), coo([[0], [0]], [4.0], [True], (1, 2)), *near
    yield masked([1.0, INF, 3.0], mask), masked([1.05, -INF, 3.0], mask), 0.1, 0.0
    yield masked([NAN, INF], [True, True]), masked([NAN, INF], [True, True]), *near  # both count, and both are the same
    yield (
        masked([[1.0, 2.0], [0.0, 4.0]], [[True, True], [True, False]]),
        masked([[1.0, 2.0], [0.0, 4.0]], [[True, True], [False, False]]),
        *near,
    )
    yield coo([[0, 2]], [0.0, 5.0], [True, True], (4,)), coo([[0, 2]], [0.0, 5.0], [True, True], (4,)), *near
    yield masked([2.0, 2.0], [True, True]), masked([2.0], [True]), *near
    yield coo([[0, 2]], [0.0, 5.0], [True, True], (4,)), coo([[2]], [5.0], [True], (4,)), *near
    yield (
        masked([[1.0, 2.0], [3.0, NAN]], [[True, True], [True, False]]),
        masked([[1.0, 2.0], [3.5, 0.0]], [[True, True], [True, False]]),
        *near,
    )
    yield masked(1.0, True), masked(1.0, False), *near
    yield masked(1.0, False), masked(INF, False), *near
    yield masked(1.0, True), masked(2.0, True), *near
    yield (
        masked_tensor(torch.zeros(0, 2), torch.ones(0, 2) > 0),
        masked_tensor(torch.zeros(0, 2), torch.ones(0, 2) > 0),
        *near,
    )
    yield masked([1, 2, 3], mask), masked([1, 9, 4], mask), *near
    yield masked([True, True], [True, False]), masked([True, False], [True, False]), *near
    yield masked([1.0, 2.0], [True, True]), masked([1.0, 1.0], [True, True]), 0.0, 1.5
    yield masked([100.0], [True]), masked([0.0], [True]), 0.5, 1.0
    csr = masked([[1.0, 0.0], [0.0, 2.0]], [[True, False], [False, True]]).to_sparse_csr()
    yield csr, masked_tensor(csr.get_data(), csr.get_mask()), *near
    yield csr.to_dense(), csr, *near
    yield torch.ones(2), torch.ones(2), *near
    base = drawn(rng, 3, 2)
    yield base.t(), masked_tensor(base.get_data().t().contiguous(), base.get_mask().t().contiguous()), *near
    for k in range(25):
        shape = [rng.integer(1, 3) for _ in range(rng.integer(1, 3))]
        data, mask = rng.normal(*shape, dtype=rng.choice([torch.float32, torch.float64])), rng.mask(*shape, density=0.7)
        one = torch.where(mask, data, rng.choice(POISON))
        other, changed = torch.where(mask, data, rng.choice(POISON)), mask.clone()
        at = tuple(rng.integer(0, n - 1) for n in shape)
        if k % 5 == 1:
            changed[at] = ~changed[at]
        if k % 5 == 2:
            other[at] = data[at] + rng.choice([0.5, -0.25])  # under the mask that does not matter
        if k % 5 == 3:
            other = other * (1 + 1e-7)
        second = masked_tensor(other.flip(0).flip(0), changed)
        yield masked_tensor(one, mask), second.double() if k % 10 == 4 else second, *near


@assert_masked_close.wrong(
    "M22",
    "Two tensors that differ only under the mask were called different, or junk there was compared. What is hidden has no "
    "value: leave it out of the comparison.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    apart = (m != k).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    far = (~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-1",
    "Masks that differ were let through, because the values with 0 filled in agree. A 0 that counts and a hole are two "
    "things: compare the masks themselves.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    x, y = actual.to_dense().to_tensor(0), expected.to_dense().to_tensor(0)
    far = (~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "M29",
    "A plain tensor was let through. It counts everywhere and knows nothing of holes, which is another statement than a "
    'MaskedTensor makes: say "type" first, for both operands.',
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor, masked_tensor

    actual, expected = (
        t if is_masked_tensor(t) else masked_tensor(t, torch.ones_like(t, dtype=torch.bool)) for t in (actual, expected)
    )
    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    apart = (m != k).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    far = (m & ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-2",
    "A difference in dtype was let through: an int64 and a float32 of equal numbers compute differently from here on.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    apart = (m != k).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    far = (m & ~torch.isclose(x.double(), y.double(), rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-3",
    "A difference in layout was let through. The values may be the same, but COO and strided tensors take different code, "
    "and this check is there to notice it.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "dtype"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    apart = (m != k).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    far = (m & ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-4",
    "A (2,) and a (1, 2) were let through: comparisons broadcast, as allclose does. Compare the shapes first.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    apart = (m != k).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    far = (m & ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-5",
    "Nothing is ever raised: whoever calls an assertion does not look at what it returns. raise AssertionError(message).",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    if not (is_masked_tensor(actual) and is_masked_tensor(expected)):
        return False
    if any(getattr(actual, word) != getattr(expected, word) for word in ("shape", "dtype", "layout")):
        return False
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    return torch.equal(m, k) and bool((torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True) | ~m).all())


@assert_masked_close.wrong(
    "X-8.9-6",
    'The right error without a useful message. "They differ" sends the reader looking: begin with the word that says in '
    "what, and for mask and values add the first place.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected)
    assert all(getattr(actual, word) == getattr(expected, word) for word in ("shape", "dtype", "layout"))
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    assert torch.equal(m, k) and (torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True) | ~m).all()


@assert_masked_close.wrong(
    "X-8.9-7",
    "ValueError is what a function raises that cannot work with what it was given. An assertion that fails raises "
    "AssertionError: test tools wait for that one.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    if not (is_masked_tensor(actual) and is_masked_tensor(expected)):
        raise ValueError("type: two MaskedTensors are needed")
    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        if one != other:
            raise ValueError(f"{word}: {one} came, {other} was expected")
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    if not torch.equal(m, k):
        raise ValueError(f"mask: first differs at {(m != k).nonzero()[0].tolist()}")
    far = (m & ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    if len(far):
        raise ValueError(f"values: first differ at {far[0].tolist()}")


@assert_masked_close.wrong(
    "X-8.9-8",
    "NaN that counts on both sides was called a difference. NaN is equal to nothing; isclose takes equal_nan=True for "
    "that.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    apart = (m != k).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    far = (m & ~torch.isclose(x, y, rtol=rtol, atol=atol)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-9",
    "The tolerances were not used. Equal in every bit is more than close: hand rtol and atol to isclose.",
)
def _(actual, expected, rtol, atol):

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    apart = (m != k).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    far = (m & ~((x == y) | (x.isnan() & y.isnan()))).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-10",
    "The word is there, the first place is missing, or another place came. (m != k).nonzero()[0].tolist() is the first, "
    "as a list.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    assert torch.equal(m, k), "mask: they differ"
    assert (torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True) | ~m).all(), "values: they differ"


@assert_masked_close.wrong(
    "X-8.9-11",
    "Sparse operands ended in an error of torch. What is stored can be asked for in any layout: to_dense() first, then "
    "get_data() and get_mask().",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    apart = (actual.get_mask() != expected.get_mask()).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    close = torch.isclose(actual.get_data(), expected.get_data(), rtol=rtol, atol=atol, equal_nan=True)
    far = (actual.get_mask() & ~close).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-12",
    "torch.testing.assert_close looks at no mask. It lets a plain tensor pass for a masked one, and where it does find "
    "something, its message does not begin with what differs. Write the six questions down.",
)
def _(actual, expected, rtol, atol):
    import torch

    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


@assert_masked_close.wrong(
    "X-8.9-13",
    'The word is there; what the two have is not. "dtype" alone sends the reader to a debugger: put that of both into the '
    "message.",
)
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import is_masked_tensor

    assert is_masked_tensor(actual) and is_masked_tensor(expected), "type: two MaskedTensors are needed"
    for word in ("shape", "dtype", "layout"):
        assert getattr(actual, word) == getattr(expected, word), f"{word} differs"
    (x, m), (y, k) = ((t.get_data(), t.get_mask()) for t in (actual.to_dense(), expected.to_dense()))
    apart = (m != k).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    far = (m & ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.wrong(
    "X-8.9-14",
    "A plain tensor ended in an AttributeError: it has no get_mask(). Whether both are MaskedTensors is the first question "
    "to ask, with is_masked_tensor.",
)
def _(actual, expected, rtol, atol):
    import torch

    for word in ("shape", "dtype", "layout"):
        one, other = getattr(actual, word), getattr(expected, word)
        assert one == other, f"{word}: {one} came, {other} was expected"
    apart = (actual.to_dense().get_mask() != expected.to_dense().get_mask()).nonzero()
    assert len(apart) == 0, f"mask: first differs at {apart[0].tolist()}"
    x, y, m = actual.to_dense().get_data(), expected.to_dense().get_data(), actual.to_dense().get_mask()
    far = (m & ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)).nonzero()
    assert len(far) == 0, f"values: first differ at {far[0].tolist()}"


@assert_masked_close.right
def _(actual, expected, rtol, atol):
    import torch

    from maskedtensor_ref import MaskedTensor

    kinds = [type(t).__name__ for t in (actual, expected)]
    assert isinstance(actual, MaskedTensor) and isinstance(expected, MaskedTensor), f"Types {kinds}"
    assert actual.shape == expected.shape, f"Shapes: {list(actual.shape)} and {list(expected.shape)}"
    assert actual.dtype == expected.dtype, f"dtypes {actual.dtype}, {expected.dtype}"
    assert actual.layout == expected.layout, f"layouts {actual.layout}, {expected.layout}"
    one, other = actual.to_dense(), expected.to_dense()
    for place in (one.get_mask() != other.get_mask()).nonzero().tolist():
        raise AssertionError(f"masks: at {place} one counts, and the other does not")
    x, y = one.to_tensor(0), other.to_tensor(0)
    if not torch.allclose(x, y, rtol=rtol, atol=atol, equal_nan=True):
        far = torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True).logical_not()
        place = torch.unravel_index(far.flatten().int().argmax(), far.shape)
        raise AssertionError(f"value at {[int(i) for i in place]}")


@assert_masked_close.right
def _(actual, expected, rtol, atol):
    import torch

    def first(wrong):
        return wrong.nonzero()[0].tolist()

    if not (hasattr(actual, "get_mask") and hasattr(expected, "get_mask")):
        raise AssertionError("type: a plain tensor has no mask")
    if actual.shape != expected.shape:
        raise AssertionError(f"shape {tuple(actual.shape)}, but {tuple(expected.shape)} was expected")
    if actual.dtype != expected.dtype:
        raise AssertionError(f"dtype {actual.dtype}, but {expected.dtype} was expected")
    if actual.layout != expected.layout:
        raise AssertionError(f"layout {actual.layout}, but {expected.layout} was expected")
    actual, expected = actual.to_dense(), expected.to_dense()
    mask = actual.get_mask()
    if not torch.equal(mask, expected.get_mask()):
        raise AssertionError(f"mask, at {first(mask ^ expected.get_mask())}")
    x, y = (t.get_data()[mask].double() for t in (actual, expected))
    try:
        torch.testing.assert_close(x, y, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        wrong = torch.zeros_like(mask)
        wrong[mask] = ~torch.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
        raise AssertionError(f"values, first at {first(wrong)}: {error}") from None


# ---- 8.10 -----------------------------------------------------------------------------------------------------------

which_policy = written(
    "8.10",
    "which_policy",
    points=3,
    minutes=10,
    stars=2,
    homework=True,
    concepts=["V-08"],
    needs=["broken_law"],
    model_answer=(
        "Rain: the union. What is asked is how much fell in all, and the gauge that worked has measured its part; with the "
        "intersection every day on which one gauge failed would drop out of the total, and the year would look drier than it "
        "was. On a day on which both failed nothing is known, and the union says so. The price: such a total is too small by "
        "what the broken gauge missed, which a reader has to be told. Errors of a forecast: the intersection. A difference "
        "needs both numbers; the union would read a missing measurement as 0 and report the forecast itself as an error, "
        "5 degrees become an error of 5. Two sensors that are to report the same moments: strict. Their masks ought to be "
        "equal, so a difference is news about the logger, and a policy that smooths it over hides the fault; the error "
        "message names the first place where they part."
    ),
    rubric=(
        "1 point: a policy for each story that fits the reason given for it (rain: union; forecast error: intersection; "
        "sensors that have to agree: strict). Another choice counts where its reason holds. 1 point: for at least two of "
        "them what another policy would do wrong, with numbers worked out. 1 point: names a price of a choice of their own "
        "(numbers lost, a total too small, a program that stops), or says how they would make the choice visible in the "
        "code. Half a point off for a statement that is wrong, once."
    ),
)

# ---- predictions ----------------------------------------------------------------------------------------------------

PREDICTIONS = [
    prediction(
        "R1",
        "m = masked_tensor(torch.tensor([1.0, 2.0]), torch.tensor([True, False])). What is sure about m.get_data()[1]?",
        {
            "a": ("it is 2", "It may be, today. What lies under a mask is not guaranteed: no code may rely on it."),
            "b": ("it is 0", "Nobody puts a 0 there. to_tensor(0) makes a new tensor that has one."),
            "c": ("nothing", "Under False there may be anything. That is why results must not depend on it."),
        },
        "c",
    ),
    prediction(
        "R2",
        "A COO tensor stores a 0 and a 5, in a shape of (4,). Read with the meaning of lecture 07's masked step, how many "
        "of the four elements are specified?",
        {
            "a": ("one", "A stored zero is a value. Whoever makes the mask with `!= 0` loses it."),
            "b": ("two", "What is stored is specified, zeros too. The mask comes from the structure."),
            "c": ("four", "That is the dense reading: what is not stored is 0. In the masked one it is not there."),
        },
        "b",
    ),
    prediction(
        "R3",
        "What does torch.ones(2, 3) + torch.ones(3) do?",
        {
            "a": (
                "it adds the row to each of the two rows",
                "The (3,) is stretched to (2, 3), with stride 0 and without a copy: broadcasting.",
            ),
            "b": (
                "an error: the shapes differ",
                "They differ and fit: lined up at the right, 3 meets 3, and 2 meets none.",
            ),
            "c": (
                "it adds the three numbers to the first row",
                "Nothing is added only here or there: all of it is stretched.",
            ),
        },
        "a",
    ),
    prediction(
        "R4",
        "Under the mask lies a NaN. Which of these keeps it out of the sum?",
        {
            "a": ("(x * mask).sum()", "0 times NaN is NaN. Multiplying hides nothing."),
            "b": ("x.sum() * mask.all()", "The NaN is in the sum before the mask is asked."),
            "c": ("torch.where(mask, x, 0).sum()", "where chooses, and computes nothing with what it leaves out."),
        },
        "c",
    ),
    prediction(
        "P1",
        "Two arrays of NumPy (numpy.ma): the first hides every second element, the second hides just the others. What is "
        "their sum?",
        {
            "a": (
                "everything is there: what one hides the other has",
                "That would be the union. NumPy asks for both operands at each place.",
            ),
            "b": (
                "everything is masked",
                "At each place one of the two is missing, and NumPy wants both: the intersection.",
            ),
            "c": ("an error: the masks differ", "NumPy never refuses because of masks. MaskedTensor does."),
        },
        "b",
    ),
    prediction(
        "P2",
        "And the same two as MaskedTensors: mt0 + mt1?",
        {
            "a": (
                "everything is masked, as in NumPy",
                "Nothing is lost in silence here: you have to say which rule you want.",
            ),
            "b": ("what is there, with 0 for what is missing", "to_tensor(0) does that, if you ask for it."),
            "c": (
                "an error: the masks differ",
                "ValueError, in the prototype and in our package. The strict rule: equal masks, or none at all.",
            ),
        },
        "c",
    ),
    prediction(
        "P3",
        "sum(a + b) = sum(a) + sum(b). For masked a and b, under which rule for a + b does that hold whatever the masks are?",
        {
            "a": (
                "the union",
                "Every number that is there is in a + b once, and 0 stands in for what is not: nothing is lost.",
            ),
            "b": (
                "the intersection",
                "A number whose partner is missing drops out of a + b, but not out of sum(a).",
            ),
            "c": ("both", "Try a = (1, 2) and b = (10, --): the intersection has 11 on the left and 13 on the right."),
            "d": ("neither", "One of the two loses no number. Which one fills in 0?"),
        },
        "a",
    ),
    prediction(
        "P4",
        "m is a matrix in the prototype. m.amax(dim=(0, 1)) is the largest element that counts. And m.amax(dim=(-2, -1))?",
        {
            "a": ("the same: -2 and -1 are the same two dimensions", "So it should be, and so it is in plain torch."),
            "b": (
                "the largest of each row",
                "It does not get that far. (With three dimensions of equal length it does, and worse.)",
            ),
            "c": (
                "an error",
                "The mask is reduced one dimension after the other, and -2 is looked for in what is left of it: a row (issue "
                "115624).",
            ),
        },
        "c",
    ),
    prediction(
        "P5",
        "a: the values 1, 7 with the second one hidden, in the prototype. torch.testing.assert_close(a, torch.tensor([1.0, "
        "7.0])) compares it with a plain tensor. What happens?",
        {
            "a": (
                "it raises an AssertionError: one is masked, the other is not",
                "That is what one would want from a test. The masks are not looked at.",
            ),
            "b": (
                "it passes",
                "The 7 that nobody specified counted as equal to the 7 that counts. A test written like that is green for "
                "the wrong reason.",
            ),
            "c": (
                "it raises because 7 is hidden",
                "Hidden or not, it is compared. Put another number into the plain tensor to see an error, and of another "
                "kind than a test expects.",
            ),
        },
        "b",
    ),
]
