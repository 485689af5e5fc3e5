"""The exercises of lecture 05, masked values: references, cases, wrong and right answers, predictions."""

import torch

from autograder.exercises import exercise, prediction
from autograder.properties import device_agnostic, finite_gradient, gradient, no_loops
from maskedtensor_ref import masked_tensor

NAN, INF = float("nan"), float("inf")
POISON = (NAN, INF, -INF, 1e30)  # what a case puts under the mask: none of it may reach a result or a gradient
NEAR = (2e-5, 1e-5)  # two orders of the same float32 operations differ by this much at most


def asking(t):
    """The same tensor, as one whose gradient is wanted."""
    return t.detach().requires_grad_()


def poisoned(x, mask, worst=NAN):
    """x with `worst` wherever the mask is False."""
    return torch.where(mask, x, torch.tensor(worst, dtype=x.dtype))


def some_mask(rng, *shape):
    """A random mask that hides something and leaves something, if there is room for both."""
    mask = rng.mask(*shape, density=0.6)
    if mask.numel() > 1:
        flat = mask.view(-1)
        hidden = rng.integer(0, flat.numel() - 1)
        flat[hidden], flat[hidden - 1] = False, True
    return mask


# ---- 5.1 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.1",
    points=2,
    minutes=5,
    stars=1,
    concepts=["O-03", "O-04"],
    properties=[no_loops, device_agnostic],
    visible=5,
    hints=[
        "Number the positions of a row 0, 1, 2, ... Position t belongs to the sequence if t is smaller than the "
        "length of its row. That is a comparison of a row of positions with a column of lengths.",
        "torch.arange(n, device=padded.device) numbers the positions; lengths[:, None] has the shape (rows, 1). "
        "Comparing the two gives a bool tensor of the shape of padded. masked_tensor(data, mask) takes True as "
        "specified.",
        "mask = torch.arange(padded.shape[1], device=___) < lengths[:, None]; return masked_tensor(padded, ___).",
    ],
)
def masked_batch(padded, lengths):
    mask = torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
    return masked_tensor(padded, mask)


@masked_batch.cases
def _(rng):
    yield torch.tensor([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]]), torch.tensor([2, 1])
    yield torch.tensor([[5.0, 0.0, 7.0, NAN], [NAN, NAN, NAN, NAN]]), torch.tensor([3, 0])
    yield torch.tensor([[0.0, 1.0], [2.0, 0.0]]), torch.tensor([2, 2])
    yield torch.tensor([[4, 0], [0, 6], [1, 2]]), torch.tensor([1, 2, 0])
    yield torch.zeros(2, 5), torch.tensor([5, 3])
    # hidden, for the smallest failing input is shown, and these teach nothing
    yield torch.tensor([[1e30]]), torch.tensor([0])
    yield torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)
    yield rng.matrix(4, 3).t(), torch.tensor([4, 0, 2])
    for _ in range(10):
        rows, columns = rng.integer(1, 4), rng.integer(2, 5)
        lengths = rng.integers(rows, low=0, high=columns)
        yield rng.matrix(rows, columns, dtype=rng.choice([torch.float32, torch.float64, torch.int64])), lengths


@masked_batch.wrong(
    "M23",
    "Your mask is turned round: it is True at the padding. In a MaskedTensor True means specified (NumPy, and the "
    "key_padding_mask of torch's attention, have it the other way).",
)
def _(padded, lengths):
    import torch

    from maskedtensor_ref import masked_tensor

    return masked_tensor(padded, torch.arange(padded.shape[1], device=padded.device) >= lengths[:, None])


@masked_batch.wrong(
    "X-5.1-1",
    "Every row keeps one element too many: positions begin at 0, so a row of length 2 has the positions 0 and 1. Use "
    "<, not <=.",
)
def _(padded, lengths):
    import torch

    from maskedtensor_ref import masked_tensor

    return masked_tensor(padded, torch.arange(padded.shape[1], device=padded.device) <= lengths[:, None])


@masked_batch.wrong(
    "M24",
    "You took every 0 for padding. A sequence may hold a real 0, and padding may hold anything: only the lengths know.",
)
def _(padded, lengths):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(padded, padded != 0)


@masked_batch.wrong(
    "M10",
    "A mask of 0 and 1 is a tensor of integers, not a mask, and masked_tensor refuses it. The comparison itself is a "
    "bool tensor: use it as it is.",
)
def _(padded, lengths):
    import torch

    from maskedtensor_ref import masked_tensor

    mask = torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
    return masked_tensor(padded, mask.long())


@masked_batch.wrong(
    "M22",
    "This is a plain tensor with something written over the padding. Then nobody can tell it from a real number; hand "
    "out a MaskedTensor.",
)
def _(padded, lengths):
    import torch

    mask = torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]
    return torch.where(mask, padded, 0)


@masked_batch.wrong(
    "X-5.1-2",
    "The positions were made on the CPU, whatever device padded is on. Say device=padded.device where you make them.",
)
def _(padded, lengths):
    import torch

    from maskedtensor_ref import masked_tensor

    return masked_tensor(padded, torch.arange(padded.shape[1]) < lengths[:, None])


@masked_batch.wrong(
    "X-5.1-3",
    "A loop over the rows works, and takes its time for a thousand of them. Compare all positions with all lengths at "
    "once.",
)
def _(padded, lengths):
    import torch

    from maskedtensor_ref import masked_tensor

    mask = torch.zeros_like(padded, dtype=torch.bool)
    for row in range(len(lengths)):
        mask[row, : int(lengths[row])] = True
    return masked_tensor(padded, mask)


@masked_batch.right
def _(padded, lengths):
    import torch

    from maskedtensor_ref import as_masked_tensor

    position = torch.ones_like(padded, dtype=torch.int64).cumsum(dim=1)
    return as_masked_tensor(padded, position <= lengths.unsqueeze(1))


@masked_batch.right
def _(padded, lengths):
    import torch

    from maskedtensor_ref import MaskedTensor

    rows, columns = padded.shape
    position = torch.arange(columns, device=lengths.device).expand(rows, columns)
    return MaskedTensor(padded, lengths.reshape(-1, 1).gt(position))


# ---- 5.2 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.2",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-08"],
    gradient=True,
    properties=[gradient, finite_gradient, no_loops],
    tolerance=NEAR,
    visible=8,
    hints=[
        "where chooses among results, so exp has already seen 100. What must exp be given at the places that are not "
        "chosen?",
        "Two times where: one makes the input harmless before exp, the other chooses the result. At x = 0 the result "
        "is the constant 1, so its gradient is 0: clamp will not do.",
        "below = x < 0; safe = torch.where(below, x, ___); return torch.where(below, torch.exp(___), 1).",
    ],
)
def exp_below_zero(x):
    below = x < 0
    return torch.where(below, torch.exp(torch.where(below, x, 0)), 1)


@exp_below_zero.cases
def _(rng):
    yield asking(torch.tensor([-1.0, 2.0]))
    yield asking(torch.tensor([-1.0, 100.0]))
    yield asking(torch.tensor([0.0]))
    yield asking(torch.tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100]))
    yield asking(torch.tensor([-2.0, 1000.0]))
    yield asking(torch.tensor([-100.0, INF]))
    yield asking(torch.tensor([[-1.0, 20.0]], dtype=torch.float16))
    yield asking(torch.tensor(-3.0))
    yield asking(torch.tensor([]))
    yield asking(torch.tensor([-700.0, 710.0], dtype=torch.float64))
    yield asking((rng.matrix(2, 3) * 50 - 100).t())
    for _ in range(12):
        yield asking(rng.normal(rng.integer(1, 3), rng.integer(1, 4)) * rng.choice([1.0, 30.0, 300.0]))


@exp_below_zero.wrong(
    "M15",
    "The values are right, and yet the gradient is NaN at large x: where computes both sides, exp(100) is infinite, "
    "and the 0 that comes back is multiplied by it. Make the input of exp harmless first.",
)
def _(x):
    import torch

    return torch.where(x < 0, torch.exp(x), 1)


@exp_below_zero.wrong(
    "X-5.2-1",
    "Choosing is not computing: 0 times infinity is NaN. Let where choose, and see to it that exp stays finite.",
)
def _(x):
    import torch

    return (x < 0) * torch.exp(x) + (x >= 0)


@exp_below_zero.wrong(
    "X-5.2-2",
    "At x = 0 your gradient is 1, that of exp. There the result is the constant 1, which does not move: its gradient "
    "is 0. clamp(max=0) lets the gradient through at the edge; where(x < 0, ...) does not.",
)
def _(x):
    import torch

    return torch.exp(x.clamp(max=0))


@exp_below_zero.wrong(
    "X-5.2-3",
    "float64 moves the cliff from 89 to 710 and leaves it there: at x = 1000 the gradient is NaN again. Make the input "
    "harmless, then any dtype will do.",
)
def _(x):
    import torch

    return torch.where(x < 0, torch.exp(x.double()), 1).to(x.dtype)


@exp_below_zero.wrong(
    "M20",
    "No NaN any more, but no gradient either: the result is cut off from x (detach, .data and masked_tensor all do "
    "that), also where exp is chosen. A gradient that is missing is not a gradient of 0.",
)
def _(x):
    import torch

    return torch.where(x < 0, torch.exp(x.detach()), 1)


@exp_below_zero.wrong(
    "M29",
    "Right numbers, but x was given a *masked* gradient: it came in through as_masked_tensor. Here a plain gradient is "
    "wanted, with 0 where nothing moves. Use where twice.",
)
def _(x):
    from maskedtensor_ref import as_masked_tensor

    return as_masked_tensor(x, x < 0).exp().to_tensor(1)


@exp_below_zero.wrong(
    "X-5.2-4",
    "The other way round: exp belongs where x is below 0, and the 1 everywhere else.",
)
def _(x):
    import torch

    below = x < 0
    return torch.where(below, 1, torch.exp(torch.where(below, 0, x)))


@exp_below_zero.right
def _(x):
    positive = x >= 0
    return x.masked_fill(positive, 0).exp().masked_fill(positive, 1)


@exp_below_zero.right
def _(x):
    import torch

    chosen = x < 0
    result = torch.ones_like(x)
    result[chosen] = torch.exp(x[chosen])
    return result


# ---- 5.3 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.3",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-10"],
    needs=["exp_below_zero"],
    gradient=True,
    properties=[gradient, finite_gradient, no_loops],
    visible=9,
    hints=[
        "The quotient that is not chosen is computed all the same. Which of its two numbers makes it dangerous, and "
        "what could stand there instead, where nobody looks?",
        "torch.where on the divisor: keep b where the condition is True, put 1 elsewhere. Then divide, then choose. "
        "Do not add a small number to b: that changes the quotients that are chosen.",
        "safe = torch.where(condition, ___, 1); return torch.where(condition, a / ___, ___).",
    ],
)
def guarded_quotient(condition, a, b, c):
    return torch.where(condition, a / torch.where(condition, b, 1), c)


@guarded_quotient.cases
def _(rng):
    no, yes = torch.tensor(False), torch.tensor(True)
    yield no, asking(torch.tensor(0.5)), torch.tensor(0.0), asking(torch.tensor(1.0))
    yield yes, asking(torch.tensor(6.0)), torch.tensor(2.0), asking(torch.tensor(1.0))
    yield torch.tensor([True, False]), asking(torch.tensor([1.0, 2.0])), torch.tensor([0.001, 0.0]), torch.zeros(2)
    yield torch.tensor([False, True]), asking(torch.tensor([1.0, 2.0])), torch.tensor([NAN, -4.0]), torch.ones(2)
    yield torch.tensor([True, False]), asking(torch.tensor([3.0, INF])), torch.tensor([5.0, 0.0]), torch.ones(2)
    yield torch.tensor([False]), asking(torch.tensor([0.0])), torch.tensor([0.0]), asking(torch.tensor([-1.0]))
    yield torch.tensor([False, False]), asking(torch.tensor([1.0, -1.0])), torch.zeros(2), asking(torch.ones(2))
    yield yes.view(1), asking(torch.tensor([NAN])), torch.tensor([2.0]), torch.ones(1)  # what is chosen stays
    yield no.view(1), asking(torch.tensor([1.0])), torch.tensor([0.0]), torch.tensor([INF])
    yield torch.zeros(0, dtype=torch.bool), asking(torch.tensor([])), torch.tensor([]), torch.tensor([])
    for _ in range(12):
        n = rng.integer(1, 4)
        condition = rng.mask(n)
        b = poisoned(rng.integers(n, low=1, high=8, dtype=torch.float32) / 4, condition, rng.choice([0.0, NAN, INF]))
        yield condition, asking(rng.normal(n)), b, asking(rng.normal(n))


@guarded_quotient.wrong(
    "M15",
    "The values are right, but the gradient of a is NaN where c is chosen: the quotient was computed there too, and "
    "the 0 that comes back is divided by 0. Make the divisor harmless before you divide.",
)
def _(condition, a, b, c):
    import torch

    return torch.where(condition, a / b, c)


@guarded_quotient.wrong(
    "X-5.3-1",
    "A small number added to b keeps 0 away and spoils the quotients that count, the more so the smaller b is. Change "
    "b only where the quotient is not chosen.",
)
def _(condition, a, b, c):
    import torch

    return torch.where(condition, a / (torch.nan_to_num(b, 1.0) + 1e-6), c)


@guarded_quotient.wrong("X-5.3-2", "0 times infinity is NaN. Let where choose instead of multiplying by the condition.")
def _(condition, a, b, c):
    return condition * (a / b) + ~condition * c


@guarded_quotient.wrong("X-5.3-3", "The sides are exchanged: the quotient belongs where the condition is True.")
def _(condition, a, b, c):
    import torch

    return torch.where(condition, c, a / torch.where(condition, 1, b))


@guarded_quotient.wrong(
    "M20",
    "The NaN is gone because the quotient was cut off from a: now a gets no gradient at all, also where the quotient "
    "is chosen. No gradient is not a gradient of 0.",
)
def _(condition, a, b, c):
    import torch

    return torch.where(condition, (a / b).detach(), c)


@guarded_quotient.wrong(
    "M29",
    "a was given a *masked* gradient, because it went through as_masked_tensor. A plain one is wanted here, with 0 "
    "where c is chosen: make the divisor harmless with where.",
)
def _(condition, a, b, c):
    import torch

    from maskedtensor_ref import as_masked_tensor

    quotient = as_masked_tensor(a / torch.where(condition, b, 1), condition)
    return torch.where(condition, quotient.to_tensor(0), c)


@guarded_quotient.wrong(
    "X-5.3-4",
    "Your result takes one side whole. Python's `if` asks one question for all elements; where asks at each of them.",
)
def _(condition, a, b, c):
    import torch

    if condition.all():
        return a / b
    return c + 0 * torch.where(condition, a, 0)


@guarded_quotient.wrong(
    "X-5.3-5",
    "You repaired the result at the end, and with it a NaN or an infinity that counts. What is chosen has to come "
    "through as it is; make the divisor harmless instead.",
)
def _(condition, a, b, c):
    import torch

    return torch.where(condition, a / torch.where(condition, b, 1), c).nan_to_num()


@guarded_quotient.wrong(
    "X-5.3-6",
    "Python's `if` asks one question for all elements: with several it fails, and the side that is left out hears "
    "nothing of the gradient. Let where choose, place by place.",
)
def _(condition, a, b, c):
    import torch

    return a / torch.where(condition, b, 1) if condition else c


@guarded_quotient.right
def _(condition, a, b, c):
    import torch

    safe = b.masked_fill(~condition, 1)
    return torch.where(condition, a / safe, c)


@guarded_quotient.right
def _(condition, a, b, c):
    import torch

    inverse = torch.where(condition, 1 / torch.where(condition, b, 2), 0)
    return torch.where(condition, torch.where(condition, a, 0) * inverse, c)


# ---- 5.4 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.4",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-12", "O-13"],
    needs=["guarded_quotient"],
    properties=[no_loops],
    visible=6,
    hints=[
        "Three times the same idea, at three places: the division by 0 must not happen before the elements are picked, "
        "or its gradient must be marked as missing.",
        "Indexed: pick from x and from divisor first, then divide. Safe: a divisor with 1 in place of 0, then where. "
        "Masked: as_masked_tensor(..., divisor != 0); masked_tensor would cut the history.",
        "ok = divisor != 0; indexed = x[ok] / divisor[___]; safe = torch.where(ok, x / torch.where(ok, ___, 1), 0); "
        "masked = as_masked_tensor(x / divisor, ___).",
    ],
)
def quotients(x, divisor):
    from maskedtensor_ref import as_masked_tensor

    ok = divisor != 0
    safe = torch.where(ok, x / torch.where(ok, divisor, 1), 0)
    return x[ok] / divisor[ok], safe, as_masked_tensor(x / divisor, ok)


@quotients.call
def _(quotients, x, divisor):
    import torch

    found = quotients(x, divisor)

    def slope(t):
        if not isinstance(t, torch.Tensor) or not t.requires_grad:
            return None
        return torch.autograd.grad(t.sum(), x, retain_graph=True, allow_unused=True)[0]

    return found, [slope(t) for t in found] if isinstance(found, (tuple, list)) and len(found) == 3 else None


@quotients.facts
def _(result, x, divisor):
    if not isinstance(result, tuple):
        return result
    found, slopes = result
    three = isinstance(found, (tuple, list)) and len(found) == 3 and isinstance(slopes, list)
    told = {"three results (indexed, safe, masked)": three or found}
    given, slopes = (found, slopes) if three else ((None, None, None), (None, None, None))
    for name, t, slope in zip(("indexed", "safe", "masked"), given, slopes, strict=True):
        told[name], told[f"gradient of x by {name}"] = t, slope
    return told


@quotients.cases
def _(rng):
    yield asking(torch.tensor([1.0, 1.0])), torch.tensor([0.0, 1.0])
    yield asking(torch.tensor([3.0, 0.0, -1.0])), torch.tensor([2.0, 0.0, 4.0])
    yield asking(torch.tensor([5.0])), torch.tensor([0.0])
    yield asking(torch.tensor([5.0, 6.0])), torch.tensor([2.0, -2.0])
    yield asking(torch.tensor([[1.0, 2.0], [3.0, 4.0]])), torch.tensor([[1.0, 0.0], [0.0, 8.0]])
    yield asking(torch.tensor([0.0, INF])), torch.tensor([4.0, 0.0])
    yield asking(torch.tensor([])), torch.tensor([])
    for _ in range(10):
        m, n = rng.integer(1, 3), rng.integer(1, 3)
        yield asking(rng.normal(m, n)), torch.where(some_mask(rng, m, n), rng.integers(m, n, low=1, high=4), 0) / 2


@quotients.wrong(
    "M15",
    "You divided first and picked the elements afterwards: the values are right, but the division by 0 is still in "
    "the graph and sends NaN back. Pick from x and divisor, then divide.",
)
def _(x, divisor):
    import torch

    from maskedtensor_ref import as_masked_tensor

    ok = divisor != 0
    safe = torch.where(ok, x / torch.where(ok, divisor, 1), 0)
    return (x / divisor)[ok], safe, as_masked_tensor(x / divisor, ok)


@quotients.wrong(
    "M21",
    "You masked the result: where hides the infinity, but the gradient still goes through the division by 0 and is "
    "NaN. Put a harmless number into the divisor before you divide.",
)
def _(x, divisor):
    import torch

    from maskedtensor_ref import as_masked_tensor

    ok = divisor != 0
    return x[ok] / divisor[ok], torch.where(ok, x / divisor, 0), as_masked_tensor(x / divisor, ok)


@quotients.wrong(
    "X-5.4-1",
    "masked_tensor makes a new leaf, as torch.tensor does: the history is cut, and x gets no gradient. "
    "as_masked_tensor keeps it.",
)
def _(x, divisor):
    import torch

    from maskedtensor_ref import masked_tensor

    ok = divisor != 0
    safe = torch.where(ok, x / torch.where(ok, divisor, 1), 0)
    return x[ok] / divisor[ok], safe, masked_tensor((x / divisor).detach(), ok)


@quotients.wrong(
    "M20",
    "The third result is a plain tensor with 0 filled in. Then its gradient is 0 where it is undefined, and the two "
    "look alike. Hand out the MaskedTensor itself.",
)
def _(x, divisor):
    import torch

    ok = divisor != 0
    safe = torch.where(ok, x / torch.where(ok, divisor, 1), 0)
    return x[ok] / divisor[ok], safe, safe


@quotients.wrong(
    "M23",
    "Your mask says where the divisor *is* 0. True means specified: divisor != 0.",
)
def _(x, divisor):
    import torch

    from maskedtensor_ref import as_masked_tensor

    ok = divisor != 0
    safe = torch.where(ok, x / torch.where(ok, divisor, 1), 0)
    return x[ok] / divisor[ok], safe, as_masked_tensor(x / divisor, ~ok)


@quotients.wrong(
    "X-5.4-2",
    "The safe quotient has something else than 0 where the divisor is 0. Choose once more at the end, or x itself "
    "stays there.",
)
def _(x, divisor):
    import torch

    from maskedtensor_ref import as_masked_tensor

    ok = divisor != 0
    return x[ok] / divisor[ok], x / torch.where(ok, divisor, 1), as_masked_tensor(x / divisor, ok)


@quotients.wrong("X-5.4-3", "The three results stand in another order than asked: indexed, safe, masked.")
def _(x, divisor):
    import torch

    from maskedtensor_ref import as_masked_tensor

    ok = divisor != 0
    safe = torch.where(ok, x / torch.where(ok, divisor, 1), 0)
    return safe, x[ok] / divisor[ok], as_masked_tensor(x / divisor, ok)


@quotients.wrong(
    "X-5.4-4",
    "Indexed and safe both divide by 0 first and hide the result afterwards, so NaN comes back through both. Pick "
    "before you divide, and divide by something harmless before you choose.",
)
def _(x, divisor):
    import torch

    from maskedtensor_ref import as_masked_tensor

    ok = divisor != 0
    return (x / divisor)[ok], torch.where(ok, x / divisor, 0), as_masked_tensor(x / divisor, ok)


@quotients.wrong(
    "M29",
    "The safe quotient was taken out of the MaskedTensor, so what comes back through it is a *masked* gradient. Its "
    "gradient is to be a plain one, with 0: build it of plain tensors, with where.",
)
def _(x, divisor):
    from maskedtensor_ref import as_masked_tensor

    ok = divisor != 0
    masked = as_masked_tensor(x / divisor, ok)
    return x[ok] / divisor[ok], masked.to_tensor(0), masked


@quotients.right
def _(x, divisor):
    import torch

    from maskedtensor_ref import as_masked_tensor

    zero = divisor == 0
    indexed = torch.masked_select(x, ~zero).div(torch.masked_select(divisor, ~zero))
    safe = (x / divisor.masked_fill(zero, 1)).masked_fill(zero, 0)
    return indexed, safe, as_masked_tensor(x, ~zero) / divisor


@quotients.right
def _(x, divisor):
    import torch

    from maskedtensor_ref import as_masked_tensor

    ok = divisor.ne(0)
    indexed = x[ok] / divisor[ok]
    safe = torch.zeros_like(x)
    safe[ok] = indexed
    return [indexed, safe, as_masked_tensor(x / torch.where(ok, divisor, 1), ok)]


# ---- 5.5 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.5",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-14", "O-15"],
    gradient=True,
    properties=[gradient, no_loops],
    visible=7,
    hints=[
        "The gradient of b is made of the numbers of a. If a NaN of a takes part in the product, it takes part in the "
        "gradient, too, whatever happens to the product afterwards.",
        "torch.where on a, before the product: 0 where a is NaN (torch.isnan). Leave infinities alone, so not "
        "nan_to_num with its defaults; and make a new tensor.",
        "return (torch.where(torch.isnan(___), 0, a) * ___).sum()",
    ],
)
def sum_without_nan(a, b):
    return (torch.where(a.isnan(), 0, a) * b).sum()


@sum_without_nan.cases
def _(rng):
    yield torch.tensor([1.0, 2.0, NAN]), asking(torch.tensor(1.0))
    yield torch.tensor([1.0, NAN, 3.0]), asking(torch.tensor([2.0, 5.0, 1.0]))
    yield torch.tensor([NAN, NAN]), asking(torch.tensor(4.0))
    yield torch.tensor([1.0, 2.0]), asking(torch.tensor(3.0))
    yield torch.tensor([[1.0, NAN], [2.0, 4.0]]), asking(torch.tensor([[10.0], [100.0]]))
    yield torch.tensor([INF, NAN, 1.0]), asking(torch.tensor(0.5))
    yield torch.tensor([NAN, 2.0]), torch.tensor([1.0, 3.0])  # no gradient wanted: a write into a would go unnoticed
    yield torch.tensor([]), asking(torch.tensor(2.0))
    yield torch.tensor([NAN, 0.0, -1.0], dtype=torch.float64), asking(torch.tensor(2.0, dtype=torch.float64))
    for _ in range(12):
        m, n = rng.integer(1, 3), rng.integer(2, 4)
        a = poisoned(rng.normal(m, n), some_mask(rng, m, n))
        yield a, asking(rng.choice([rng.normal(), rng.normal(n), rng.normal(m, 1)]))


@sum_without_nan.wrong(
    "M21",
    "The value is right, the gradient of b is NaN: the NaN was dropped from the *product*, and in the backward pass "
    "its 0 is multiplied by the NaN of a. Take the NaN out of a, before the product.",
)
def _(a, b):
    import torch

    return torch.nansum(a * b)


@sum_without_nan.wrong(
    "X-5.5-1",
    "nan_to_num replaces infinities as well, by the largest finite number. An infinity counts here; replace the NaN "
    "alone.",
)
def _(a, b):
    import torch

    return (torch.nan_to_num(a) * b).sum()


@sum_without_nan.wrong(
    "X-5.5-2",
    "First the sum of a, then the factor: that holds only if b is a single number. Multiply place by place.",
    sample="wrong_rank",
)
def _(a, b):
    import torch

    return torch.nansum(a) * b


@sum_without_nan.wrong(
    "M20",
    "No NaN, but no gradient either: b was detached. A missing gradient is not one without NaN; the 3 of the example "
    "is wanted.",
)
def _(a, b):
    import torch

    return torch.nansum(a * b.detach())


@sum_without_nan.wrong(
    "X-5.5-3",
    "Your function wrote into a: the NaN of the caller is gone. Make a new tensor with torch.where.",
)
def _(a, b):
    a[a.isnan()] = 0
    return (a * b).sum()


@sum_without_nan.wrong("X-5.5-4", "This is the mean of the products that are there. Their sum is wanted.")
def _(a, b):
    import torch

    there = ~a.isnan()
    return (torch.where(there, a, 0) * b).sum() / there.sum().clamp(min=1)


@sum_without_nan.wrong(
    "X-5.5-5",
    "The same index for a and b fails when b has another shape, a single number for instance. Change a in its own "
    "shape, and let broadcasting do the rest.",
)
def _(a, b):
    there = ~a.isnan()
    return (a[there] * b[there]).sum()


@sum_without_nan.wrong(
    "X-5.5-6",
    "Every NaN is still in the sum. If you looked for it with ==: NaN is equal to nothing, not even to itself. Ask "
    "a.isnan().",
)
def _(a, b):
    return (a * b).sum()


@sum_without_nan.wrong(
    "X-5.5-7",
    "Picking made a row of what is left of a, and b is as it was: the two do not fit any more, or fit in the wrong "
    "places. Keep the shape of a and put 0 in place of its NaN.",
)
def _(a, b):
    return (a[~a.isnan()] * b).sum()


@sum_without_nan.wrong(
    "X-5.5-8",
    "isfinite leaves out the infinities as well, and they count. Only NaN is missing: a.isnan().",
)
def _(a, b):
    import torch

    return (torch.where(a.isfinite(), a, 0) * b).sum()


@sum_without_nan.right
def _(a, b):
    from maskedtensor_ref import masked_tensor

    return (masked_tensor(a, ~a.isnan()) * b).sum().to_tensor(0)


@sum_without_nan.right
def _(a, b):
    import torch

    clean = a.masked_fill(torch.isnan(a), 0)
    return torch.sum(torch.mul(b, clean))


# ---- 5.6 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.6",
    points=5,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["O-16"],
    gradient=True,
    properties=[gradient, finite_gradient, no_loops],
    tolerance=NEAR,
    visible=10,
    hints=[
        "Minus infinity gives weight 0, as long as something else is in the slice. A slice with nothing in it has the "
        "form 0 / 0. Which slices are those, and what could you give softmax there instead?",
        "mask.any(dim, keepdim=True) says which slices have something. Fill with minus infinity where the mask is "
        "False, put 0 into the slices without anything, take torch.softmax, and choose 0 for those slices at the end. "
        "Do not repair NaN at the end: a NaN that counts has to stay.",
        "some = mask.any(dim, keepdim=True); z = torch.where(mask, x, float('-inf')); z = torch.where(some, z, ___); "
        "return torch.where(some, torch.softmax(z, ___), ___).",
    ],
)
def safe_softmax(x, mask, dim):
    some = mask.any(dim, keepdim=True)
    z = torch.where(some, torch.where(mask, x, -INF), 0)
    return torch.where(some, torch.softmax(z, dim), 0)


@safe_softmax.cases
def _(rng):
    setup = torch.tensor([[True, False, False], [True, False, True], [False, False, False]])
    yield asking(torch.tensor([0.0, 1.0])), torch.tensor([True, True]), 0
    yield asking(torch.tensor([1.0, 2.0])), torch.tensor([False, False]), 0
    yield asking(torch.tensor([0.0, NAN, 1.0])), torch.tensor([True, False, True]), 0
    yield asking(torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])), setup, 0
    yield asking(torch.tensor([[1.0, 2.0], [3.0, NAN]])), torch.tensor([[True, False], [False, False]]), -1
    yield torch.tensor([NAN, 1.0]), torch.tensor([True, True]), 0  # this NaN counts, so it stays
    yield asking(torch.tensor([1000.0, 999.0, 5000.0])), torch.tensor([True, True, False]), 0
    yield asking(torch.tensor([[1.0, 2.0, 3.0], [4.0, 6.0, 5.0]])), torch.tensor([[True, True, False]]), 1
    yield asking(torch.tensor([1.0, INF, 30.0])), torch.tensor([False, False, True]), -1
    yield asking(torch.tensor([-2e9, -2e9 - 512])), torch.tensor([True, False]), 0
    yield asking(torch.zeros(0, 3)), torch.zeros(0, 3, dtype=torch.bool), 1
    yield asking(torch.tensor([[2.0, 1.0]], dtype=torch.float64)), torch.tensor([[False, True]]), 1
    for _ in range(16):
        m, n, dim = rng.integer(2, 3), rng.integer(2, 4), rng.choice([0, 1, -1, -2])
        mask = some_mask(rng, m, n)
        mask.select(dim, 0)[...] = rng.choice([True, False])
        yield asking(poisoned(rng.normal(m, n) * 4, mask, rng.choice(POISON))), mask, dim


@safe_softmax.wrong(
    "X-5.6-1",
    "A slice in which nothing counts is NaN: minus infinity everywhere is 0 / 0. Find those slices with "
    "mask.any(dim, keepdim=True) and give them 0.",
)
def _(x, mask, dim):
    import torch

    return torch.softmax(torch.where(mask, x, float("-inf")), dim)


@safe_softmax.wrong(
    "X-5.6-2",
    "The weights of a slice do not sum to 1: hidden elements took part in the softmax, and only their weights were "
    "removed. They must take no part from the beginning.",
)
def _(x, mask, dim):
    import torch

    return torch.softmax(x, dim) * mask


@safe_softmax.wrong(
    "X-5.6-3",
    "You turned every NaN into 0, also one that counts. It is a sign that something is wrong, and it has to stay. "
    "Choose by the mask, not by what came out.",
)
def _(x, mask, dim):
    import torch

    return torch.nan_to_num(torch.softmax(torch.where(mask, x, float("-inf")), dim), 0.0)


@safe_softmax.wrong(
    "X-5.6-4",
    "A very small number in place of minus infinity avoids the NaN, and a slice in which nothing counts then gets equal "
    "weights, of elements that do not exist. There the weights are 0.",
)
def _(x, mask, dim):
    import torch

    return torch.softmax(torch.where(mask, x, torch.finfo(x.dtype).min), dim)


@safe_softmax.wrong(
    "M23",
    "Your mask is read the wrong way round. True means that an element counts.",
)
def _(x, mask, dim):
    import torch

    mask = ~mask
    some = mask.any(dim, keepdim=True)
    z = torch.where(some, torch.where(mask, x, float("-inf")), 0)
    return torch.where(some, torch.softmax(z, dim), 0)


@safe_softmax.wrong(
    "M22",
    "Multiplying by the mask is no way to hide: a hidden element became 0, and exp(0) is 1, so it takes weight; a "
    "hidden NaN stays NaN. Use where with minus infinity.",
)
def _(x, mask, dim):
    import torch

    return torch.softmax(x * mask, dim) * mask


@safe_softmax.wrong(
    "M14", "The slices run along dim, whatever it is. You took the last dimension always.", sample="wrong_duplicates"
)
def _(x, mask, dim):
    import torch

    some = mask.any(-1, keepdim=True)
    z = torch.where(some, torch.where(mask, x, float("-inf")), 0)
    return torch.where(some, torch.softmax(z, -1), 0)


@safe_softmax.wrong(
    "X-5.6-5",
    "Where the numbers that count are very small, all your weights are 0: a fill like -1e9 was larger than they are, or exp "
    "was taken before the largest of them was subtracted. Fill with minus infinity and give that to torch.softmax.",
)
def _(x, mask, dim):
    import torch

    return torch.where(mask, torch.softmax(torch.where(mask, x, -1e9), dim), 0)


@safe_softmax.wrong(
    "M29",
    "x was given a *masked* gradient, because it went through as_masked_tensor. A plain one is wanted, with 0 for "
    "what does not count: stay with plain tensors and where.",
)
def _(x, mask, dim):
    from maskedtensor_ref import as_masked_tensor

    return as_masked_tensor(x, mask.expand_as(x)).softmax(dim).to_tensor(0)


@safe_softmax.wrong(
    "M20",
    "The weights are right, and x gets no gradient: masked_tensor makes a new leaf and cuts the history. Stay with "
    "plain tensors and where.",
)
def _(x, mask, dim):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(x.detach(), mask.expand_as(x)).softmax(dim).to_tensor(0)


@safe_softmax.wrong(
    "X-5.6-6",
    "The question which slices have something lost its dimension, and was stretched over the wrong one: "
    "mask.any(dim, keepdim=True) keeps it.",
)
def _(x, mask, dim):
    import torch

    some = mask.any(dim)
    z = torch.where(some, torch.where(mask, x, float("-inf")), 0)
    return torch.where(mask, torch.softmax(z, dim), 0)


@safe_softmax.wrong(
    "X-5.6-7",
    "The gradient is NaN where nothing counts: softmax was given what lies hidden in such a slice, and choosing 0 "
    "at the end comes too late for the way back. Put something harmless there before softmax.",
)
def _(x, mask, dim):
    import torch

    some = mask.any(dim, keepdim=True)
    return torch.where(some, torch.softmax(torch.where(mask | ~some, x, float("-inf")), dim), 0)


@safe_softmax.right
def _(x, mask, dim):
    import torch

    mask = mask.expand_as(x)
    p = torch.softmax(x.masked_fill(~mask, float("-inf")), dim)
    return p.masked_fill(~mask, 0)


@safe_softmax.right
def _(x, mask, dim):
    import torch

    if x.numel() == 0:
        return torch.softmax(x, dim)
    z = torch.where(mask, x, -torch.inf)
    top = z.amax(dim, keepdim=True).detach()
    e = torch.where(mask, torch.exp(torch.where(mask, x - torch.where(top == -torch.inf, 0, top), 0)), 0)
    total = e.sum(dim, keepdim=True)
    return e / torch.where(mask.any(dim, keepdim=True), total, 1)


# ---- 5.7 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.7",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-17", "O-19"],
    properties=[no_loops],
    tolerance=(1e-4, 1e-4),
    visible=8,
    hints=[
        "A mean is a sum over a count. Both are taken over what counts. And when the count is 0, there is no mean: say "
        "so, instead of dividing by 0.",
        "count = mask.sum(dim). Fill with 0 by torch.where before every sum. The variance is the mean of the squared "
        "distances from the mean; for them the mean needs keepdim. Divide by count.clamp(min=1).",
        "n = mask.sum(dim, keepdim=True); m = torch.where(mask, x, 0).sum(dim, keepdim=True) / n.clamp(min=1); "
        "v = (torch.where(mask, x - ___, 0) ** 2).sum(dim, keepdim=True) / ___; return m, v, n > 0, each with "
        ".squeeze(dim).",
    ],
)
def mean_and_variance(x, mask, dim):
    n = mask.sum(dim, keepdim=True)
    mean = torch.where(mask, x, 0).sum(dim, keepdim=True) / n.clamp(min=1)
    variance = (torch.where(mask, x - mean, 0) ** 2).sum(dim, keepdim=True) / n.clamp(min=1)
    return mean.squeeze(dim), variance.squeeze(dim), (n > 0).squeeze(dim)


@mean_and_variance.facts
def _(found, x, mask, dim):
    import torch

    three = isinstance(found, (tuple, list)) and len(found) == 3
    if not three or not all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in found):
        return found
    mean, variance, defined = found
    if defined.dtype != torch.bool or not mean.shape == variance.shape == defined.shape:
        return found
    free = ~mask.any(dim)  # any finite number will do there, and is told as 0
    told = [torch.where(free & t.isfinite(), 0, t) if free.shape == t.shape else t for t in (mean, variance)]
    return *told, defined


@mean_and_variance.cases
def _(rng):
    yield torch.tensor([[1.0, 3.0, 8.0]]), torch.tensor([[True, True, False]]), 1
    yield torch.tensor([[1.0, 3.0], [5.0, 6.0]]), torch.tensor([[True, True], [False, False]]), 1
    yield torch.tensor([[NAN, 2.0], [4.0, INF]]), torch.tensor([[False, True], [True, False]]), 0
    yield torch.tensor([2.0, 4.0, 6.0, 1e30]), torch.tensor([True, True, True, False]), 0
    yield torch.tensor([[10000.0, 10001.0, 10002.0]]), torch.tensor([[True, True, True]]), -1
    yield torch.tensor([NAN, NAN]), torch.tensor([False, False]), 0
    yield torch.tensor([[0.0, 2.0, 4.0], [1.0, 1.0, 7.0]]), torch.tensor([[True, True, True], [True, False, True]]), 1
    yield torch.tensor([[NAN, 1.0], [3.0, 5.0]]), torch.tensor([[True, True], [True, False]]), 1  # this NaN counts
    yield torch.tensor([[NAN], [INF]]), torch.tensor([[False], [False]]), -2
    yield torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool), 1
    yield torch.tensor([[5.0]], dtype=torch.float64), torch.tensor([[True]]), 0
    for _ in range(14):
        m, n, dim = rng.integer(2, 4), rng.integer(2, 4), rng.choice([0, 1, -1])
        mask = some_mask(rng, m, n)
        mask.select(1 - abs(dim), 0)[...] = False  # one slice with nothing
        yield poisoned(rng.normal(m, n), mask, rng.choice(POISON)), mask, dim


@mean_and_variance.wrong(
    "X-5.7-1",
    "Where nothing counts you divide 0 by 0, and NaN comes out: a NaN that the next step takes for a number. Divide by "
    "at least 1, and let the flag say that nothing is defined.",
)
def _(x, mask, dim):
    import torch

    n = mask.sum(dim, keepdim=True)
    mean = torch.where(mask, x, 0).sum(dim, keepdim=True) / n
    variance = (torch.where(mask, x - mean, 0) ** 2).sum(dim, keepdim=True) / n
    return mean.squeeze(dim), variance.squeeze(dim), (n > 0).squeeze(dim)


@mean_and_variance.wrong(
    "M24",
    "You divided by the number of all elements, as if the hidden ones were zeros. Missing is not zero: divide by how "
    "many count.",
)
def _(x, mask, dim):
    import torch

    n = x.shape[dim] or 1
    mean = torch.where(mask, x, 0).sum(dim, keepdim=True) / n
    variance = (torch.where(mask, x - mean, 0) ** 2).sum(dim, keepdim=True) / n
    return mean.squeeze(dim), variance.squeeze(dim), mask.any(dim)


@mean_and_variance.wrong(
    "M22",
    "What is hidden leaked: x * mask is 0 * NaN = NaN where NaN is hidden. Choose with torch.where instead of "
    "multiplying.",
)
def _(x, mask, dim):
    n = mask.sum(dim, keepdim=True)
    mean = (x * mask).sum(dim, keepdim=True) / n.clamp(min=1)
    variance = (((x - mean) * mask) ** 2).sum(dim, keepdim=True) / n.clamp(min=1)
    return mean.squeeze(dim), variance.squeeze(dim), (n > 0).squeeze(dim)


@mean_and_variance.wrong(
    "X-5.7-2",
    "You divided by one less than the count, as torch.var does if you do not say correction=0. Here the variance is "
    "the plain mean of the squared distances.",
)
def _(x, mask, dim):
    import torch

    n = mask.sum(dim, keepdim=True)
    mean = torch.where(mask, x, 0).sum(dim, keepdim=True) / n.clamp(min=1)
    variance = (torch.where(mask, x - mean, 0) ** 2).sum(dim, keepdim=True) / (n - 1).clamp(min=1)
    return mean.squeeze(dim), variance.squeeze(dim), (n > 0).squeeze(dim)


@mean_and_variance.wrong(
    "X-5.7-3",
    "The mean of the squares minus the square of the mean: right on paper, and for numbers around 10000 nothing is "
    "left of it in float32. Subtract the mean before squaring.",
)
def _(x, mask, dim):
    import torch

    n = mask.sum(dim)
    count = n.clamp(min=1)
    z = torch.where(mask, x, 0)
    mean = z.sum(dim) / count
    return mean, (z * z).sum(dim) / count - mean * mean, n > 0


@mean_and_variance.wrong(
    "X-5.7-4",
    "Your flag asks whether everything counts. One element is enough for a mean: any, not all.",
)
def _(x, mask, dim):
    import torch

    n = mask.sum(dim, keepdim=True)
    mean = torch.where(mask, x, 0).sum(dim, keepdim=True) / n.clamp(min=1)
    variance = (torch.where(mask, x - mean, 0) ** 2).sum(dim, keepdim=True) / n.clamp(min=1)
    return mean.squeeze(dim), variance.squeeze(dim), mask.all(dim)


@mean_and_variance.wrong(
    "X-5.7-5",
    "The hidden elements are missing from the mean, but in the variance each of them adds the square of the mean: the "
    "mean was subtracted from the 0 that you had filled in. Fill with 0 after subtracting.",
)
def _(x, mask, dim):
    import torch

    n = mask.sum(dim, keepdim=True)
    z = torch.where(mask, x, 0)
    mean = z.sum(dim, keepdim=True) / n.clamp(min=1)
    variance = ((z - mean) ** 2).sum(dim, keepdim=True) / n.clamp(min=1)
    return mean.squeeze(dim), variance.squeeze(dim), (n > 0).squeeze(dim)


@mean_and_variance.wrong(
    "X-5.7-6",
    "You took every NaN for missing, also one that counts. It is a sign that something is wrong, and it has to "
    "stay. Choose by the mask, not by what came out.",
)
def _(x, mask, dim):
    import torch

    mean = torch.masked.mean(x, dim, mask=mask)
    variance = torch.masked.var(x, dim, mask=mask, unbiased=False)
    return mean.nan_to_num(0), variance.nan_to_num(0), mask.any(dim)


@mean_and_variance.right
def _(x, mask, dim):
    from maskedtensor_ref import masked_tensor

    m = masked_tensor(x, mask)
    mean, variance = m.mean(dim), m.var(dim, correction=0)
    return mean.to_tensor(0), variance.to_tensor(0), mean.get_mask()


@mean_and_variance.right
def _(x, mask, dim):
    import torch

    wide = torch.where(mask, x, 0).double()
    weights = mask.double() / mask.double().sum(dim, keepdim=True).clamp(min=1)
    mean = (wide * weights).sum(dim, keepdim=True)
    variance = ((wide - mean) ** 2 * weights).sum(dim)
    return mean.squeeze(dim).to(x.dtype), variance.to(x.dtype), mask.any(dim)


# ---- 5.8 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.8",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-17"],
    properties=[no_loops],
    visible=8,
    hints=[
        "What can you put in place of a missing number so that the largest of all is not changed by it? For a product "
        "that number is 1. For a maximum it depends on what the dtype can hold.",
        "Floats: minus infinity for max, infinity for min. Integers: torch.iinfo(x.dtype).min and .max. Fill with "
        "torch.where or masked_fill, then x.amax(dim), x.amin(dim) or x.prod(dim, dtype=x.dtype).",
        'low, high = (float("-inf"), float("inf")) if x.is_floating_point() else (torch.iinfo(x.dtype).min, ___); '
        'neutral = {"max": low, "min": ___, "prod": 1}[which]; z = x.masked_fill(~mask, neutral); then reduce z.',
    ],
)
def reduced(x, mask, which, dim):
    if x.is_floating_point():
        low, high = -INF, INF
    else:
        low, high = torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max
    z = x.masked_fill(~mask, {"max": low, "min": high, "prod": 1}[which])
    if which == "prod":
        return z.prod(dim, dtype=x.dtype)
    return z.amax(dim) if which == "max" else z.amin(dim)


@reduced.cases
def _(rng):
    mask = torch.tensor([True, False, True])
    yield torch.tensor([-3.0, NAN, -1.0]), mask, "max", 0
    yield torch.tensor([3.0, NAN, 5.0]), mask, "min", 0
    yield torch.tensor([3, 7, 5]), mask, "prod", 0
    yield torch.tensor([-3, 99, -5]), mask, "max", 0
    yield torch.tensor([2, 3, 4], dtype=torch.int32), mask, "prod", 0
    yield torch.tensor([[1.0, 2.0], [NAN, NAN]]), torch.tensor([[True, True], [False, False]]), "max", 1
    yield torch.tensor([3e38, 7.0]), torch.tensor([True, False]), "min", 0
    yield torch.tensor([[5, 6]], dtype=torch.int8), torch.tensor([[False, True]]), "min", 1
    yield torch.tensor([-128, 5], dtype=torch.int8), torch.tensor([True, False]), "max", 0
    yield torch.tensor([-INF, 1e30]), torch.tensor([True, False]), "max", -1
    yield torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([False, False]), "min", 0
    yield torch.tensor([4, 5]), torch.tensor([False, False]), "max", 0
    yield (
        torch.tensor([[2.0, 1e30], [4.0, -1e30]], dtype=torch.float32).t(),
        torch.tensor([[True, True], [False, False]]),
        "prod",
        0,
    )
    kinds = [torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]
    for which in ("max", "min", "prod"):
        for _ in range(6):
            m, n, dim, dtype = rng.integer(1, 3), rng.integer(2, 3), rng.choice([0, 1, -1]), rng.choice(kinds)
            mask, x = some_mask(rng, m, n), rng.integers(m, n, low=-5, high=5, dtype=dtype)
            if dtype.is_floating_point:
                x = poisoned(x, mask, rng.choice([NAN, INF, -INF]))
            yield x, mask, which, dim


@reduced.wrong(
    "M24",
    "You filled with 0. That is harmless for a sum; for the maximum of negative numbers it wins, and a product it "
    "destroys. Each operation has a neutral number of its own.",
)
def _(x, mask, which, dim):
    z = x.masked_fill(~mask, 0)
    if which == "prod":
        return z.prod(dim, dtype=x.dtype)
    return z.amax(dim) if which == "max" else z.amin(dim)


@reduced.wrong(
    "X-5.8-1",
    "Integers have no infinity, so filling them with one fails. Their smallest and largest numbers are in "
    "torch.iinfo(x.dtype).",
)
def _(x, mask, which, dim):
    z = x.masked_fill(~mask, {"max": float("-inf"), "min": float("inf"), "prod": 1}[which])
    if which == "prod":
        return z.prod(dim, dtype=x.dtype)
    return z.amax(dim) if which == "max" else z.amin(dim)


@reduced.wrong(
    "X-5.8-2",
    "The result has another dtype than x: torch.prod makes int64 of small integers unless you say dtype=x.dtype.",
)
def _(x, mask, which, dim):
    import torch

    if x.is_floating_point():
        low, high = float("-inf"), float("inf")
    else:
        low, high = torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max
    z = x.masked_fill(~mask, {"max": low, "min": high, "prod": 1}[which])
    return {"max": z.amax(dim), "min": z.amin(dim), "prod": z.prod(dim)}[which]


@reduced.wrong(
    "X-5.8-3",
    "The largest finite float is not neutral: where nothing counts, or where infinities count, minus infinity and "
    "infinity are the answer. Only integers need torch.iinfo; floats have infinities.",
)
def _(x, mask, which, dim):
    import torch

    info = torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)
    z = x.masked_fill(~mask, {"max": info.min, "min": info.max, "prod": 1}[which])
    if which == "prod":
        return z.prod(dim, dtype=x.dtype)
    return z.amax(dim) if which == "max" else z.amin(dim)


@reduced.wrong(
    "M23",
    "You filled the elements that count, and reduced those that are hidden. True means that an element counts: fill "
    "where ~mask.",
)
def _(x, mask, which, dim):
    import torch

    if x.is_floating_point():
        low, high = float("-inf"), float("inf")
    else:
        low, high = torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max
    z = x.masked_fill(mask, {"max": low, "min": high, "prod": 1}[which])
    if which == "prod":
        return z.prod(dim, dtype=x.dtype)
    return z.amax(dim) if which == "max" else z.amin(dim)


@reduced.wrong(
    "X-5.8-4",
    "You filled with the smallest or largest number of x itself. It belongs to x including what is hidden: a NaN "
    "there comes through, and a slice in which nothing counts gets a number from elsewhere.",
)
def _(x, mask, which, dim):
    z = x.masked_fill(~mask, {"max": x.min(), "min": x.max(), "prod": 1}[which])
    if which == "prod":
        return z.prod(dim, dtype=x.dtype)
    return z.amax(dim) if which == "max" else z.amin(dim)


@reduced.wrong(
    "X-5.8-5",
    "A thousand million is not the end of the numbers, and too much for a small integer. What is neutral depends on "
    "the dtype: infinities for floats, torch.iinfo for integers.",
)
def _(x, mask, which, dim):
    z = x.masked_fill(~mask, {"max": -1e9, "min": 1e9, "prod": 1}[which])
    if which == "prod":
        return z.prod(dim, dtype=x.dtype)
    return z.amax(dim) if which == "max" else z.amin(dim)


@reduced.right
def _(x, mask, which, dim):
    import torch

    from maskedtensor_ref import masked_tensor

    m = masked_tensor(x, mask)
    if which == "prod":
        return m.prod(dim, dtype=x.dtype).to_tensor(1)
    floats = x.is_floating_point()
    if which == "max":
        return m.amax(dim).to_tensor(-torch.inf if floats else torch.iinfo(x.dtype).min)
    return m.amin(dim).to_tensor(torch.inf if floats else torch.iinfo(x.dtype).max)


@reduced.right
def _(x, mask, which, dim):
    import torch

    if which == "prod":
        return torch.prod(torch.where(mask, x, torch.ones_like(x)), dim, dtype=x.dtype)
    if x.is_floating_point():
        edge = -torch.inf if which == "max" else torch.inf
    else:
        edge = torch.iinfo(x.dtype).min if which == "max" else torch.iinfo(x.dtype).max
    filled = torch.where(mask, x, torch.full_like(x, edge))
    return filled.max(dim).values if which == "max" else filled.min(dim).values


# ---- 5.9 ------------------------------------------------------------------------------------------------------------


@exercise(
    "5.9",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-18"],
    needs=["reduced"],
    properties=[no_loops],
    visible=7,
    hints=[
        "The position is one in the whole slice, hidden elements included: else it cannot be used as an index. And if "
        "the smallest number that counts is infinity, a hidden element must not win the tie.",
        "maskedtensor_ref has the answer built in: masked_tensor(x, mask).argmin(dim). It is a MaskedTensor of int64; "
        ".to_tensor(value) makes a plain tensor of it. By hand: fill with infinity, and then look for the first place "
        "that counts and is equal to the smallest.",
        "return masked_tensor(x, ___).argmin(___).to_tensor(0)",
    ],
)
def argmin_of_counted(x, mask, dim):
    return masked_tensor(x, mask).argmin(dim).to_tensor(0)


@argmin_of_counted.cases
def _(rng):
    yield torch.tensor([0.0, 4.0, 2.0, 0.0]), torch.tensor([False, True, True, False]), 0
    yield torch.tensor([5.0, 1.0, 3.0]), torch.tensor([True, False, True]), 0
    yield torch.tensor([9.0, INF]), torch.tensor([False, True]), 0
    yield torch.tensor([[0.0, 8.0], [7.0, 0.0]]), torch.tensor([[False, True], [True, False]]), 1
    yield torch.tensor([NAN, 6.0, 4.0]), torch.tensor([False, True, True]), -1
    yield torch.tensor([-1.0, -5.0, -9.0]), torch.tensor([True, True, False]), 0
    yield torch.tensor([[0.0, 3.0, 1.0], [2.0, 5.0, 0.0]]), torch.tensor([[False, True, True], [True, True, False]]), 0
    yield torch.tensor([2.0]), torch.tensor([True]), 0
    yield torch.tensor([INF, INF, INF]), torch.tensor([False, False, True]), 0
    for _ in range(14):
        m, n, dim = rng.integer(2, 3), rng.integer(2, 4), rng.choice([0, 1])
        mask = rng.mask(m, n)
        mask.select(dim, rng.integer(0, mask.shape[dim] - 1))[...] = True  # in every slice something counts
        x = poisoned(rng.matrix(m, n) - 3, mask, rng.choice([NAN, -INF, 1e30, 0.0]))
        yield x, mask, dim


@argmin_of_counted.wrong(
    "M22",
    "A hidden element won: argmin looked at all of x. What lies under the mask must not take part.",
)
def _(x, mask, dim):
    return x.argmin(dim)


@argmin_of_counted.wrong(
    "M29",
    "The positions are float32: torch.masked.argmin hands them out so, and a float cannot be used as an index (from "
    "2 ** 24 on it is not even exact). An int64 tensor is wanted.",
)
def _(x, mask, dim):
    import torch

    return torch.masked.argmin(x, dim, mask=mask)


@argmin_of_counted.wrong(
    "X-5.9-1",
    "What is hidden was taken for infinity, by you or by the function you called: where the only number that counts is "
    "infinity itself, a hidden element wins the tie. Among equal ones choose by the mask.",
)
def _(x, mask, dim):
    import torch

    return torch.where(mask, x, float("inf")).argmin(dim)


@argmin_of_counted.wrong(
    "M24",
    "You filled with 0, and 0 is smaller than every positive number: the hidden element wins. What is neutral for a "
    "minimum is infinity.",
)
def _(x, mask, dim):
    import torch

    return torch.where(mask, x, 0).argmin(dim)


@argmin_of_counted.wrong(
    "X-5.9-2", "This is the smallest value, not its position. argmin tells where, amin how much.", sample="wrong_copy"
)
def _(x, mask, dim):
    import torch

    return torch.where(mask, x, float("inf")).amin(dim)


@argmin_of_counted.wrong(
    "X-5.9-3",
    "You counted positions among the elements that count. In the whole slice the hidden ones have a place, too, so "
    "your number points to another element.",
)
def _(x, mask, dim):
    import torch

    from maskedtensor_ref import masked_tensor

    found = masked_tensor(x, mask).argmin(dim, keepdim=True).to_tensor(0)
    place = torch.cumsum(mask.long(), dim) - 1  # the first that counts has 0, the next 1
    return place.gather(dim, found).squeeze(dim)


@argmin_of_counted.wrong("X-5.9-4", "This is the position of the largest number. The smallest is wanted.")
def _(x, mask, dim):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(x, mask).argmax(dim).to_tensor(0)


@argmin_of_counted.right
def _(x, mask, dim):
    import torch

    filled = torch.where(mask, x, torch.inf)
    smallest = (filled == filled.amin(dim, keepdim=True)) & mask
    return smallest.int().argmax(dim)


@argmin_of_counted.right
def _(x, mask, dim):
    from maskedtensor_ref import as_masked_tensor

    found = as_masked_tensor(x, mask).argmin(dim=dim)
    return found.get_data() * found.get_mask()


# ---- 5.10 -----------------------------------------------------------------------------------------------------------


@exercise(
    "5.10",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-04", "O-06"],
    properties=[no_loops],
    visible=6,
    hints=[
        "The leak is where plain numbers are taken out of m with get_data: what lies under the mask comes along. Stay "
        "with m itself, whose sum knows what counts.",
        "m.sum(1, keepdim=True) sums what counts. Its mask has another shape than that of m, so m / total is refused; "
        "total.to_tensor(1) makes a plain divisor of it, which counts everywhere.",
        "total = m.sum(1, keepdim=True); return m / total.to_tensor(___)",
    ],
)
def shares(m):
    return m / m.sum(1, keepdim=True).to_tensor(1)


@shares.cases
def _(rng):
    def masked(data, mask):
        return masked_tensor(torch.tensor(data), torch.tensor(mask))

    yield masked([[1.0, 3.0, 5.0]], [[True, True, False]])
    yield masked([[1.0, 3.0], [2.0, 2.0]], [[True, True], [True, True]])
    yield masked([[4.0, NAN], [NAN, NAN]], [[True, False], [False, False]])
    yield masked([[2.0, 1e30, 6.0], [5.0, 5.0, 10.0]], [[True, False, True], [True, True, True]])
    yield masked([[INF, 1.0], [1.0, 1.0]], [[False, True], [True, True]])
    yield masked([[2.0, 4.0], [3.0, 5.0]], [[True, True], [True, False]])
    for _ in range(10):
        rows, columns = rng.integer(1, 3), rng.integer(2, 4)
        mask = some_mask(rng, rows, columns)
        x = rng.integers(rows, columns, low=1, high=8, dtype=torch.float32)
        yield masked_tensor(poisoned(x, mask, rng.choice(POISON)), mask)


@shares.wrong(
    "M22",
    "What is hidden leaked into the totals: get_data() hands out everything that lies in memory, also under the mask. "
    "m.sum knows what counts.",
)
def _(m):
    from maskedtensor_ref import masked_tensor

    data = m.get_data()
    return masked_tensor(data / data.sum(1, keepdim=True), m.get_mask())


@shares.wrong(
    "M29",
    "m and its sum have different masks, and two MaskedTensors must agree in their masks before they may be combined. "
    "Make the total plain with .to_tensor(value).",
)
def _(m):
    return m / m.sum(1, keepdim=True)


@shares.wrong(
    "X-5.10-1",
    "Multiplying the data by the mask removes ordinary numbers and leaves NaN and infinity: 0 * NaN is NaN. Sum m "
    "itself.",
)
def _(m):
    from maskedtensor_ref import masked_tensor

    data = m.get_data() * m.get_mask()
    return masked_tensor(data / data.sum(1, keepdim=True), m.get_mask())


@shares.wrong(
    "X-5.10-2",
    "This is a plain tensor: the caller can no longer tell a share of 0 from one that is missing. Hand out a "
    "MaskedTensor under the mask of m.",
)
def _(m):
    x = m.to_tensor(0)
    return x / x.sum(1, keepdim=True).clamp(min=1e-30)


@shares.wrong(
    "X-5.10-3",
    "Your result specifies everything, also what m does not: filled zeros have become data. The mask of m has to stay.",
)
def _(m):
    import torch

    from maskedtensor_ref import masked_tensor

    x = m.to_tensor(0)
    return masked_tensor(x / m.sum(1, keepdim=True).to_tensor(1), torch.ones_like(x, dtype=torch.bool))


@shares.wrong("X-5.10-4", "Each row has its own total: sum over dimension 1, with keepdim, not over everything.")
def _(m):
    return m / m.sum().to_tensor(1)


@shares.wrong(
    "X-5.10-5",
    "Every hidden element was counted as 1 in the total: you filled before you summed. Sum first, then fill.",
)
def _(m):
    return m / m.to_tensor(1).sum(1, keepdim=True)


@shares.wrong(
    "X-5.10-6",
    "The totals lost their dimension: a row of them lies across the columns, and each element is divided by the "
    "total of another row. Sum with keepdim=True.",
)
def _(m):
    return m / m.to_tensor(0).sum(1)


@shares.wrong(
    "X-5.10-7",
    "You wrote into m: the readings of the caller are gone. Make a new tensor, m / total.",
)
def _(m):
    m /= m.to_tensor(0).sum(1, keepdim=True)
    return m


@shares.wrong(
    "M14",
    "These are shares of the totals of the columns. Along a row runs dimension 1.",
)
def _(m):
    return m / m.sum(0, keepdim=True).to_tensor(1)


@shares.right
def _(m):
    from maskedtensor_ref import masked_tensor

    x = m.to_tensor(0)
    total = x.sum(1, keepdim=True)
    return masked_tensor(x / total.masked_fill(total == 0, 1), m.get_mask())


@shares.right
def _(m):
    from maskedtensor_ref import mask_policy

    with mask_policy("intersection"):
        return m / m.sum(dim=1, keepdim=True)


# ---- 5.11 -----------------------------------------------------------------------------------------------------------


@exercise(
    "5.11",
    points=5,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["O-06", "O-07"],
    needs=["sum_without_nan", "mean_and_variance"],
    gradient=True,
    properties=[gradient, finite_gradient, no_loops],
    tolerance=NEAR,
    visible=8,
    hints=[
        "A target that is missing must take no part in the difference already, or its NaN comes back with the "
        "gradient. And the mean is over the targets that are there.",
        "Choose with where before subtracting: where nothing is known, put prediction.detach() or 0 in place of the "
        "target and take the difference out with a second where. Divide the sum by mask.sum().clamp(min=1), so that a "
        "batch without targets gives 0.",
        "known = torch.where(mask, target, 0); error = torch.where(mask, prediction - ___, 0); return (error ** "
        "2).sum() / mask.sum().clamp(min=___)",
    ],
)
def masked_mse(prediction, target, mask):
    error = torch.where(mask, prediction - torch.where(mask, target, 0), 0)
    return (error**2).sum() / mask.sum().clamp(min=1)


@masked_mse.cases
def _(rng):
    yield asking(torch.tensor([1.0, 2.0])), torch.tensor([3.0, NAN]), torch.tensor([True, False])
    yield asking(torch.tensor([1.0, 2.0])), torch.tensor([0.0, 4.0]), torch.tensor([True, True])
    yield asking(torch.tensor([1.0, 2.0])), torch.tensor([NAN, NAN]), torch.tensor([False, False])
    yield asking(torch.tensor([1.0, 5.0, 2.0])), torch.tensor([0.0, 1e30, 2.0]), torch.tensor([True, False, True])
    yield asking(torch.tensor([[1.0], [3.0]])), torch.tensor([[INF], [1.0]]), torch.tensor([[False], [True]])
    yield asking(torch.tensor([2.0, 4.0, 8.0])), torch.tensor([7.0, 0.0, 7.0]), torch.tensor([False, True, True])
    yield asking(torch.tensor([NAN, 1.0])), torch.tensor([1.0, 0.5]), torch.tensor([False, True])
    yield torch.tensor([NAN, 1.0]), torch.tensor([1.0, 0.5]), torch.tensor([True, False])  # it counts
    yield asking(torch.tensor([])), torch.tensor([]), torch.zeros(0, dtype=torch.bool)
    yield asking(torch.tensor(3.0, dtype=torch.float64)), torch.tensor(1.0, dtype=torch.float64), torch.tensor(True)
    for _ in range(14):
        m, n = rng.integer(1, 3), rng.integer(2, 4)
        mask = some_mask(rng, m, n)
        yield asking(rng.normal(m, n)), poisoned(rng.normal(m, n), mask, rng.choice(POISON)), mask


@masked_mse.wrong(
    "M21",
    "The value is right, the gradient is NaN: the difference with the missing target was computed, and hidden only "
    "afterwards. Put something harmless in place of the target before you subtract.",
)
def _(prediction, target, mask):
    import torch

    squares = (prediction - target) ** 2
    return torch.where(mask, squares, 0).sum() / mask.sum().clamp(min=1)


@masked_mse.wrong(
    "M22",
    "NaN times 0 is NaN: multiplying by the mask does not hide a missing target. Choose with where, before subtracting.",
)
def _(prediction, target, mask):
    return ((prediction - target) ** 2 * mask).sum() / mask.sum().clamp(min=1)


@masked_mse.wrong(
    "X-5.11-1",
    "You divided by the number of all targets. The fewer are known, the smaller your loss becomes, and the smaller "
    "every step: divide by how many are there.",
)
def _(prediction, target, mask):
    import torch

    error = torch.where(mask, prediction - torch.where(mask, target, 0), 0)
    return (error**2).sum() / max(mask.numel(), 1)


@masked_mse.wrong(
    "M24",
    "A missing target was taken for 0, and pulls the prediction towards 0. Missing is not zero: take it out of the "
    "sum and of the count.",
)
def _(prediction, target, mask):
    import torch

    error = prediction - torch.where(mask, target, 0)
    return (error**2).sum() / max(mask.numel(), 1)


@masked_mse.wrong(
    "X-5.11-2",
    "A batch in which every target is missing gives NaN: the mean of nothing. Sum, and divide by at least 1; then the "
    "loss is 0 and moves nothing.",
)
def _(prediction, target, mask):
    return ((prediction[mask] - target[mask]) ** 2).mean()


@masked_mse.wrong(
    "M20",
    "For a batch without targets you return a constant that is not connected to the prediction: it has no gradient, "
    "and backward() fails on it. A gradient of 0 is wanted.",
)
def _(prediction, target, mask):
    import torch

    if not mask.any():
        return torch.zeros((), dtype=prediction.dtype, device=prediction.device)
    return ((prediction[mask] - target[mask]) ** 2).mean()


@masked_mse.wrong(
    "M29",
    "The prediction got a *masked* gradient, because it went through as_masked_tensor. A plain one is asked for, which "
    "every optimiser takes: stay with plain tensors and where.",
)
def _(prediction, target, mask):
    from maskedtensor_ref import as_masked_tensor, masked_tensor

    error = as_masked_tensor(prediction, mask) - masked_tensor(target, mask)
    return (error**2).mean().to_tensor(0)


@masked_mse.wrong("X-5.11-3", "This is the sum of the squares. Divide it by how many targets are there.")
def _(prediction, target, mask):
    import torch

    error = torch.where(mask, prediction - torch.where(mask, target, 0), 0)
    return (error**2).sum()


@masked_mse.wrong(
    "X-5.11-4",
    "Where no target is known you trusted the difference to be harmless. The prediction may be NaN or infinite there, and "
    "then the difference is NaN, whatever stands in place of the target: choose the difference by the mask as well.",
)
def _(prediction, target, mask):
    import torch

    target = torch.where(mask, target, prediction.detach())
    return ((prediction - target) ** 2).sum() / mask.sum().clamp(min=1)


@masked_mse.wrong(
    "X-5.11-5",
    "You turned every NaN into 0, also one that counts, and a broken prediction looks like a perfect one. Only a "
    "batch without targets has the loss 0: say so by the mask.",
)
def _(prediction, target, mask):
    return ((prediction[mask] - target[mask]) ** 2).mean().nan_to_num(0)


@masked_mse.wrong(
    "X-5.11-6",
    "The missing targets take part, and their NaN with them. What is not known has to be left out of the sum, and "
    "of the count.",
)
def _(prediction, target, mask):
    return ((prediction - target) ** 2).mean()


@masked_mse.right
def _(prediction, target, mask):
    errors = prediction[mask] - target[mask]
    return errors.square().sum() / max(errors.numel(), 1)


@masked_mse.right
def _(prediction, target, mask):
    import torch

    prediction = torch.where(mask, prediction, 0)
    filled = torch.where(mask, target, prediction.detach())
    total = torch.nn.functional.mse_loss(prediction, filled, reduction="sum")
    return total / torch.count_nonzero(mask).clamp(min=1)


# ---- 5.12 -----------------------------------------------------------------------------------------------------------


@exercise(
    "5.12",
    points=5,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["O-05"],
    properties=[no_loops],
    visible=6,
    hints=[
        "A row of m is a view: what is written to it in place shows in m. But a write may not change which elements are "
        "specified, so what you write needs the mask of the row. The second result specifies more than m, so it has "
        "to be a new tensor.",
        "In place: m[i] = something under the mask of the row, masked_tensor(values, m[i].get_mask()). New: "
        "torch.where(rows, a, b) takes value and mask from the side it chooses; rows is a bool tensor that is True in "
        "row i (mind a negative i), and a plain tensor specifies everything.",
        "m[i] = masked_tensor(values, m[i].get_mask()); rows = torch.zeros(m.shape, dtype=torch.bool, device=m.device); rows[i] = ___; "
        "return torch.where(rows, ___.expand(m.shape), m)",
    ],
)
def write_row(m, i, values):
    m[i] = masked_tensor(values, m[i].get_mask())
    rows = torch.zeros(m.shape, dtype=torch.bool, device=m.device)
    rows[i] = True
    return torch.where(rows, values.expand(m.shape), m)


@write_row.cases
def _(rng):
    def masked(data, mask):
        return masked_tensor(torch.tensor(data), torch.tensor(mask))

    yield masked([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]]), 0, torch.tensor([7.0, 8.0])
    yield masked([[1.0, 2.0], [3.0, NAN]], [[True, True], [True, False]]), 0, torch.tensor([7.0, 8.0])
    yield masked([[1.0, NAN], [3.0, 4.0]], [[True, False], [True, True]]), -2, torch.tensor([5.0, 6.0])
    yield masked([[1.0, 2.0, 3.0]], [[False, False, False]]), 0, torch.tensor([7.0, 8.0, 9.0])
    yield masked([[1, 2], [3, 4], [5, 6]], [[True, True], [False, True], [True, False]]), 1, torch.tensor([0, -1])
    yield masked([[INF, 2.0], [NAN, 4.0]], [[False, True], [False, True]]), -1, torch.tensor([0.0, 0.5])
    for _ in range(12):
        rows, columns = rng.integer(2, 4), rng.integer(2, 4)
        mask = some_mask(rng, rows, columns)
        data = poisoned(rng.matrix(rows, columns), mask, rng.choice(POISON))
        yield masked_tensor(data, mask), rng.integer(-rows, rows - 1), rng.normal(columns) + 100


@write_row.wrong(
    "M01",
    "m is as before: what was written to was a copy, or nothing was written at all. A row of m is a view; assign to "
    "m[i] itself.",
)
def _(m, i, values):
    import torch

    from maskedtensor_ref import masked_tensor

    row = m[i].clone()
    row.copy_(masked_tensor(values, row.get_mask()))
    rows = torch.zeros(m.shape, dtype=torch.bool, device=m.device)
    rows[i] = True
    return torch.where(rows, values.expand(m.shape), m)


@write_row.wrong(
    "M29",
    "A plain tensor specifies everything, so writing it into a row with hidden elements would change which elements "
    "are specified, and that is refused. Write something that carries the mask of the row.",
)
def _(m, i, values):
    import torch

    m[i] = values
    rows = torch.zeros(m.shape, dtype=torch.bool, device=m.device)
    rows[i] = True
    return torch.where(rows, values.expand(m.shape), m)


@write_row.wrong(
    "X-5.12-1",
    "The write in place is right, but you hand out m itself, in which the row still has its hidden elements. The "
    "result specifies the whole row, so it must be a new tensor.",
)
def _(m, i, values):
    from maskedtensor_ref import masked_tensor

    m[i] = masked_tensor(values, m[i].get_mask())
    return m


@write_row.wrong(
    "M22",
    "In your result the other rows are fully specified, too: what lay hidden under their mask has become data. Only row "
    "i is filled; for the rest the mask of m holds.",
)
def _(m, i, values):
    import torch

    from maskedtensor_ref import masked_tensor

    m[i] = masked_tensor(values, m[i].get_mask())
    data = m.get_data().clone()
    data[i] = values
    return masked_tensor(data, torch.ones(m.shape, dtype=torch.bool, device=m.device))


@write_row.wrong(
    "X-5.12-2",
    "Comparing with range(n) misses a negative i: no row is numbered -1. Index with i instead, as in rows[i] = True.",
)
def _(m, i, values):
    import torch

    from maskedtensor_ref import masked_tensor

    m[i] = masked_tensor(values, m[i].get_mask())
    rows = (torch.arange(m.shape[0], device=m.device) == i)[:, None].expand(m.shape)
    return torch.where(rows, values.expand(m.shape), m)


@write_row.wrong("X-5.12-3", "You wrote into every row. Only row i is to change.")
def _(m, i, values):
    import torch

    from maskedtensor_ref import masked_tensor

    for row in range(m.shape[0]):
        m[row] = masked_tensor(values, m[row].get_mask())
    rows = torch.zeros(m.shape, dtype=torch.bool, device=m.device)
    rows[i] = True
    return torch.where(rows, values.expand(m.shape), m)


@write_row.wrong(
    "X-5.12-4",
    "This is a plain tensor. In the other rows something may be hidden, and the result has to say so: hand out a "
    "MaskedTensor.",
)
def _(m, i, values):
    from maskedtensor_ref import masked_tensor

    m[i] = masked_tensor(values, m[i].get_mask())
    result = m.to_tensor(0).clone()
    result[i] = values
    return result


@write_row.wrong(
    "X-5.12-5",
    "The mask of the result is right, and what stands in row i is not: where m hides something, the write in place "
    "left the old number, and now it shows. Put the values themselves into the whole row of the result.",
)
def _(m, i, values):
    from maskedtensor_ref import masked_tensor

    m[i] = masked_tensor(values, m[i].get_mask())
    mask = m.get_mask().clone()
    mask[i] = True
    return masked_tensor(m.get_data(), mask)


@write_row.right
def _(m, i, values):
    from maskedtensor_ref import masked_tensor

    m[i].copy_(masked_tensor(values, m[i].get_mask()))
    data, mask = m.get_data().clone(), m.get_mask().clone()
    data[i], mask[i] = values, True
    return masked_tensor(data, mask)


@write_row.right
def _(m, i, values):
    import torch

    from maskedtensor_ref import as_masked_tensor

    m[i][m[i].get_mask()] = values[m[i].get_mask()]
    whole = as_masked_tensor(values, torch.ones_like(values, dtype=torch.bool))
    i = i % m.shape[0]
    return torch.cat([m[:i], whole[None], m[i + 1 :]])


# ---- predictions ----------------------------------------------------------------------------------------------------

PREDICTIONS = (
    prediction(
        "R1",
        "In which of these does a NaN on the side that is *not* chosen reach the result? `c` is a bool tensor.",
        {
            "a": ("`c * x + ~c * y`", "Right: 0 times NaN is NaN. Multiplying is not choosing."),
            "b": ("`torch.where(c, x, y)`", "where chooses: what is not chosen cannot reach the result."),
            "c": ("in both", "where chooses, it does not compute with the other side. Its gradient is another matter."),
        },
        "a",
    ),
    prediction(
        "R2",
        "`x` has shape (2, 3) and `m` is a bool tensor of that shape with four True. What is `x[m]`?",
        {
            "a": ("a view of shape (2, 3)", "A mask picks elements that no stride can describe, so they are copied."),
            "b": ("a copy of shape (4,)", "Right: the elements that are picked, one after another, in new memory."),
            "c": ("x with zeros elsewhere", "That is torch.where(m, x, 0). Indexing keeps nothing of the rest."),
        },
        "b",
    ),
    prediction(
        "R3",
        "Somewhere on the way back the slope is 0, and the next slope is infinite. What arrives?",
        {
            "a": ("0", "On paper there is no such product; in floating point 0 times infinity is NaN."),
            "b": ("infinity", "The two do not compete: 0 times infinity is NaN."),
            "c": ("NaN", "Right. That is how a fine value gets a broken gradient, and it will happen all day today."),
        },
        "c",
    ),
    prediction(
        "P1",
        "`y = torch.where(x < 0, torch.exp(x), 1)`, then `y.sum().backward()`. What is `x.grad` at x = -10, 0 and 90?",
        {
            "a": (
                "4.5e-05, 0, 0",
                "So it should be. But exp(90) was computed, it is infinite, and 0 times infinity came back.",
            ),
            "b": (
                "4.5e-05, 0, NaN",
                "Right: at 0 the constant is chosen, a true zero. At 90 the same zero meets an infinite slope.",
            ),
            "c": (
                "4.5e-05, 1, 0",
                "At x = 0 the constant is chosen, whose slope is 0. And at 90 an infinite slope gets in the way.",
            ),
            "d": ("NaN everywhere", "Elements do not disturb one another here: only where exp overflows is it NaN."),
        },
        "b",
    ),
    prediction(
        "P2",
        "`a = [1, 2, NaN]`, `b = 1` asks for its gradient. `torch.nansum(a * b)` skips the NaN. What do value and gradient "
        "of b say?",
        {
            "a": (
                "value 3, gradient 3",
                "The value is 3. But the gradient of b is a sum over all of a, and 0 times NaN is in it.",
            ),
            "b": (
                "value 3, gradient NaN",
                "Right: nansum sends 0 back to the NaN, and the product multiplies that 0 by the NaN of a.",
            ),
            "c": ("value NaN, gradient NaN", "The value is fine: nansum leaves the NaN out."),
        },
        "b",
    ),
    prediction(
        "P3",
        "`nn.MultiheadAttention` on a sequence that is all padding. When does NaN come out?",
        {
            "a": (
                "only with `need_weights=True`",
                "Right: that path uses a plain softmax. The other one uses a newer routine, which gives 0 for such a row.",
            ),
            "b": (
                "only with `need_weights=False`",
                "The other way round: without the weights a newer routine is used, and it gives 0 for such a row.",
            ),
            "c": ("always", "It used to be so. One of the two paths has learnt to give 0."),
            "d": ("never", "One of the two paths has learnt to give 0. The other has not."),
        },
        "a",
    ),
    prediction(
        "P4",
        "`torch.mean` of a MaskedTensor in which everything is masked: what comes out?",
        {
            "a": ("nan", "That is what torch.nanmean says. It could mean anything: nothing there, or a broken number."),
            "b": ("0", "A sum of nothing may be 0. A mean of nothing is not a number at all."),
            "c": ("an error", "No: an empty slice among a thousand full ones must not stop the computation."),
            "d": (
                "a masked number, printed as `--`",
                "Right: it is marked as unspecified, and stays so in what is computed from it.",
            ),
        },
        "d",
    ),
    prediction(
        "P5",
        "With `torch.masked`, PyTorch's own prototype: `mt[0][0] = 9`. What does `mt` show afterwards?",
        {
            "a": ("9 in the first place", "So a plain tensor would do. There, mt[0] is a copy, and the 9 is lost."),
            "b": (
                "its old value, and no error",
                "Right: mt[0] is a copy in that prototype. Nothing is written, and nothing is said.",
            ),
            "c": ("an error", "That would be better than what happens: nothing, in silence."),
        },
        "b",
    ),
)
