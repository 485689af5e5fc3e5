"""The exercises of lecture 04, derivatives and graphs: reference answers, cases, wrong and right answers, predictions."""

import math

import torch

from autograder.exercises import exercise, prediction
from autograder.properties import gradient, no_warnings

# What finds a derivative by itself.
AUTOGRAD = ("backward", "autograd", "torch.func", "functorch", "vjp", "jvp", "jacrev", "jacfwd")

# ---- 4.1 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.1",
    points=2,
    minutes=5,
    stars=1,
    concepts=["L-35", "L-36"],
    properties=[no_warnings],
    visible=7,
    hints=[
        "The slope of a line through two points is the step upwards over the step to the right. Here the two points "
        "lie at equal distances to the left and to the right of x. How far apart are they?",
        "The two points are x + h and x - h, so they are 2 * h apart. In float32 most digits of f(x + h) - f(x - h) "
        "are lost: x.double() has digits enough, and .to(x.dtype) at the very end goes back.",
        "wide = x.double(), and then return ((f(wide + h) - f(___)) / (___)).to(x.dtype).",
    ],
)
def central_difference(f, x, h):
    wide = x.double()
    return ((f(wide + h) - f(wide - h)) / (2 * h)).to(x.dtype)


@central_difference.call
def _(central_difference, formula, x, h):
    import torch

    functions = {
        "x * x": lambda x: x * x,
        "x ** 3": lambda x: x**3,
        "3 * x - 2": lambda x: 3 * x - 2,
        "1 / x": lambda x: 1 / x,
        "exp(x)": torch.exp,
        "sin(x)": torch.sin,
        "sin(log(x * x + 1))": lambda x: torch.sin(torch.log(x * x + 1)),
    }
    return central_difference(functions[formula], x, h)


@central_difference.cases
def _(rng):
    yield "x * x", torch.tensor([1.0, -3.0]), 0.25
    yield "x * x", torch.tensor(1.0), 1e-6
    yield "x ** 3", torch.tensor([0.0, 2.0]), 0.5
    yield "exp(x)", torch.tensor([[0.0, 1.0], [-1.0, 2.0]]), 0.125
    yield "sin(x)", torch.tensor([0.5, 1.5], dtype=torch.float64), 1e-5
    yield "3 * x - 2", torch.tensor([10.0]), 1e-7
    yield "x * x", torch.tensor([]), 0.1
    yield "sin(log(x * x + 1))", torch.tensor([1.0]), 1e-6
    yield "1 / x", torch.tensor([0.5, -2.0], dtype=torch.float64), 1e-4
    yield "x * x", torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t(), 0.5
    for _ in range(12):
        formula = rng.choice(["x * x", "x ** 3", "exp(x)", "sin(x)", "sin(log(x * x + 1))"])
        dtype = rng.choice([torch.float32, torch.float64])
        yield formula, rng.normal(rng.integer(1, 4), dtype=dtype), rng.choice([0.5, 0.1, 1e-3, 1e-6])


@central_difference.wrong(
    "M19",
    "The step was made smaller than the one that is given. A smaller h is better only until the difference of the two "
    "values has no digits left; from there on the result gets worse, and in the end it is 0. Use h as it is.",
)
def _(f, x, h):
    wide = x.double()
    h = h * 1e-10
    return ((f(wide + h) - f(wide - h)) / (2 * h)).to(x.dtype)


@central_difference.wrong(
    "X-4.1-1",
    "This is the one-sided quotient, from x to x + h. For a function that bends it is off by about h times half of "
    "its second derivative. Go to both sides, x + h and x - h: then most of that error cancels.",
)
def _(f, x, h):
    wide = x.double()
    return ((f(wide + h) - f(wide)) / h).to(x.dtype)


@central_difference.wrong(
    "X-4.1-2",
    "Your slope is twice the right one: from x - h to x + h it is a way of 2 * h, not of h.",
)
def _(f, x, h):
    wide = x.double()
    return ((f(wide + h) - f(wide - h)) / h).to(x.dtype)


@central_difference.wrong(
    "X-4.1-3",
    "For a small h float32 has too few digits: of its seven, nearly all are equal in f(x + h) and f(x - h) and go "
    "away in the difference. Compute with x.double(), and turn the result back at the end.",
)
def _(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)


@central_difference.wrong(
    "X-4.1-4",
    "The numbers are right, and their dtype is float64 although x has float32. Go back at the end, with .to(x.dtype).",
)
def _(f, x, h):
    wide = x.double()
    return (f(wide + h) - f(wide - h)) / (2 * h)


@central_difference.wrong(
    "X-4.1-5",
    "The sign is wrong: the value on the right, f(x + h), comes first, and the one on the left is taken away from it.",
)
def _(f, x, h):
    wide = x.double()
    return ((f(wide - h) - f(wide + h)) / (2 * h)).to(x.dtype)


@central_difference.wrong(
    "X-4.1-6",
    "2 * h stands in the denominator as a whole: in Python a / 2 * h means a / 2 and then times h. Put brackets around it.",
)
def _(f, x, h):
    wide = x.double()
    return ((f(wide + h) - f(wide - h)) / 2 * h).to(x.dtype)


@central_difference.right
def _(f, x, h):
    import torch

    right, left = x.to(torch.float64) + h, x.to(torch.float64) - h
    return torch.div(f(right) - f(left), 2 * h).type(x.dtype)


@central_difference.right
def _(f, x, h):
    wide = x.double()
    above, below = (f(wide + h) - f(wide)) / h, (f(wide) - f(wide - h)) / h
    return (0.5 * (above + below)).to(x.dtype)


# ---- 4.2 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.2",
    points=2,
    minutes=5,
    stars=1,
    concepts=["L-37"],
    properties=[gradient],
    gradient=True,
    forbidden=AUTOGRAD,
    visible=8,
    hints=[
        "Four rules, four lines. Which of the four functions is its own derivative, and which one turns into another of "
        "its family?",
        "The exponent comes down as a factor and then is one less; exp stays exp; log becomes 1 / x; sin becomes cos. "
        "For p = 0 the power is 1 everywhere: its slope is a tensor of zeros, also where x is 0.",
        'For "power": p * x ** (___), or torch.zeros_like(x) if p is 0. "exp": x.exp(). "log": 1 / ___. "sin": x.___().',
    ],
)
def derivative(rule, x, p):
    if rule == "power":
        return p * x ** (p - 1) if p else torch.zeros_like(x)
    return {"exp": torch.exp, "log": torch.reciprocal, "sin": torch.cos}[rule](x)


@derivative.cases
def _(rng):
    def ask(*numbers):
        return torch.tensor(numbers, requires_grad=True)

    yield "power", ask(1.0, 2.0, -3.0), 2
    yield "exp", ask(0.0, 1.0), None
    yield "log", ask(0.5, 2.0), None
    yield "sin", ask(0.0, 1.0, 3.0), None
    yield "power", ask(2.0, 0.5), -1
    yield "power", ask(4.0, 0.25), 0.5
    yield "power", torch.tensor([0.0, 2.0]), 0
    yield "power", ask(1.5, -2.0), 3
    yield "power", torch.tensor([0.0, 3.0]), 1
    yield "power", torch.tensor(0.0), 0.5  # the slope of the root at 0 is infinite
    yield "log", torch.tensor([[-2.0], [4.0]]), None
    yield "exp", torch.tensor([]), None
    yield "sin", torch.tensor([1e3, -1e3], dtype=torch.float64), None
    yield "exp", torch.tensor([-1000.0, 1000.0]), None
    for _ in range(32):
        rule = rng.choice(["power", "power", "power", "exp", "log", "sin"])
        x = (rng.normal(rng.integer(1, 4)).abs() + 0.1).requires_grad_()
        yield rule, x, rng.choice([-3, -2, -1, 2, 3, 4, 5, 0.5, 1.5, -0.5]) if rule == "power" else None


@derivative.wrong(
    "X-4.2-1",
    "The exponent has come down, and it has to become one less as well: the slope of x to the p is p times x to the p - 1.",
)
def _(rule, x, p):
    import torch

    if rule == "power":
        return p * x**p
    return {"exp": torch.exp, "log": torch.reciprocal, "sin": torch.cos}[rule](x)


@derivative.wrong(
    "X-4.2-2",
    "The factor p is missing in the rule for powers: x ** 2 rises with slope 2 * x, not with x.",
)
def _(rule, x, p):
    import torch

    if rule == "power":
        return x ** (p - 1)
    return {"exp": torch.exp, "log": torch.reciprocal, "sin": torch.cos}[rule](x)


@derivative.wrong(
    "X-4.2-3",
    "That is the rule for powers, used on exp. In exp(x) the x stands in the exponent: the function is its own derivative.",
)
def _(rule, x, p):
    import torch

    if rule == "power":
        return p * x ** (p - 1) if p else torch.zeros_like(x)
    return {"exp": lambda x: x * torch.exp(x - 1), "log": torch.reciprocal, "sin": torch.cos}[rule](x)


@derivative.wrong("X-4.2-4", "sin rises at 0, so its slope there is plus 1: the derivative is cos, without a minus.")
def _(rule, x, p):
    import torch

    if rule == "power":
        return p * x ** (p - 1) if p else torch.zeros_like(x)
    return {"exp": torch.exp, "log": torch.reciprocal, "sin": lambda x: -torch.cos(x)}[rule](x)


@derivative.wrong(
    "X-4.2-5",
    "The result has lost its connection to x (by detach, .data or no_grad), so that nobody can take the derivative of "
    "your derivative. Compute with x itself.",
)
def _(rule, x, p):
    import torch

    x = x.detach()
    if rule == "power":
        return p * x ** (p - 1) if p else torch.zeros_like(x)
    return {"exp": torch.exp, "log": torch.reciprocal, "sin": torch.cos}[rule](x)


@derivative.wrong(
    "M20",
    "For p = 0 the slope is 0 everywhere. The formula makes it 0 times x ** -1, and at x = 0 that is 0 times infinity: "
    "NaN, which is not zero. Treat p = 0 on its own.",
)
def _(rule, x, p):
    import torch

    if rule == "power":
        return p * x ** (p - 1)
    return {"exp": torch.exp, "log": torch.reciprocal, "sin": torch.cos}[rule](x)


@derivative.wrong(
    "X-4.2-6",
    "1 / x comes out positive for negative numbers, or the other way round. The derivative of log is 1 / x as it is, "
    "without abs.",
)
def _(rule, x, p):
    import torch

    if rule == "power":
        return p * x ** (p - 1) if p else torch.zeros_like(x)
    return {"exp": torch.exp, "log": lambda x: -1 / x, "sin": torch.cos}[rule](x)


@derivative.right
def _(rule, x, p):
    import torch

    if rule == "exp":
        return torch.exp(x)
    if rule == "log":
        return 1 / x
    if rule == "sin":
        return torch.cos(x)
    if p == 0:
        return x.new_zeros(x.shape)
    return x.pow(p - 1).mul(p)


@derivative.right
def _(rule, x, p):
    import math

    import torch

    if rule == "power":
        return torch.zeros_like(x) if p == 0 else torch.pow(x, p - 1) * p
    if rule == "sin":
        return torch.sin(math.pi / 2 - x) if x.abs().sum() < 100 else torch.cos(x)
    return x.exp() if rule == "exp" else x.reciprocal()


# ---- 4.3 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.3",
    points=2,
    minutes=5,
    stars=1,
    concepts=["L-38", "L-39", "L-40"],
    properties=[gradient],
    gradient=True,
    visible=5,
    hints=[
        "Work from the inside to the outside, one operation a line, and give each result its name.",
        "g is made of x, h of g only, and k of h only. torch.log is the natural logarithm. Return all three.",
        "g = x * x + 1, then h = torch.log(___), then k = torch.sin(___); return g, h, k.",
    ],
)
def forward_pass(x):
    g = x * x + 1
    h = torch.log(g)
    k = torch.sin(h)
    return g, h, k


@forward_pass.cases
def _(rng):
    yield torch.tensor([1.0], requires_grad=True)
    yield torch.tensor([0.0, -2.0, 3.0], requires_grad=True)
    yield torch.tensor(-1.0, requires_grad=True)
    yield torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    yield torch.tensor([])
    yield torch.tensor([1e-3, 1e3], dtype=torch.float64, requires_grad=True)
    yield torch.tensor([float("nan"), 1e15])
    for _ in range(10):
        yield rng.normal(rng.integer(1, 3), rng.integer(1, 3)).requires_grad_()


@forward_pass.wrong(
    "X-4.3-1",
    "Only the last value came. The backward pass needs what lies between as well: return g, h and k.",
    sample="wrong_rank",
)
def _(x):
    import torch

    return torch.sin(torch.log(x * x + 1))


@forward_pass.wrong("X-4.3-2", "The three are in the wrong order: g, which is made first, comes first.")
def _(x):
    import torch

    g = x * x + 1
    h = torch.log(g)
    return torch.sin(h), h, g


@forward_pass.wrong(
    "X-4.3-3",
    "The 1 was added too late. It belongs to x * x, inside of the logarithm: log(x * x + 1), and g holds it.",
)
def _(x):
    import torch

    g = x * x
    h = torch.log(g) + 1
    return g, h, torch.sin(h)


@forward_pass.wrong("X-4.3-4", "torch.log is the natural logarithm, to the base e. Here another base was taken.")
def _(x):
    import torch

    g = x * x + 1
    h = torch.log10(g)
    return g, h, torch.sin(h)


@forward_pass.wrong(
    "X-4.3-5",
    "The later steps wrote into the earlier results (a method that ends in an underscore works in place), so g and h "
    "are gone. Each step needs a tensor of its own: its input is wanted again on the way back.",
)
def _(x):
    g = x * x + 1
    h = g.log_()
    return g, h, h.sin_()


@forward_pass.wrong(
    "X-4.3-6",
    "sin has to be taken of h. You took it of g, and h was left out on the way to k.",
)
def _(x):
    import torch

    g = x * x + 1
    return g, torch.log(g), torch.sin(g)


@forward_pass.right
def _(x):
    g = x**2 + 1
    return g, g.log(), g.log().sin()


@forward_pass.right
def _(x):
    import torch

    values = [torch.square(x).add(1)]
    for step in (torch.log, torch.sin):
        values.append(step(values[-1]))
    return tuple(values)


# ---- 4.4 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.4",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-39", "L-41", "L-42"],
    needs=["forward_pass"],
    forbidden=[*AUTOGRAD, "requires_grad_", "enable_grad"],
    visible=5,
    hints=[
        "Start at the end: how does k = sin(h) move when h moves? Then go one operation back at a time, and multiply "
        "what you have by the slope of that operation.",
        "The slopes are cos(h), 1 / g and 2 * x, each at the stored value. dk_dg is dk_dh times the second one, and "
        "dk_dx is dk_dg times the third one.",
        "dk_dh = torch.cos(h), then dk_dg = dk_dh / ___, then dk_dx = dk_dg * ___; return the three in this order.",
    ],
)
def backward_pass(x, g, h):
    dk_dh = torch.cos(h)
    dk_dg = dk_dh / g
    dk_dx = dk_dg * 2 * x
    return dk_dh, dk_dg, dk_dx


@backward_pass.call
def _(backward_pass, x, g, h):
    import torch

    with torch.inference_mode():
        return backward_pass(x, g, h)


@backward_pass.cases
def _(rng):
    def two(t):
        return (t * 100).round() / 100

    def stored(x):
        g = two(x * x + 1)
        return x, g, two(torch.log(g))

    yield stored(torch.tensor([1.0]))
    yield stored(torch.tensor([0.0, -2.0, 3.0]))
    yield stored(torch.tensor(-1.0))
    yield torch.tensor([2.0]), torch.tensor([4.0]), torch.tensor([1.0])  # rounded to whole numbers
    yield stored(torch.tensor([[0.5, 1.5], [2.5, -3.5]]))
    yield stored(torch.tensor([]))
    yield stored(torch.tensor([1e3, -1e-3], dtype=torch.float64))
    for _ in range(32):
        yield stored(rng.normal(rng.integer(1, 4)) * rng.choice([1, 3]))


@backward_pass.wrong(
    "X-4.4-1",
    "These are the slopes of the three operations, each on its own. The chain rule multiplies them: dk_dg is dk_dh "
    "times 1 / g, and dk_dx is dk_dg times 2 * x.",
)
def _(x, g, h):
    import torch

    return torch.cos(h), 1 / g, 2 * x


@backward_pass.wrong(
    "X-4.4-2",
    "The stored values g and h were not used: they were computed again from x. The forward pass keeps them so that "
    "the backward pass need not do its work twice. (The checks hand in rounded values, so the two can be told apart.)",
)
def _(x, g, h):
    import torch

    g = x * x + 1
    h = torch.log(g)
    dk_dh = torch.cos(h)
    return dk_dh, dk_dh / g, dk_dh / g * 2 * x


@backward_pass.wrong(
    "X-4.4-3",
    "The slope of the logarithm is 1 / g, so dk_dg is dk_dh divided by g. You multiplied.",
)
def _(x, g, h):
    import torch

    dk_dh = torch.cos(h)
    return dk_dh, dk_dh * g, dk_dh * g * 2 * x


@backward_pass.wrong("X-4.4-4", "The slope of sin is cos. You took sin itself, which is the value k and not its slope.")
def _(x, g, h):
    import torch

    dk_dh = torch.sin(h)
    return dk_dh, dk_dh / g, dk_dh / g * 2 * x


@backward_pass.wrong(
    "X-4.4-5",
    "The last slope is missing its x: x * x + 1 rises with slope 2 * x, which is 2 only at x = 1.",
)
def _(x, g, h):
    import torch

    dk_dh = torch.cos(h)
    return dk_dh, dk_dh / g, dk_dh / g * 2


@backward_pass.wrong(
    "X-4.4-6",
    "The three are in the order of the forward pass. The backward pass makes dk_dh first, then dk_dg, then dk_dx: "
    "return them in that order.",
)
def _(x, g, h):
    import torch

    dk_dh = torch.cos(h)
    return dk_dh / g * 2 * x, dk_dh / g, dk_dh


@backward_pass.wrong(
    "X-4.4-7",
    "torch's autograd was asked. Here recording is switched off (inference mode), and it is your turn: multiply the "
    "slopes yourself.",
)
def _(x, g, h):
    import torch

    h = h.clone().requires_grad_()
    (dk_dh,) = torch.autograd.grad(torch.sin(h).sum(), h)
    return dk_dh, dk_dh / g, dk_dh / g * 2 * x


@backward_pass.right
def _(x, g, h):
    slopes = (h.cos(), g.reciprocal(), x + x)
    first = slopes[0]
    second = slopes[1] * first
    return first, second, slopes[2] * second


@backward_pass.right
def _(x, g, h):
    import math

    import torch

    found = [torch.sin(h + math.pi / 2)]
    for slope in (1 / g, 2 * x):
        found.append(found[-1] * slope)
    return tuple(found)


# ---- 4.5 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.5",
    points=2,
    minutes=10,
    stars=2,
    concepts=["L-43"],
    forbidden=["is_leaf"],
    visible=6,
    hints=[
        "Two different questions: was the tensor made by an operation that autograd recorded? And does somebody want "
        "its gradient kept?",
        "A leaf has no grad_fn: t.grad_fn is None. Its .grad is filled if requires_grad is True as well. A tensor "
        "that is no leaf keeps its gradient only after .retain_grad(); then t.retains_grad is True.",
        "leaf = t.grad_fn is ___; kept = t.___ if leaf else t.retains_grad; note (leaf, kept) under the name.",
    ],
)
def leaf_report(tensors):
    report = {}
    for name, t in tensors.items():
        leaf = t.grad_fn is None
        report[name] = (leaf, t.requires_grad if leaf else t.retains_grad)
    return report


@leaf_report.call
def _(leaf_report, made):
    import torch

    ways = {
        "numbers": lambda t: torch.ones(2),
        "whole numbers": lambda t: torch.arange(2),
        "numbers, requires_grad": lambda t: torch.ones(2, requires_grad=True),
        "a Parameter": lambda t: torch.nn.Parameter(torch.ones(2)),
        "a Parameter, frozen": lambda t: torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "the one before, times 2": lambda t: t * 2,
        "the one before, detached": lambda t: t.detach(),
        "the one before, detached, requires_grad": lambda t: t.detach().clone().requires_grad_(),
        "a view of the one before": lambda t: t[:1],
        "a clone of the one before": lambda t: t.clone(),
        "the one before, times 2, retain_grad": lambda t: (t * 2.0).requires_grad_(),
    }

    def kept(t):
        t.retain_grad()
        return t

    tensors, last = {}, None
    for name, way in made.items():
        if way.endswith("under no_grad"):
            with torch.no_grad():
                last = last * 2
        else:
            last = ways[way](last)
        tensors[name] = kept(last) if way.endswith("retain_grad") else last
    return leaf_report(tensors)


@leaf_report.cases
def _(rng):
    def named(*ways):
        return (dict(zip("abcdefgh", ways, strict=False)),)

    asked, double, view = "numbers, requires_grad", "the one before, times 2", "a view of the one before"
    kept = "the one before, times 2, retain_grad"
    yield named(asked, double)
    yield named("numbers", double)
    yield named("a Parameter", double, "the one before, detached")
    yield named(asked, "the one before, times 2 under no_grad")
    yield named(asked, double, kept)
    yield named("a Parameter, frozen", "whole numbers", asked)
    yield named(asked, "the one before, detached, requires_grad", double)
    yield named(asked, view, "a clone of the one before")
    yield named("numbers", view, kept)  # a leaf by itself: retain_grad changes nothing
    yield ({},)
    rest = [double, view, kept, "the one before, detached", "a clone of the one before"]
    rest += ["the one before, times 2 under no_grad", "the one before, detached, requires_grad"]
    for _ in range(10):
        first = rng.choice(["numbers", asked, "a Parameter", "a Parameter, frozen"])
        yield named(first, *(rng.choice(rest) for _ in range(rng.integer(1, 4))))


@leaf_report.wrong(
    "M17",
    "Every tensor that requires a gradient was said to keep one. Of a result, autograd passes the gradient on and "
    "forgets it: .grad is filled in leaves that require it, and elsewhere only after retain_grad().",
    sample="wrong_copy",
)
def _(tensors):
    return {name: (t.grad_fn is None, t.requires_grad) for name, t in tensors.items()}


@leaf_report.wrong(
    "X-4.5-1",
    "Tensors that require no gradient are leaves as well, even if they were computed: nothing was recorded, so "
    "they have no grad_fn. Being a leaf and getting a gradient are two things.",
)
def _(tensors):
    report = {}
    for name, t in tensors.items():
        leaf = t.grad_fn is None and t.requires_grad
        report[name] = (leaf, leaf or t.retains_grad)
    return report


@leaf_report.wrong(
    "X-4.5-2",
    "All leaves were said to get a gradient. A leaf that does not require one (numbers, a detached tensor, a frozen "
    "Parameter) gets none: look at requires_grad.",
)
def _(tensors):
    report = {}
    for name, t in tensors.items():
        leaf = t.grad_fn is None
        report[name] = (leaf, leaf or t.retains_grad)
    return report


@leaf_report.wrong(
    "X-4.5-3",
    "Only Parameters were counted as leaves. A Parameter is a tensor that requires its gradient from the start; any "
    "tensor without a grad_fn is a leaf.",
)
def _(tensors):
    import torch

    report = {}
    for name, t in tensors.items():
        leaf = isinstance(t, torch.nn.Parameter)
        report[name] = (leaf, t.requires_grad if leaf else t.retains_grad)
    return report


@leaf_report.wrong(
    "X-4.5-4",
    "A result for which retain_grad() was called keeps its gradient, too. t.retains_grad tells.",
)
def _(tensors):
    return {name: (t.grad_fn is None, t.grad_fn is None and t.requires_grad) for name, t in tensors.items()}


@leaf_report.wrong(
    "X-4.5-5",
    "You looked at .grad, and before a backward pass it is None everywhere. The question is who will get one.",
)
def _(tensors):
    return {name: (t.grad_fn is None, t._grad is not None) for name, t in tensors.items()}


@leaf_report.right
def _(tensors):
    return {name: (not t.grad_fn, t.retains_grad or (t.requires_grad and not t.grad_fn)) for name, t in tensors.items()}


@leaf_report.right
def _(tensors):
    def one(t):
        if t.grad_fn is not None:
            return False, bool(t.retains_grad)
        return True, bool(t.requires_grad)

    return dict(zip(tensors, map(one, tensors.values()), strict=True))


# ---- 4.6 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.6",
    points=4,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["L-40", "L-43"],
    needs=["leaf_report"],
    visible=8,
    hints=[
        "Begin at t.grad_fn and follow next_functions. Two things can go wrong: a node that is reached on two ways "
        "is listed twice, or a node is listed before one of its inputs.",
        "Keep a list of nodes that are open, and a set of those you have seen. A node may go into the result only "
        "after all of its inputs have: so put it on a stack, and above it its inputs; when you meet it the second time, "
        "its inputs are done. next_functions holds (node, number) pairs, and the node may be None.",
        "stack = [(t.grad_fn, False)], and while there is something on it: node, ready = stack.pop(); if ready, "
        "append node to the result; else, if node is new, note it, push (node, ___), and then push (___, False) for "
        "each of its inputs. Guard against None.",
    ],
)
def graph_nodes(t):
    order, seen, stack = [], set(), [(t.grad_fn, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node is not None and node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(earlier, False) for earlier, _ in node.next_functions]
    return order


@graph_nodes.call
def _(graph_nodes, formula):
    import re

    import torch

    def chained(x, n):
        for _ in range(n):
            x = x + 1
        return x

    def doubled(x, n):
        for _ in range(n):
            x = x * x
        return x

    x, y = (torch.tensor([value], requires_grad=True) for value in (1.0, 2.0))
    t = eval(formula, {"x": x, "y": y, "plain": torch.ones(1), "chained": chained, "doubled": doubled})
    nodes = graph_nodes(t)
    listed = isinstance(nodes, (list, tuple))
    if not listed or not all(hasattr(node, "next_functions") for node in nodes):
        return {"answer": [re.sub(" at 0x[0-9a-f]+", "", str(node)) for node in nodes][:5] if listed else nodes}
    number = {node: i for i, node in reversed(list(enumerate(nodes)))}
    below = [[number.get(earlier, -1) for earlier, _ in node.next_functions] for node in nodes]
    return {"numbers": [number[node] for node in nodes], "names": [node.name() for node in nodes], "inputs": below}


@graph_nodes.facts
def _(result, formula):
    if "answer" in result:
        return {
            "a list of nodes": result["answer"],
            "each node once": False,
            "names, sorted": None,
            "each node after its inputs": False,
        }
    numbers, names, inputs = result["numbers"], result["names"], result["inputs"]
    lists = lambda parts: all(isinstance(part, list) for part in parts)
    if not lists((numbers, names, inputs)) or not lists(inputs):
        return result
    names = dict(zip(numbers, [name.split("::")[-1] for name in names], strict=True)).values()
    ordered = [before < place for place, below in zip(range(len(numbers)), inputs, strict=True) for before in below]
    return {
        "a list of nodes": True,
        "each node once": len(names) == len(numbers),
        "names, sorted": sorted(names) if len(names) <= 12 else f"{len(names)} nodes",
        "each node after its inputs": all(ordered),
    }


@graph_nodes.cases
def _(rng):
    yield "(x * x + 1).log().sin()"
    yield "x ** 2"
    yield "x * x"
    yield "x.sin() * x.cos()"
    yield "x"
    yield "(x + y) * (x * y).exp()"
    yield "x.exp() + x.exp().log()"
    yield "chained(x, 3000)"
    yield "plain * 2"
    yield "doubled(x, 9)"
    yield "x.exp().detach() * y"
    yield "plain * x + plain"
    yield "(x.exp() + 1) * x.exp() * (x.exp() + 1)"
    yield "chained(x.sin(), 5) * x.sin()"
    for _ in range(6):
        formula = "x"
        for _ in range(rng.integer(2, 5)):
            formula = rng.choice(
                [f"({formula}).sin()", f"({formula}) * y", f"({formula}) + x", f"doubled({formula}, 2)"]
            )
        yield formula


@graph_nodes.wrong(
    "X-4.6-1",
    "A node that is reached on two ways is listed twice. Keep a set of the nodes that you have seen.",
)
def _(t):
    order, stack = [], [(t.grad_fn, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node is not None:
            stack.append((node, True))
            stack += [(earlier, False) for earlier, _ in node.next_functions]
    return order


@graph_nodes.wrong(
    "X-4.6-2",
    "The order is that of the backward pass, with the outputs first. Here every node has to come after its inputs. "
    "(In a list that is only turned round a node with two ways to it may still be too early.)",
)
def _(t):
    order, waiting = [], [t.grad_fn]
    while waiting:
        node = waiting.pop(0)
        if node is not None and node not in order:
            order.append(node)
            waiting += [earlier for earlier, _ in node.next_functions]
    return order


@graph_nodes.wrong(
    "X-4.6-3",
    "Only one way was followed. A node can have several inputs: go through all of next_functions.",
)
def _(t):
    order, node = [], t.grad_fn
    while node is not None:
        order.insert(0, node)
        node = next((earlier for earlier, _ in node.next_functions if earlier is not None), None)
    return order


@graph_nodes.wrong(
    "X-4.6-4",
    "A function that calls itself for each node ends with a RecursionError when the graph is deep, and graphs are: "
    "a thousand steps of training make a thousand nodes. Keep the open nodes in a list of your own.",
)
def _(t):
    order, seen = [], set()

    def visit(node):
        if node is not None and node not in seen:
            seen.add(node)
            for earlier, _ in node.next_functions:
                visit(earlier)
            order.append(node)

    visit(t.grad_fn)
    return order


@graph_nodes.wrong(
    "X-4.6-5",
    "The leaves are missing. Each leaf that requires a gradient has a node as well, AccumulateGrad, which adds to its "
    ".grad.",
)
def _(t):
    order, seen, stack = [], set(), [(t.grad_fn, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node is not None and node not in seen and node.next_functions:
            seen.add(node)
            stack.append((node, True))
            stack += [(earlier, False) for earlier, _ in node.next_functions]
    return order


@graph_nodes.wrong(
    "X-4.6-6",
    "These are names. The nodes themselves are asked for: two nodes can have one name, and still be two.",
)
def _(t):
    order, seen, stack = [], set(), [(t.grad_fn, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node.name())
        elif node is not None and node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(earlier, False) for earlier, _ in node.next_functions]
    return order


@graph_nodes.right
def _(t):
    if t.grad_fn is None:
        return []
    takers, found = {t.grad_fn: 0}, [t.grad_fn]
    for node in found:  # grows while it is read
        for earlier, _ in node.next_functions:
            if earlier is not None:
                if earlier not in takers:
                    takers[earlier] = 0
                    found.append(earlier)
                takers[earlier] += 1
    order, ready = [], [t.grad_fn]
    while ready:
        node = ready.pop()
        order.append(node)
        for earlier, _ in node.next_functions:
            if earlier is not None:
                takers[earlier] -= 1
                if takers[earlier] == 0:
                    ready.append(earlier)
    return order[::-1]


@graph_nodes.right
def _(t):
    done, stack = {}, [t.grad_fn] if t.grad_fn is not None else []
    while stack:
        open_inputs = [n for n, _ in stack[-1].next_functions if n is not None and n not in done]
        if open_inputs:
            stack.append(open_inputs[0])
        else:
            done[stack.pop()] = True
    return list(done)


# ---- 4.7 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.7",
    points=6,
    minutes=40,
    stars=4,
    homework=True,
    concepts=["L-40", "L-41", "L-42"],
    needs=["derivative", "graph_nodes"],
    forbidden=["torch"],
    visible=8,
    hints=[
        "Each operation makes a Value that remembers two things: what it was made of, and the slope with respect to "
        "each of those. backward then only has to multiply and to add, in the right order.",
        "For a product the slope with respect to one factor is the other factor. In backward, order all Values as in "
        "graph_nodes, set the grad of the result to 1, and go through the order from the end: each Value gives its "
        "grad times the slope to each of its inputs, which adds it to what it has.",
        "a + b: Value(self.data + other.data, (self, other), (1.0, ___)). sin: Value(math.sin(self.data), (self,), "
        "(___,)). At the end of backward: for v in reversed(order): for each input and slope of v: input.grad ___ "
        "slope * v.grad.",
    ],
)
def Value(data):
    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (other.data, self.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            order, seen, stack = [], set(), [(self, False)]
            while stack:
                v, ready = stack.pop()
                if ready:
                    order.append(v)
                elif v not in seen:
                    seen.add(v)
                    stack.append((v, True))
                    stack += [(v, False) for v in v.inputs]
            self.grad = 1.0
            for v in reversed(order):
                for value, slope in zip(v.inputs, v.slopes, strict=True):
                    value.grad += slope * v.grad

    return Value(data)


@Value.call
def _(Value, formula, a, b):
    a, b = Value(a), Value(b)

    def chained(v, n):
        for _ in range(n):
            v = v + 1
        return v

    result = eval(formula, {"a": a, "b": b, "chained": chained})
    result.backward()
    return {"value": result.data, "gradient of a": a.grad, "gradient of b": b.grad}


@Value.cases
def _(rng):
    yield "a * b", 2.0, 3.0
    yield "a + b", 2.0, 3.0
    yield "(a * a + 1).log().sin()", 1.0, 0.0
    yield "a * a + a", 3.0, 0.0
    yield "a.sin() * b.log()", 1.0, 2.0
    yield "(a * b).sin() * (a * b) + a * b", 1.5, 0.5
    yield "(lambda c: chained(c, 4) * c)(a + b)", 1.0, 1.0
    yield "chained(a * b, 3000)", 2.0, -1.0
    yield "2 * a + 3", 4.0, 0.0
    yield "(lambda c: (lambda d: d * c + d)(c.sin()))(a * b)", 0.5, 2.0  # c is needed early and late
    yield "(a + a + a).sin()", 0.25, 0.0
    yield "(lambda c: c * c)((lambda c: c * c)(a * b))", 1.5, -0.5
    yield "a", 5.0, 7.0
    yield "b * 0", 1.0, 2.0
    for _ in range(32):
        formula = rng.choice(["a", "b", "a * b", "a + b"])
        for _ in range(rng.integer(2, 4)):
            formula = rng.choice(
                [
                    f"({formula}).sin()",
                    f"({formula}) * a",
                    f"b + ({formula})",
                    f"(lambda c: c * c + 1)({formula}).log()",
                    f"(lambda c: c.sin() * c + c)({formula})",
                ]
            )
        yield formula, rng.integer(-20, 20) / 10, rng.integer(-20, 20) / 10


@Value.wrong(
    "M18",
    "A Value that is used twice gets two contributions, and they have to be added. You wrote the second one over the "
    "first: use += in place of =.",
    sample="wrong_duplicates",
)
def _(data):
    import math

    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (other.data, self.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            order, seen, stack = [], set(), [(self, False)]
            while stack:
                v, ready = stack.pop()
                if ready:
                    order.append(v)
                elif v not in seen:
                    seen.add(v)
                    stack.append((v, True))
                    stack += [(v, False) for v in v.inputs]
            self.grad = 1.0
            for v in reversed(order):
                for value, slope in zip(v.inputs, v.slopes, strict=True):
                    value.grad = slope * v.grad

    return Value(data)


@Value.wrong(
    "X-4.7-1",
    "A Value passed its gradient on before it had all of it: where two ways of different length meet, the short one "
    "came first. Go through the graph in an order in which every Value comes after all that use it.",
)
def _(data):
    import math

    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (other.data, self.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            self.grad = 1.0
            order, seen = [self], {self}
            for v in order:
                for value, slope in zip(v.inputs, v.slopes, strict=True):
                    value.grad += slope * v.grad
                    if value not in seen:
                        seen.add(value)
                        order.append(value)

    return Value(data)


@Value.wrong(
    "X-4.7-2",
    "A backward that calls itself for each Value ends with a RecursionError when the chain is long. Keep the open "
    "Values in a list of your own, as in graph_nodes.",
)
def _(data):
    import math

    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (other.data, self.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            order, seen = [], set()

            def visit(v):
                if v not in seen:
                    seen.add(v)
                    for value in v.inputs:
                        visit(value)
                    order.append(v)

            visit(self)
            self.grad = 1.0
            for v in reversed(order):
                for value, slope in zip(v.inputs, v.slopes, strict=True):
                    value.grad += slope * v.grad

    return Value(data)


@Value.wrong(
    "X-4.7-3",
    "The slopes of the product are mixed up: with respect to one factor the slope is the other factor.",
)
def _(data):
    import math

    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (self.data, other.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            order, seen, stack = [], set(), [(self, False)]
            while stack:
                v, ready = stack.pop()
                if ready:
                    order.append(v)
                elif v not in seen:
                    seen.add(v)
                    stack.append((v, True))
                    stack += [(v, False) for v in v.inputs]
            self.grad = 1.0
            for v in reversed(order):
                for value, slope in zip(v.inputs, v.slopes, strict=True):
                    value.grad += slope * v.grad

    return Value(data)


@Value.wrong(
    "X-4.7-4",
    "The gradients are all 0: the backward pass has to start somewhere. The result moves with itself, so its own grad is 1.",
)
def _(data):
    import math

    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (other.data, self.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            order, seen, stack = [], set(), [(self, False)]
            while stack:
                v, ready = stack.pop()
                if ready:
                    order.append(v)
                elif v not in seen:
                    seen.add(v)
                    stack.append((v, True))
                    stack += [(v, False) for v in v.inputs]
            for v in reversed(order):
                for value, slope in zip(v.inputs, v.slopes, strict=True):
                    value.grad += slope * v.grad

    return Value(data)


@Value.wrong(
    "X-4.7-5",
    "Each Value handed on only the slope of its last operation. The chain rule multiplies it by what has arrived from "
    "above: slope * v.grad.",
)
def _(data):
    import math

    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (other.data, self.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            order, seen, stack = [], set(), [(self, False)]
            while stack:
                v, ready = stack.pop()
                if ready:
                    order.append(v)
                elif v not in seen:
                    seen.add(v)
                    stack.append((v, True))
                    stack += [(v, False) for v in v.inputs]
            self.grad = 1.0
            for v in reversed(order):
                for value, slope in zip(v.inputs, v.slopes, strict=True):
                    value.grad += slope

    return Value(data)


@Value.wrong(
    "X-4.7-6",
    "backward sets grad to 1 in every Value that it is called on, and you call it on the inputs, too: what had arrived there "
    "is gone. Only the Value that it starts from gets the 1; walk through the others in a loop.",
)
def _(data):
    import math

    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (other.data, self.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            self.grad = 1.0
            for value, slope in zip(self.inputs, self.slopes, strict=True):
                value.grad += slope * self.grad
                value.backward()

    return Value(data)


@Value.wrong(
    "X-4.7-7",
    "A Value that is used twice was walked through twice, and the second time it handed on what it had handed on before. "
    "Each Value comes once, after all that use it: order them first, as in graph_nodes.",
)
def _(data):
    import math

    class Value:
        def __init__(self, data, inputs=(), slopes=()):
            self.data, self.grad, self.inputs, self.slopes = float(data), 0.0, inputs, slopes

        def __add__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data + other.data, (self, other), (1.0, 1.0))

        def __mul__(self, other):
            other = other if hasattr(other, "grad") else Value(other)
            return Value(self.data * other.data, (self, other), (other.data, self.data))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return Value(math.log(self.data), (self,), (1 / self.data,))

        def sin(self):
            return Value(math.sin(self.data), (self,), (math.cos(self.data),))

        def backward(self):
            self.grad, waiting, steps = 1.0, [self], 0
            while waiting and steps < 10_000:
                v, steps = waiting.pop(), steps + 1
                for value, slope in zip(v.inputs, v.slopes, strict=True):
                    value.grad += slope * v.grad
                    waiting.append(value)

    return Value(data)


@Value.right
def _(data):
    import math

    class Value:
        def __init__(self, data, *made_of):
            self.data, self.grad, self.made_of = data, 0.0, made_of

        def __add__(self, other):
            other = Value.of(other)
            return Value(self.data + other.data, (self, 1.0), (other, 1.0))

        def __mul__(self, other):
            other = Value.of(other)
            return Value(self.data * other.data, (self, other.data), (other, self.data))

        __radd__, __rmul__ = __add__, __mul__

        @staticmethod
        def of(number):
            return number if hasattr(number, "grad") else Value(number)

        def log(self):
            return Value(math.log(self.data), (self, 1 / self.data))

        def sin(self):
            return Value(math.sin(self.data), (self, math.cos(self.data)))

        def backward(self):
            uses, found = {self: 0}, [self]
            for v in found:
                for value, _ in v.made_of:
                    if value not in uses:
                        uses[value] = 0
                        found.append(value)
                    uses[value] += 1
            self.grad, ready = 1.0, [self]
            while ready:
                v = ready.pop()
                for value, slope in v.made_of:
                    value.grad += slope * v.grad
                    uses[value] -= 1
                    if not uses[value]:
                        ready.append(value)

    return Value(float(data))


@Value.right
def _(data):
    import math

    class Value:
        def __init__(self, data, push=None, inputs=()):
            self.data, self.grad, self.push, self.inputs = data, 0.0, push, inputs
            self.depth = 1 + max((v.depth for v in inputs), default=0)

        def _binary(self, other, f, slopes):
            other = other if hasattr(other, "grad") else Value(other)
            s, o = slopes(self.data, other.data)

            def push(grad):
                self.grad += s * grad
                other.grad += o * grad

            return Value(f(self.data, other.data), push, (self, other))

        def _unary(self, value, slope):
            def push(grad):
                self.grad += slope * grad

            return Value(value, push, (self,))

        def __add__(self, other):
            return self._binary(other, lambda a, b: a + b, lambda a, b: (1, 1))

        def __mul__(self, other):
            return self._binary(other, lambda a, b: a * b, lambda a, b: (b, a))

        __radd__, __rmul__ = __add__, __mul__

        def log(self):
            return self._unary(math.log(self.data), 1 / self.data)

        def sin(self):
            return self._unary(math.sin(self.data), math.cos(self.data))

        def backward(self):
            found, waiting = {self}, [self]
            while waiting:
                new = set(waiting.pop().inputs) - found
                found |= new
                waiting += new
            self.grad = 1.0
            for v in sorted(found, key=lambda v: -v.depth):  # what is made of a Value is deeper than it
                if v.push:
                    v.push(v.grad)

    return Value(float(data))


# ---- 4.8 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.8",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-43"],
    needs=["leaf_report"],
    visible=5,
    hints=[
        "backward() adds to .grad. That is what you want from batch to batch, and not what you want from step to step.",
        "Clear before the loop, w.grad = None, and not in it. The update has to write into w itself, and autograd must "
        "not record it: with torch.no_grad(). Without any batch w.grad stays None.",
        "w.grad = None; in a loop over batches loss(w, x).backward(); used = torch.zeros_like(w) if w.grad is None else "
        "w.grad; with torch.no_grad(): w ___ rate * used; w.grad = ___; return used.",
    ],
)
def training_step(w, batches, rate, loss):
    w.grad = None
    for x in batches:
        loss(w, x).backward()
    used = torch.zeros_like(w) if w.grad is None else w.grad
    with torch.no_grad():
        w -= rate * used
    w.grad = None
    return used


@training_step.call
def _(training_step, w, batches, rate, left_over):
    import torch

    def loss(w, x):
        return torch.sin(torch.log((w * x) ** 2 + 1)).sum()

    seen = {}
    w.grad = left_over
    for step in ("first step", "second step"):
        used = training_step(w, batches, rate, loss)
        left = None if w.grad is None else w.grad.detach().clone()
        seen[step] = {"gradient used": used, "w": w.detach().clone(), "w.grad": left}
    return seen


@training_step.facts
def _(result, w, batches, rate, left_over):
    for step in result.values():
        left = step.pop("w.grad")
        step["w.grad is cleared"] = left is None or not left.any().item()
    return result


@training_step.cases
def _(rng):
    def one(*numbers):
        return torch.tensor(numbers, requires_grad=True)

    yield one(1.0), [torch.tensor([1.0])], 0.0, None  # 0.7692, and again 0.7692
    yield one(1.0), [torch.tensor([1.0]), torch.tensor([1.0])], 0.5, None
    yield one(1.0, -2.0), [torch.tensor([1.0, 2.0]), torch.tensor([0.5, 3.0])], 0.1, None
    yield one(1.0), [torch.tensor([2.0])], 0.1, torch.tensor([10.0])
    yield one(1.0, 2.0), [], 0.5, None
    yield one(3.0), [], 0.5, torch.tensor([1.0])
    yield (
        one(0.5),
        [torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]]), torch.tensor([[5.0], [6.0]])],
        0.05,
        None,
    )
    for _ in range(10):
        n = rng.integer(1, 3)
        batches = [rng.normal(rng.integer(1, 3), n) for _ in range(rng.integer(1, 4))]
        yield rng.normal(n).requires_grad_(), batches, rng.choice([0.01, 0.1, 0.5]), rng.choice([None, rng.normal(n)])


@training_step.wrong(
    "M18",
    "Only the last batch counts: .grad was cleared between the batches. backward() adds to .grad, and here that is "
    "just right. Clear it once a step, not once a batch.",
)
def _(w, batches, rate, loss):
    import torch

    used = torch.zeros_like(w)
    for x in batches:
        w.grad = None
        loss(w, x).backward()
        used = w.grad
    with torch.no_grad():
        w -= rate * used
    w.grad = None
    return used


@training_step.wrong(
    "X-4.8-1",
    "The gradient of an earlier step is still in it: nobody clears .grad for you. At w = 1 and x = 1 that is how "
    "0.7692 becomes 1.5385. Clear it before the first batch and after the update.",
)
def _(w, batches, rate, loss):
    import torch

    for x in batches:
        loss(w, x).backward()
    used = torch.zeros_like(w) if w.grad is None else w.grad.clone()
    with torch.no_grad():
        w -= rate * used
    return used


@training_step.wrong(
    "X-4.8-2",
    "A leaf that requires its gradient cannot be written to while autograd records. Put the update under with "
    "torch.no_grad().",
)
def _(w, batches, rate, loss):
    import torch

    w.grad = None
    for x in batches:
        loss(w, x).backward()
    used = torch.zeros_like(w) if w.grad is None else w.grad
    w -= rate * used
    w.grad = None
    return used


@training_step.wrong(
    "X-4.8-3",
    "The caller's w has not moved: w = w - ... makes a new tensor and calls it w inside of your function. Write into "
    "w, with -= under no_grad.",
)
def _(w, batches, rate, loss):
    import torch

    w.grad = None
    for x in batches:
        loss(w, x).backward()
    used = torch.zeros_like(w) if w.grad is None else w.grad
    w.grad = None
    with torch.no_grad():
        w = w - rate * used
    return used


@training_step.wrong(
    "X-4.8-8",
    "The caller's w has not moved, and its .grad is not cleared: w = w - ... makes a new tensor and calls it w inside of your "
    "function, and from then on you deal with that one. Write into w, with -= under no_grad.",
)
def _(w, batches, rate, loss):
    import torch

    w.grad = None
    for x in batches:
        loss(w, x).backward()
    used = torch.zeros_like(w) if w.grad is None else w.grad
    with torch.no_grad():
        w = w - rate * used
    w.grad = None
    return used


@training_step.wrong(
    "X-4.8-4",
    "The step goes uphill. The gradient shows where the loss grows: go the other way, w -= rate * gradient.",
)
def _(w, batches, rate, loss):
    import torch

    w.grad = None
    for x in batches:
        loss(w, x).backward()
    used = torch.zeros_like(w) if w.grad is None else w.grad
    with torch.no_grad():
        w += rate * used
    w.grad = None
    return used


@training_step.wrong(
    "X-4.8-5",
    "The gradient that you return is all zeros: it is the very tensor that zero_() cleared. Clear with w.grad = None, "
    "or return a clone.",
)
def _(w, batches, rate, loss):
    import torch

    w.grad = None
    for x in batches:
        loss(w, x).backward()
    used = torch.zeros_like(w) if w.grad is None else w.grad
    with torch.no_grad():
        w -= rate * used
    used.zero_()
    return used


@training_step.wrong(
    "X-4.8-6",
    "Without any batch backward() is never called and w.grad is None. Then the gradient is zero, and w stays as it is.",
)
def _(w, batches, rate, loss):
    import torch

    w.grad = None
    for x in batches:
        loss(w, x).backward()
    used = w.grad
    with torch.no_grad():
        w -= rate * used
    w.grad = None
    return used


@training_step.wrong(
    "X-4.8-7",
    "The gradient was divided by the number of batches. The sum of their losses is to go down, so their gradients are added.",
)
def _(w, batches, rate, loss):
    import torch

    w.grad = None
    for x in batches:
        (loss(w, x) / len(batches)).backward()
    used = torch.zeros_like(w) if w.grad is None else w.grad
    with torch.no_grad():
        w -= rate * used
    w.grad = None
    return used


@training_step.right
def _(w, batches, rate, loss):
    import torch

    total = sum((loss(w, x) for x in batches), (w * 0).sum())
    (used,) = torch.autograd.grad(total, w)
    w.grad = None
    with torch.no_grad():
        w.sub_(rate * used)
    return used


@training_step.right
def _(w, batches, rate, loss):
    import torch

    w.grad = torch.zeros_like(w)
    for x in batches:
        loss(w, x).backward()
    used = w.grad.clone()
    with torch.no_grad():
        w.copy_(w - rate * used)
    w.grad.zero_()
    return used


# ---- 4.9 ------------------------------------------------------------------------------------------------------------


@exercise(
    "4.9",
    points=4,
    minutes=20,
    stars=3,
    concepts=["L-41", "L-42"],
    needs=["backward_pass"],
    visible=4,
    hints=[
        "forward is the formula and a note of what backward needs. backward is one step of the chain rule: what "
        "arrives from above, times the slope of this operation.",
        "ctx.save_for_backward(x) keeps x, and (x,) = ctx.saved_tensors brings it back. The slope of log(x * x + 1) is "
        "2 * x / (x * x + 1). Compute it with torch operations on x itself: then torch can differentiate it again.",
        "forward: ctx.save_for_backward(___); return torch.log(x * x + 1). backward: (x,) = ctx.saved_tensors; return "
        "slope * 2 * x / ___.",
    ],
)
def log_square(x):
    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.log(x * x + 1)

        @staticmethod
        def backward(ctx, slope):
            (x,) = ctx.saved_tensors
            return slope * 2 * x / (x * x + 1)

    return LogSquare.apply(x)


@log_square.call
def _(log_square, x):
    import torch

    x = x.detach().clone().requires_grad_()
    value = log_square(x)
    if not isinstance(value, torch.Tensor) or value.shape != x.shape or not value.requires_grad:
        return {"value": value.detach() if isinstance(value, torch.Tensor) else value}
    weights = torch.arange(1.0, x.numel() + 1, dtype=x.dtype, device=x.device).reshape(x.shape)
    below = [getattr(node, "variable", None) is x for node, _ in value.grad_fn.next_functions] if value.grad_fn else []
    seen = {"value": value.detach(), "one node, and x below it": below == [True]}
    (first,) = torch.autograd.grad((value * weights).sum(), x, create_graph=True)
    seen["gradient"] = first.detach()
    second = torch.autograd.grad((first * weights).sum(), x, allow_unused=True)[0] if first.requires_grad else None
    seen["second derivative"] = second
    for place, step in (("ahead", 1e-6), ("behind", -1e-6)):
        near = (x.detach() + step).requires_grad_()
        there = log_square(near)
        seen[f"value {place}"] = there.detach()
        seen[f"gradient {place}"] = torch.autograd.grad((there * weights).sum(), near)[0]
    changed = x * 1
    later = log_square(changed)
    changed += 1
    try:
        later.sum().backward()
        seen["a write to what is saved is noticed"] = False
    except RuntimeError:
        seen["a write to what is saved is noticed"] = True
    return seen


@log_square.facts
def _(result, x):
    import torch

    def agree(ahead, behind, slope):
        """Whether two near points tell the slope that was found: with the tolerances of torch's gradcheck."""
        kind = lambda t: isinstance(t, torch.Tensor) and (t.shape, t.dtype, t.layout)
        if any(kind(t) != kind(x) for t in (ahead, behind, slope)):
            return False
        return torch.allclose((ahead - behind) / 2e-6 * weights, slope, rtol=1e-3, atol=1e-5)

    answered = "gradient" in result
    told = {name: result.get(name, False) for name in ("value", "one node, and x below it")}
    told |= {name: result.get(name) for name in ("gradient", "second derivative")}
    if x.numel() and not answered:
        told |= {"gradcheck": False, "gradgradcheck": False}
    elif x.numel():
        weights = torch.arange(1.0, x.numel() + 1, dtype=x.dtype).reshape(x.shape)
        told["gradcheck"] = agree(result["value ahead"], result["value behind"], result["gradient"])
        told["gradgradcheck"] = agree(result["gradient ahead"], result["gradient behind"], result["second derivative"])
    name = "a write to what is saved is noticed"
    return told | {name: result.get(name, False)}


@log_square.cases
def _(rng):
    def wide(*numbers):
        return torch.tensor(numbers, dtype=torch.float64)

    yield wide(1.0)
    yield wide(0.0, -2.0, 3.0)
    yield torch.tensor(0.5, dtype=torch.float64)
    yield torch.tensor([[0.25, 1.5], [-1.0, 2.0]], dtype=torch.float64)
    yield torch.tensor([], dtype=torch.float64)
    yield wide(1e-3, 1e3)
    for _ in range(5):
        yield rng.normal(rng.integer(1, 4), dtype=torch.float64)


@log_square.wrong(
    "X-4.9-1",
    "What arrives from above was left out: backward gets the slope of everything after this operation, and has to "
    "multiply it by its own.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.log(x * x + 1)

        @staticmethod
        def backward(ctx, slope):
            (x,) = ctx.saved_tensors
            return 2 * x / (x * x + 1)

    return LogSquare.apply(x)


@log_square.wrong(
    "X-4.9-2",
    "The inner slope is missing: log(g) has the slope 1 / g, and g = x * x + 1 has the slope 2 * x. Multiply both.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.log(x * x + 1)

        @staticmethod
        def backward(ctx, slope):
            (x,) = ctx.saved_tensors
            return slope / (x * x + 1)

    return LogSquare.apply(x)


@log_square.wrong(
    "X-4.9-3",
    "Value and gradients are right, but x was kept as an attribute of ctx. Then torch does not notice when somebody "
    "writes into x before the backward pass, and the gradient is silently wrong. Keep it with ctx.save_for_backward.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return torch.log(x * x + 1)

        @staticmethod
        def backward(ctx, slope):
            return slope * 2 * ctx.x / (ctx.x * ctx.x + 1)

    return LogSquare.apply(x)


@log_square.wrong(
    "X-4.9-4",
    "The gradient is right, its own derivative is not: backward computed the slope with a detached x (or with a slope "
    "that forward had computed already), so torch takes it for a constant. Save x, and compute with x in backward.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            g = x * x + 1
            ctx.save_for_backward(x, 2 * x / g)
            return torch.log(g)

        @staticmethod
        def backward(ctx, slope):
            _, own = ctx.saved_tensors
            return slope * own

    return LogSquare.apply(x)


@log_square.wrong(
    "X-4.9-5",
    "The value is right, and no backward of yours is used: something inside rounds to float32, so that the gradients "
    "are not those of the function. Stay in the dtype of x.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.log(x * x + 1)

        @staticmethod
        def backward(ctx, slope):
            (x,) = ctx.saved_tensors
            return slope * (2 * x.float() / (x.float() * x.float() + 1)).to(slope.dtype)

    return LogSquare.apply(x)


@log_square.wrong(
    "X-4.9-6",
    "The 1 stands outside of the logarithm: log(x * x + 1) is asked for. At x = 0 yours is minus infinity.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.log(x * x) + 1

        @staticmethod
        def backward(ctx, slope):
            (x,) = ctx.saved_tensors
            return slope * 2 / x

    return LogSquare.apply(x)


@log_square.wrong(
    "X-4.9-7",
    "The formula was typed, and torch put its own nodes together: your Function was not used. log_square has to call "
    "LogSquare.apply(x).",
)
def _(x):
    import torch

    return torch.log(x * x + 1)


@log_square.wrong(
    "X-4.9-8",
    "A Function is not called but applied: LogSquare.apply(x). LogSquare(x) makes an object that computes nothing.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.log(x * x + 1)

        @staticmethod
        def backward(ctx, slope):
            (x,) = ctx.saved_tensors
            return slope * 2 * x / (x * x + 1)

    return LogSquare(x)


@log_square.wrong(
    "X-4.9-9",
    "ctx.saved_tensors is a tuple, also when one tensor was saved. Unpack it, as Exp does.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.log(x * x + 1)

        @staticmethod
        def backward(ctx, slope):
            x = ctx.saved_tensors
            return slope * 2 * x / (x * x + 1)

    return LogSquare.apply(x)


@log_square.wrong(
    "X-4.9-10",
    "The gradient is right, its own derivative is not: x * x + 1 was saved as it came out in forward, and nothing of "
    "forward is recorded, so torch takes it for a constant. Save x alone, and compute x * x + 1 again in backward.",
)
def _(x):
    import torch

    class LogSquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            g = x * x + 1
            ctx.save_for_backward(x, g)
            return torch.log(g)

        @staticmethod
        def backward(ctx, slope):
            x, g = ctx.saved_tensors
            return slope * 2 * x / g

    return LogSquare.apply(x)


@log_square.right
def _(x):
    import torch

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            g = x.square().add(1)
            ctx.save_for_backward(x)
            return g.log()

        @staticmethod
        def backward(ctx, from_above):
            x = ctx.saved_tensors[0]
            return from_above.mul(x).mul(2).div(x.square().add(1))

    return Function.apply(x)


@log_square.right
def _(x):
    import torch

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return torch.log1p(x**2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, slope):
            (x,) = ctx.saved_tensors
            return slope * (2 * x / (1 + x**2))

    return Function.apply(x)


# ---- 4.10 -----------------------------------------------------------------------------------------------------------


@exercise(
    "4.10",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-44", "L-45"],
    needs=["forward_pass"],
    visible=2,
    hints=[
        "Two models, two runs, each in a folder of its own. A model is a torch.nn.Module whose forward is the function; "
        "for the first one torch has all the parts.",
        "torch.nn.Sequential takes modules: torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1). For the second "
        "write forward of OurNet: x * x + 1, then torch.log, then torch.sin. log_graph(model, x, folder / name) logs one run.",
        'log_graph(torch.nn.Sequential(torch.nn.Tanh(), ___, ___), x, folder / "sequential"), and then '
        'log_graph(___, x, folder / "ournet").',
    ],
)
def logged_graphs(x, folder):
    from autograder.tensorboard import log_graph

    class OurNet(torch.nn.Module):
        def forward(self, x):
            g = x * x + 1
            h = torch.log(g)
            return torch.sin(h)

    log_graph(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1)), x, folder / "sequential")
    log_graph(OurNet(), x, folder / "ournet")


@logged_graphs.call
def _(logged_graphs, x):
    import pathlib
    import tempfile
    import threading

    def writing():
        return {thread for thread in threading.enumerate() if type(thread).__name__ == "_AsyncWriterThread"}

    with tempfile.TemporaryDirectory() as place:
        folder, runs, before = pathlib.Path(place), {}, writing()
        logged_graphs(x, folder)
        left_open = writing() - before
        for thread in left_open:  # it would go on writing into a folder that is gone
            thread.stop()
            thread.join()
        for path in [] if left_open else sorted(folder.rglob("*tfevents*"), key=lambda path: (len(path.name), path)):
            with path.open("rb") as file:
                runs.setdefault(path.parent.relative_to(folder).as_posix(), []).append(file.read(1 << 20))
        return {"writers left open": len(left_open), "runs": runs}


@logged_graphs.facts
def _(result, x):
    from autograder.events import runs

    found = runs(result["runs"])
    folders = ", ".join(sorted(found)) or "none"
    return {"writers left open": result["writers left open"], "folders with runs": folders, "runs": found}


@logged_graphs.cases
def _(rng):
    yield (rng.normal(5, 7),)
    yield (rng.normal(2, 3),)
    yield (rng.normal(1, 1, dtype=torch.float64),)
    yield (rng.normal(rng.integer(2, 6), rng.integer(2, 6)),)


@logged_graphs.wrong(
    "X-4.10-1",
    "Both graphs are in one folder. TensorBoard takes a folder for one run and shows only one graph of it: give each "
    "model a folder of its own, as the names in the task say.",
)
def _(x, folder):
    import torch

    from autograder.tensorboard import log_graph

    class OurNet(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.log(x * x + 1))

    log_graph(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1)), x, folder)
    log_graph(OurNet(), x, folder)


@logged_graphs.wrong(
    "X-4.10-2",
    "The writers were left open. A SummaryWriter may hold back for two minutes what it was given; close() makes sure that "
    "it is in the file, and so does a with statement. log_graph closes for you.",
)
def _(x, folder):
    import warnings

    import torch
    from torch.utils.tensorboard import SummaryWriter

    class OurNet(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.log(x * x + 1))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1))
        SummaryWriter(folder / "sequential").add_graph(first, x)
        SummaryWriter(folder / "ournet").add_graph(OurNet(), x)


@logged_graphs.wrong(
    "X-4.10-3",
    "In OurNet the square is a power (pow) in place of a product. The numbers are the same, the graph is another one: "
    "x * x takes x twice, x ** 2 takes it once. The product is asked for.",
)
def _(x, folder):
    import torch

    from autograder.tensorboard import log_graph

    class OurNet(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.log(x**2 + 1))

    log_graph(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1)), x, folder / "sequential")
    log_graph(OurNet(), x, folder / "ournet")


@logged_graphs.wrong(
    "X-4.10-4",
    "OurNet takes the sine first and then the logarithm. sin(log(x * x + 1)) begins inside: x * x + 1, log, sin.",
)
def _(x, folder):
    import torch

    from autograder.tensorboard import log_graph

    class OurNet(torch.nn.Module):
        def forward(self, x):
            return torch.log(torch.sin(x * x + 1))

    log_graph(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1)), x, folder / "sequential")
    log_graph(OurNet(), x, folder / "ournet")


@logged_graphs.wrong(
    "M14",
    "The softmax runs along the other dimension. dim=1 is the one that is summed over: the numbers of each row add up to 1.",
)
def _(x, folder):
    import torch

    from autograder.tensorboard import log_graph

    class OurNet(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.log(x * x + 1))

    log_graph(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=0)), x, folder / "sequential")
    log_graph(OurNet(), x, folder / "ournet")


@logged_graphs.wrong(
    "X-4.10-5",
    "A run has two graphs: it was logged to twice. TensorBoard shows one of them and complains. One graph for each run.",
)
def _(x, folder):
    import torch

    from autograder.tensorboard import log_graph

    class OurNet(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.log(x * x + 1))

    log_graph(torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1)), x, folder / "sequential")
    log_graph(OurNet(), x, folder / "ournet")
    log_graph(OurNet(), x, folder / "ournet")


@logged_graphs.wrong(
    "X-4.10-6", "The parts of the Sequential stand in another order: first Tanh, then ReLU, then Softmax."
)
def _(x, folder):
    import torch

    from autograder.tensorboard import log_graph

    class OurNet(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.log(x * x + 1))

    log_graph(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh(), torch.nn.Softmax(dim=1)), x, folder / "sequential")
    log_graph(OurNet(), x, folder / "ournet")


@logged_graphs.wrong(
    "X-4.10-7",
    "Nothing was logged below folder. fresh_run makes up a place of its own, under runs; here the place is given: "
    'folder / "sequential" and folder / "ournet".',
)
def _(x, folder):
    import pathlib
    import tempfile

    import torch

    from autograder.tensorboard import log_graph

    class OurNet(torch.nn.Module):
        def forward(self, x):
            return torch.sin(torch.log(x * x + 1))

    with tempfile.TemporaryDirectory() as place:
        elsewhere = pathlib.Path(place)
        first = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1))
        log_graph(first, x, elsewhere / "sequential")
        log_graph(OurNet(), x, elsewhere / "ournet")


@logged_graphs.right
def _(x, folder):
    import warnings

    import torch
    from torch.utils.tensorboard import SummaryWriter

    class Another(torch.nn.Module):
        def __init__(self):
            super().__init__()

        def forward(self, x):
            return x.mul(x).add(1).log().sin()

    parts = torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=-1 if x.dim() == 1 else 1)
    for name, model in {"ournet": Another(), "sequential": torch.nn.Sequential(*parts)}.items():
        writer = SummaryWriter(folder / name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            writer.add_graph(model, x)
        writer.close()


@logged_graphs.right
def _(x, folder):
    import torch

    from autograder.tensorboard import log_graph

    class First(torch.nn.Module):
        def forward(self, x):
            return torch.softmax(torch.relu(torch.tanh(x)), dim=1)

    class Second(torch.nn.Module):
        def forward(self, x):
            g = x * x + 1.0
            h = torch.log(g)
            return torch.sin(h)

    for name, kind in (("sequential", First), ("ournet", Second)):
        log_graph(kind(), x, str(folder / name))


# ---- 4.11 -----------------------------------------------------------------------------------------------------------


@exercise(
    "4.11",
    points=4,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["L-44"],
    needs=["logged_graphs"],
    tolerance=(1e-4, 1e-12),
    visible=5,
    hints=[
        "Two jobs. Log: for each layer and each step one number and one histogram. Find: compare each layer with the next "
        "one, and begin at the output, for behind the culprit everything is small.",
        "The size of a gradient is its norm: row.norm(). writer.add_scalar(tag, number, step) and "
        "writer.add_histogram(tag, row, step), with a SummaryWriter(folder) in a with statement. For the search take the "
        "norms of the last row, from the last layer to the first.",
        'for step, row in enumerate(rows): writer.add_scalar(f"gradient/{layer}", ___, step), and the same with '
        "add_histogram and row. Then for the layers in reversed order: if the norm of one is less than ___ of the one before "
        "it in this order, return its name. At the end return None.",
    ],
)
def vanishing_layer(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            for step, row in enumerate(rows):
                writer.add_scalar(f"gradient/{layer}", row.norm(), step)
                writer.add_histogram(f"gradient/{layer}", row, step)
    sizes = {layer: rows[-1].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for layer, after in zip(layers[-2::-1], layers[:0:-1], strict=True):
        if sizes[layer] < sizes[after] / 100:
            return layer
    return None


@vanishing_layer.call
def _(vanishing_layer, gradients):
    import pathlib
    import tempfile
    import threading

    def writing():
        return {thread for thread in threading.enumerate() if type(thread).__name__ == "_AsyncWriterThread"}

    with tempfile.TemporaryDirectory() as place:
        folder, runs, before = pathlib.Path(place), {}, writing()
        answer = vanishing_layer(gradients, folder)
        left_open = writing() - before
        for thread in left_open:  # it would go on writing into a folder that is gone
            thread.stop()
            thread.join()
        for path in [] if left_open else sorted(folder.rglob("*tfevents*"), key=lambda path: (len(path.name), path)):
            with path.open("rb") as file:
                runs.setdefault(path.parent.relative_to(folder).as_posix(), []).append(file.read(1 << 20))
        return {"the layer": answer, "writers left open": len(left_open), "runs": runs}


@vanishing_layer.facts
def _(result, gradients):
    from autograder.events import runs

    found = runs(result["runs"])
    folders = ", ".join(sorted(found)) or "none"
    told = {"the layer": result["the layer"], "writers left open": result["writers left open"]}
    return told | {"folders with runs": folders, "runs": found}


@vanishing_layer.cases
def _(rng):
    def network(*sizes, steps=2, first=None, width=3, name="layer"):
        """Gradients of these sizes at the last step, and of the sizes `first` before it."""
        layers = {}
        for n, size in enumerate(sizes):
            rows = rng.normal(steps, width)
            rows = rows / rows.norm(dim=1, keepdim=True)
            wanted = [size if first is None else first[n]] * (steps - 1) + [size]
            layers[f"{name}{n + 1}"] = rows * torch.tensor(wanted)[:, None]
        return (layers,)

    yield network(1e-3, 0.5, 1.0)
    yield network(1.0, 0.5, 2.0)  # nothing vanishes
    yield network(1e-5, 2e-5, 0.3, 0.6)  # layer1 is smaller still, layer2 is where it happens
    yield network(1e-6, 1.0, 1e-4, 1.0)  # in two places
    yield network(1.0, 1e-3, 1.0, first=[1e-3, 1.0, 1.0])
    yield network(0.01, 0.05, 0.3, 1.0)  # fades slowly, and never at one place
    yield network(2e-7, 1e-6, 5e-7)  # all are small, and none vanishes
    yield network(0.5, 0.0, 1.0)
    yield network(3.0, steps=1)
    yield network(1e-9, 1e-6, 1e-3, 1.0, steps=3)
    for _ in range(5):
        sizes = [1.0]
        for _ in range(rng.integer(2, 4)):
            sizes.insert(0, sizes[0] * rng.choice([2.0, 0.5, 1 / 70, 1 / 140, 1e-4]))
        yield network(*sizes, steps=rng.integer(1, 2), name=rng.choice(["layer", "conv", "block."]))
    yield network(1 / 120, 1.0, 1 / 80, 1.0, name="encoder/")


@vanishing_layer.wrong(
    "X-4.11-1",
    "That is the layer with the smallest gradient. What has vanished stays small in all layers before it, so the "
    "smallest one is often an innocent neighbour. Find the place where it drops, coming from the output.",
)
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            for step, row in enumerate(rows):
                writer.add_scalar(f"gradient/{layer}", row.norm(), step)
                writer.add_histogram(f"gradient/{layer}", row, step)
    sizes = {layer: float(rows[-1].norm()) for layer, rows in gradients.items()}
    smallest = min(sizes, key=sizes.get)
    return smallest if sizes[smallest] < max(sizes.values()) / 100 else None


@vanishing_layer.wrong(
    "X-4.11-2",
    "The size of a gradient is its norm. In a mean or a sum positive and negative entries cancel, so that a large "
    "gradient can look like none.",
)
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            for step, row in enumerate(rows):
                writer.add_scalar(f"gradient/{layer}", row.mean(), step)
                writer.add_histogram(f"gradient/{layer}", row, step)
    sizes = {layer: rows[-1].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for layer, after in zip(layers[-2::-1], layers[:0:-1], strict=True):
        if sizes[layer] < sizes[after] / 100:
            return layer
    return None


@vanishing_layer.wrong(
    "X-4.11-3",
    "All layers went into one curve, which jumps up and down. The tag names the curve: give each layer its own, gradient/ "
    "and the name of the layer.",
)
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for rows in gradients.values():
            for step, row in enumerate(rows):
                writer.add_scalar("gradient", row.norm(), step)
                writer.add_histogram("gradient", row, step)
    sizes = {layer: rows[-1].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for layer, after in zip(layers[-2::-1], layers[:0:-1], strict=True):
        if sizes[layer] < sizes[after] / 100:
            return layer
    return None


@vanishing_layer.wrong(
    "X-4.11-4",
    "The steps are missing: without its third argument add_scalar puts everything at step 0, one point on top of the other.",
)
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            for row in rows:
                writer.add_scalar(f"gradient/{layer}", row.norm())
                writer.add_histogram(f"gradient/{layer}", row)
    sizes = {layer: rows[-1].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for layer, after in zip(layers[-2::-1], layers[:0:-1], strict=True):
        if sizes[layer] < sizes[after] / 100:
            return layer
    return None


@vanishing_layer.wrong(
    "X-4.11-5",
    "The search began at the input. A gradient travels from the output to the input: where several places drop, the "
    "one nearest to the output is the first one it meets.",
)
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            for step, row in enumerate(rows):
                writer.add_scalar(f"gradient/{layer}", row.norm(), step)
                writer.add_histogram(f"gradient/{layer}", row, step)
    sizes = {layer: rows[-1].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for place, layer in enumerate(layers[:-1]):
        after = layers[place + 1]
        if sizes[layer] < sizes[after] / 100:
            return layer
    return None


@vanishing_layer.wrong(
    "X-4.11-8",
    "All steps of a layer went into one number. Each row is a step of its own, with a scalar and a histogram of its own.",
)
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            writer.add_scalar(f"gradient/{layer}", rows.norm(), 0)
            writer.add_histogram(f"gradient/{layer}", rows, 0)
    sizes = {layer: rows[-1].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for place in reversed(range(len(layers) - 1)):
        if sizes[layers[place]] < sizes[layers[place + 1]] / 100:
            return layers[place]
    return None


@vanishing_layer.wrong("X-4.11-9", "The steps are numbered from 1. Row s is step s, and rows begin at 0.")
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            for step, row in enumerate(rows, start=1):
                writer.add_scalar(f"gradient/{layer}", row.norm(), step)
                writer.add_histogram(f"gradient/{layer}", row, step)
    sizes = {layer: rows[-1].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for place in reversed(range(len(layers) - 1)):
        if sizes[layers[place]] < sizes[layers[place + 1]] / 100:
            return layers[place]
    return None


@vanishing_layer.wrong(
    "X-4.11-6",
    "You took the first step. Before training has begun to work a gradient may be small for a moment; look at the last step.",
)
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            for step, row in enumerate(rows):
                writer.add_scalar(f"gradient/{layer}", row.norm(), step)
                writer.add_histogram(f"gradient/{layer}", row, step)
    sizes = {layer: rows[0].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for layer, after in zip(layers[-2::-1], layers[:0:-1], strict=True):
        if sizes[layer] < sizes[after] / 100:
            return layer
    return None


@vanishing_layer.wrong(
    "X-4.11-7",
    "The answer is right, and the writer was left open, so nobody knows when the numbers are in the file. Use "
    "SummaryWriter in a with statement.",
)
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)
    for layer, rows in gradients.items():
        for step, row in enumerate(rows):
            writer.add_scalar(f"gradient/{layer}", row.norm(), step)
            writer.add_histogram(f"gradient/{layer}", row, step)
    sizes = {layer: rows[-1].norm() for layer, rows in gradients.items()}
    layers = list(sizes)
    for layer, after in zip(layers[-2::-1], layers[:0:-1], strict=True):
        if sizes[layer] < sizes[after] / 100:
            return layer
    return None


@vanishing_layer.right
def _(gradients, folder):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(log_dir=str(folder))
    answer, above = None, None
    for layer in reversed(gradients):
        rows = gradients[layer]
        for step in range(len(rows)):
            size = (rows[step] ** 2).sum().sqrt().item()
            writer.add_scalar("gradient/" + layer, size, step)
            writer.add_histogram("gradient/" + layer, rows[step].cpu().numpy(), step)
        if above is not None and answer is None and size * 100 < above:
            answer = layer
        above = size
    writer.close()
    return answer


@vanishing_layer.right
def _(gradients, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        for step in range(max(map(len, gradients.values()))):
            for layer, rows in gradients.items():
                writer.add_histogram(f"gradient/{layer}", rows[step], global_step=step)
                writer.add_scalar(f"gradient/{layer}", torch.linalg.vector_norm(rows[step]), global_step=step)
    names = list(gradients)
    last = torch.stack([gradients[name][-1] for name in names]).norm(dim=1)
    drops = (last[:-1] < last[1:] * 0.01).nonzero().flatten()
    return names[drops[-1]] if len(drops) else None


# ---- 4.12 -----------------------------------------------------------------------------------------------------------


@exercise(
    "4.12",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-41", "L-43"],
    needs=["training_step"],
    properties=[gradient],
    gradient=True,
    visible=5,
    hints=[
        "Two lines write into a tensor that is still needed: one into the leaf, one into a result that the backward pass "
        "reads again. Each has a sister that makes a new tensor.",
        "For the first, torch.where(x < 0, 0, x), or relu, or clamp(min=0). For the second, leave out the in-place: "
        "e = e + 1 makes a new tensor, and the old one stays as exp left it.",
        "x = torch.where(x < 0, ___, x); e = torch.exp(-x); e = ___; return torch.log(e).",
    ],
)
def repaired(x):
    positive = x.clamp(min=0)
    e = torch.exp(-positive)
    return torch.log(e + 1)


@repaired.cases
def _(rng):
    def ask(*numbers):
        return torch.tensor(numbers, requires_grad=True)

    yield ask(1.0, -2.0, 3.0)
    yield (torch.tensor([-1.0, 2.0]),)  # nobody asks for a gradient, and still x is not ours to write to
    yield ask(-1.0)
    yield ask(2.0, 0.5)
    yield ask(float("-inf"), 1.0)
    yield (torch.tensor([]),)
    yield (torch.tensor([[1.0, -1.0], [-0.5, 20.0]], dtype=torch.float64).t().requires_grad_(),)
    yield ask(100.0, -100.0)
    for _ in range(8):
        signs = rng.choice([1.0, -1.0])
        yield ((rng.normal(rng.integer(1, 5)) + 0.003) * signs).requires_grad_()


@repaired.wrong(
    "X-4.12-1",
    "The second in-place line is still there. exp keeps its result for the way back, since the slope of exp is that "
    "very result, and += has overwritten it. The message says so: modified by an inplace operation.",
)
def _(x):
    import torch

    x = torch.where(x < 0, 0, x)
    e = torch.exp(-x)
    e += 1
    return torch.log(e)


@repaired.wrong(
    "X-4.12-2",
    "The first line still writes into x. A leaf that requires its gradient must not be written to; and without a "
    "gradient the line runs, and the caller's numbers are gone. Make a new tensor instead.",
)
def _(x):
    import torch

    x[x < 0] = 0
    e = torch.exp(-x)
    return torch.log(e + 1)


@repaired.wrong(
    "X-4.12-3",
    "The message is silenced, not heeded: no_grad (or .data) lets the write through behind the back of autograd. x is "
    "overwritten, and the gradient no longer knows that the negative numbers were replaced.",
)
def _(x):
    import torch

    with torch.no_grad():
        x[x < 0] = 0
    e = torch.exp(-x)
    return torch.log(e + 1)


@repaired.wrong(
    "X-4.12-4",
    "The numbers are right, and no gradient reaches x: detach() or .data cuts the result off. clone() copies and stays "
    "connected.",
)
def _(x):
    import torch

    x = x.detach().clone()
    x[x < 0] = 0
    e = torch.exp(-x)
    return torch.log(e + 1)


@repaired.wrong(
    "X-4.12-5",
    "Multiplying by a mask does not remove what is not finite: minus infinity times 0 is NaN. Choose, with torch.where "
    "or clamp, instead of multiplying.",
)
def _(x):
    import torch

    x = x * (x > 0)
    e = torch.exp(-x)
    return torch.log(e + 1)


@repaired.wrong(
    "X-4.12-6",
    "The negative numbers were left as they are. The first line has a job, to replace them by 0: do it without writing into x.",
)
def _(x):
    import torch

    e = torch.exp(-x)
    return torch.log(e + 1)


@repaired.wrong(
    "X-4.12-7",
    "The negative numbers were made positive. They are to become 0.",
)
def _(x):
    import torch

    e = torch.exp(-x.abs())
    return torch.log(e + 1)


@repaired.right
def _(x):
    import torch

    y = x.clone()
    y[y < 0] = 0
    e = torch.exp(-y)
    e = e + 1
    return e.log()


@repaired.right
def _(x):
    import torch

    return torch.log1p(torch.exp(-torch.where(x < 0, 0, x)))


# ---- predictions ----------------------------------------------------------------------------------------------------

PREDICTIONS = (
    prediction(
        "R1",
        "`c = a.clone()`, `v = a[1:]`, then `a.mul_(2)`. Which of `c` and `v` show the doubled numbers?",
        {
            "a": ("only v", "Right: a slice is a view of the same storage, a clone has its own."),
            "b": ("only c", "The other way round: the slice looks into the storage of a, the clone does not."),
            "c": ("both", "clone() gave c a storage of its own, so a write to a does not reach it."),
            "d": ("none", "The underscore says that mul_ writes into a, and v looks at the same memory."),
        },
        "a",
    ),
    prediction(
        "R2",
        "`a` has shape (5, 7) and `s = torch.softmax(a, dim=1)`. Which sums are 1?",
        {
            "a": ("`s.sum(0)`, one for each column", "dim is the dimension that is summed over, and so goes away."),
            "b": ("`s.sum(1)`, one for each row", "Right: dim=1 runs along a row, and each row adds up to 1."),
            "c": ("only `s.sum()`", "Each row adds up to 1, so the whole adds up to 5."),
        },
        "b",
    ),
    prediction(
        "R3",
        "`1 / (1 + exp(-x))` at x = -100 in float32: what are its value and its gradient?",
        {
            "a": ("0 and 0", "The value is 0. On the way back infinity is met, and infinity times 0 is not 0."),
            "b": ("NaN and NaN", "The value is fine: 1 / infinity is 0."),
            "c": (
                "0 and NaN",
                "Right: exp(100) is infinite in float32, and a finite value says nothing of the gradient.",
            ),
        },
        "c",
    ),
    prediction(
        "P1",
        "The limit for f(x) = x²: what is ((x + h)² - x²) / h, for h that is not 0?",
        {
            "a": (
                "2x + h",
                "Right: x² goes away, and 2xh + h² is left; divided by h that is 2x + h. As h goes to 0: 2x.",
            ),
            "b": ("2x", "That is the limit. Before h goes to 0 there is still something left of it."),
            "c": ("h", "(x + h)² is x² + 2xh + h². The middle part must not get lost."),
            "d": ("0", "The numerator goes to 0, but so does the denominator. Divide first, then take the limit."),
        },
        "a",
    ),
    prediction(
        "P2",
        "In float32, at x = 1, what is ((x + h)² - x²) / h for h = 1e-8? The derivative is 2.",
        {
            "a": ("close to 2, better than for h = 1e-4", "That is what the limit promises, and what rounding breaks."),
            "b": ("2.00000001", "By algebra, yes. But 1 + 1e-8 is not a float32: seven digits are not enough."),
            "c": ("0", "Right: 1 + 1e-8 is rounded to 1, so the difference is 0."),
        },
        "c",
    ),
    prediction(
        "P3",
        "`x = torch.tensor([1.0], requires_grad=True)`, `g = x * x + 1`, `h = torch.log(g)`, `k = torch.sin(h)`, and "
        "`p = torch.ones(2) * 3`. Which of them are leaves (`is_leaf`)?",
        {
            "a": (
                "only x",
                "p was computed, but nothing of it was recorded, since nobody asked for a gradient: it is a leaf.",
            ),
            "b": ("x and p", "Right: neither has a grad_fn. Whether a leaf gets a gradient is another question."),
            "c": ("x, g, h and k", "g, h and k were recorded as results, each with its grad_fn: they are no leaves."),
            "d": ("only k", "k is the output, the other end of the graph. Leaves are where the graph begins."),
        },
        "b",
    ),
    prediction(
        "P4",
        "`k.backward()` has run. What does a second `k.backward()` do?",
        {
            "a": ("it gives the same gradient again", "It would need the stored values, and they have been let go."),
            "b": ("nothing", "It does not go unnoticed: torch needs what it no longer has."),
            "c": (
                "it ends with a RuntimeError",
                "Right: the values that were stored for the way back are freed after the first time.",
            ),
        },
        "c",
    ),
    prediction(
        "P5",
        "The derivative at x = 1 is 0.7692. The graph is built anew and `k.backward()` called once more. What is "
        "`x.grad` now?",
        {
            "a": ("0", "Nothing clears .grad for you."),
            "b": ("0.5917", "That is 0.7692 times itself. Contributions are added, not multiplied."),
            "c": ("0.7692", "backward() adds to .grad; it does not write over it."),
            "d": ("1.5385", "Right: gradients accumulate. Whoever wants a fresh one has to clear .grad first."),
        },
        "d",
    ),
    prediction(
        "P6",
        "After `k.backward()`, what is `g.grad`?",
        {
            "a": (
                "0.3846, the derivative of k with respect to g",
                "It was computed on the way, passed on, and not kept.",
            ),
            "b": (
                "None, and torch warns",
                "Right: only leaves keep a gradient, and torch guesses that you did not know.",
            ),
            "c": ("0", "No gradient is None. A zero would be a statement about the slope."),
            "d": (
                "an error",
                "Reading it is allowed. You get None and a warning that tells what to do: retain_grad().",
            ),
        },
        "b",
    ),
    prediction(
        "P7",
        "`x * x` and `x ** 2` have the same values. Does autograd record the same graph?",
        {
            "a": (
                "no: MulBackward0 with two edges to x, PowBackward0 with one",
                "Right: what is recorded are the operations that ran, not the formula that they mean.",
            ),
            "b": ("yes, one node and one edge to x each", "x * x takes x twice, so it has two edges."),
            "c": (
                "yes, both are simplified to `2 * x`",
                "Nothing is simplified: autograd records operations, one by one.",
            ),
        },
        "a",
    ),
    prediction(
        "P8",
        "In a network of eight sigmoid layers, how large is the gradient of the first layer, compared with that of "
        "the last one?",
        {
            "a": ("larger, since it is used by all the others", "What counts is the product of the slopes on the way."),
            "b": ("about as large", "Each sigmoid passes on at most a quarter of what arrives."),
            "c": (
                "more than a thousand times smaller",
                "Right: a slope of at most 1/4 in each layer, and slopes are multiplied.",
            ),
        },
        "c",
    ),
)
