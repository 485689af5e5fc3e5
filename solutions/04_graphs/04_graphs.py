# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · Derivatives, chain rule, graphs
#
# Which way to turn a million knobs so that a loss goes down? The derivative says it, for all of them at once, and torch
# finds it while you look on. In this lecture you look inside. After it you can
#
# 1. say what a **derivative** is, approximate one, and say when rounding spoils it;
# 2. run a computation **forward** and then **backward** by hand, with the chain rule;
# 3. read the **graph** that autograd records: leaves, inputs and outputs of a node, stored values;
# 4. **write** a small autograd yourself, and add an operation of your own to torch's;
# 5. **accumulate** and clear gradients on purpose;
# 6. **log** graphs and numbers for TensorBoard, and read them there;
# 7. understand the two errors of in-place writes, and repair them.
#
# {{times}}
#
# Run the next cell. Then come three questions on the lectures before, and right after them your first exercise.

# %% setup=true
import math
import warnings
from itertools import pairwise

import torch
from torch.utils.tensorboard import SummaryWriter

from autograder.check import Checker
from autograder.tensorboard import fresh_run, log_graph, read_runs
from lecture_pictures import chain_step, explore_chain, grad_fn_graph, stacked

check = Checker("04_graphs")
predict, hint = check.predict, check.hint

# %% [markdown]
# ## From lectures 01 to 03
#
# Answer from memory, without looking back: that is what makes it stay. Put a letter, in quotes, in place of each `...`,
# and run the cell.
#
# {{question R1}}
#
# {{question R2}}
#
# {{question R3}}

# %%
predict("R1", "a")
predict("R2", "b")
predict("R3", "c")

# %% [markdown] concepts=["L-35", "L-36"]
# ## A slope, and its limit
#
# The derivative of f at x is the slope of its curve there. To measure a slope you need two points: go a step h to the
# right, see how much f rises, and divide. Then let the step shrink:
#
# $$f'(x) = \lim_{h \to 0} \frac{f(x + h) - f(x)}{h}$$
#
# Complete it for f(x) = x²:
#
# {{question P1}}

# %%
predict("P1", "a")

# %% concepts=["L-36"]
for h in (1.0, 0.1, 0.01, 0.001):
    print(f"h = {h:5}: ((1 + h)² - 1²) / h = {((1 + h) ** 2 - 1) / h:.6f}")

# %% [markdown]
# The limit at x = 1 is 2. One thing can be bettered: the quotient is off by h itself. Stand in the middle and take a
# step to **both** sides, and the errors of the two sides cancel (objective 1).
#
# {{card central_difference}}


# %% exercise="central_difference"
def central_difference(f, x, h):
    """The slope of f at x, from the two points x - h and x + h.

    f is a function of a tensor, x a float tensor of any shape, h a positive number. Compute in float64, so that a
    small h does no harm. The result has the shape and the dtype of x.
    """
    ### BEGIN SOLUTION
    wide = x.double()
    rise = f(wide + h) - f(wide - h)
    return (rise / (2 * h)).to(x.dtype)
    ### END SOLUTION


# %% check="central_difference"
check(central_difference)

# %% [markdown]
# **Where it breaks.** "The smaller h, the better": that holds on paper. Now in float32, with its seven digits:
#
# {{question P2}}

# %%
predict("P2", "c")

# %%
x = torch.tensor(1.0)
for h in (1e-2, 1e-4, 1e-6, 1e-8):
    narrow = ((x + h) ** 2 - x**2) / h
    wide = ((x.double() + h) ** 2 - x.double() ** 2) / h
    print(f"h = {h:g}: float32 {narrow.item():.5f}, float64 {wide.item():.8f}")

# %% [markdown]
# **Rule.** Two errors pull in opposite directions: a large h sees the bend of the curve, a small one only rounding. In
# float64 there is room between them, in float32 there is little. So a finite difference *tests* a derivative; to
# *find* one there is something better.

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes with the review.** Board: a curve, a secant, and the secant through both neighbours, which
# is nearly parallel to the tangent. P2 surprises nearly everybody: let them compute 1 + 1e-8 in float32. Common
# answers: the one-sided quotient, division by h, float32 all the way, `/ 2 * h` without brackets.

# %% [markdown] concepts=["L-37"]
# ## Four rules
#
# From the limit come rules, and four of them carry us through this lecture:
#
# | function | derivative |
# | --- | --- |
# | xᵖ | p · xᵖ⁻¹ |
# | exp(x) | exp(x) |
# | log(x), natural | 1 / x |
# | sin(x) | cos(x) |
#
# A rule is exact: no h, no rounding but that of the operations themselves. Compare the third one with a finite
# difference:

# %% concepts=["L-37"]
x = torch.tensor([0.5, 1.0, 2.0])
print("by the rule:       ", 1 / x)
h = 0.001
print("finite difference: ", (torch.log(x + h) - torch.log(x - h)) / (2 * h))

# %% [markdown]
# Write down all four (objective 1). A derivative is a function, too, so somebody may want *its* derivative: compute
# with x itself.
#
# {{card derivative}}


# %% exercise="derivative"
def derivative(rule, x, p):
    """The derivative at x of x ** p (rule "power"), exp (rule "exp"), log (rule "log") or sin (rule "sin").

    x is a float tensor, the result has its shape. p is a number for "power", else None: negative, a fraction, or 0. For
    p = 0 the power is 1 everywhere, also at x = 0. Use the rules, not autograd.
    """
    ### BEGIN SOLUTION
    if rule == "power":
        return torch.zeros_like(x) if p == 0 else p * x ** (p - 1)
    if rule == "exp":
        return torch.exp(x)
    if rule == "log":
        return 1 / x
    return torch.cos(x)
    ### END SOLUTION


# %% check="derivative"
check(derivative)

# %% [markdown]
# **Where it breaks.** At the edge of where a function lives its slope may be infinite, while its value is harmless: the
# root at 0 is 0, and its slope there is 1 / 0.

# %%
zero = torch.tensor(0.0)
print("the root at 0:", zero.sqrt().item(), "| its slope:", derivative("power", zero, 0.5).item())

# %% [markdown] tags=["instructor"]
# **Instructor, 7 minutes.** Ask for the slope of x⁰ at 0 before the exercise. Board: the table. Common answers: the
# exponent not lowered, the power rule used on exp, minus cos, 0 · ∞ at p = 0.

# %% [markdown] concepts=["L-38", "L-39", "L-40"]
# ## Inside out: the forward pass
#
# No rule of the four knows sin(log(x² + 1)). But it is made of three steps that they do know:
#
# - g = x² + 1
# - h = log(g)
# - k = sin(h)
#
# Each needs the result of the one before, so there is one order only: from the input outwards. That is the **forward
# pass**. It keeps every result, and you will see what for. Walk through the steps 1 to 3 in the picture (if you have a
# running kernel, with the slider).

# %% concepts=["L-40"]
chain_step(3)

# %% [markdown]
# **Words.** In the graph of a computation each operation is a **node**. Its *inputs* are what it takes, its *outputs*
# are what it gives. Some books call them children and parents, others the other way round; here it is always inputs
# and outputs.
#
# Now for a tensor x of any shape (objective 2):
#
# {{card forward_pass}}


# %% exercise="forward_pass"
def forward_pass(x):
    """The three values (g, h, k) on the way to sin(log(x * x + 1)).

    x is a float tensor of any shape; g = x * x + 1, h is the natural logarithm of g, k the sine of h.
    """
    ### BEGIN SOLUTION
    g = x * x + 1
    h = torch.log(g)
    k = torch.sin(h)
    return g, h, k
    ### END SOLUTION


# %% check="forward_pass"
check(forward_pass)

# %% [markdown] tags=["instructor"]
# **Instructor, 7 minutes.** Board: x → g → h → k with room below for the way back. Settle the words inputs and outputs
# here. Common answers: only k returned, the 1 outside of the logarithm, in-place methods that overwrite g.

# %% [markdown] concepts=["L-39", "L-41"] facts=["F-31"]
# ## Back again: the chain rule
#
# How does k move when x moves? x moves g, g moves h, h moves k, and the slopes **multiply**:
#
# $$\frac{dk}{dx} = \frac{dk}{dh} \cdot \frac{dh}{dg} \cdot \frac{dg}{dx} = \cos(h) \cdot \frac{1}{g} \cdot 2x$$
#
# Every factor is one of the four rules, taken at a value that the forward pass has kept. In the picture follow steps 4
# to 7: each multiplies what has arrived by one slope more.

# %% concepts=["L-41"]
explore_chain()

# %% [markdown]
# For a chain any order of multiplying gives the same product. The order from the output to the input, the **backward
# pass**, wins in general: with a million inputs and one output it needs a single walk, where the other way needs a
# million. A node can have its turn once the derivatives of everything that *uses* it are there.
#
# **Rule.** Forward: inputs first, keep the values. Backward: outputs first, multiply by the slope at the kept value.
#
# Do it once by hand (objective 2). The check hands in stored values that are rounded, so that it can see whether you
# use them, and it switches autograd off.
#
# {{card backward_pass}}


# %% exercise="backward_pass"
def backward_pass(x, g, h):
    """The derivatives (dk_dh, dk_dg, dk_dx) of k = sin(h), h = log(g), g = x * x + 1, in this order.

    x, g and h are float tensors of one shape: the values that the forward pass has stored. Use them as they are and
    compute none of them again. No autograd: the three are found by multiplying slopes.
    """
    ### BEGIN SOLUTION
    dk_dh = torch.cos(h)
    dk_dg = dk_dh * (1 / g)
    dk_dx = dk_dg * (2 * x)
    return dk_dh, dk_dg, dk_dx
    ### END SOLUTION


# %% check="backward_pass"
check(backward_pass)

# %% [markdown] concepts=["L-42"]
# This is correct, and nobody wants to do it twice: with each change of the function all of it has to be found and typed
# anew. But look at what you did. The slope of an operation depends on that operation only, and the rest is
# multiplication. A machine can do that, and it is called **automatic differentiation**.

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes.** Board: below the forward chain write 1, cos h, cos h / g, cos h / g · 2x from right to
# left. The cost of the two orders: count multiplications for 3 inputs and 1 output. Common answers: the three local
# slopes without multiplication, times g, everything computed again from x.

# %% [markdown] concepts=["L-43"] facts=["F-28", "F-29"]
# ## What torch records
#
# Ask for the gradient of an input, and torch writes down every operation that follows. Old code says
# `torch.Tensor([1])` and sets `x.requires_grad = True` afterwards. Both still work; but the capital T makes float32
# of whatever you give it, and of a single number it makes a vector of that *length*, filled with what lay in memory.
# Say it in one go:

# %% concepts=["L-43"] facts=["F-28", "F-29"]
x = torch.tensor([1.0], requires_grad=True)
print(x, "| torch.Tensor(3) has the shape", tuple(torch.Tensor(3).shape))
try:
    torch.tensor([1], requires_grad=True)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# Integers have no slopes. Now the graph: results get a `grad_fn`, inputs have none. A tensor without a `grad_fn` is a
# **leaf**.
#
# {{question P3}}

# %%
predict("P3", "b")

# %% concepts=["L-43"] facts=["F-30"]
g = x * x + 1
h = torch.log(g)
k = torch.sin(h)
p = torch.ones(2) * 3
for name, t in {"x": x, "g": g, "h": h, "k": k, "p": p}.items():
    node = type(t.grad_fn).__name__ if t.grad_fn else "none"
    print(f"{name}: leaf {t.is_leaf!s:5} requires_grad {t.requires_grad!s:5} grad_fn {node}")

# %%
grad_fn_graph(k, {"x": x, "g": g, "h": h, "k": k})

# %% [markdown]
# The arrows point the way gradients flow. `backward()` walks along them. Is the result the one that the chain rule
# gives by hand? (`no_grad`: this computation is none that anybody wants the derivative of.)

# %% concepts=["L-42", "L-43"] facts=["F-30"]
with torch.no_grad():
    manual = torch.cos(h) / g * 2 * x
k.backward()
print(f"by hand {manual.item():.4f}, by torch {x.grad.item():.4f}")

# %% [markdown]
# It is. Three questions on what happens around such a call:
#
# {{question P4}}
#
# {{question P5}}
#
# {{question P6}}

# %%
predict("P4", "c")
predict("P5", "d")
predict("P6", "b")

# %% concepts=["L-43"] facts=["F-30"]
try:
    k.backward()
except RuntimeError as error:
    print("second backward: RuntimeError:", str(error).split("(")[0])
torch.sin(torch.log(x * x + 1)).backward()
print(f"after a second graph: x.grad = {x.grad.item():.4f}")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print("g.grad:", g.grad, "|", str(caught[0].message).split(". ")[0])

# %% [markdown]
# **Rule.** `.grad` is filled in leaves that require it. A result keeps its own only if you ask it to, with
# `t.retain_grad()`, before the way back. `.grad` is added to, never cleared for you. What a graph has stored serves one
# walk.
#
# Everything that requires no gradient is a leaf, too, however it was made: nothing about it was recorded. That is why
# there are two questions to ask of each tensor (objective 3). `is_leaf` would answer the first one; find it yourself.
#
# {{card leaf_report}}


# %% exercise="leaf_report"
def leaf_report(tensors):
    """For each tensor, by name: (is it a leaf?, would a backward pass fill its .grad?), as two bools.

    tensors is a dict of name and tensor. Suppose that the backward pass starts from a result that depends on all of
    those that require a gradient. A tensor that is no leaf keeps its gradient only if retain_grad() was called.
    """
    ### BEGIN SOLUTION
    report = {}
    for name, t in tensors.items():
        leaf = t.grad_fn is None
        report[name] = (leaf, t.requires_grad if leaf else t.retains_grad)
    return report
    ### END SOLUTION


# %% check="leaf_report"
check(leaf_report)

# %% [markdown] tags=["instructor"]
# **Instructor, 14 minutes.** P3 to P6 are the heart of the lecture; collect votes for all of them before the cell is
# run. Board: a table with columns tensor, leaf, requires_grad, .grad filled. The wrong intuition is "leaf = input of
# my network". Common answers: every tensor that requires a gradient keeps one; only Parameters are leaves.

# %% [markdown]
# ## Reading a graph
#
# `t.grad_fn` is the node that made t. Its `next_functions` are pairs: a node it took something from, and which output
# of that node. At a leaf the way ends in a node called AccumulateGrad, which adds to `.grad`; where nothing was
# recorded, in None.
#
# {{question P7}}

# %%
predict("P7", "a")

# %%
x = torch.tensor([3.0], requires_grad=True)
for text, t in {"x * x": x * x, "x ** 2": x**2}.items():
    print(f"{text:6} {t.grad_fn.name()} takes", [type(node).__name__ for node, _ in t.grad_fn.next_functions])

# %% [markdown]
# With a result that is used twice the graph is no longer a chain:

# %%
shared = x.sin()
grad_fn_graph(shared * shared.exp(), {"x": x, "shared": shared})

# %% [markdown]
# To work with a graph you need its nodes in an order in which each comes after its inputs: a **topological order**.
# It is the order of a forward pass, and backwards it is the order of a backward pass. Two traps: a shared node must
# come once, and a graph may be thousands of nodes deep, deeper than Python lets functions call themselves (objective
# 3).
#
# {{card graph_nodes}}


# %% exercise="graph_nodes"
def graph_nodes(t):
    """All nodes of the graph that made t, as a list in which every node comes once, and after all of its inputs.

    The nodes are those that t.grad_fn and next_functions lead to, AccumulateGrad included. If t has no grad_fn the
    list is empty. Of several right orders each one counts.
    """
    ### BEGIN SOLUTION
    order, seen, stack = [], set(), [(t.grad_fn, False)]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            order.append(node)
        elif node is not None and node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source, _ in node.next_functions)
    return order
    ### END SOLUTION


# %% check="graph_nodes"
check(graph_nodes)

# %%
print([type(node).__name__ for node in graph_nodes(shared * shared.exp())])

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes; the exercise is good homework.** Board: the diamond, and a stack on which a node is pushed twice, once
# "open" and once "inputs done". Common answers: breadth first and turned round (ask for a node that is both near and
# far), recursion, no set of seen nodes: how many visits do nine squarings in a row take?

# %% [markdown] concepts=["L-41", "L-42"]
# ## Build it yourself
#
# You have all the parts: slopes of operations, stored values, an order to go through. Put together they are an
# autograd. A `Value` holds one number, and remembers what it was made of and with which slopes:
#
# | result | inputs | slopes |
# | --- | --- | --- |
# | a + b | (a, b) | (1, 1) |
# | a · b | (a, b) | (b, a), the *other* one |
# | log(a) | (a,) | (1 / a,) |
# | sin(a) | (a,) | (cos(a),) |
#
# What is still missing: if a is used **twice**, it moves the result in two ways, and the two contributions are
# **added**. That is why gradients accumulate (objective 4).
#
# {{card Value}}


# %% exercise="Value"
class Value:
    """A number that remembers how it was made, so that backward() can find derivatives. No torch in here.

    data is the number, grad the derivative of the result with respect to it. inputs are the Values it was made of,
    slopes its derivatives with respect to each of them. + and * also take plain numbers; log and sin are methods.
    """

    def __init__(self, data, inputs=(), slopes=()):
        self.data, self.grad = float(data), 0.0
        self.inputs, self.slopes = inputs, slopes

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        ### BEGIN SOLUTION
        return Value(self.data + other.data, (self, other), (1.0, 1.0))
        ### END SOLUTION

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        ### BEGIN SOLUTION
        return Value(self.data * other.data, (self, other), (other.data, self.data))
        ### END SOLUTION

    __radd__, __rmul__ = __add__, __mul__

    def log(self):
        ### BEGIN SOLUTION
        return Value(math.log(self.data), (self,), (1 / self.data,))
        ### END SOLUTION

    def sin(self):
        ### BEGIN SOLUTION
        return Value(math.sin(self.data), (self,), (math.cos(self.data),))
        ### END SOLUTION

    def backward(self):
        """Fill grad in every Value that this one was made of; chains of thousands are no problem."""
        ### BEGIN SOLUTION
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            value, inputs_done = stack.pop()
            if inputs_done:
                order.append(value)
            elif value not in seen:
                seen.add(value)
                stack.append((value, True))
                stack.extend((source, False) for source in value.inputs)
        self.grad = 1.0
        for value in reversed(order):
            for source, slope in zip(value.inputs, value.slopes, strict=True):
                source.grad += slope * value.grad
        ### END SOLUTION


# %% check="Value"
check(Value)

# %%
one = Value(1.0)
result = (one * one + 1).log().sin()
result.backward()
print(f"sin(log(x² + 1)) at 1: {result.data:.4f}, derivative {one.grad:.4f}")

# %% [markdown]
# The same 0.7692. What you have written is, in small, what torch does in large.

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes to set it; solving it is homework.** Board: the diamond a·a + a with a slope on each edge; add the two
# ways. Common answers: = in place of += (right on every chain, wrong on the first diamond), a queue instead of a
# topological order, recursion. Ask quick ones for `__neg__`, `exp`, and a second derivative.

# %% [markdown] concepts=["L-43"]
# ## Accumulate, on purpose
#
# A batch does not fit into memory? Cut it in pieces and let `backward()` add up their gradients: the sum is that of the
# whole. It is a gift, as long as you say when a new sum begins.


# %% concepts=["L-43"]
def loss(w, x):
    """A loss to play with."""
    return torch.sin(torch.log((w * x) ** 2 + 1)).sum()


w = torch.tensor([1.0], requires_grad=True)
for step in (1, 2):
    loss(w, torch.tensor([1.0])).backward()
    print(f"step {step}, nothing cleared: w.grad = {w.grad.item():.4f}")

# %% [markdown]
# Afterwards w moves a little against its gradient. That write is none of autograd's business: a leaf that requires its
# gradient refuses it, unless recording is off.

# %%
try:
    w -= 0.1 * w.grad
except RuntimeError as error:
    print("RuntimeError:", error)
with torch.no_grad():
    w -= 0.1 * w.grad
print("under no_grad:", w)

# %% [markdown]
# **Rule.** Clear once a step, accumulate within it, update under `no_grad` (objective 5).
#
# {{card training_step}}


# %% exercise="training_step"
def training_step(w, batches, rate, loss):
    """One step downhill on the sum of the losses of all batches; returns the gradient that was used.

    w is a leaf that requires its gradient; something of an earlier step may still be in w.grad. batches is a list of
    tensors, possibly empty: then the gradient is zero. loss(w, x) gives the loss of a batch x, a tensor with one
    number. w itself moves by -rate times the gradient, and w.grad is left cleared.
    """
    ### BEGIN SOLUTION
    w.grad = torch.zeros_like(w)
    for x in batches:
        loss(w, x).backward()
    used = w.grad
    with torch.no_grad():
        w -= rate * used
    w.grad = None
    return used
    ### END SOLUTION


# %% check="training_step"
check(training_step)

# %% [markdown] tags=["instructor"]
# **Instructor, 9 minutes.** Board: three batches, one step, and where `zero` stands. Common answers: cleared between
# the batches, never cleared, `w = w - ...` (a new tensor with an old name), a returned gradient that zero_() empties.

# %% [markdown] concepts=["L-41"]
# ## An operation of your own
#
# Sometimes you know a better backward than the one that torch would put together, or torch cannot look into what you
# do. Then write a `torch.autograd.Function`: `forward` computes and stores, `backward` takes the slope of all that
# follows and multiplies it by its own. What one of them leaves for the other travels in `ctx` (for *context*):
# `ctx.save_for_backward(...)` puts tensors in, and `ctx.saved_tensors` gives them back, always as a tuple. You do not call
# such a class, you **apply** it: `Exp.apply(x)`. Here is one for exp, which stores its *result*:


# %% concepts=["L-41"]
class Exp(torch.autograd.Function):
    """exp, with a backward of our own."""

    @staticmethod
    def forward(ctx, x):
        result = torch.exp(x)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, slope):
        (result,) = ctx.saved_tensors
        return slope * result


# %% [markdown]
# How do you know that a backward is right? You have a test from the first section. `torch.autograd.gradcheck`
# compares it with finite differences, in float64, and `gradgradcheck` does the same for the derivative of the
# derivative.

# %%
wide = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
print("gradcheck:", torch.autograd.gradcheck(Exp.apply, (wide,)))
print("gradgradcheck:", torch.autograd.gradgradcheck(Exp.apply, (wide,)))

# %% [markdown]
# Now log(x² + 1) as *one* node (objective 4):
#
# {{card log_square}}


# %% exercise="log_square"
class LogSquare(torch.autograd.Function):
    """log(x * x + 1) as one operation."""

    @staticmethod
    def forward(ctx, x):
        ### BEGIN SOLUTION
        ctx.save_for_backward(x)
        return torch.log(x * x + 1)
        ### END SOLUTION

    @staticmethod
    def backward(ctx, slope):
        ### BEGIN SOLUTION
        (x,) = ctx.saved_tensors
        own = 2 * x / (x * x + 1)
        return slope * own
        ### END SOLUTION


def log_square(x):
    """log(x * x + 1), element by element, through LogSquare.

    x is a float tensor. The gradient passes gradcheck and gradgradcheck in float64. What backward needs is kept with
    ctx.save_for_backward, so that torch notices if somebody writes into it in between.
    """
    return LogSquare.apply(x)


# %% check="log_square"
check(log_square)

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Board: one box in place of two, and what goes in and out of it on the way back. Common
# answers: the incoming slope forgotten (right as long as it is 1: ask for `(3 * log_square(x)).backward()`), x kept as
# ctx.x, the slope computed in forward (then gradgradcheck fails).

# %% [markdown] concepts=["L-44"] facts=["F-32", "F-34"]
# ## A graph to look at
#
# For a graph of hundreds of nodes you want a viewer. TensorBoard shows what programs **log**: they write event files
# into a folder, one folder for each *run*, and TensorBoard reads along. `SummaryWriter.add_graph` logs the graph of a
# `torch.nn.Module`. It runs the module once and writes down what happens, with a part of torch that is deprecated
# (`torch.jit.trace`), and warns three times of it. `log_graph` does the same without these warnings, closes the file,
# and draws what is in it; should that part of torch be gone one day, it draws what autograd recorded. `fresh_run("demo")`
# names a folder that nothing was logged to yet, `runs/demo-1` or the next number.

# %% concepts=["L-44"] facts=["F-32", "F-34"]
steep = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Sigmoid())
demo = fresh_run("demo")
log_graph(steep, torch.ones(4, 3), demo)

# %% [markdown] facts=["F-34"]
# The picture was made from the file. It can be read as text, too: a line for each node, inputs first, `#1` for the
# node of the first line.

# %% facts=["F-34"]
for number, line in enumerate(read_runs(demo)["."]["graphs"][0], start=1):
    print(f"#{number}", line)

# %% [markdown] concepts=["L-44"]
# And in TensorBoard itself: the next cell opens it below, with a **magic**, a command of the notebook that begins with
# `%`. TensorBoard then runs beside your notebook, until you shut the notebook down. Or let a terminal run it: `make
# tensorboard`, or `python -m autograder tensorboard`, and you open the address that is printed. Choose **Graphs**, then the
# run on the left. A double click opens a box. TensorBoard calls the nodes by the names of your variables; which operation
# each one is, you see at the right when you click on it, and in the lines above.

# %% tags=["nbval-ignore-output"] reason="It opens TensorBoard where a front end shows it, on a port that differs."
# %load_ext autograder.tensorboard
# %tensorboard --logdir runs

# %% [markdown] concepts=["L-45"] facts=["F-33", "F-35"]
# torch has modules for many functions. For those that it has not, such as our sin(log(x² + 1)), write one: a class
# with a `forward`. In old code you find `super(OurNet, self).__init__()`; today it is `super().__init__()`, and you
# need it only if your class has an `__init__` of its own.
#
# Two things to mind. A **folder is one run**: a second graph in it hides the first, and TensorBoard complains of
# "more than one graph event per run". And a writer that is not **closed** may hold back what you gave it.
#
# Log two models (objective 6):
#
# {{card logged_graphs}}


# %% exercise="logged_graphs"
class OurNet(torch.nn.Module):
    """sin(log(x * x + 1)) as a module."""

    def forward(self, x):
        ### BEGIN SOLUTION
        g = x * x + 1
        h = torch.log(g)
        return torch.sin(h)
        ### END SOLUTION


def logged_graphs(x, folder):
    """Log the graphs of two models at work on x, each as a run of its own.

    x is a tensor of shape (rows, columns), folder a pathlib.Path.
    folder / "sequential": a Sequential of Tanh, ReLU and Softmax, in this order; the softmax makes each row add up
                           to 1.
    folder / "ournet":     OurNet, with the square as the product x * x.
    """
    ### BEGIN SOLUTION
    sequential = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.ReLU(), torch.nn.Softmax(dim=1))
    log_graph(sequential, x, folder / "sequential")
    log_graph(OurNet(), x, folder / "ournet")
    ### END SOLUTION


# %% check="logged_graphs"
check(logged_graphs)

# %%
nets = fresh_run("nets")
logged_graphs(torch.ones(2, 3), nets)
for name, run in read_runs(nets).items():
    print(f"{name}: {run['graphs'][0]}")

# %% [markdown]
# TensorBoard shows the operations of the *forward* pass: mul, add, log, sin. The `grad_fn` graph of the same function
# shows those of the way *back*, MulBackward0 to SinBackward0, with the arrows turned round:

# %%
x = torch.ones(2, 3, requires_grad=True)
logged, recorded = log_graph(OurNet(), x.detach(), fresh_run("ournet")), grad_fn_graph(OurNet()(x), {"x": x})
stacked("OurNet, logged and recorded", [logged, recorded])

# %% [markdown] facts=["F-32"]
# **Where it breaks.** Tracing runs the module once, with one input. A plain function is refused, since only a module
# can be logged. And an `if` that looks at values is frozen into the branch that was taken: torch warns of it.


# %% facts=["F-32"]
class Picky(torch.nn.Module):
    """Takes the root only of what is positive."""

    def forward(self, x):
        return x.sqrt() if x.sum() > 0 else x


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    log_graph(Picky(), torch.ones(2), fresh_run("picky"))
print(caught[0].category.__name__, "|", str(caught[0].message).split(".")[0])
try:
    log_graph(torch.sin, torch.ones(2), fresh_run("function"))
except Exception as error:
    print(type(error).__name__, "|", error)

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes.** Show TensorBoard on the projector and open OurNet; let the class find the two edges from
# the input into mul. Common answers: both runs in one folder, `x ** 2`, the writer left open. The check reads the
# event file itself, so names of classes and variables are free.

# %% [markdown] concepts=["L-44"]
# ## A detective story
#
# TensorBoard is made for numbers over time even more than for graphs: `add_scalar` draws curves, `add_histogram`
# shows how the numbers of a tensor are spread. Suppose that a deep network does not learn. Its first layers hardly
# move. Who is to blame?
#
# {{question P8}}

# %%
predict("P8", "c")

# %% concepts=["L-44"]
torch.manual_seed(0)
parts = [part for _ in range(8) for part in (torch.nn.Linear(16, 16), torch.nn.Sigmoid())]
deep = torch.nn.Sequential(*parts)
deep(torch.randn(32, 16)).square().mean().backward()
curves = fresh_run("deep")
with SummaryWriter(curves) as writer:
    for number, layer in enumerate(parts[::2], start=1):
        writer.add_scalar(f"gradient/layer{number}", layer.weight.grad.norm(), 0)
        writer.add_histogram(f"gradient/layer{number}", layer.weight.grad, 0)
for tag, points in read_runs(curves)["."]["scalars"].items():
    print(tag, f"{points[-1][1]:.0e}")

# %% [markdown]
# On its way from the output each sigmoid multiplies the gradient by a slope of at most 1/4, so it fades from layer to
# layer: it **vanishes**. Here all layers share the blame. Often there is one: behind it everything is small, before it
# all is well.
#
# **Rule.** A gradient travels from the output to the input. Look for the drop there, coming from the output, and not
# for the smallest number.
#
# Write the detective. It keeps a record, and it names the culprit (objective 6).
#
# {{card vanishing_layer}}


# %% exercise="vanishing_layer"
def vanishing_layer(gradients, folder):
    """Log the gradients of all layers as one run, and return the name of the layer where they vanish, or None.

    gradients is a dict of layer name and tensor of shape (steps, n): row s is the gradient of that layer at step s. The
    layers stand in order, from the input to the output. folder is a pathlib.Path.

    Logged under the tag gradient/NAME, for each layer and step: the norm of the row as a scalar, and the row itself as
    a histogram.

    Returned: of the layers whose norm at the last step is less than a hundredth of that of the next layer towards the
    output, the one nearest to the output.
    """
    ### BEGIN SOLUTION
    with SummaryWriter(folder) as writer:
        for layer, rows in gradients.items():
            for step, row in enumerate(rows):
                writer.add_scalar(f"gradient/{layer}", row.norm(), step)
                writer.add_histogram(f"gradient/{layer}", row, step)
    sizes = {layer: rows[-1].norm().item() for layer, rows in gradients.items()}
    from_output = list(reversed(sizes))
    for after, layer in pairwise(from_output):
        if sizes[layer] < sizes[after] / 100:
            return layer
    return None
    ### END SOLUTION


# %% check="vanishing_layer"
check(vanishing_layer)

# %%
story = {f"layer{n}": torch.full((3, 4), size) for n, size in enumerate((1e-6, 2e-6, 0.5, 0.8), start=1)}
print(vanishing_layer(story, fresh_run("story")))

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes; the exercise can be homework.** Let the class look at the run "deep" under Time Series and Histograms first and argue.
# Board: four bars, two of them tiny; who is guilty, the smallest or its neighbour? Common answers: the smallest, the
# search from the input, a mean in which signs cancel, one tag for all layers, no step.

# %% [markdown]
# ## In-place, and what it breaks
#
# The backward pass needs stored values. Whoever overwrites one in place would spoil the gradient without a trace, so
# torch counts the writes to each tensor and refuses. There are two messages, and both say exactly what is wrong:


# %%
def broken(x):
    """log(exp(-x) + 1), with 0 in place of what is negative."""
    x[x < 0] = 0
    e = torch.exp(-x)
    e += 1
    return torch.log(e)


x = torch.tensor([1.0, -2.0], requires_grad=True)
for text, argument in {"a leaf": x, "a result": x * 1}.items():
    try:
        broken(argument).sum().backward()
    except RuntimeError as error:
        print(f"{text}: RuntimeError:", str(error).split(": [")[0].split("; ")[0])

# %% [markdown]
# The first: x is a leaf that requires its gradient, and a write would mean that there is no input any more to have a
# gradient. The second: `exp` keeps its *result* for the way back, and `e += 1` has changed it. (x * x would have kept
# its inputs, and `+ 1` keeps nothing at all.)
#
# `x.data` and `no_grad` make both messages go away, and the gradient wrong. Do not silence them: make a new tensor
# instead of writing into the old one (objective 7).
#
# {{card repaired}}


# %% exercise="repaired"
def repaired(x):
    """What broken(x) means, without its faults: log(exp(-x) + 1), with 0 in place of the negative elements of x.

    x is a float tensor of any shape, possibly with infinite elements; it stays as it is. The gradient reaches x, and
    is 0 where x is negative.
    """
    ### BEGIN SOLUTION
    positive = torch.where(x < 0, 0, x)
    e = torch.exp(-positive)
    e = e + 1
    return torch.log(e)
    ### END SOLUTION


# %% check="repaired"
check(repaired)

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Read both messages aloud and translate them. Which operations keep inputs, which results,
# which nothing? (mul: both inputs; exp, sigmoid, tanh: the result; add: nothing.) Common answers: only one of the lines
# repaired, `.data`, `detach()`, a product with a mask.

# %% [markdown]
# ## Recap
#
# - A derivative is the limit of a slope. Finite differences test it, rules and the chain rule find it.
# - Forward: inputs first, keep the values. Backward: outputs first, multiply by slopes, **add** where a value is used
#   twice.
# - Leaf: no `grad_fn`. `.grad` is filled in leaves that require it, and after `retain_grad()`.
# - Gradients accumulate. Clear once a step, update under `no_grad`.
# - `torch.autograd.Function` is an operation of your own; gradcheck tells whether its backward is right.
# - One folder is one run; close the writer. A vanishing gradient is found from the output.
# - In-place writes to leaves and to stored values are refused, and rightly so.
#
# **Words.** *Node*: an operation in the graph. *Inputs, outputs* of a node: what it takes and gives. *Leaf*: a tensor
# that no recorded operation made. *Forward, backward pass*: from the inputs to the result, and back. *Accumulate*:
# add to what is there. *Topological order*: each node after its inputs. *Run*: what one folder of event files holds.
# *In place*: written into the memory that is there.
#
# **To read on** (not needed for the course): torch's notes "Autograd mechanics" and "Extending PyTorch" at
# docs.pytorch.org/docs/stable/notes/autograd.html and docs.pytorch.org/docs/stable/notes/extending.html.

# %%
print(check.progress())

# %% [markdown]
# Next: **05 · MaskedTensor**. What is the gradient of something that is not there?

# %% [markdown] tags=["instructor"]
# **Instructor.** If time is short, leave out the detective story and
# the Function of your own; both stand alone. Ask at the end, without notes: "why are gradients added, and when must
# you clear them?"
