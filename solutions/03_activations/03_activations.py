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
# # 03 · Elementwise functions, activations, softmax
#
# A network is made of simple functions of numbers. They look harmless, and most of them have a place where they are
# not: where a number becomes infinite, a gradient becomes NaN, or a sum runs along the wrong dimension. After this
# lecture you can
#
# 1. tell function, method and **in-place** method apart by what they do to memory;
# 2. choose between two sides with `where`, and say which **dtype** comes out;
# 3. build **sigmoid** and **softmax** so that values *and gradients* are finite everywhere;
# 4. say along which **dimension** a sum is 1, and what softmax does not change under;
# 5. tell a **module** from its function, and write both;
# 6. draw a figure that can be read without colours, and even without eyes.
#
# {{times}}
#
# Run the next cell. Then come three questions on lectures 01 and 02, and right after them your first exercise.

# %% setup=true
import warnings

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from autograder.check import Checker
from lecture_pictures import activation, explore_activation, show_figure

check = Checker("03_activations")
predict, hint = check.predict, check.hint

# %% [markdown]
# ## From lectures 01 and 02
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
predict("R1", "c")
predict("R2", "b")
predict("R3", "a")

# %% [markdown] concepts=["L-24"]
# ## One function, three ways
#
# Which functions of one number do you know? Exponential, logarithm, sine and cosine, roots, powers: torch has them
# all, and applies them to each element. Most of them come in three forms.

# %% concepts=["L-24"]
x = torch.tensor([0.0, 1.0, 2.0])
print("function:", torch.exp(x))
print("method:  ", x.exp())
print("cosine:  ", torch.cos(x), x.cos())
print("x is still", x)
y = x.exp_()
print("in place:", y, "| x is now", x, "| y is x:", y is x)

# %% [markdown]
# **Rule.** The function and the method make a new tensor. The method with an underscore writes into the old one, and
# returns it.
#
# Now with the logarithm: all three, in one function (objective 1). Mind the order.
#
# {{card log_three_ways}}


# %% exercise="log_three_ways"
def log_three_ways(x):
    """The natural logarithm of x in three ways: (by the function, by the method, in place).

    The first two results are new tensors; the third is x itself, which holds its logarithms afterwards. If x cannot
    hold them, because it is a tensor of integers, let the RuntimeError come that torch raises.
    """
    ### BEGIN SOLUTION
    by_function, by_method = torch.log(x), x.log()
    x.log_()
    return by_function, by_method, x
    ### END SOLUTION


# %% check="log_three_ways"
check(log_three_ways)

# %% [markdown] facts=["F-23"]
# **Where it breaks.** In place, there is only the memory that is there. A tensor of integers has no room for a result
# with digits after the point, and torch says so:

# %% facts=["F-23"]
counts = torch.tensor([1, 2, 4])
print("a new tensor:", counts.log(), counts.log().dtype)
try:
    counts.log_()
except RuntimeError as error:
    print("in place: RuntimeError:", error)

# %% [markdown]
# The functions that networks are made of live in `torch.nn.functional`, mostly imported as `F`. Several of them write in
# place when an argument says so. Take `F.relu`, which puts 0 where a number is negative, and of which you will see more
# below:
#
# {{question P1}}

# %%
predict("P1", "b")

# %%
x = torch.tensor([-1.0, 2.0])
y = F.relu(x, inplace=True)
print("x:", x, "| y is x:", y is x)

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes with the review.** Board: two boxes of memory; torch.log draws an arrow to a new box, log_
# an arrow back into the same one. Common answers: the in-place form first (logarithm of the logarithm),
# clone().log_() ("but the numbers are right!"), ints turned into floats to silence the error. R2 prepares the next
# section: ask for the reason, not the letter.

# %% [markdown] concepts=["L-25"]
# ## Choosing, place by place
#
# `torch.where(condition, x, y)` takes x where the condition is True and y elsewhere. It chooses, it does not compute:
# what stands on the other side cannot come through, not even a NaN. A side may be a plain number. Then which dtype
# does the result have?
#
# {{question P2}}

# %%
predict("P2", "b")

# %% concepts=["L-25"]
condition = torch.tensor([True, False, True])
x = torch.tensor([1, 2, 3])
for name, other in {"0.5": 0.5, "-1": -1, "a float64 tensor": torch.zeros(3, dtype=torch.float64)}.items():
    print(f"{name:17}", torch.where(condition, x, other))

# %% [markdown]
# **Rule.** `where` chooses at each place; the dtype is one that holds both sides. A plain number adapts to the tensor
# beside it as far as its kind allows (objective 2).
#
# {{card choose}}


# %% exercise="choose"
def choose(condition, x, y):
    """x where condition is True, y elsewhere, at the shape to which all three broadcast.

    condition is a bool tensor; x and y are tensors or plain numbers, perhaps of different dtypes. The dtype of the
    result is the one that torch finds for both. NaN or infinity on the side that is not chosen does not show.
    """
    ### BEGIN SOLUTION
    return torch.where(condition, x, y)
    ### END SOLUTION


# %% check="choose"
check(choose)

# %% [markdown] concepts=["L-27"]
# With `where` you can already write the most used activation function of all, the **rectified linear unit**:
# ReLU(x) = max(0, x). Below is what it does, and under it its gradient: by how much the result moves when x moves a
# little. A **bend** in the upper curve is a **step** in the lower one.

# %% concepts=["L-27"]
activation({"ReLU": lambda x: torch.where(x <= 0, 0, x)}, -3, 3, title="ReLU(x) = max(0, x) and its gradient")

# %% [markdown]
# **Where it breaks.** `where` chooses among results, so both sides are computed before. In the forward direction that
# only costs time. For gradients it is a trap, and you will fall into it two sections from here.

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Board: three rows of boxes, condition on top, an arrow from each box of the result to one
# of two above. Common answers: times the mask (NaN), `.to(x.dtype)` (0.5 becomes 0), a number blown up with
# torch.full (float16 becomes float32). P2: people with NumPy in mind say float64.

# %% [markdown] concepts=["L-28", "L-29"]
# ## A soft step, wider or narrower
#
# The **sigmoid** turns any number into one between 0 and 1: σ(x) = 1 / (1 + exp(-x)). Far to the left it is almost 0,
# far to the right almost 1, and at 0 it is 0.5.

# %% concepts=["L-28"]
x = torch.tensor([-4.0, -1.0, 0.0, 1.0, 4.0])
print(torch.sigmoid(x))
activation({"sigmoid": torch.sigmoid}, -6, 6, title="The sigmoid and its gradient")

# %% [markdown]
# Where it is flat, its gradient is nearly 0: a unit that is very sure learns slowly. How could the step be made wider
# or narrower? By a **temperature** τ. With τ = 1 nothing changes; a small τ makes the step sharp, a large one soft.
# Choose a function and move τ if you have a running kernel; else compare the pictures.

# %% concepts=["L-29"]
explore_activation()

# %% [markdown]
# **Rule.** What changes *where* things happen belongs inside the function. A temperature divides x.
#
# τ may be a number, or a tensor that gives each row a temperature of its own. One that is not above 0 makes no sense
# (objective 3).
#
# {{card sigmoid_tau}}


# %% exercise="sigmoid_tau"
def sigmoid_tau(x, tau):
    """The sigmoid of x with temperature tau: the plain sigmoid for tau = 1, steeper for smaller tau.

    x is a tensor, tau a number or a tensor that broadcasts with x. If tau, or one element of it, is 0 or less, raise a
    ValueError. The gradient is finite wherever x is.
    """
    ### BEGIN SOLUTION
    if (torch.as_tensor(tau) <= 0).any():
        raise ValueError(f"tau is {tau}, and a temperature has to be above 0")
    return torch.sigmoid(x / tau)
    ### END SOLUTION


# %% check="sigmoid_tau"
check(sigmoid_tau)

# %% [markdown] concepts=["L-29"]
# The same thought moves the step to another place: where is the 0.5 to be? (Objective 3.)
#
# {{card sigmoid_shift}}


# %% exercise="sigmoid_shift"
def sigmoid_shift(x, b):
    """The sigmoid of x, moved along the x axis so that it is 0.5 at b. The plain sigmoid for b = 0.

    x is a tensor, b a number or a tensor that broadcasts with x. x stays as it is.
    """
    ### BEGIN SOLUTION
    return torch.sigmoid(x - b)
    ### END SOLUTION


# %% check="sigmoid_shift"
check(sigmoid_shift)

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes.** Board: the step, and below it the x axis with two rulers, one of them stretched. Common
# answers: times tau, tau on the outside, no check or one that fails for tensors (`if tau <= 0`), + b. Those who wrote
# out the formula meet a NaN gradient here and are told so; the next section says why.

# %% [markdown] facts=["F-25"]
# ## A fine value, a broken gradient
#
# The formula of the sigmoid can be typed in half a line. Before you run it:
#
# {{question P3}}

# %%
predict("P3", "c")

# %% [markdown]
# To see it, we need gradients. How torch finds them is the subject of lecture 04; until then, `value_and_gradient` is a
# tool that you need not look into: it gives the values of a function, and how fast each of them moves with its number.


# %% facts=["F-25"]
def naive(x):
    return 1 / (1 + torch.exp(-x))


def value_and_gradient(function, numbers):
    """What the function gives, and how fast each result moves with its number (lecture 04 says how)."""
    x = torch.tensor(numbers, requires_grad=True)
    result = function(x)
    result.sum().backward()
    return [f"{v:.2f}" for v in result.tolist()], [f"{v:.2f}" for v in x.grad.tolist()]


print("naive:        ", *value_and_gradient(naive, [-100.0, -89.0, -88.0, 0.0]))
print("torch.sigmoid:", *value_and_gradient(torch.sigmoid, [-100.0, -89.0, -88.0, 0.0]))

# %%
activation({"1 / (1 + exp(-x))": naive, "torch.sigmoid": torch.sigmoid}, -120, 20, title="Two sigmoids, in float32")

# %% [markdown] facts=["F-25"]
# Read it as a chain. exp(89) is too large for float32 and becomes infinite; 1 / infinity is 0, so the **value** is
# right. The **gradient** goes back through the same steps and multiplies what it meets: the slope of 1 / u, which is
# 0 here, times the slope of exp, which is infinite. 0 times infinity is NaN. One NaN gradient, and at the next step
# of training all weights are NaN.
#
# Nothing but a temperature is needed to get there: with τ = 0.25, x = -23 is enough.
#
# Can `where` help? Two formulas are equal, and each is safe on one side:
#
# | where | formula | what exp sees |
# | --- | --- | --- |
# | x ≥ 0 | 1 / (1 + exp(-x)) | nothing above 0 |
# | x < 0 | exp(x) / (1 + exp(x)) | nothing above 0 |


# %%
def hopeful(x):
    return torch.where(x >= 0, 1 / (1 + torch.exp(-x)), torch.exp(x) / (1 + torch.exp(x)))


print("where, at the end:", *value_and_gradient(hopeful, [-100.0, 0.0, 100.0]))

# %% [markdown]
# That is the trap announced above. `where` gives the side that was not chosen a gradient of 0, and there it meets an
# infinite slope.
#
# **Rule.** A finite value does not promise a finite gradient. Make the *input* harmless before the dangerous function
# sees it (objective 3).
#
# {{card stable_sigmoid}}


# %% exercise="stable_sigmoid"
def stable_sigmoid(x):
    """The sigmoid of x, built from exp, where and arithmetic, with values and gradients that are right everywhere.

    x is a float tensor of any dtype and shape; it may hold infinities. The gradient at 0 is 0.25.
    """
    ### BEGIN SOLUTION
    positive = x >= 0
    z = torch.exp(torch.where(positive, -x, x))  # between 0 and 1
    return torch.where(positive, 1, z) / (1 + z)
    ### END SOLUTION


# %% check="stable_sigmoid"
check(stable_sigmoid)

# %% [markdown]
# **Where it breaks.** `x.abs()` is tempting: exp(-|x|) is never above 1. But |x| has a bend at 0, where torch takes
# its slope as 0, and an untrained network has many zeros.


# %%
def with_abs(x):
    z = torch.exp(-x.abs())
    return torch.where(x >= 0, 1, z) / (1 + z)


print("with abs, at 0:     ", *value_and_gradient(with_abs, [0.0]))
print("torch.sigmoid, at 0:", *value_and_gradient(torch.sigmoid, [0.0]))

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes; the exercise can be homework.** Board: the chain x → -x → exp → +1 → 1/u, with values
# below and slopes above for x = -100. Circle 0 and infinity. Common answers: where at the end, clamp(-80, 80) (ask
# for float16), float64 (ask for -800), abs. Ask: "which of your tests would have found this?" Hardly one that looks
# at values only.

# %% [markdown] concepts=["L-33"] facts=["F-26"]
# ## Many numbers that sum to 1
#
# The sigmoid turns one number into a probability. **Softmax** turns many into a distribution: softmax(x)ᵢ = exp(xᵢ) /
# Σⱼ exp(xⱼ). It is not quite elementwise: each result depends on all numbers of its slice, and you have to say along
# which dimension a slice runs.
#
# {{question P4}}

# %%
predict("P4", "a")

# %% concepts=["L-33"] facts=["F-26"]
a = torch.tensor([[0.0, 1.0, 2.0, -1.0], [0.5, 1.0, -2.0, 3.0]])
for dim in (0, 1):
    p = torch.softmax(a, dim=dim)
    print(f"dim={dim}: sums of the columns", [f"{s:.2f}" for s in p.sum(0)], "rows", [f"{s:.2f}" for s in p.sum(1)])

# %% [markdown]
# **Rule.** `dim` names the dimension that is summed over. With `keepdim=True` it stays as a size of 1, so that the
# sums fit beside what they were made of.
#
# And what happens to softmax if we add to all numbers, or multiply them?
#
# {{question P5}}

# %%
predict("P5", "b")

# %%
x = torch.tensor([1.0, 2.0, 3.0])
for name, numbers in {"x": x, "x + 100": x + 100, "2 x": 2 * x}.items():
    print(f"softmax({name}):".ljust(20), [f"{p:.3f}" for p in torch.softmax(numbers, dim=0)])

# %% [markdown] facts=["F-27"]
# exp(x + c) is exp(x) times exp(c), above and below the line: it cancels. That is more than a curiosity. Typed as it
# stands, the formula breaks for numbers that are not even large:

# %% facts=["F-27"]
x = torch.tensor([1000.0, 999.0])
print("exp:                   ", torch.exp(x))
print("exp, over the sum:     ", torch.exp(x) / torch.exp(x).sum())
print("the same, 1000 lower:  ", torch.exp(x - 1000) / torch.exp(x - 1000).sum())

# %% [markdown]
# **Rule.** Softmax does not change when you add a constant to a slice. So subtract its largest number, and exp never
# sees anything above 0 (objectives 3 and 4).
#
# {{card my_softmax}}


# %% exercise="my_softmax"
def my_softmax(x, dim):
    """The softmax of x along dim, of the shape and dtype of x.

    x is a float tensor; dim may be negative. Numbers as large as 1000 or as small as -1000 do no harm, nor does minus
    infinity, which gives 0 (no slice has nothing else). The gradient is finite.
    """
    ### BEGIN SOLUTION
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)
    ### END SOLUTION


# %% check="my_softmax"
check(my_softmax)

# %% [markdown] facts=["F-26"]
# **Where it breaks.** torch's own softmax refuses integers, and the module `nn.Softmax` without a dimension guesses
# one and warns. Always say which.

# %% facts=["F-26"]
try:
    torch.softmax(torch.arange(3), dim=0)
except NotImplementedError as error:
    print("integers: NotImplementedError:", error)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.nn.Softmax()(a)
print("no dim:", str(caught[0].message).split(".")[0])

# %% [markdown] concepts=["L-33"]
# Softmax is one way to make sums of 1. The plain way divides by the sum. Look at the dimension only: with
# `keepdim=True` or without, which sums stand beside which numbers (objective 4)?

# %%
m = torch.tensor([[1.0, 3.0], [2.0, 6.0]])
print("sums of the rows:", m.sum(1), "shape", tuple(m.sum(1).shape))
print("with keepdim:    ", m.sum(1, keepdim=True).tolist(), "shape", tuple(m.sum(1, keepdim=True).shape))

# %% [markdown]
# {{card normalised}}


# %% exercise="normalised"
def normalised(x, which):
    """x with each row (which = "rows") or each column (which = "columns") divided by its own sum.

    x is a matrix of positive numbers. Afterwards each row, or each column, sums to 1.
    """
    ### BEGIN SOLUTION
    dim = {"rows": 1, "columns": 0}[which]
    return x / x.sum(dim, keepdim=True)
    ### END SOLUTION


# %% check="normalised"
check(normalised)

# %% [markdown] tags=["instructor"]
# **Instructor, 14 minutes.** Board: a 2 × 4 table, and an arrow *along* dim 0 (downwards): "this arrow vanishes".
# Then P5: write exp(x + c) out. Common answers: dim the wrong way round, no keepdim (in a square matrix nothing
# fails: the most expensive mistake here), the largest number of the whole tensor, clamp, the mean. Quick ones: why
# may the subtracted number be detached?

# %% [markdown] concepts=["L-26", "L-32"] facts=["F-35"]
# ## Functions that remember
#
# `F.softmax(x, dim=1)` wants its dimension at every call. `nn.Softmax(dim=1)` is an *object*: it keeps the dimension,
# and is called with x alone. Such objects are **modules**. They can stand in a row in `nn.Sequential`, and those that
# learn keep their weights. For functions without any state the two forms do the same.

# %% concepts=["L-26", "L-32", "L-33"]
softmax = torch.nn.Softmax(dim=1)
print("the object:", softmax, "| same numbers:", torch.equal(softmax(a), F.softmax(a, dim=1)))
for module in (torch.nn.ReLU(), softmax, torch.nn.Linear(4, 2)):
    print(f"{type(module).__name__:8} keeps for saving:", list(module.state_dict()))

# %% [markdown] facts=["F-35"]
# Your own module is a class that is derived from `torch.nn.Module` and has a method `forward`. If it also has an
# `__init__`, that one begins with `super().__init__()`. (In older code you will find `super(Times,
# self).__init__()`, which means the same.)


# %% concepts=["L-26"] facts=["F-35"]
class Times(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


print(torch.nn.Sequential(Times(2), torch.nn.ReLU())(torch.tensor([-1.0, 3.0])))

# %% [markdown]
# **Rule.** A module is called like a function, and `forward` says what it does. State that is to be kept belongs into
# the object; what changes from call to call is an argument.
#
# Write ReLU both ways: as a module, and beside it the plain function that needs no object (objective 5).
#
# {{card MyReLU}}


# %% exercise="MyReLU"
class MyReLU(torch.nn.Module):
    """ReLU as a module without state, and as a function: MyReLU()(x) and MyReLU.functional(x) are equal.

    x may hold integers, infinities and NaN, which stays NaN. Its dtype and device stay, and x is not changed. The
    gradient at 0 is 0, as in torch. Write forward, and below it functional, which takes x alone and is marked
    @staticmethod.
    """

    def forward(self, x):
        ### BEGIN SOLUTION
        return self.functional(x)

    @staticmethod
    def functional(x):
        return torch.where(x <= 0, 0, x)  # NaN is not at most 0, so it stays

    ### END SOLUTION


# %% check="MyReLU"
check(MyReLU)

# %% [markdown]
# **Where it breaks.** At its bend ReLU has no slope, and a convention has to fill the gap. Four ways to write the
# same function, three gradients at 0:

# %%
forms = {
    "torch.relu": torch.relu,
    "where(x <= 0, 0, x)": lambda x: torch.where(x <= 0, 0, x),
    "clamp(min=0)": lambda x: x.clamp(min=0),
    "maximum(x, 0)": lambda x: torch.maximum(x, torch.zeros_like(x)),
}
for name, form in forms.items():
    value, slope = value_and_gradient(form, [0.0])
    print(f"{name:20} at 0: value {value[0]}, gradient {slope[0]}")

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Board: two columns, "object: made once, called often" and "function: everything at each
# call". Ask where a weight belongs, where a temperature, where `x`. Common answers: no Module, __init__ without
# super(), clamp (gradient 1 at 0), times a mask (NaN for minus infinity), where(x > 0, ...) (swallows NaN), a
# Parameter that nobody trains.

# %% [markdown] concepts=["L-34"] facts=["F-27"]
# ## Why not just divide by the sum?
#
# Call it LinearNormalize: xᵢ / Σⱼ xⱼ. Its results sum to 1, without exp and overflow. For positive numbers it works.
# Here are four claims about it; each of them is wrong for some x:
#
# | claim | in words |
# | --- | --- |
# | `"never negative"` | no result is below 0 |
# | `"always defined"` | every result is a finite number |
# | `"shift changes nothing"` | adding 1 to every number gives the same results |
# | `"keeps the order"` | a larger number has a larger result |
#
# This time you do not write a solution but an *input* (objective 4). The check runs LinearNormalize on what you give
# it. It does not matter which counter-example you find.


# %% concepts=["L-34"]
def linear_normalize(x):
    return x / x.sum()


for numbers in ([1.0, 3.0], [2.0, 2.0, 4.0]):
    print(numbers, "→", linear_normalize(torch.tensor(numbers)).tolist())

# %% [markdown]
# {{card counter_example}}


# %% exercise="counter_example"
def counter_example(claim, n):
    """A float tensor of n finite numbers for which the claim about LinearNormalize fails.

    claim is one of "never negative", "always defined", "shift changes nothing", "keeps the order"; n is at least 2.
    For all claims but "always defined", the results are to be finite ("shift changes nothing": after adding 1, too).
    """
    ### BEGIN SOLUTION
    x = torch.zeros(n)
    x[0], x[1] = {
        "never negative": (3.0, -1.0),
        "always defined": (1.0, -1.0),
        "shift changes nothing": (1.0, 2.0),
        "keeps the order": (1.0, -3.0),
    }[claim]
    return x
    ### END SOLUTION


# %% check="counter_example"
check(counter_example)

# %% [markdown]
# **Rule.** exp makes every number positive and keeps the order, so softmax meets all four claims.
#
# **Where it breaks.** On paper, always; in float32, exp(-200) is 0, and two different small numbers may both get the
# share 0.

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Let pairs fill the table on paper before anybody types. Common answers: only negative
# numbers (the signs cancel), 0.1 + 0.2 - 0.3 (not 0 in floating point), infinity as an input, a negative number but a
# positive sum for the order. Keep the best examples for the discussion at the end.

# %% [markdown] concepts=["L-30", "L-31"]
# ## A figure for everybody
#
# What does τ do, what does b do? Three panels side by side say it at a glance, if they are drawn for the reader. Here
# is a figure that is *not*: the axes have no names, each panel has its own y axis, and nothing but colour tells the
# lines apart.

# %% concepts=["L-30"]
x = torch.linspace(-6, 6, 61)
fig, axes = plt.subplots(1, 2, figsize=(7, 2.2))
axes[0].plot(x, torch.sigmoid(x / 4), "tab:red")
axes[0].plot(x, torch.sigmoid(x / 3), "tab:green")
axes[1].plot(x, torch.sigmoid(x), "tab:red")
axes[1].plot(x, torch.sigmoid(x / 0.25), "tab:green")
alt = "A bad example: two panels, each with two rising curves, no names; the y axes are 0.1 to 0.9 and 0 to 1"
show_figure(fig, alt)

# %% [markdown]
# The curves on the left seem to climb as high as those on the right, because their axis runs only from about 0.1 to
# 0.9.
#
# **Rule.** A figure needs: one panel a case, equal axes where heights are compared, a name at each axis, the value in
# each title, a legend, two lines that differ by more than colour, and a description in words (**alt text**) for those
# who cannot see it. A screen reader reads it aloud; write what you would say on the telephone.
#
# Write a function that draws such a figure for any values of τ or of b (objective 6). What is checked is what the
# figure *contains*, not how it looks: fonts, colours and sizes are yours.
#
# {{card sigmoid_figure}}


# %% exercise="sigmoid_figure"
def sigmoid_figure(x, what, values):
    """A row of panels, one for each of values, and a description: (fig, alt).

    x is a tensor of one dimension, what is "tau" or "b", values is a list of numbers. Each panel has two lines over x,
    the sigmoid with this temperature or this shift, and the plain sigmoid, in different line styles or with different
    markers; a title that holds the value; an x label; a legend. The panels share their y axis, which has a label at
    the first panel or more. alt is a text of eight words or more that names all values.
    """
    ### BEGIN SOLUTION
    size = (3.2 * len(values), 2.6)
    fig, axes = plt.subplots(1, len(values), sharey=True, squeeze=False, figsize=size, layout="constrained")
    for ax, value in zip(axes[0], values, strict=True):
        changed = sigmoid_tau(x, value) if what == "tau" else sigmoid_shift(x, value)
        ax.plot(x, changed, label=f"{what} = {value}")
        ax.plot(x, torch.sigmoid(x), linestyle="--", label="plain")
        ax.set(title=f"{what} = {value}", xlabel="x")
        ax.legend()
    axes[0, 0].set_ylabel("sigmoid")
    effect = "the smaller tau is, the steeper the step at 0" if what == "tau" else "the step stands at x = b"
    return fig, f"Sigmoid and plain sigmoid over x, panels for {what} = {', '.join(map(str, values))}: {effect}."
    ### END SOLUTION


# %% check="sigmoid_figure"
check(sigmoid_figure)

# %% [markdown]
# When your check is green, look at what you have drawn: first three temperatures, then three shifts.

# %% concepts=["L-30"]
show_figure(*sigmoid_figure(x, "tau", [0.25, 1, 4]))

# %% concepts=["L-31"]
show_figure(*sigmoid_figure(x, "b", [-1, 0, 1]))

# %% [markdown]
# `show_figure` puts your text below the picture, and where a screen reader looks for it. Turn the picture off in your
# mind and read the text: would you know what τ does?

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Show the bad figure in grey. Common answers: no description, one that only says "plot",
# no sharey, colour alone, labels without a legend, values typed into the code. The figure is judged as data: panels,
# lines, labels, limits, styles. Ask a pair to read their alt texts to each other with eyes shut.

# %% [markdown] concepts=["L-33"]
# ## The logarithm first
#
# A classifier gives a number for each class, its **logits**, and softmax makes probabilities of them. To train it,
# one takes the logarithm of the probability that the right class got: the closer to 0, the better. Its mean with a
# minus sign is a **loss**, the negative log-likelihood. In that order there is a trap:

# %%
logits = torch.tensor([[0.0, 200.0]])
print("probabilities:            ", torch.softmax(logits, 1))
print("their logarithms:         ", torch.softmax(logits, 1).log())
print("logarithms without detour:", torch.log_softmax(logits, 1))

# %% [markdown]
# exp(-200) is 0 in float32, and the logarithm of 0 is minus infinity, where -200 is right. But log(a / b) is log a -
# log b: the logarithm of softmax is x minus the logarithm of a sum, and no probability is ever formed.
#
# **Rule.** If you need the logarithm of a result, compute the logarithm, not the result.
#
# This exercise takes three things together: the largest number subtracted, the sum along the right dimension, and
# lecture 02's pairs of positions (objectives 3 and 4).
#
# {{card log_softmax_and_loss}}


# %% exercise="log_softmax_and_loss"
def log_softmax_and_loss(logits, labels):
    """The logarithm of the softmax of each row, and the mean negative log-likelihood of the labels: (log_p, loss).

    logits has shape (n, classes), labels is an int64 tensor of shape (n,): the right class of each row. log_p has the
    shape of logits, loss has no dimension. Numbers like 1000 and -1000 do no harm.
    """
    ### BEGIN SOLUTION
    s = logits - logits.amax(1, keepdim=True)
    log_p = s - s.exp().sum(1, keepdim=True).log()
    rows = torch.arange(len(labels), device=labels.device)
    return log_p, -log_p[rows, labels].mean()
    ### END SOLUTION


# %% check="log_softmax_and_loss"
check(log_softmax_and_loss)

# %% [markdown]
# **Where it breaks.** Adding a tiny number before the logarithm is a popular cure, and a bad one: it makes the
# infinity disappear and leaves a wrong number. At work, call `F.cross_entropy(logits, labels)`.

# %%
right = torch.log_softmax(logits, 1)[0, 0].item()
print(f"cured: {(torch.softmax(logits, 1)[0, 0] + 1e-9).log().item():.1f}, right: {right:.1f}")

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes; the exercise can be homework.** Board: log(a/b) = log a - log b, and under it x - log
# Σ exp. Common answers: softmax then log, + 1e-9, no minus, the sum instead of the mean, `log_p[:, labels]` (a grid),
# down the columns. What is the gradient of the loss? Softmax minus one-hot, over n: let them find it with
# requires_grad.

# %% [markdown] concepts=["L-33"]
# ## Warm and cold
#
# Softmax has a temperature, too: softmax(x / T). A factor changes it, as you predicted. Cold (T near 0), the largest
# number takes everything; hot, all get the same. Language models are turned with this knob.

# %%
x = torch.tensor([1.0, 2.0, 4.0])
for T in (0.1, 1.0, 10.0, 1000.0):
    print(f"T = {T:6}:", [f"{p:.3f}" for p in torch.softmax(x / T, dim=0)])

# %% [markdown]
# How undecided a distribution is can be measured: its **entropy** is -Σ p log p, in the unit "nat" of the natural
# logarithm. It is 0 if one class has everything, and log n if n classes share alike.
#
# **Rule.** The entropy of softmax(x / T) grows with T, for any x. The check tries it on random numbers (objectives 3
# and 4).
#
# {{card entropy}}


# %% exercise="entropy"
def entropy(logits, temperature):
    """The entropy of softmax(logits / temperature) along the last dimension, in nats.

    logits has shape (..., n); that last dimension is gone in the result. temperature is a number; at 0 or below raise a
    ValueError. A probability of 0 adds 0, not NaN.
    """
    ### BEGIN SOLUTION
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}, and has to be above 0")
    log_p = torch.log_softmax(logits / temperature, dim=-1)
    return -(log_p.exp() * log_p).sum(-1)
    ### END SOLUTION


# %% check="entropy"
check(entropy)

# %% [markdown]
# **Where it breaks.** 0 · log 0 is 0 by convention, but not for torch, which multiplies 0 by minus infinity. With
# logarithms that stay finite the convention comes by itself.

# %%
p = torch.tensor([1.0, 0.0])
print("p log p:", (p * p.log()).tolist(), "| torch.xlogy(p, p):", torch.xlogy(p, p).tolist())

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Board: three bars at T = 0.1, 1 and 10. Common answers: times T, no effect of T, p.log()
# with p = 0, keepdim left in, log2. Quick ones prove the rule: the derivative of the entropy with respect to T is the
# variance of the logits under p, over T³.

# %% [markdown] concepts=["L-34"] facts=["F-27"]
# ## Discussion: why softmax?
#
# You have met its strong and its weak sides. Discuss with your neighbour, then write three to six sentences: **why do
# we prefer softmax to LinearNormalize, and what does it cost?** Use an example with numbers of your own. Say what
# happens when all numbers are shifted, and what when all are multiplied.
#
# {{card why_softmax}}

# %% [markdown] exercise="why_softmax"
# The scores [3, -1] divided by their total give [1.5, -0.5]: a share below zero is no probability. With [1, -1] the
# total is zero and nothing is defined at all, and with [1, -3] even the ranking turns round. The exponential is
# positive and increasing, so softmax has neither problem, and dividing afterwards makes the total one. Adding 100 to
# every score cancels above and below the line, so only differences count; doubling all scores doubles the differences
# and makes the result more extreme. The price is overflow, which subtracting the largest score avoids.

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Graded by hand, 3 points: (1) a failure of the linear form with worked numbers; (2) why
# the exponential cures it; (3) shift against scale, or a price with its reason. Half a point off for a wrong
# statement, once. A frequent half-truth: "softmax makes large numbers larger". Ask for [1, 2] against [0.1, 0.2].

# %% [markdown] concepts=["L-46"]
# ## Recap
#
# - Function and method give a new tensor; the underscore, or `inplace=True`, writes into the old one.
# - `where` chooses at each place, for a dtype that holds both sides. It does not keep NaN out of gradients.
# - A finite value does not promise a finite gradient: make the input harmless first.
# - Temperature divides x, shift is subtracted from x, both inside the function.
# - `dim` is the dimension that is summed over; `keepdim=True` keeps its place.
# - Softmax: add a constant and nothing changes, multiply and it does. Subtract the largest number.
# - Logarithm of a result: compute the logarithm directly.
# - A module keeps state; a function gets everything as arguments.
# - A figure: names, equal axes, a second channel besides colour, alt text.
#
# **Words.** *Activation function*: a simple function between the layers of a network. *In place*: written into the
# memory that is there. *ReLU*: max(0, x). *Sigmoid*: a soft step from 0 to 1. *Temperature*: what x is divided by.
# *Softmax*: exp, divided by its sum along a dimension. *Logits*: the numbers before softmax. *Negative
# log-likelihood*: minus the logarithm of the probability of what is right. *Entropy*: how undecided a distribution
# is. *Module*: an object of torch that is called like a function. *Alt text*: a description of a picture in words.
#
# **To read on** (not needed for the course): torch's pages "torch.Tensor", "torch.nn" and "torch.nn.functional" at
# docs.pytorch.org/docs/stable/tensors.html, docs.pytorch.org/docs/stable/nn.html and
# docs.pytorch.org/docs/stable/nn.functional.html.

# %%
print(check.progress())

# %% [markdown]
# Next: **04 · Derivatives, chain rule, computation graphs**. You will see where gradients come from, and take them
# apart step by step.

# %% [markdown] tags=["instructor"]
# **Instructor.** If time is short, leave out the figure (3.10) and the
# modules (3.8); lecture 04 needs only MyReLU's form. Ask at the end, without notes: "give me an input for which a
# finite value has a NaN gradient".
