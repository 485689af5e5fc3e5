"""The exercises of lecture 03, functions of numbers: references, cases, wrong and right answers, predictions."""

import torch

from autograder.exercises import exercise, prediction, written
from autograder.properties import (
    device_agnostic,
    finite_gradient,
    gradient,
    no_loops,
    no_warnings,
    same_plot,
    same_sharing,
)

NEAR = (2e-5, 1e-5)  # two orders of the same float32 operations differ by this much at most


def asking(t):
    """The same tensor, as one whose gradient is wanted."""
    return t.requires_grad_()


# ---- 3.1 ------------------------------------------------------------------------------------------------------------


@exercise(
    "3.1",
    points=2,
    minutes=5,
    stars=1,
    concepts=["L-24"],
    properties=[same_sharing],
    visible=6,
    hints=[
        "Two of the three ways make a new tensor and leave x alone; the third writes into x. In which order can you "
        "do all three, so that each of them still sees the old numbers?",
        "The function stands in torch, the method belongs to the tensor, and the name of the method that writes in "
        "place ends in an underscore. Python evaluates a tuple from left to right.",
        "first = torch.___(x); second = x.___(); third = x.___(), with an underscore; then return the three, in this "
        "order.",
    ],
)
def log_three_ways(x):
    by_function = torch.log(x)
    by_method = x.log()
    return by_function, by_method, x.log_()


@log_three_ways.cases
def _(rng):
    yield torch.tensor([1.0, 10.0, 100.0])
    yield torch.tensor([1, 2, 4])  # integers: in place, there is no room for the result
    yield torch.tensor([[0.0, -1.0], [float("inf"), 0.5]])
    yield (rng.matrix(3, 2) + 1).t()
    yield torch.tensor(2.0, dtype=torch.float64)
    yield torch.arange(1, 7, dtype=torch.float32).view(2, 3)[:, ::2]  # the rest of its storage stays as it is
    yield torch.tensor([])
    yield torch.tensor([True, False])
    yield torch.tensor([0.5, 3.0]).expand(2, 2)  # two elements in one place: no write in place
    for _ in range(8):
        yield rng.matrix(rng.integer(1, 4), rng.integer(1, 4), dtype=rng.choice([torch.float32, torch.float64])) + 1


@log_three_ways.wrong(
    "X-3.1-1",
    "The write in place came too early: after x.log_() the numbers of x are gone, so what you compute from x then is "
    "the logarithm of the logarithm. Do the harmless ways first.",
)
def _(x):
    import torch

    in_place = x.log_()
    return torch.log(x), x.log(), in_place


@log_three_ways.wrong(
    "X-3.1-2",
    "The third result is right in its numbers, but it was written into a copy: x itself is as before. In place means "
    "in the memory of x, without clone().",
    sample="wrong_copy",
)
def _(x):
    import torch

    return torch.log(x), x.log(), x.clone().log_()


@log_three_ways.wrong(
    "X-3.1-3",
    "All three results are x itself: one tensor under three names. The function and the method without an underscore "
    "give new tensors.",
)
def _(x):
    result = x.log_()
    return result, result, result


@log_three_ways.wrong(
    "X-3.1-4", "This is the logarithm to base 10. torch.log is the natural logarithm, the inverse of torch.exp."
)
def _(x):
    import torch

    return torch.log10(x), x.log10(), x.log10_()


@log_three_ways.wrong(
    "X-3.1-5",
    "None of your three ways works in place: x is as before. torch.log(x) and x.log() are the same thing; the third "
    "needs the method with the underscore.",
)
def _(x):
    import torch

    return torch.log(x), x.log(), torch.log(x)


@log_three_ways.wrong(
    "X-3.1-6",
    "You made floats of the input first. A tensor of integers has no room for its logarithms, and the error that torch "
    "raises then is the answer that is wanted: let it come.",
)
def _(x):
    import torch

    x = x if x.is_floating_point() else x.float()
    return torch.log(x), x.log(), x.log_()


@log_three_ways.wrong(
    "X-3.1-7",
    "The results stand in another order than asked, and the write in place came first: what is computed after it sees "
    "the logarithms. Function, method, in place: in this order nothing is lost.",
)
def _(x):
    import torch

    return x.log_(), torch.log(x), x.log()


@log_three_ways.right
def _(x):
    import torch

    first = x.log()
    second = torch.Tensor.log(x)
    torch.log(x, out=x)
    return first, second, x


@log_three_ways.right
def _(x):
    import torch

    return [torch.log(x), x.log(), torch.log_(x)]


# ---- 3.2 ------------------------------------------------------------------------------------------------------------


@exercise(
    "3.2",
    points=2,
    minutes=5,
    stars=1,
    concepts=["L-25"],
    properties=[no_loops],
    visible=6,
    hints=[
        "Choosing is not computing: multiplying by 0 and 1 lets NaN through, because 0 times NaN is NaN.",
        "torch.where takes a condition and the two sides. A side may be a tensor or a plain number; shapes are "
        "broadcast, and the dtype becomes one that holds both.",
        "return torch.where(condition, ___, ___), and add nothing to it: no .float(), no .to().",
    ],
)
def choose(condition, x, y):
    return torch.where(condition, x, y)


@choose.cases
def _(rng):
    nan, inf = float("nan"), float("inf")
    yield torch.tensor([True, False, True]), torch.tensor([1, 2, 3]), torch.tensor([0.5, 1.5, 2.5])
    yield torch.tensor([True, False]), torch.tensor([1.0, nan]), torch.tensor([inf, 4.0])
    yield torch.tensor([[True], [False]]), torch.tensor([7, 8]), -1
    yield torch.tensor([True, False]), torch.tensor([1.0, 2.0], dtype=torch.float16), 0.5
    yield torch.tensor([False, True]), 1, 2.5
    yield torch.tensor([False, False]), torch.tensor([3, 4], dtype=torch.int32), torch.tensor([5, 6])
    yield torch.tensor(True), torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([3, 4])
    yield torch.tensor([], dtype=torch.bool), torch.tensor([]), 0
    yield torch.tensor([True, False]), torch.tensor([True, True]), torch.tensor([0.25, 0.5])
    kinds = [torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]
    for _ in range(12):
        m, n = rng.integer(1, 3), rng.integer(1, 4)
        yield rng.mask(m, n), rng.integers(m, n, dtype=rng.choice(kinds)), rng.integers(1, n, dtype=rng.choice(kinds))


@choose.wrong(
    "X-3.2-1",
    "NaN or infinity came over from the side that was not chosen: 0 times NaN is NaN. Choosing is not computing; let "
    "torch.where choose.",
)
def _(condition, x, y):
    return condition * x + ~condition * y


@choose.wrong("X-3.2-2", "The two sides are exchanged: where the condition is True, x is wanted.")
def _(condition, x, y):
    import torch

    return torch.where(condition, y, x)


@choose.wrong(
    "X-3.2-3",
    "The result has the dtype of x, and numbers of y that do not fit into it were cut. The dtype has to hold both "
    "sides; torch.where finds it.",
)
def _(condition, x, y):
    import torch

    return torch.where(condition, x, y).to(torch.as_tensor(x).dtype)


@choose.wrong(
    "X-3.2-4",
    "The result is always float32. Leave the dtype to torch.where: it takes the smallest change that holds both sides.",
)
def _(condition, x, y):
    import torch

    return torch.where(condition, x, y).float()


@choose.wrong(
    "X-3.2-5",
    "One side was taken whole. Python's own `if ... else` asks one question for everything; torch.where asks at every "
    "place.",
)
def _(condition, x, y):
    import torch

    return torch.as_tensor(x if condition.any() else y)


@choose.wrong(
    "X-3.2-6",
    "These are the positions at which the condition is True. torch.where with one argument finds places; with three it "
    "chooses.",
)
def _(condition, x, y):
    import torch

    return torch.where(condition)


@choose.wrong(
    "X-3.2-7",
    "A plain number adapts to the dtype of the other side, a tensor made of it does not: float16 beside a float32 "
    "tensor becomes float32. Give the number to torch.where as it is.",
)
def _(condition, x, y):
    import torch

    x, y = (v if isinstance(v, torch.Tensor) else torch.full(condition.shape, v) for v in (x, y))
    return torch.where(condition, x, y)


@choose.wrong(
    "X-3.2-8", "Only the chosen elements of x are there. Both sides are wanted, at the shape of all three together."
)
def _(condition, x, y):
    import torch

    return torch.as_tensor(x).expand(condition.shape)[condition]


@choose.right
def _(condition, x, y):
    import torch

    dtype = torch.result_type(x, y)
    device = condition.device
    x, y = torch.as_tensor(x, dtype=dtype, device=device), torch.as_tensor(y, dtype=dtype, device=device)
    condition, x, y = torch.broadcast_tensors(condition, x, y)
    result = y.clone()
    result[condition] = x[condition]
    return result


@choose.right
def _(condition, x, y):
    import torch

    return torch.where(~condition, y, x)


# ---- 3.3 ------------------------------------------------------------------------------------------------------------


@exercise(
    "3.3",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-28", "L-29"],
    gradient=True,
    properties=[gradient, finite_gradient, no_loops],
    tolerance=NEAR,
    visible=8,
    hints=[
        "A wider step is the same step seen from farther away: the numbers on the x axis have to shrink before the "
        "sigmoid sees them.",
        "Divide x by tau, then take torch.sigmoid, whose gradient is finite everywhere. For the check: tau may be a "
        "number or a tensor; torch.as_tensor makes a tensor of both, and .any() tells whether one element is bad.",
        "if (torch.as_tensor(tau) <= ___).any(): raise ValueError(...), and then torch.sigmoid(x / ___).",
    ],
)
def sigmoid_tau(x, tau):
    if (torch.as_tensor(tau) <= 0).any():
        raise ValueError(f"tau is {tau}; a temperature is above 0")
    return torch.sigmoid(x / tau)


@sigmoid_tau.cases
def _(rng):
    yield asking(torch.tensor([-2.0, 0.0, 2.0])), 0.5
    yield asking(torch.tensor([-1.0, 0.0, 3.0])), 1.0
    yield torch.tensor([1.0, 2.0]), 0
    yield torch.tensor([1.0, 2.0]), -1.0
    yield asking(torch.tensor([-100.0, 100.0])), 1.0  # exp(100) is infinite in float32
    yield asking(torch.tensor([[-1.0, 2.0]])), torch.tensor([[0.5], [4.0]])
    yield torch.tensor([1.0, 2.0]), torch.tensor([1.0, -2.0])
    yield torch.tensor([-3, 0, 3]), 2
    yield torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0])
    yield asking(torch.tensor([[0.5, -0.5], [1.0, 2.0]]).t()), asking(torch.tensor([0.5, 2.0]))
    yield torch.tensor([]), 3.0
    yield asking(torch.tensor(0.25, dtype=torch.float64)), 0.25
    yield torch.tensor([float("-inf"), float("inf")]), 4.0
    for _ in range(12):
        yield asking(rng.normal(rng.integer(1, 3), rng.integer(1, 4)) * 4), rng.choice([0.25, 0.5, 2.0, 4.0])


@sigmoid_tau.wrong(
    "X-3.3-1",
    "It goes the other way: a larger tau makes your step steeper. Dividing x by a large tau moves the numbers "
    "together, and that is what makes the step wide.",
)
def _(x, tau):
    import torch

    if (torch.as_tensor(tau) <= 0).any():
        raise ValueError
    return torch.sigmoid(x * tau)


@sigmoid_tau.wrong(
    "X-3.3-2",
    "You divided the result, so the curve ends at 1 / tau instead of 1. The temperature belongs inside the sigmoid.",
)
def _(x, tau):
    import torch

    if (torch.as_tensor(tau) <= 0).any():
        raise ValueError
    return torch.sigmoid(x) / tau


@sigmoid_tau.wrong(
    "M15",
    "The values are right, but the gradient is NaN where x / tau is far below 0: exp(-x / tau) is infinite there, and "
    "infinity times 0 is NaN. torch.sigmoid is built so that this does not happen.",
)
def _(x, tau):
    import torch

    if (torch.as_tensor(tau) <= 0).any():
        raise ValueError
    return 1 / (1 + torch.exp(-x / tau))


@sigmoid_tau.wrong(
    "X-3.3-3",
    "A tau of 0 or below has to raise a ValueError. Without one, 0 gives NaN, and a negative tau turns the curve "
    "round.",
)
def _(x, tau):
    import torch

    return torch.sigmoid(x / tau)


@sigmoid_tau.wrong(
    "X-3.3-4",
    "`if tau <= 0` cannot decide for a tensor of several numbers: one question, several answers. Say whether any of "
    "them is bad.",
)
def _(x, tau):
    import torch

    if tau <= 0:
        raise ValueError
    return torch.sigmoid(x / tau)


@sigmoid_tau.wrong("X-3.3-5", "0 is no temperature either: x / 0 is infinite or NaN. Refuse 0, too.")
def _(x, tau):
    import torch

    if (torch.as_tensor(tau) < 0).any():
        raise ValueError
    return torch.sigmoid(x / tau)


@sigmoid_tau.wrong(
    "X-3.3-6",
    "A negative tau was repaired in silence. Whoever passes one has made a mistake and wants to know: raise a "
    "ValueError.",
)
def _(x, tau):
    import torch

    tau = torch.as_tensor(tau).abs()
    if (tau == 0).any():
        raise ValueError
    return torch.sigmoid(x / tau)


@sigmoid_tau.wrong(
    "X-3.3-7", "You refuse only if every element of tau is bad. One is enough: .any() instead of .all()."
)
def _(x, tau):
    import torch

    if (torch.as_tensor(tau) <= 0).all():
        raise ValueError
    return torch.sigmoid(x / tau)


@sigmoid_tau.wrong(
    "X-3.3-8",
    "The values are right, but the result has lost its connection to x: no gradient comes back. Stay with tensors all "
    "the way, without detach(), tolist() or torch.tensor(...).",
)
def _(x, tau):
    import torch

    if (torch.as_tensor(tau) <= 0).any():
        raise ValueError
    return torch.sigmoid(x.detach() / tau)


@sigmoid_tau.right
def _(x, tau):
    import torch

    if not bool(torch.all(torch.as_tensor(tau) > 0)):
        raise ValueError("tau must be positive")
    return x.div(tau).sigmoid()


@sigmoid_tau.right
def _(x, tau):
    import torch

    smallest = tau.min() if isinstance(tau, torch.Tensor) else tau
    if smallest <= 0:
        raise ValueError("tau must be positive")
    return torch.exp(torch.nn.functional.logsigmoid(x / tau))


# ---- 3.4 ------------------------------------------------------------------------------------------------------------


@exercise(
    "3.4",
    points=2,
    minutes=8,
    stars=2,
    concepts=["L-29"],
    needs=["sigmoid_tau"],
    gradient=True,
    properties=[gradient, finite_gradient],
    tolerance=NEAR,
    visible=6,
    hints=[
        "The sigmoid has its 0.5 where its input is 0. So at x = b its input has to be 0.",
        "Subtract before you call torch.sigmoid, and make a new tensor: -= would write into x.",
        "return torch.sigmoid(x - ___).",
    ],
)
def sigmoid_shift(x, b):
    return torch.sigmoid(x - b)


@sigmoid_shift.cases
def _(rng):
    yield asking(torch.tensor([-1.0, 0.0, 1.0])), 1.0
    yield asking(torch.tensor([-2.0, 0.0, 5.0])), 0
    yield torch.tensor([3.0, 4.0]), 3.0  # nobody asks for the gradient, so a write into x would go unnoticed
    yield asking(torch.tensor([-99.0, 99.0])), -2.0
    yield asking(torch.tensor([[-120.0, 0.5]])), asking(torch.tensor([[1.0], [-1.0]]))
    yield torch.tensor([1, 2, 3]), 2
    yield asking(torch.tensor([0.5, 1.5], dtype=torch.float64)), 1.5
    yield torch.tensor([]), -1.0
    yield asking(rng.matrix(2, 3).t()), 2.5
    for _ in range(12):
        yield asking(rng.normal(rng.integer(1, 3), rng.integer(1, 4)) * 3), rng.integer(-8, 8) / 4


@sigmoid_shift.wrong(
    "X-3.4-1", "It moves the wrong way: your 0.5 is at -b. At x = b the input of the sigmoid has to be 0."
)
def _(x, b):
    import torch

    return torch.sigmoid(x + b)


@sigmoid_shift.wrong(
    "X-3.4-2",
    "You moved the curve down instead of to the right: it no longer runs from 0 to 1. The shift belongs inside the "
    "sigmoid.",
)
def _(x, b):
    import torch

    return torch.sigmoid(x) - b


@sigmoid_shift.wrong("X-3.4-3", "The curve falls where it should rise: x - b, not b - x.")
def _(x, b):
    import torch

    return torch.sigmoid(b - x)


@sigmoid_shift.wrong(
    "M15",
    "The values are right, but the gradient is NaN where x is far below b: exp(b - x) is infinite there. Call "
    "torch.sigmoid instead of writing its formula.",
)
def _(x, b):
    import torch

    return 1 / (1 + torch.exp(-(x - b)))


@sigmoid_shift.wrong(
    "X-3.4-4", "Your function wrote into x: -= changes the tensor of the caller. x - b makes a new one."
)
def _(x, b):
    import torch

    with torch.no_grad():
        x -= b
    return torch.sigmoid(x)


@sigmoid_shift.wrong(
    "X-3.4-5",
    "At b it is 0.5, but only there is it right: adding a constant to the result moves the curve up or down. Shift the "
    "input.",
)
def _(x, b):
    import torch

    return torch.sigmoid(x) - torch.sigmoid(torch.as_tensor(b, dtype=torch.get_default_dtype())) + 0.5


@sigmoid_shift.wrong("X-3.4-6", "b is a place on the x axis, not a factor: subtract it from x.")
def _(x, b):
    import torch

    return torch.sigmoid(x * b)


@sigmoid_shift.right
def _(x, b):
    import torch

    return torch.nn.functional.sigmoid(torch.sub(x, b))


@sigmoid_shift.right
def _(x, b):
    import torch

    return 0.5 * (1 + torch.tanh((x - b) / 2))


# ---- 3.5 ------------------------------------------------------------------------------------------------------------


@exercise(
    "3.5",
    points=5,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["L-28"],
    needs=["choose"],
    gradient=True,
    properties=[gradient, finite_gradient, no_loops],
    forbidden=[
        "sigmoid",
        "Sigmoid",
        "logsigmoid",
        "LogSigmoid",
        "expit",
        "tanh",
        "softmax",
        "Softmax",
        "softplus",
        "Softplus",
        "silu",
        "logaddexp",
        "logit",
        "glu",
        "GLU",
        "Bernoulli",
        "SigmoidTransform",
        "special_expit",
    ],
    visible=8,
    hints=[
        "exp overflows only for large positive inputs. Two formulas give the sigmoid, one with exp(-x) and one with "
        "exp(x): each is safe on one side.",
        "For x >= 0: 1 / (1 + exp(-x)). For x < 0: exp(x) / (1 + exp(x)). where computes both sides and lets NaN from "
        "the unused one into the gradient, so make the *input* of exp harmless first. Mind x = 0: its gradient is "
        "0.25.",
        "positive = x >= 0; z = torch.exp(torch.where(positive, ___, ___)), which is never above 1; then the result is "
        "torch.where(positive, 1 / (1 + z), ___).",
    ],
)
def stable_sigmoid(x):
    positive = x >= 0
    z = torch.exp(torch.where(positive, -x, x))  # at most 1
    return torch.where(positive, 1 / (1 + z), z / (1 + z))


@stable_sigmoid.cases
def _(rng):
    inf = float("inf")
    yield asking(torch.tensor([-1.0, 1.0, 2.0]))
    yield asking(torch.tensor([-100.0]))
    yield asking(torch.tensor([100.0]))
    yield asking(torch.tensor([0.0]))
    yield asking(torch.tensor([-20.0, 12.0], dtype=torch.float16))
    yield asking(torch.tensor([-1000.0, 1000.0]))
    yield asking(torch.tensor([-11.0, 11.0]))
    yield torch.tensor([[-inf, inf], [0.5, -0.5]])
    yield asking(torch.tensor([-800.0, 800.0], dtype=torch.float64))
    yield torch.tensor([])
    yield asking(torch.tensor(3.0))
    yield asking(rng.normal(3, 2).t() * 5)
    yield asking(torch.tensor([-88.0, -89.0, -90.0, 88.0, 89.0, 90.0]))
    for _ in range(12):
        yield asking(rng.normal(rng.integer(1, 3), rng.integer(1, 4)) * rng.choice([1.0, 10.0, 100.0]))


@stable_sigmoid.wrong(
    "M15",
    "The values are right everywhere, and yet the gradient is NaN far below 0: exp(-x) is infinite there, and the "
    "backward pass multiplies it by 0. A finite value does not promise a finite gradient.",
)
def _(x):
    import torch

    return 1 / (1 + torch.exp(-x))


@stable_sigmoid.wrong(
    "X-3.5-1",
    "Far above 0 exp(x) is infinite, and infinity divided by infinity is NaN. This formula is safe only for x below 0.",
)
def _(x):
    import torch

    return torch.exp(x) / (1 + torch.exp(x))


@stable_sigmoid.wrong(
    "X-3.5-2",
    "The values are right, but where computes both sides, and the gradient of the unused side is NaN: 0 times "
    "infinity. Make the input of exp harmless before exp sees it.",
)
def _(x):
    import torch

    return torch.where(x >= 0, 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x)))


@stable_sigmoid.wrong(
    "X-3.5-3",
    "At x = 0 the gradient is wrong: abs has a kink there, and torch takes its slope as 0. The sigmoid's slope at 0 is "
    "0.25. Turn the sign with where instead of abs.",
)
def _(x):
    import torch

    z = torch.exp(-x.abs())
    return torch.where(x >= 0, 1 / (1 + z), z / (1 + z))


@stable_sigmoid.wrong(
    "X-3.5-4",
    "A bound such as 80 is one for float32. In float16 exp(12) is already infinite, and the gradient becomes NaN "
    "again. Use a formula that needs no bound.",
)
def _(x):
    import torch

    return 1 / (1 + torch.exp(-x.clamp(-80, 80)))


@stable_sigmoid.wrong(
    "X-3.5-5",
    "Cutting x off at a small number changes the result there and makes the gradient 0. Choose the formula instead of "
    "changing the input.",
)
def _(x):
    import torch

    return 1 / (1 + torch.exp(-x.clamp(-6, 6)))


@stable_sigmoid.wrong(
    "X-3.5-6",
    "float64 only moves the limit: exp overflows there above 709, and the gradient is NaN again. Choose the formula "
    "by the sign of x.",
)
def _(x):
    import torch

    return (1 / (1 + torch.exp(-x.double()))).to(x.dtype)


@stable_sigmoid.wrong(
    "X-3.5-7", "The task is to build the sigmoid, and this calls a finished one. exp, where and arithmetic are enough."
)
def _(x):
    import torch

    return torch.sigmoid(x)


@stable_sigmoid.wrong(
    "X-3.5-8",
    "tanh is a finished function that hides the difficulty. Build the sigmoid from exp, where and arithmetic.",
)
def _(x):
    import torch

    return 0.5 + 0.5 * torch.tanh(x / 2)


@stable_sigmoid.wrong(
    "X-3.5-9",
    "The numbers are right, but Python computes them one by one, and no gradient finds its way back. Work on the whole "
    "tensor.",
)
def _(x):
    import math

    import torch

    def safe(v):
        return 1 / (1 + math.exp(-v)) if v >= 0 else math.exp(v) / (1 + math.exp(v))

    return torch.tensor([safe(v) for v in x.flatten().tolist()], dtype=x.dtype).view(x.shape)


@stable_sigmoid.right
def _(x):
    import torch

    above, below = x.clamp(min=0), torch.where(x < 0, x, 0)
    grown = torch.exp(below)
    return torch.where(x < 0, grown / (1 + grown), 1 / (1 + torch.exp(-above)))


@stable_sigmoid.right
def _(x):
    import torch

    sign = torch.where(x < 0, -1, 1)
    z = torch.exp(-(x * sign))
    return torch.where(x < 0, z, 1) / (1 + z)


# ---- 3.6 ------------------------------------------------------------------------------------------------------------

SOFTMAXES = (
    "softmax", "Softmax", "log_softmax", "LogSoftmax", "softmin", "Softmin", "gumbel_softmax", "Categorical",
    "OneHotCategorical",
)  # fmt: skip


@exercise(
    "3.6",
    points=4,
    minutes=15,
    stars=2,
    concepts=["L-33"],
    needs=["stable_sigmoid"],
    gradient=True,
    properties=[gradient, finite_gradient, no_loops, device_agnostic],
    forbidden=SOFTMAXES,
    tolerance=(4e-3, 1e-5),  # float16 has three digits, and right answers round in different places
    visible=8,
    hints=[
        "Softmax does not change when the same number is added to a whole slice. Which number makes every exp "
        "harmless?",
        "The largest of the slice: x.amax(dim, keepdim=True). After subtracting it the largest exp is 1. The sum runs "
        "along the same dim, again with keepdim=True, so that the shapes fit for the division.",
        "e = torch.exp(x - x.amax(dim, keepdim=___)); return e / e.sum(___, keepdim=True).",
    ],
)
def my_softmax(x, dim):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@my_softmax.cases
def _(rng):
    inf = float("inf")
    yield asking(torch.tensor([[1.0, 2.0], [3.0, 5.0]])), 1
    yield asking(torch.tensor([[1.0, 2.0, 0.0], [3.0, 5.0, 1.0]])), 0
    yield asking(torch.tensor([1000.0, 999.0])), 0
    yield asking(torch.tensor([[1000.0, 1001.0], [-1000.0, -1001.0]])), 1
    yield torch.tensor([1.0, 2.0, 4.0], dtype=torch.float16), -1
    yield asking(torch.tensor([100.0, 99.0])), 0
    yield torch.tensor([[-inf, 0.0, 1.0], [2.0, -inf, 2.0]]), -1
    yield asking(torch.tensor([[-1000.0, 1000.0, 1000.0]])), 1
    yield asking(rng.normal(2, 3, 2)), 1
    yield torch.tensor([[12.0, 3.0], [1.0, 2.0]], dtype=torch.float16), 1  # exp(12) is infinite in float16
    yield asking(torch.tensor([-1.0, 1.0])), 0  # the sum is 0
    yield asking(torch.tensor([[5.0], [5.0]])), 1
    yield asking(rng.normal(3, 4, dtype=torch.float64).t()), -2
    yield torch.zeros(0, 3), 1
    for _ in range(14):
        shape = [rng.integer(1, 4) for _ in range(rng.integer(1, 3))]
        yield asking(rng.normal(*shape) * rng.choice([1.0, 10.0, 300.0])), rng.integer(-len(shape), len(shape) - 1)


@my_softmax.wrong(
    "X-3.6-1",
    "exp of a large number is infinite, and infinity divided by infinity is NaN. Subtract the largest number of the "
    "slice first; softmax does not change by that.",
)
def _(x, dim):
    import torch

    e = torch.exp(x)
    return e / e.sum(dim, keepdim=True)


@my_softmax.wrong(
    "M16",
    "This divides by the sum and leaves exp out. Negative numbers then give negative shares, and a sum of 0 gives no "
    "result at all.",
)
def _(x, dim):
    return x / x.sum(dim, keepdim=True)


@my_softmax.wrong(
    "M14",
    "The sums are 1 along the wrong dimension. dim names the dimension that is summed over, not the one that stays.",
)
def _(x, dim):
    import torch

    over = [d for d in range(x.dim()) if d != dim % x.dim()] or [0]
    e = torch.exp(x - x.amax(over, keepdim=True))
    return e / e.sum(over, keepdim=True)


@my_softmax.wrong(
    "X-3.6-2",
    "Without keepdim=True the sums lose their dimension, and broadcasting puts them beside the wrong elements (or "
    "fails).",
)
def _(x, dim):
    import torch

    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim)


@my_softmax.wrong(
    "X-3.6-3",
    "You subtract the largest number of the whole tensor. In a slice whose numbers are far below it, every exp "
    "becomes 0, and 0 / 0 is NaN. Take the largest of each slice.",
)
def _(x, dim):
    import torch

    e = torch.exp(x - x.max()) if x.numel() else x
    return e / e.sum(dim, keepdim=True)


@my_softmax.wrong(
    "X-3.6-4",
    "Cutting off large numbers makes them equal: 1000 and 1001 no longer differ. Subtracting keeps their difference.",
)
def _(x, dim):
    import torch

    e = torch.exp(x.clamp(-80, 80) - x.clamp(-80, 80).amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@my_softmax.wrong(
    "X-3.6-5",
    "The mean is not enough: with numbers far apart, the largest is still far above it, and exp overflows. Subtract "
    "the largest.",
)
def _(x, dim):
    import torch

    e = torch.exp(x - x.mean(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@my_softmax.wrong(
    "X-3.6-6",
    "float64 only moves the limit: exp(1000) is infinite there, too. Subtract the largest number of the slice.",
)
def _(x, dim):
    import torch

    e = torch.exp(x.double())
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


@my_softmax.wrong(
    "X-3.6-7",
    "The result has another dtype than x. With the largest number subtracted, float16 needs no help from float32.",
)
def _(x, dim):
    import torch

    e = torch.exp(x.float() - x.float().amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@my_softmax.wrong(
    "X-3.6-8", "The dimension is fixed. Use the argument dim, which may also be negative: -1 is the last one."
)
def _(x, dim):
    import torch

    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


@my_softmax.wrong(
    "X-3.6-9", "This calls a finished softmax. The task is to build it from exp, a sum and one subtraction."
)
def _(x, dim):
    import torch

    return torch.softmax(x, dim)


@my_softmax.wrong(
    "X-3.6-10",
    "The values are right, but no gradient comes back: the result was cut from x. Leave detach() and no_grad() out "
    "(only the number that you subtract may be detached).",
)
def _(x, dim):
    import torch

    e = torch.exp(x.detach() - x.detach().amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@my_softmax.wrong(
    "X-3.6-11",
    "Without keepdim=True the largest numbers and the sums lose their dimension, and broadcasting puts them beside the "
    "wrong elements (or fails). Both need it.",
)
def _(x, dim):
    import torch

    e = torch.exp(x - x.amax(dim))
    return e / e.sum(dim)


@my_softmax.wrong(
    "X-3.6-12",
    "Two things at once: exp of a large number is infinite, and infinity divided by infinity is NaN; and all numbers are "
    "divided by one sum, where each slice along dim needs its own.",
)
def _(x, dim):
    import torch

    e = torch.exp(x)
    return e / e.sum()


@my_softmax.right
def _(x, dim):
    import torch

    return torch.exp(x - torch.logsumexp(x, dim, keepdim=True))


@my_softmax.right
def _(x, dim):
    top = x.detach().max(dim, keepdim=True).values if x.numel() else x.detach().sum(dim, keepdim=True)
    shifted = (x - top).exp()
    return shifted / shifted.sum(dim).unsqueeze(dim)


# ---- 3.7 ------------------------------------------------------------------------------------------------------------


@exercise(
    "3.7",
    points=2,
    minutes=5,
    stars=1,
    concepts=["L-33"],
    needs=["my_softmax"],
    properties=[no_loops],
    visible=5,
    hints=[
        "If each row is to sum to 1, then each row is divided by its own sum. So how many sums are there?",
        "x.sum(dim) makes dimension dim vanish: the sum of each row runs over the columns, so dim is 1. keepdim=True "
        "keeps a size of 1, and the division finds its partner.",
        "dim = 1 if which == 'rows' else ___; return x / x.sum(dim, keepdim=___).",
    ],
)
def normalised(x, which):
    return x / x.sum(1 if which == "rows" else 0, keepdim=True)


@normalised.cases
def _(rng):
    yield torch.tensor([[1.0, 3.0], [2.0, 6.0]]), "rows"
    yield torch.tensor([[1.0, 3.0], [2.0, 6.0]]), "columns"
    yield torch.tensor([[1.0, 2.0, 5.0]]), "rows"
    yield torch.tensor([[1, 1], [3, 1], [4, 2]]), "columns"
    yield torch.tensor([[0.5], [1.5]]), "columns"
    yield rng.matrix(3, 4).t() + 1, "rows"
    yield torch.tensor([[0.25]], dtype=torch.float64), "rows"
    for _ in range(12):
        yield rng.matrix(rng.integer(1, 4), rng.integer(1, 4)) + 1, rng.choice(["rows", "columns"])


@normalised.wrong(
    "M14",
    "Rows and columns are exchanged. dim names the dimension that is summed over and vanishes: the sum of a row runs "
    "over the columns, which are dimension 1.",
)
def _(x, which):
    return x / x.sum(0 if which == "rows" else 1, keepdim=True)


@normalised.wrong(
    "X-3.7-1",
    "The sums have lost their dimension, so broadcasting lines them up with the wrong one. In a square matrix nothing "
    "fails, and the numbers are wrong all the same: keepdim=True.",
)
def _(x, which):
    return x / x.sum(1 if which == "rows" else 0)


@normalised.wrong(
    "X-3.7-6",
    "Rows and columns are exchanged, and the sums have lost their dimension. The sum of a row runs over the columns, which "
    "are dimension 1; with keepdim=True it stays beside its row.",
)
def _(x, which):
    return x / x.sum(0 if which == "rows" else 1)


@normalised.wrong("X-3.7-2", "The whole tensor sums to 1. Each row (or column) has a sum of its own.")
def _(x, which):
    return x / x.sum((0, 1))


@normalised.wrong("X-3.7-3", "The largest number became 1, not the sum: divide by .sum, not by .amax.")
def _(x, which):
    return x / x.amax(1 if which == "rows" else 0, keepdim=True)


@normalised.wrong("M16", "This is softmax. Here the plain shares are asked for: each number divided by the sum.")
def _(x, which):
    import torch

    return torch.softmax(x.float(), 1 if which == "rows" else 0)


@normalised.wrong(
    "X-3.7-4", "The length of each row or column became 1: the root of the sum of squares. Divide by the sum."
)
def _(x, which):
    import torch

    return torch.nn.functional.normalize(x.double(), dim=1 if which == "rows" else 0).to(
        x.dtype if x.is_floating_point() else torch.float32
    )


@normalised.wrong("X-3.7-5", "Rows are always normalised, whatever `which` says.")
def _(x, which):
    return x / x.sum(1, keepdim=True)


@normalised.right
def _(x, which):
    if which == "columns":
        return x / x.sum(0)
    return (x.t() / x.sum(1)).t()


@normalised.right
def _(x, which):
    import torch

    pattern = "ij->i" if which == "rows" else "ij->j"
    total = torch.einsum(pattern, x)
    return x / (total[:, None] if which == "rows" else total[None, :])


# ---- 3.8 ------------------------------------------------------------------------------------------------------------


@exercise(
    "3.8",
    points=4,
    minutes=15,
    stars=2,
    concepts=["L-26", "L-27", "L-32"],
    needs=["choose"],
    gradient=True,
    properties=[gradient, device_agnostic],
    forbidden=[
        "relu",
        "ReLU",
        "relu6",
        "ReLU6",
        "hardtanh",
        "threshold",
        "Threshold",
        "leaky_relu",
        "LeakyReLU",
    ],
    visible=7,
    hints=[
        "A module is a class with a method forward(self, x). One that stores nothing needs no __init__ at all. Write "
        "the formula once, in functional, and let forward call it.",
        "torch.where keeps NaN if you ask the question the right way round: 'is it at most 0?' is False for NaN. "
        "clamp gives a gradient of 1 at 0, where torch's ReLU gives 0.",
        "In functional: return torch.where(x <= 0, ___, ___). In forward: return self.functional(___).",
    ],
)
class MyReLU(torch.nn.Module):
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        return torch.where(x <= 0, 0, x)


@MyReLU.call
def _(MyReLU, x):
    import torch

    module = MyReLU()
    return {
        "module": module(x),
        "functional": MyReLU.functional(x),
        "in Sequential": torch.nn.Sequential(MyReLU(), torch.nn.Flatten(0))(x),
        "state_dict": list(module.state_dict()),
    }


@MyReLU.facts
def _(result, x):
    entries = len(result.pop("state_dict"))
    return result | {"entries of state_dict": entries}


@MyReLU.cases
def _(rng):
    nan, inf = float("nan"), float("inf")
    yield asking(torch.tensor([-2.0, 3.0]))
    yield asking(torch.tensor([-1.0, 0.0, 1.0]))
    yield torch.tensor([-inf, inf, -3.0])
    yield torch.tensor([nan, -1.0])
    yield torch.tensor([-3, 0, 4])
    yield torch.tensor([[-1.0, 2.0], [3.0, -4.0]], dtype=torch.float64)
    yield asking(torch.tensor([0.5, -0.5], dtype=torch.float16))
    yield torch.zeros(0, 2)
    yield asking(rng.normal(3, 2).t())
    for _ in range(12):
        yield asking(rng.normal(rng.integer(1, 3), rng.integer(1, 4)))


@MyReLU.wrong(
    "X-3.8-1",
    "Sequential takes modules only. Derive the class from torch.nn.Module and name the method forward: Module's own "
    "__call__ then calls it.",
)
class NoModule:  # the classes below fetch torch in their first line, for the text of each has to stand alone
    def __call__(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x <= 0, 0, x)


@MyReLU.wrong(
    "X-3.8-2",
    "The class has an __init__ of its own that leaves out super().__init__(): the module's inner books were never set "
    "up. Call it first, or leave __init__ out.",
)
class NoSuper(__import__("torch").nn.Module):
    def __init__(self):
        pass

    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x <= 0, 0, x)


@MyReLU.wrong(
    "X-3.8-3",
    "The values are right, the gradient at 0 is not: with clamp, or where x < 0 is asked, it is 1 there. ReLU has a bend "
    "at 0, and torch's convention is a gradient of 0: let 0 belong to the flat side.",
)
class Clamped(__import__("torch").nn.Module):
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        return x.clamp(min=0)


@MyReLU.wrong(
    "X-3.8-4",
    "Minus infinity became NaN, because infinity times 0 is NaN. Choose with where instead of multiplying by a mask.",
)
class Multiplied(__import__("torch").nn.Module):
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        return x * (x > 0)


@MyReLU.wrong(
    "X-3.8-5",
    "Your function changed its input: x[x < 0] = 0 writes into the tensor of the caller. Make a new tensor.",
)
class Overwriting(__import__("torch").nn.Module):
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        x.data[x.data < 0] = 0
        return x + 0


@MyReLU.wrong(
    "X-3.8-6",
    "NaN became 0, and an error upstream would be hidden. A comparison with NaN is False: ask whether x is at most 0, "
    "so that False keeps x.",
)
class WithoutNaN(__import__("torch").nn.Module):
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x > 0, x, 0)


@MyReLU.wrong(
    "X-3.8-7",
    "The module stores something: its state_dict is not empty. ReLU has no state, so it needs neither a Parameter nor "
    "a buffer.",
)
class WithState(__import__("torch").nn.Module):
    def __init__(self):
        import torch

        super().__init__()
        self.zero = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x <= 0, 0, x)


@MyReLU.wrong(
    "X-3.8-8",
    "The result has another dtype than x, or sits on another device: torch.zeros(x.shape) is float32 on the CPU, "
    "whatever x is. The plain number 0 adapts.",
)
class WithZeros(__import__("torch").nn.Module):
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x <= 0, torch.zeros(x.shape), x)


@MyReLU.wrong("X-3.8-9", "Numbers below 0 are only made smaller. ReLU sets them to 0.")
class Leaky(__import__("torch").nn.Module):
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x <= 0, 0.01 * x, x)


@MyReLU.wrong("X-3.8-10", "This calls a finished ReLU. Write its formula yourself: where is enough.")
class Finished(__import__("torch").nn.Module):
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        import torch

        return torch.relu(x)


@MyReLU.wrong(
    "X-3.8-11",
    "There is no functional yet: below forward, write a second function of this name, which takes x alone, with "
    "@staticmethod above it.",
)
class WithoutFunctional(__import__("torch").nn.Module):
    def forward(self, x):
        import torch

        return torch.where(x <= 0, 0, x)


@MyReLU.wrong(
    "X-3.8-12",
    "The module is made without arguments, MyReLU(), and then called with x. Give x to forward, not to __init__.",
)
class TakingX(__import__("torch").nn.Module):
    def __init__(self, x):
        super().__init__()
        self.x = x

    def forward(self):
        return self.functional(self.x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x <= 0, 0, x)


@MyReLU.wrong(
    "X-3.8-13",
    "forward is a method, so its first parameter is the object itself: def forward(self, x).",
)
class WithoutSelf(__import__("torch").nn.Module):
    def forward(x):
        import torch

        return torch.where(x <= 0, 0, x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x <= 0, 0, x)


@MyReLU.wrong(
    "X-3.8-14",
    "The class is not derived from torch.nn.Module: its objects cannot be called, since it is Module that makes a call "
    "lead to forward.",
)
class Underived:
    def forward(self, x):
        return self.functional(x)

    @staticmethod
    def functional(x):
        import torch

        return torch.where(x <= 0, 0, x)


@MyReLU.right
class Filled(__import__("torch").nn.Module):
    def __init__(self):
        super().__init__()

    @staticmethod
    def functional(x):
        return x.masked_fill(x <= 0, 0)

    def forward(self, x):
        return type(self).functional(x)


@MyReLU.right
class Picked(__import__("torch").nn.Module):
    @staticmethod
    def functional(x):
        import torch

        return torch.where(torch.logical_or(x > 0, x.isnan()), x, torch.zeros_like(x))

    def forward(self, x):
        return self.__class__.functional(x)


# ---- 3.9 ------------------------------------------------------------------------------------------------------------


@exercise(
    "3.9",
    points=3,
    minutes=15,
    stars=2,
    concepts=["L-34"],
    needs=["normalised"],
    visible=8,
    hints=[
        "For each claim ask what has to happen to the sum: negative numbers in x may make it small, zero or negative.",
        "Whole numbers make the sum exact. Try with two numbers first, say 3 and -1, then fill up with zeros to n "
        "numbers. For the order, the sum itself has to be negative. Adding 1 changes nothing if all numbers are equal.",
        "negative: [2, -1, 0 ...]; defined: two numbers that cancel, then zeros; shift: [0, ___, 0 ...]; order: a "
        "small positive number and a large ___ one.",
    ],
)
def counter_example(claim, n):
    first = {
        "never negative": [3, -1],
        "always defined": [1, -1],
        "shift changes nothing": [1, 2],
        "keeps the order": [1, -3],
    }[claim]
    return torch.tensor(first + [0] * (n - 2), dtype=torch.float64)


@counter_example.facts
def _(x, claim, n):
    import torch

    given = isinstance(x, torch.Tensor)
    floats = given and x.layout == torch.strided and x.is_floating_point()
    facts = {
        "a tensor": given or x,
        "shape": tuple(x.shape) if given else None,
        "finite floats": floats and bool(x.isfinite().all()),
        "finite results": False,
        "the claim fails": False,
    }
    if facts["shape"] != (n,) or not facts["finite floats"]:
        return facts
    result, moved = x / x.sum(), (x + 1) / (x + 1).sum()
    defined = bool(result.isfinite().all())
    if claim == "never negative":
        fails = defined and bool((result < 0).any())
    elif claim == "always defined":
        fails = not defined
    elif claim == "shift changes nothing":
        fails = defined and bool(moved.isfinite().all()) and bool(((result - moved).abs() > 1e-3).any())
    else:
        larger = x[:, None] > x[None, :]
        fails = defined and bool((larger & (result[:, None] < result[None, :])).any())
    return facts | {"finite results": defined, "the claim fails": fails}


@counter_example.cases
def _(rng):
    claims = ["never negative", "always defined", "shift changes nothing", "keeps the order"]
    for n in (2, 3):
        for claim in claims:
            yield claim, n
    for _ in range(10):
        yield rng.choice(claims), rng.integer(2, 9)


@counter_example.wrong(
    "X-3.9-1",
    "With equal positive numbers the linear form behaves well, and no claim fails. Look for inputs that make the sum "
    "small, zero or negative.",
)
def _(claim, n):
    import torch

    return torch.ones(n)


@counter_example.wrong(
    "X-3.9-2",
    "All numbers negative: then the sum is negative, too, and the quotients are positive again. A negative share needs "
    "numbers of both signs.",
)
def _(claim, n):
    import torch

    first = {
        "never negative": [-3, -1],
        "always defined": [1, -1],
        "shift changes nothing": [1, 2],
        "keeps the order": [1, -3],
    }[claim]
    return torch.tensor(first + [0] * (n - 2), dtype=torch.float64)


@counter_example.wrong(
    "X-3.9-3",
    "0.1 + 0.2 - 0.3 is not 0 in floating point, but about 5e-17: large quotients, yet defined ones. Whole numbers "
    "cancel exactly.",
)
def _(claim, n):
    import torch

    first = {
        "never negative": [3, -1],
        "always defined": [1, -1],
        "shift changes nothing": [1, 2],
        "keeps the order": [1, -3],
    }[claim]
    if claim == "always defined" and n > 2:
        first = [0.1, 0.2, -0.3]
    return torch.tensor(first + [0] * (n - len(first)), dtype=torch.float64)


@counter_example.wrong(
    "X-3.9-4",
    "Putting NaN or infinity in proves nothing: garbage in, garbage out. The claim has to fail for ordinary finite "
    "numbers.",
)
def _(claim, n):
    import torch

    first = {
        "never negative": [3, -1],
        "always defined": [float("inf"), 1],
        "shift changes nothing": [1, 2],
        "keeps the order": [1, -3],
    }[claim]
    return torch.tensor(first + [0] * (n - 2), dtype=torch.float64)


@counter_example.wrong(
    "X-3.9-5",
    "As long as the sum is positive, larger numbers keep larger shares, even if some are negative. The order turns "
    "round when the sum itself is negative.",
)
def _(claim, n):
    import torch

    first = {
        "never negative": [3, -1],
        "always defined": [1, -1],
        "shift changes nothing": [1, 2],
        "keeps the order": [3, -1],
    }[claim]
    return torch.tensor(first + [0] * (n - 2), dtype=torch.float64)


@counter_example.wrong(
    "X-3.9-6",
    "If all numbers are equal, they still are after adding 1, and the shares stay 1 / n. Take numbers that differ.",
)
def _(claim, n):
    import torch

    first = {
        "never negative": [3, -1],
        "always defined": [1, -1],
        "shift changes nothing": [2, 2],
        "keeps the order": [1, -3],
    }[claim]
    filler = 2 if claim == "shift changes nothing" else 0
    return torch.tensor(first + [filler] * (n - 2), dtype=torch.float64)


@counter_example.wrong(
    "X-3.9-7", "Your tensor always has the same length. n numbers are asked for: fill up with zeros."
)
def _(claim, n):
    import torch

    first = {
        "never negative": [3, -1],
        "always defined": [1, -1],
        "shift changes nothing": [1, 2],
        "keeps the order": [1, -3],
    }[claim]
    return torch.tensor(first, dtype=torch.float64)


@counter_example.wrong(
    "X-3.9-8", "A tensor of floats is asked for, and these are integers: write 1.0, or give a dtype."
)
def _(claim, n):
    import torch

    first = {
        "never negative": [3, -1],
        "always defined": [1, -1],
        "shift changes nothing": [1, 2],
        "keeps the order": [1, -3],
    }[claim]
    return torch.tensor(first + [0] * (n - 2))


@counter_example.wrong("X-3.9-9", "This is a list. A tensor is asked for.")
def _(claim, n):
    first = {
        "never negative": [3, -1],
        "always defined": [1, -1],
        "shift changes nothing": [1, 2],
        "keeps the order": [1, -3],
    }[claim]
    return first + [0] * (n - 2)


@counter_example.wrong(
    "X-3.9-10",
    "These numbers cancel: with a sum of 0 there are no shares at all, so none is negative. Let the numbers be of both "
    "signs and their sum not 0.",
)
def _(claim, n):
    import torch

    first = {
        "never negative": [1, -1],
        "always defined": [1, -1],
        "shift changes nothing": [1, 2],
        "keeps the order": [1, -3],
    }[claim]
    return torch.tensor(first + [0] * (n - 2), dtype=torch.float64)


@counter_example.right
def _(claim, n):
    import torch

    x = torch.zeros(n)
    x[0] = 5.0
    x[-1] = {"never negative": -2.0, "always defined": -5.0, "shift changes nothing": -1.0}.get(claim, -9.0)
    return x


@counter_example.right
def _(claim, n):
    import torch

    x = torch.arange(float(n))
    if claim == "shift changes nothing":
        return x
    if claim == "always defined":
        return torch.cat([-x[1:].sum().view(1), x[1:]])
    return (
        torch.cat([-2 * x[1:].sum().view(1), x[1:]])
        if claim == "keeps the order"
        else torch.cat([torch.tensor([-0.5]), x[1:]])
    )


# ---- 3.10 -----------------------------------------------------------------------------------------------------------


@exercise(
    "3.10",
    points=4,
    minutes=15,
    stars=2,
    concepts=["L-30", "L-31"],
    needs=["sigmoid_tau", "sigmoid_shift"],
    properties=[same_plot(*("data", "titles", "axis labels", "legend", "shared y axis", "line styles", "alt text"))],
    visible=2,
    hints=[
        "plt.subplots makes the figure and all panels at once. Give it the number of panels, and say there that they "
        "share their y axis.",
        "Each panel: ax.plot twice, with label=... and two different line styles, then ax.set_title, ax.set_xlabel and "
        "ax.legend(). The y label can stand at the first panel alone. Return the figure and a text: (fig, alt).",
        "fig, axes = plt.subplots(1, ___, sharey=___, squeeze=False); for ax, v in zip(axes[0], values): ax.plot(x, "
        "torch.sigmoid(x), '--', label='plain') and so on; alt = f'... {values} ...'.",
    ],
)
def sigmoid_figure(x, what, values):
    from matplotlib.figure import Figure

    fig = Figure(figsize=(4 * len(values), 3))
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set_title(f"{what} = {v}")
        ax.set_xlabel("x")
        ax.legend()
    panels[0].set_ylabel("value")
    return fig, f"The sigmoid beside the plain one, a panel for each {what}: {', '.join(map(str, values))}"


@sigmoid_figure.cases
def _(rng):
    yield torch.linspace(-6, 6, 25), "tau", [0.25, 1.0, 4.0]
    yield torch.linspace(-6, 6, 25), "b", [-1.0, 0.0, 1.0]
    for _ in range(2):
        reach = rng.integer(2, 8)
        what = rng.choice(["tau", "b"])
        options = [[0.5, 8.0], [3.0, 0.2], [1.5, 6.0]] if what == "tau" else [[-2.0, 1.0], [0.5, -3.0], [2.5, -1.5]]
        yield torch.linspace(-reach, reach, rng.integer(9, 21)), what, rng.choice(options)


@sigmoid_figure.wrong(
    "X-3.10-10",
    "The description says that there is a plot, but not what is in it. Name the values and say what to see.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
        ax.legend()
    return fig, "This is a plot of the sigmoid function in some panels"


@sigmoid_figure.wrong(
    "X-3.10-1",
    "The figure has no description beside it. People who do not see it get nothing from a picture without alt text: "
    "return (fig, alt), with a sentence or two that name the values and what to see.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
        ax.legend()
    return fig


@sigmoid_figure.wrong(
    "X-3.10-2",
    "All curves are in one panel. One panel for each value is asked for: plt.subplots(1, len(values)).",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    ax = fig.subplots()
    for v in values:
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), label=f"{what} = {v}")
    ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
    ax.set(title=f"{what} = {values}", xlabel="x", ylabel="value")
    ax.legend()
    return fig, f"The sigmoid beside the plain one, for each of the values {values}"


@sigmoid_figure.wrong(
    "X-3.10-3",
    "The values are written into the code. Draw a panel for each number in `values`, however many there are.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    for ax, v in zip(fig.subplots(1, 3, sharey=True), [0.25, 1.0, 4.0], strict=True):
        ax.plot(x, torch.sigmoid(x / v), "-", label=f"tau = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title=f"tau = {v}", xlabel="x", ylabel="value")
        ax.legend()
    return fig, "The sigmoid beside the plain one, a panel for each tau: 0.25, 1 and 4"


@sigmoid_figure.wrong(
    "X-3.10-4",
    "Each panel has a y axis of its own, so equal heights mean different numbers, and the panels cannot be compared: "
    "sharey=True.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
        ax.set_ylim(-0.1 * abs(v) - 0.1, 1.1)
        ax.legend()
    return fig, f"The sigmoid beside the plain one, a panel for each {what}: {', '.join(map(str, values))}"


@sigmoid_figure.wrong(
    "X-3.10-5",
    "Only the colour tells the two curves apart. In print, and for one reader in twenty, they are the same: give one "
    "of them another line style or a marker.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "tab:blue", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "tab:orange", label="plain sigmoid")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
        ax.legend()
    return fig, f"The sigmoid beside the plain one, a panel for each {what}: {', '.join(map(str, values))}"


@sigmoid_figure.wrong(
    "X-3.10-6", "The axes have no labels. A reader has to guess what is drawn over what: ax.set_xlabel, ax.set_ylabel."
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set_title(f"{what} = {v}")
        ax.legend()
    return fig, f"The sigmoid beside the plain one, a panel for each {what}: {', '.join(map(str, values))}"


@sigmoid_figure.wrong("X-3.10-7", "The titles do not say which value a panel shows: put the number into each title.")
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title="sigmoid", xlabel="x", ylabel="value")
        ax.legend()
    return fig, f"The sigmoid beside the plain one, a panel for each {what}: {', '.join(map(str, values))}"


@sigmoid_figure.wrong(
    "X-3.10-8",
    "The lines have no legend that names them: label=... alone shows nothing. Give both lines a label and call "
    "ax.legend() in each panel.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
    return fig, f"The sigmoid beside the plain one, a panel for each {what}: {', '.join(map(str, values))}"


@sigmoid_figure.wrong(
    "X-3.10-9",
    "The curves are not those asked for: tau divides x, and b is subtracted from it. Call sigmoid_tau and "
    "sigmoid_shift.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x * v if what == "tau" else x + v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
        ax.legend()
    return fig, f"The sigmoid beside the plain one, a panel for each {what}: {', '.join(map(str, values))}"


@sigmoid_figure.wrong(
    "X-3.10-11",
    "What plt.subplots gives was returned, the figure and its axes. The figure and its description are asked for: "
    "(fig, alt).",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(x, torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
        ax.legend()
    return fig, panels


@sigmoid_figure.wrong(
    "X-3.10-12",
    "The curves are drawn at other places than those in x. Draw them at x, neither at 0, 1, 2 ... nor at numbers of "
    "your own.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.plot(torch.sigmoid(x), "--", label="plain sigmoid")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
        ax.legend()
    return fig, f"The sigmoid beside the plain one, a panel for each {what}: {', '.join(map(str, values))}"


@sigmoid_figure.wrong(
    "X-3.10-13",
    "The curve to compare with, the plain sigmoid, is missing. Two lines belong into each panel.",
)
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    panels = fig.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for ax, v in zip(panels, values, strict=True):
        ax.plot(x, torch.sigmoid(x / v if what == "tau" else x - v), "-", label=f"{what} = {v}")
        ax.set(title=f"{what} = {v}", xlabel="x", ylabel="value")
        ax.legend()
    return fig, f"The sigmoid, a panel for each {what}: {', '.join(map(str, values))}, from 0 to 1"


@sigmoid_figure.right
def _(x, what, values):
    import matplotlib.pyplot as plt
    import torch

    fig, axes = plt.subplots(1, len(values), sharey="row", squeeze=False)
    for ax, v in zip(axes.flat, values, strict=True):
        changed = torch.sigmoid(x / v) if what == "tau" else torch.sigmoid(x - v)
        ax.plot(x.tolist(), torch.sigmoid(x).tolist(), color="gray", marker=".", label="σ(x)")
        ax.plot(x.tolist(), changed.tolist(), label="changed")
        ax.axhline(0.5, color="black", linewidth=0.5)
        ax.set_title(rf"${what} = {v:.2f}$")
        ax.legend()
    fig.supxlabel("x")
    fig.supylabel("sigmoid")
    return fig, "Panels from left to right, each with the plain sigmoid: " + " and ".join(f"{v:g}" for v in values)


@sigmoid_figure.right
def _(x, what, values):
    import torch
    from matplotlib.figure import Figure

    fig = Figure()
    for place, v in enumerate(values, start=1):
        ax = fig.add_subplot(1, len(values), place)
        (changed,) = ax.plot(x, torch.sigmoid((x / v) if what == "tau" else (x - v)), linestyle=(0, (1, 2)))
        (plain,) = ax.plot(x, torch.sigmoid(x), linestyle=(0, (5, 1)))
        ax.set(ylim=(0, 1), xlabel="input", ylabel="output", title=f"{v:g} is the value of {what}")
    fig.legend([changed, plain], ["changed", "plain"])
    return [
        fig,
        f"A row of panels. In each the sigmoid was changed by {what}, to {values}, and the plain one is dashed.",
    ]


# ---- 3.11 -----------------------------------------------------------------------------------------------------------


@exercise(
    "3.11",
    points=5,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["L-33"],
    needs=["my_softmax"],
    gradient=True,
    properties=[gradient, no_loops, device_agnostic],
    forbidden=[
        "log_softmax",
        "LogSoftmax",
        "cross_entropy",
        "cross_entropy_loss",
        "CrossEntropyLoss",
        "nll_loss",
        "nll_loss_nd",
        "NLLLoss",
        "Categorical",
        "OneHotCategorical",
    ],
    tolerance=NEAR,
    visible=6,
    hints=[
        "The logarithm of a quotient is a difference: log softmax is x minus the logarithm of the sum of all exp. "
        "Nothing is divided, so nothing can become 0 before the logarithm.",
        "First subtract the largest number of each row, as in my_softmax. Then one row at a time has one label: two "
        "lists of positions in one pair of brackets are read in pairs (lecture 02).",
        "s = logits - logits.___(1, keepdim=True); log_p = s - s.exp().sum(1, keepdim=True).___(); rows = "
        "torch.arange(len(labels), device=___); loss = -log_p[rows, ___].mean().",
    ],
)
def log_softmax_and_loss(logits, labels):
    s = logits - logits.amax(1, keepdim=True)
    log_p = s - s.exp().sum(1, keepdim=True).log()
    rows = torch.arange(len(labels), device=labels.device)
    return log_p, -log_p[rows, labels].mean()


@log_softmax_and_loss.cases
def _(rng):
    yield asking(torch.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0]])), torch.tensor([0, 2])
    yield asking(torch.tensor([[0.0, 1000.0], [-1000.0, 0.0]])), torch.tensor([0, 1])
    yield asking(torch.tensor([[1000.0, 1001.0, 999.0]])), torch.tensor([1])
    yield asking(torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])), torch.tensor([1, 1, 0])  # a label comes twice
    yield asking(torch.tensor([[0.5, 0.5]])), torch.tensor([0])
    yield asking(torch.tensor([[0.0, 60.0, 3.0], [4.0, 0.0, 0.0], [1.0, 2.0, 3.0]])), torch.tensor([0, 0, 0])
    yield torch.tensor([[0.0, float("-inf"), 1.0]]), torch.tensor([2])
    yield asking(rng.normal(4, 3).t()), torch.tensor([3, 0, 3])
    yield asking(rng.normal(3, 2, dtype=torch.float64) * 500), torch.tensor([0, 1, 1])
    for _ in range(12):
        n, classes = rng.integer(1, 4), rng.integer(2, 5)
        yield asking(rng.normal(n, classes) * rng.choice([1.0, 10.0, 500.0])), rng.integers(n, low=0, high=classes - 1)


@log_softmax_and_loss.wrong(
    "X-3.11-1",
    "Softmax first and the logarithm afterwards: a small probability is rounded to 0, and log(0) is minus infinity. "
    "Stay with logarithms: x minus the logarithm of the sum of exp.",
)
def _(logits, labels):
    import torch

    log_p = torch.softmax(logits, 1).log()
    return log_p, -log_p[torch.arange(len(labels)), labels].mean()


@log_softmax_and_loss.wrong(
    "X-3.11-2",
    "Adding a tiny number before the logarithm hides the infinity and makes the numbers wrong: log(1e-9) is about "
    "-20.7, where -1000 is right. Compute the logarithm directly.",
)
def _(logits, labels):
    import torch

    log_p = (torch.softmax(logits, 1) + 1e-9).log()
    return log_p, -log_p[torch.arange(len(labels)), labels].mean()


@log_softmax_and_loss.wrong(
    "X-3.11-3",
    "exp of a large number is infinite, and so is the logarithm of the sum. Subtract the largest number of each row "
    "first.",
)
def _(logits, labels):
    import torch

    log_p = logits - logits.exp().sum(1, keepdim=True).log()
    return log_p, -log_p[torch.arange(len(labels)), labels].mean()


@log_softmax_and_loss.wrong(
    "X-3.11-4", "The loss has the wrong sign. Log-probabilities are at most 0, a loss is at least 0."
)
def _(logits, labels):
    import torch

    log_p = logits - torch.logsumexp(logits, 1, keepdim=True)
    return log_p, log_p[torch.arange(len(labels)), labels].mean()


@log_softmax_and_loss.wrong(
    "X-3.11-5", "This is the sum over the rows. The mean is asked for, which does not grow with the number of rows."
)
def _(logits, labels):
    import torch

    log_p = logits - torch.logsumexp(logits, 1, keepdim=True)
    return log_p, -log_p[torch.arange(len(labels)), labels].sum()


@log_softmax_and_loss.wrong(
    "M11",
    "Every row was read at the labels of all rows. A slice beside a list of positions makes a grid, and a label that "
    "comes twice counts twice in each row. Two lists in one pair of brackets are read in pairs.",
    sample="wrong_duplicates",
)
def _(logits, labels):
    import torch

    log_p = logits - torch.logsumexp(logits, 1, keepdim=True)
    return log_p, -log_p[:, labels].mean()


@log_softmax_and_loss.wrong(
    "X-3.11-9",
    "log_p[labels] picks whole rows, numbered by the labels. One number of each row is wanted: a row and a column for each, "
    "two lists in one pair of brackets.",
)
def _(logits, labels):
    import torch

    log_p = logits - torch.logsumexp(logits, 1, keepdim=True)
    return log_p, -log_p[labels % len(labels)].mean()


@log_softmax_and_loss.wrong(
    "M14",
    "The sums run down the columns. Each row is one example, and its classes stand in dimension 1: that is the one to "
    "sum over.",
)
def _(logits, labels):
    import torch

    log_p = logits - torch.logsumexp(logits, 0, keepdim=True)
    return log_p, -log_p[torch.arange(len(labels)), labels].mean()


@log_softmax_and_loss.wrong(
    "X-3.11-6",
    "The loss averages over all classes. Only the entry of the right class counts in each row.",
)
def _(logits, labels):
    import torch

    log_p = logits - torch.logsumexp(logits, 1, keepdim=True)
    return log_p, -log_p.mean()


@log_softmax_and_loss.wrong("X-3.11-7", "The first result holds probabilities. Their logarithms are asked for.")
def _(logits, labels):
    import torch

    log_p = logits - torch.logsumexp(logits, 1, keepdim=True)
    return log_p.exp(), -log_p[torch.arange(len(labels)), labels].mean()


@log_softmax_and_loss.wrong(
    "X-3.11-8", "This calls a finished log-softmax. Build it from amax, exp, a sum and a logarithm."
)
def _(logits, labels):
    import torch

    log_p = torch.log_softmax(logits, 1)
    return log_p, -log_p[torch.arange(len(labels), device=labels.device), labels].mean()


@log_softmax_and_loss.right
def _(logits, labels):
    import torch

    log_p = logits - torch.logsumexp(logits, dim=1, keepdim=True)
    return log_p, -log_p.gather(1, labels[:, None]).mean()


@log_softmax_and_loss.right
def _(logits, labels):
    import torch

    top = logits.detach().amax(1)[:, None]
    total = torch.exp(logits - top).sum(1)
    log_p = logits - top - torch.log(total)[:, None]
    chosen = torch.nn.functional.one_hot(labels, logits.shape[1]).bool()
    return log_p, -log_p[chosen].sum() / len(labels)


# ---- 3.12 -----------------------------------------------------------------------------------------------------------


@exercise(
    "3.12",
    points=3,
    minutes=15,
    stars=2,
    concepts=["L-33"],
    needs=["sigmoid_tau", "log_softmax_and_loss"],
    properties=[no_warnings, no_loops],
    forbidden=["Categorical", "entr"],
    tolerance=NEAR,
    visible=6,
    hints=[
        "Two steps: the probabilities at this temperature, then minus the mean of their logarithms, weighted by the "
        "probabilities themselves.",
        "Divide the logits by the temperature. Take the logarithms from torch.log_softmax: 0 times minus infinity is "
        "NaN, but 0 times -1000 is 0. The sum runs over the last dimension, which then is gone.",
        "log_p = torch.log_softmax(logits / ___, dim=-1); return -(log_p.exp() * ___).sum(___).",
    ],
)
def entropy(logits, temperature):
    if temperature <= 0:
        raise ValueError(f"the temperature is {temperature}; give a number above 0")
    log_p = torch.log_softmax(logits / temperature, -1)
    return -(log_p.exp() * log_p).sum(-1)


@entropy.call
def _(entropy, logits, temperature):
    cool = entropy(logits, temperature)
    if temperature <= 0:  # legal for nobody: what came is told as it is
        return cool
    return cool, entropy(logits, 2 * temperature)


@entropy.facts
def _(result, logits, temperature):
    import torch

    if temperature <= 0 or not isinstance(result, tuple):
        return result
    cool, warm = result
    compared = isinstance(cool, torch.Tensor) and isinstance(warm, torch.Tensor) and cool.shape == warm.shape
    grows = compared and bool((warm >= cool - 1e-5).all())
    return {"entropy": cool, "grows with the temperature": grows}


@entropy.cases
def _(rng):
    yield torch.tensor([0.0, 1.0]), 1.0
    yield torch.tensor([[0.0, 1.0, 2.0], [5.0, 0.0, 0.0]]), 2.0
    yield torch.tensor([0.0, 1000.0]), 1.0
    yield torch.tensor([1.0, 2.0]), 0
    yield torch.tensor([3.0, 3.0, 3.0, 3.0]), 0.5
    yield torch.tensor([1.0, 2.0]), -2.0
    yield torch.tensor([7.0]), 1.0
    yield rng.normal(2, 2, 3, dtype=torch.float64), 3.0
    yield rng.normal(4, 3).t(), 0.01
    for _ in range(32):
        yield (
            rng.normal(rng.integer(1, 3), rng.integer(2, 5)) * rng.choice([0.1, 1.0, 10.0]),
            rng.choice([0.25, 0.5, 1.0, 3.0, 10.0]),
        )


@entropy.wrong(
    "M16",
    "The temperature has no effect. Softmax does not mind a number that is *added* to all logits, but a factor "
    "changes it: divide the logits by the temperature.",
)
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    log_p = torch.log_softmax(logits, -1)
    return -(log_p.exp() * log_p).sum(-1)


@entropy.wrong(
    "X-3.12-1", "Your entropy falls when it gets warmer: divide the logits by the temperature, do not multiply."
)
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    log_p = torch.log_softmax(logits * temperature, -1)
    return -(log_p.exp() * log_p).sum(-1)


@entropy.wrong(
    "X-3.12-2",
    "Where a probability is rounded to 0, its logarithm is minus infinity, and 0 times infinity is NaN. Take the "
    "logarithms from torch.log_softmax, where they stay finite.",
)
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    p = torch.softmax(logits / temperature, -1)
    return -(p * p.log()).sum(-1)


@entropy.wrong("X-3.12-3", "This is the entropy in bits. Use the natural logarithm.")
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    log_p = torch.log_softmax(logits / temperature, -1)
    return -(log_p.exp() * log_p).sum(-1) / torch.log(torch.tensor(2.0, dtype=logits.dtype))


@entropy.wrong(
    "X-3.12-4", "The minus sign is missing: logarithms of probabilities are at most 0, entropy is at least 0."
)
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    log_p = torch.log_softmax(logits / temperature, -1)
    return (log_p.exp() * log_p).sum(-1)


@entropy.wrong(
    "X-3.12-5", "This is the mean over the classes. Entropy is the sum: the probabilities are the weights already."
)
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    log_p = torch.log_softmax(logits / temperature, -1)
    return -(log_p.exp() * log_p).mean(-1)


@entropy.wrong(
    "X-3.12-6",
    "The result has a dimension too many. The classes are summed over, so their dimension is gone: leave keepdim out.",
    sample="wrong_rank",
)
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    log_p = torch.log_softmax(logits / temperature, -1)
    return -(log_p.exp() * log_p).sum(-1, keepdim=True)


@entropy.wrong(
    "M14", "The probabilities sum to 1 along the first dimension. The classes stand in the last one: dim=-1."
)
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    log_p = torch.log_softmax(logits / temperature, 0)
    return -(log_p.exp() * log_p).sum(-1)


@entropy.wrong("X-3.12-7", "A temperature of 0 or below has to raise a ValueError.")
def _(logits, temperature):
    import torch

    log_p = torch.log_softmax(logits / temperature, -1)
    return -(log_p.exp() * log_p).sum(-1)


@entropy.wrong(
    "X-3.12-8",
    "The temperature divides the logits, before the softmax. You divided the probabilities, which then no longer sum "
    "to 1.",
)
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError
    log_p = torch.log_softmax(logits, -1)
    return -(log_p.exp() / temperature * log_p).sum(-1)


@entropy.right
def _(logits, temperature):
    import torch

    if not temperature > 0:
        raise ValueError("the temperature must be above 0")
    scaled = logits / temperature
    p = scaled.softmax(-1)
    return torch.logsumexp(scaled, -1) - (p * (scaled - scaled.amax(-1, keepdim=True))).sum(-1) - scaled.amax(-1)


@entropy.right
def _(logits, temperature):
    import torch

    if temperature <= 0:
        raise ValueError("the temperature must be above 0")
    p = torch.softmax(logits / temperature, dim=-1)
    return -torch.xlogy(p, p).sum(dim=-1)


# ---- 3.13 -----------------------------------------------------------------------------------------------------------

why_softmax = written(
    "3.13",
    "why_softmax",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-34"],
    needs=["counter_example", "entropy"],
    model_answer=(
        "A classifier's scores may be any real numbers, and shares made of them have to form a distribution: none "
        "below zero, and their total one. Dividing by the total cannot promise the first as soon as a score is "
        "negative, has no result at all when the scores cancel, and turns the ranking round when the total is "
        "negative. The exponential makes every score positive and is increasing, so the ranking stays. Softmax depends "
        "on differences of scores alone, so a constant added to all of them does nothing; a factor does something, and "
        "that is what a temperature is for. It is also smooth, and its logarithm is cheap and stable to compute. The "
        "price: large scores overflow unless the largest is subtracted first, no share is ever exactly zero, and one "
        "large score takes nearly everything."
    ),
    rubric=(
        "1 point: names a failure of the linear form with an example whose numbers are worked out (a negative share, a "
        "total of zero, or the ranking turned round). 1 point: says why the exponential cures it (positive, "
        "increasing, total one), not only that it does. 1 point: contrasts shift and scale (adding a constant does "
        "nothing, multiplying changes the result), or names a price of softmax with its reason. Half a point off for a "
        "statement that is wrong, once."
    ),
)

# ---- predictions ----------------------------------------------------------------------------------------------------

PREDICTIONS = (
    prediction(
        "R1",
        "`a` has shape (3, 4). Which of these is a view of `a`?",
        {
            "a": ("`a[a > 0]`", "A mask picks elements that no stride can describe, so they are copied."),
            "b": ("`a[[1]]`", "A list in the index copies, even if it names a single row."),
            "c": ("`a[1:2]`", "Right: numbers and slices give views; this one has shape (1, 4)."),
        },
        "c",
    ),
    prediction(
        "R2",
        "`x` is a float tensor that holds a NaN where `mask` is False. What is `x * mask` there?",
        {
            "a": ("0", "It would be for any other number. But 0 times NaN is NaN."),
            "b": ("NaN", "Right: 0 times NaN is NaN. Choosing is not computing."),
            "c": ("False", "A bool in a product counts as 0 or 1; the result is a float."),
        },
        "b",
    ),
    prediction(
        "R3",
        "`v = a[0]`, then `v.zero_()`. What does `a` show?",
        {
            "a": ("zeros in its first row", "Right: the write goes through the view into the storage that a shares."),
            "b": ("its old numbers", "v is a view: it looks into the storage of a, and the underscore writes there."),
            "c": ("zeros everywhere", "Only the elements that v looks at were written."),
        },
        "a",
    ),
    prediction(
        "P1",
        "`x = torch.tensor([-1., 2.])`, then `y = F.relu(x, inplace=True)`. What is `x` now?",
        {
            "a": ("[-1, 2]", "So it would be without inplace=True. With it, the result is written into x."),
            "b": ("[0, 2]", "Right: the result was written into the memory of x, and y is x itself."),
            "c": ("empty, its memory moved to y", "Nothing moves: x and y are two names of one tensor."),
        },
        "b",
    ),
    prediction(
        "P2",
        "`torch.where(condition, x, 0.5)`, and `x` holds int64. Which dtype has the result?",
        {
            "a": (
                "int64, and 0.5 is cut to 0",
                "That would lose what you asked for. The dtype has to hold both sides.",
            ),
            "b": ("float32", "Right: a plain float beside integers asks for the default float dtype."),
            "c": (
                "float64, as in Python and NumPy",
                "A Python float has 64 bits, but beside a tensor only its kind counts: the default is float32.",
            ),
        },
        "b",
    ),
    prediction(
        "P3",
        "Somebody writes the sigmoid as `1 / (1 + torch.exp(-x))`, in float32. What does it give at x = -100?",
        {
            "a": (
                "value 0, gradient 0",
                "So it should be. But the gradient is found step by step, and a step on the way is infinite.",
            ),
            "b": ("value NaN, gradient NaN", "The value is fine: 1 divided by infinity is 0."),
            "c": (
                "value 0, gradient NaN",
                "Right: exp(100) is infinite. 1 / infinity is 0, but the gradient multiplies 0 by infinity.",
            ),
            "d": ("an error, because exp overflows", "Floating point does not raise: it goes on with infinity."),
        },
        "c",
    ),
    prediction(
        "P4",
        "`a` has shape (2, 4). Which sums of `torch.softmax(a, dim=0)` are 1?",
        {
            "a": (
                "those of the 4 columns",
                "Right: dimension 0 is summed over, from row to row, so each column has the sum 1.",
            ),
            "b": (
                "those of the 2 rows",
                "dim names the dimension that is summed over. Dimension 0 runs down a column.",
            ),
            "c": (
                "that of all 8 numbers",
                "Softmax works on one slice at a time; there are four of them, with a sum of 1 each.",
            ),
        },
        "a",
    ),
    prediction(
        "P5",
        "Which of these equals `softmax(x)`, for x = [1, 2, 3]?",
        {
            "a": (
                "`softmax(2 * x)` only",
                "Twice the numbers are twice the differences, and exp turns those into other ratios.",
            ),
            "b": (
                "`softmax(x + 100)` only",
                "Right: a constant cancels in the quotient. A factor does not: it changes the differences.",
            ),
            "c": (
                "both",
                "A constant cancels, a factor does not. Dividing by the plain sum would have it the other way round.",
            ),
            "d": ("neither", "exp(x + 100) is exp(x) times exp(100), above and below the line: that cancels."),
        },
        "b",
    ),
)
