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
# # 05 · Values that are not there
#
# Real data has holes: sequences of different length, sensors that failed, labels nobody has given. Fill a hole with 0
# and it becomes a number; fill it with NaN and it spreads. In this lecture the hole is part of the tensor. After it
# you can
#
# 1. **construct, read and convert** masked data;
# 2. tell a gradient of **0** from one that is **NaN** and from one that is **undefined**;
# 3. repair four famous faults in three ways: a plain trick, a function of `torch.masked`, a **MaskedTensor**;
# 4. compute a **safe softmax**, and say what today's PyTorch does by itself;
# 5. **reduce** what is there: means, extremes, positions, also where nothing is there;
# 6. **train** on incomplete data, prove that what is hidden does not matter, and name what PyTorch's own prototype
#    cannot do.
#
# {{times}}
#
# Run the next cell. Then come three questions on the lectures before, and right after them your first exercise.

# %% setup=true
import warnings

import matplotlib.pyplot as plt
import torch
import torch.masked
import torch.nn.functional as F

from autograder.check import Checker
from lecture_pictures import explore_mask, mask_grid, show_figure, stacked
from maskedtensor_ref import MaskedTensor, as_masked_tensor, masked_tensor
from maskedtensor_ref.differences import DIFFERENCES

check = Checker("05_masked_overview")
predict, hint = check.predict, check.hint

# %% [markdown]
# ## From lectures 02 to 04
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

# %% [markdown] concepts=["O-03"]
# ## Which numbers count?
#
# Two weather stations send readings, one three of them and the other only one. A tensor needs rows of equal length, so
# the short row is **padded**: filled up with anything. From then on nobody can tell a reading of 0 from padding.
#
# A **mask** can: a bool tensor of the same shape, **True where a number counts**. A **MaskedTensor** is data and mask
# in one object, and `masked_tensor(data, mask)` makes one. It prints `--` where nothing counts.

# %% concepts=["O-03"]
data = torch.tensor([[3.0, 0.0, 5.0], [4.0, 0.0, 0.0]])
mask = torch.tensor([[True, True, True], [True, False, False]])
readings = masked_tensor(data, mask)
print(readings)
print("mean of everything:", data.mean().item(), "| mean of what counts:", readings.mean().item())

# %% [markdown]
# **Rule.** An element is **specified** where the mask is True. No result may depend on the others.
#
# Usually nobody hands you the mask: you get a padded batch, and the length of each row (objective 1). What lies in the
# padding is up to chance. Rows of length 0 exist, too.
#
# {{card masked_batch}}


# %% exercise="masked_batch"
def masked_batch(padded, lengths):
    """A MaskedTensor of padded, in which each row specifies its first elements, as many as lengths says.

    padded has shape (rows, columns); lengths is an int64 tensor of shape (rows,), from 0 to columns. The padding may
    hold anything, and a sequence may hold zeros. The mask is on the device of padded; no loop over rows.
    """
    ### BEGIN SOLUTION
    position = torch.arange(padded.shape[1], device=padded.device)
    return masked_tensor(padded, position < lengths[:, None])
    ### END SOLUTION


# %% check="masked_batch"
check(masked_batch)

# %% [markdown] concepts=["O-04"] facts=["F-41"]
# **Reading it back.** Three methods take a MaskedTensor apart. `get_data()` gives the plain tensor underneath,
# `get_mask()` the mask, and `to_tensor(value)` a plain tensor with your value filled in where nothing counts.

# %% concepts=["O-04"] facts=["F-41"]
junk = masked_tensor(torch.tensor([1.0, 2.0, float("nan")]), torch.tensor([True, False, False]))
print("the MaskedTensor:", junk)
print("get_data():      ", junk.get_data())
print("get_mask():      ", junk.get_mask())
print("to_tensor(-1):   ", junk.to_tensor(-1))

# %% [markdown] concepts=["O-04"]
# `get_data()` shows what lies under the mask: an old 2, a NaN. It is junk, and not safe to compute with. In pictures
# of this lecture a dot is a hidden element; a bolt says that what is hidden there would do harm.
#
# **Rule.** To get a plain tensor, use `to_tensor(value)`, and choose the value for what comes next.

# %% concepts=["O-04"]
mask_grid(junk.get_data(), junk.get_mask(), name="junk")

# %% [markdown] concepts=["O-03"] facts=["F-39"]
# **Two ways to make one.** They are named after `torch.tensor` and `torch.as_tensor`:
#
# - `masked_tensor(data, mask)` makes a **new leaf**: the history of data (lecture 04's graph) is cut;
# - `as_masked_tensor(data, mask)` **keeps the history**, so gradients flow back through it.
#
# Both copy data and mask, `as_masked_tensor` too, in spite of its name. (The class `MaskedTensor` itself can be called
# like `masked_tensor`.)

# %% concepts=["O-03"] facts=["F-39"]
x = torch.tensor([1.0, 2.0], requires_grad=True)
two = torch.tensor([True, False])
print("as_masked_tensor:", as_masked_tensor(3 * x, two).requires_grad)
print("masked_tensor:   ", masked_tensor((3 * x).detach(), two).requires_grad)
print("the class:       ", MaskedTensor(torch.ones(2), two))
data[0, 0] = 99.0
print("data was copied: ", readings[0, 0].item())

# %% [markdown] concepts=["O-05"]
# **Indexing** is that of plain tensors: the same index is applied to data and mask. Below, the even numbers count.

# %% concepts=["O-05"]
numbers = torch.arange(24).reshape(2, 3, 4)
even = masked_tensor(numbers.float(), numbers % 2 == 0)
print(even[0])
print(even[:, :, 2:4])

# %% [markdown]
# **Where it breaks.** Half of the world reads a mask the other way round. Look it up each time:
#
# | where | True means |
# | --- | --- |
# | MaskedTensor, `torch.masked` | this element **counts** |
# | `F.scaled_dot_product_attention(attn_mask=...)` | this element **counts** |
# | `nn.MultiheadAttention(key_padding_mask=...)` | this element is **hidden** |
# | NumPy's `numpy.ma` | this element is **hidden** |

# %%
print("ours: ", junk.get_mask().tolist())
print("NumPy:", junk.numpy().mask.tolist())

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes with the review.** Board: two rows of boxes, one with data, one with crosses and ticks; put
# a "?" into every hidden box and never change it again. Common answers to 5.1: `<=`, padded != 0 ("but my zeros are
# padding!"), the mask as integers, True at the padding. Ask: "where have you seen a 0 that meant nothing?"

# %% [markdown] concepts=["O-02"] facts=["F-38"]
# ## Two packages, one idea
#
# PyTorch itself has a MaskedTensor, in `torch.masked`. It is a **prototype**: an early version, made to try out an idea.
# It warns whenever you construct one, and at present nobody develops it further. Its idea is worth learning; much of its
# behaviour is not. So this course teaches the idea with a package of its own, `maskedtensor_ref`, that has the same
# names, and looks at the prototype as a case study.
#
# Below, the warning is caught, shown once, and from then on left out by its text. A second one is left out with it: the
# prototype warns of a leaf that "requires_grad" when its own backward pass makes one, and there is nothing you could do
# about that.

# %% concepts=["O-02"] facts=["F-38"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        torch.masked.masked_tensor(torch.ones(2), two)
print(len(caught), "warnings:", str(caught[0].message).split(" and ")[0])
for text in ("The PyTorch API of MaskedTensors is in prototype", "It is not recommended .* requires_grad. To avoid"):
    warnings.filterwarnings("ignore", message=text, category=UserWarning)


def why(call):
    """What the two packages do with a call, and the reason, from the list that our package keeps."""
    found = next(d for d in DIFFERENCES if d.call == call)
    print(f"{call}\n  torch.masked: {found.peer}\n  here:         {found.here}\n  because       {found.reason}")


why("constructing")

# %% [markdown] concepts=["O-01", "O-06"]
# Why a class of its own? One could put a special number into the holes. Three popular ones:

# %% concepts=["O-06"]
values, known = torch.tensor([2.0, 4.0, 0.0]), torch.tensor([True, True, False])
for filled in (0.0, -999.0, float("nan")):
    print(f"filled with {filled:6}: mean {torch.where(known, values, filled).mean().item():.2f}")
print("masked:             mean", masked_tensor(values, known).mean().item())

# %% [markdown] concepts=["O-01", "O-06"]
# A special number is a number, and takes part. NaN is the honest one, but it spreads through everything, says nothing
# about its cause, and does not exist for integers. With the mask inside the tensor, every operation knows. That buys
# three things:
#
# 1. **masked semantics**: sequences of different length, sums and means that skip what is missing;
# 2. gradients that are **undefined**, which is neither 0 nor NaN;
# 3. data that is mostly absent, stored in a few cells (lecture 06).

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes.** Stories of special numbers that became data: -999 degrees in a climate record, 1.1.1900 as
# a date of birth, a sensor's 0. Say clearly what "prototype" means for a project: do not build on it; learn from it.

# %% [markdown] concepts=["O-07", "O-08"]
# ## Zero, NaN, undefined
#
# A gradient can say three different things:
#
# | gradient | says |
# | --- | --- |
# | 0 | moving x does not move the result |
# | NaN | something broke on the way |
# | undefined | x takes no part; the question makes no sense |
#
# A plain tensor can only say the first two, and often says one of them where the third is meant. Which one, may depend
# on the **order** of your operations. Four threads in PyTorch's list of issues (its public complaints) are about that.
# The first, number 10729, is about `where`:
#
# {{question P1}}

# %%
predict("P1", "b")

# %% concepts=["O-08"] facts=["F-42"]
x = torch.tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100], requires_grad=True)
y = torch.where(x < 0, torch.exp(x), torch.ones_like(x))
y.sum().backward()
print("value:   ", [f"{v:.2g}" for v in y.tolist()])
print("gradient:", [f"{v:.2g}" for v in x.grad.tolist()])

# %% [markdown] concepts=["O-08", "O-09"]
# The value is fine everywhere. But exp(90) is infinite in float32. `where` did not choose it, so 0 comes back to it,
# and the slope of exp there is infinite: 0 times infinity is NaN. The zeros before it mix two meanings: the constant 1
# has the slope 0, and exp(x) took no part at all.
#
# With masks, each side says where it counts. `exp` then never matters beyond its mask:

# %% concepts=["O-09"] facts=["F-42"]
x = torch.tensor([-10.0, -5, 0, 5, 10, 50, 60, 70, 80, 90, 100])
below = x < 0
mx = masked_tensor(x, below, requires_grad=True)
my = masked_tensor(torch.ones_like(x), ~below, requires_grad=True)
torch.where(below, torch.exp(mx), my).sum().backward()
print(mx.grad)

# %% [markdown] facts=["F-42"]
# The gradient is there for the side that was chosen, and marked as missing elsewhere: no 0, no NaN. The prototype
# finds the same, and prints fewer digits: 4.5e-05 looks like a zero.

# %% facts=["F-42"]
px = torch.masked.masked_tensor(x, below, requires_grad=True)
py = torch.masked.masked_tensor(torch.ones_like(x), ~below, requires_grad=True)
torch.where(below, torch.exp(px), py).sum().backward()
print(px.grad)

# %%
few = torch.tensor([-5.0, 0.0, 90.0], requires_grad=True)
torch.where(few < 0, torch.exp(few), 1).sum().backward()
plain = mask_grid(few.grad, torch.ones(3, dtype=torch.bool), name="plain gradient")
few.grad = None
torch.exp(as_masked_tensor(few, few < 0)).sum().backward()
masked = mask_grid(few.grad.get_data(), few.grad.get_mask(), name="masked gradient")
stacked("The gradient at x = -5, 0, 90: plain, and masked", [plain, masked])

# %% [markdown] concepts=["O-07"]
# **Rule.** Hiding a *result* does not repair a *gradient*. What is dangerous has to be made harmless **before** the
# dangerous operation sees it.
#
# With plain tensors that takes a trick: use `where` twice, once for the input and once for the result (objectives 2 and
# 3).
#
# {{card exp_below_zero}}


# %% exercise="exp_below_zero"
def exp_below_zero(x):
    """exp(x) where x is below 0, and 1 elsewhere, with a plain gradient that is finite for every x.

    x is a float tensor of any shape; it may hold numbers like 1000, and infinity. At 0 the result is the constant 1,
    so the gradient there is 0. The dtype stays.
    """
    ### BEGIN SOLUTION
    below = x < 0
    harmless = torch.where(below, x, 0)
    return torch.where(below, torch.exp(harmless), 1)
    ### END SOLUTION


# %% check="exp_below_zero"
check(exp_below_zero)

# %% [markdown]
# There is a third way. `torch.masked` also holds plain *functions* with a `mask=` argument, about twenty of them:
# reductions such as `torch.masked.sum`, and softmax. They take plain tensors and give plain ones, and warn of nothing.
# What they hide gets the gradient 0. Is that enough? Try it on the sum of exp over what is below 0, in two orders:

# %%
x = torch.tensor([-1.0, 100.0], requires_grad=True)
for name, total in {
    "exp, then torch.masked.sum": torch.masked.sum(torch.exp(x), mask=x < 0),
    "torch.masked.logsumexp, then exp": torch.exp(torch.masked.logsumexp(x, 0, mask=x < 0)),
}.items():
    print(f"{name:33} value {total.item():.4f}, gradient {torch.autograd.grad(total, x)[0].tolist()}")

# %% [markdown]
# (`logsumexp` is the logarithm of the sum of exp. It masks its input itself.)
#
# **Where it breaks.** A function of `torch.masked` hides its own input and sends a zero back. If the infinity came into
# being *before*, that zero meets it all the same. The mask has to stand first.

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes.** Board: x → exp → where → sum, values above, slopes below, for x = 90; circle the 0 and
# the infinity. Then move the mask from the right end to the left end. Common answers: where once, float64 (ask for
# 1000), clamp (ask for x = 0), detach. Let them say the three meanings in a sentence of their own.

# %% [markdown] concepts=["O-10", "O-11"]
# ## The side that nobody chose
#
# Issue 52248 is the same story with a division. The condition is False, so the quotient is not even wanted:

# %% concepts=["O-10"]
a = torch.tensor(0.5, requires_grad=True)
no = torch.tensor(False)
y = torch.where(no, a / 0, torch.ones(()))
print("value:", y.item(), "| gradient:", torch.autograd.grad(y, a)[0].item())

# %% concepts=["O-11"]
a = masked_tensor(torch.tensor(0.5), torch.tensor(True), requires_grad=True)
y = torch.where(no, a / 0, torch.ones(()))
print("value:", y.item(), "| gradient:", *torch.autograd.grad(y, a))

# %% [markdown]
# The masked answer is the exact one: a takes **no part** in the result. `where` takes value *and* mask from the side
# that it chooses.
#
# Now the plain trick for a division (objectives 2 and 3). The divisor is what makes it dangerous.
#
# {{card guarded_quotient}}


# %% exercise="guarded_quotient"
def guarded_quotient(condition, a, b, c):
    """a / b where the condition is True, c elsewhere, with finite plain gradients of a and c.

    All four are tensors of one shape; condition is bool, the others are float. Where the condition is True b is not 0;
    elsewhere a and b may hold anything: 0, NaN, infinity. What is chosen stays as it is, also a NaN or an infinity. No
    gradient of b is asked for.
    """
    ### BEGIN SOLUTION
    divisor = torch.where(condition, b, 1)
    return torch.where(condition, a / divisor, c)
    ### END SOLUTION


# %% check="guarded_quotient"
check(guarded_quotient)

# %% [markdown]
# **Where it breaks.** A tiny number added to the divisor is a popular cure. It keeps the NaN away, and changes every
# quotient that counts:

# %%
for b in (1.0, 1e-3, 1e-6):
    print(f"1 / {b:g} = {1 / b:.6g}, cured with 1e-6: {1 / (b + 1e-6):.6g}")

# %% [markdown] tags=["instructor"]
# **Instructor, 6 minutes.** Board: the same picture as before with 1/u for exp. Common answers: where once, + eps, an
# `if` (ask for a vector), as_masked_tensor in the middle (a masked gradient for a: right in a masked world, refused
# here because plain optimisers want plain gradients).

# %% [markdown] concepts=["O-12", "O-13"]
# ## Divide, then mask
#
# Issue 4132: divide by a vector with a 0 in it, then pick only the good results. Surely nothing can happen now?

# %% concepts=["O-12"]
x = torch.tensor([1.0, 1.0], requires_grad=True)
divisor = torch.tensor([0.0, 1.0])
y = x / divisor
ok = divisor != 0
y[ok].sum().backward()
print("y:", y.tolist(), "| x.grad:", x.grad.tolist())

# %% [markdown] concepts=["O-12"]
# The result was masked, the gradient is NaN (the rule above). The person who opened the issue wants 0 there. And with
# masks:

# %% concepts=["O-13"]
x = torch.tensor([1.0, 1.0], requires_grad=True)
as_masked_tensor(x / divisor, ok).sum().backward()
print("x.grad:", x.grad)
x = torch.tensor([1.0, 1.0], requires_grad=True)
torch.masked.as_masked_tensor(x / divisor, ok).sum().backward()
print("the prototype agrees:", x.grad)

# %% [markdown]
# Note what happened: x is a plain tensor, and its gradient is a MaskedTensor. The mask went back along the graph.
#
# **Rule.** Three orders are safe: pick first and divide then; divide by something harmless and choose then; or say in
# the tensor what counts.
#
# Write all three side by side (objective 3). The check looks at the gradient of each. For the x and divisor above it is
# [0, 1] from the picked elements, [0, 1] from the safe quotient, and [--, 1] from the MaskedTensor.
#
# {{card quotients}}


# %% exercise="quotients"
def quotients(x, divisor):
    """x / divisor in three forms that are safe to differentiate: (indexed, safe, masked).

    x and divisor are float tensors of one shape, and divisor holds zeros. indexed has one dimension: the quotients
    where divisor is not 0, in order. safe has the shape of x, and 0 where divisor is 0. masked is a MaskedTensor,
    specified where divisor is not 0. Gradients of x flow back through all three.
    """
    ### BEGIN SOLUTION
    ok = divisor != 0
    indexed = x[ok] / divisor[ok]
    safe = torch.where(ok, x / torch.where(ok, divisor, 1), 0)
    return indexed, safe, as_masked_tensor(x / divisor, ok)
    ### END SOLUTION


# %% check="quotients"
check(quotients)

# %% [markdown]
# **Where it breaks.** `masked_tensor` in place of `as_masked_tensor` cuts the history: x gets no gradient at all. Our
# package warns of that.

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cut = masked_tensor(x / divisor, ok)
print("history:", cut.requires_grad, "| warned:", str(caught[0].message).split(":")[0])

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Let them vote: should the gradient be 0 or --? Both camps are right: [0, 1] is the slope of
# what `y[ok]` computes; -- says that x / 0 has none. Common answers: pick after the division, where after the
# division, masked_tensor, the mask turned round.

# %% [markdown] concepts=["O-14"]
# ## The NaN that comes back
#
# torch has sums and means that skip NaN. Issue 67180 asks what their gradients do:
#
# {{question P2}}

# %%
predict("P2", "b")

# %% concepts=["O-14"] facts=["F-43"]
a = torch.tensor([1.0, 2.0, float("nan")])
for function in (torch.nansum, torch.nanmean):
    b = torch.tensor(1.0, requires_grad=True)
    y = function(a * b)
    print(f"{function.__name__:8} value {y.item()}, gradient of b {torch.autograd.grad(y, b)[0].item()}")

# %% [markdown] concepts=["O-15"]
# `nansum` leaves the NaN out of the sum, but the product a · b has already used it: b's gradient is 1 + 2 + 0 · NaN.
# With the mask on a, the NaN never takes part:

# %% concepts=["O-15"] facts=["F-43"]
for package in (torch.masked, None):
    make = package.masked_tensor if package else masked_tensor
    b = torch.tensor(1.0, requires_grad=True)
    y = (make(a, ~a.isnan()) * b).sum()
    print(f"{'prototype' if package else 'ours':9} gradient of b:", torch.autograd.grad(y, b)[0].item())

# %% [markdown]
# **Rule.** Skip the NaN where it *enters*, not where it shows.
#
# Do it with plain tensors, for any b that broadcasts with a (objective 3). Infinities are numbers here: they count.
#
# {{card sum_without_nan}}


# %% exercise="sum_without_nan"
def sum_without_nan(a, b):
    """The sum of a * b over all places where a is not NaN, with the right gradient of b.

    a is a float tensor that may hold NaN and infinities; b a float tensor that broadcasts with a, a single number for
    instance. The result has no dimension; it is 0 if all of a is NaN. a stays as it is.
    """
    ### BEGIN SOLUTION
    clean = torch.where(torch.isnan(a), 0, a)
    return (clean * b).sum()
    ### END SOLUTION


# %% check="sum_without_nan"
check(sum_without_nan)

# %% [markdown]
# **Four issues, three ways.** When your checks up to here are green, put everything side by side; until then the cell
# with the table stops with "not answered yet". Each function below is a way to write one of the four, and the table shows the gradient that
# comes out. (There is no division among the functions of `torch.masked`, so in two of the rows the divisor has to be
# made harmless by hand all the same.)

# %%
zero, one = torch.zeros(1), torch.ones(1)
yes, no = torch.tensor([True]), torch.tensor([False])
harmless = torch.where(ok, divisor, 1)
ways = {
    "10729": (
        [-1.0, 100.0],
        lambda x: torch.where(x < 0, torch.exp(x), 1),
        exp_below_zero,
        lambda x: torch.exp(torch.masked.logsumexp(x, 0, mask=x < 0)),
        lambda x: as_masked_tensor(x, x < 0).exp(),
    ),
    "52248": (
        [0.5],
        lambda a: torch.where(no, a / 0, one),
        lambda a: guarded_quotient(no, a, zero, one),
        lambda a: torch.masked.sum(torch.stack([a / one, one]), 0, mask=torch.stack([no, yes])),
        lambda a: torch.where(no, as_masked_tensor(a / 0, no), one),
    ),
}

# %%
ways |= {
    "4132": (
        [1.0, 1.0],
        lambda x: (x / divisor)[ok],
        lambda x: quotients(x, divisor)[1],
        lambda x: torch.masked.sum(x / harmless, mask=ok),
        lambda x: quotients(x, divisor)[2],
    ),
    "67180": (
        [1.0],
        lambda b: torch.nansum(a * b),
        lambda b: sum_without_nan(a, b),
        lambda b: torch.masked.sum(a, mask=~a.isnan()) * b,
        lambda b: masked_tensor(a, ~a.isnan()) * b,
    ),
}

# %%
print(f"{'issue':7}{'plain':16}{'trick':16}{'torch.masked':16}MaskedTensor")
for issue, (numbers, *forms) in ways.items():
    row = []
    for form in forms:
        x = torch.tensor(numbers, requires_grad=True)
        form(x).sum().backward()
        row.append(", ".join("--" if v is None else f"{v:.4g}" for v in x.grad.tolist()))
    print(f"{issue:7}" + "".join(f"{text:16}" for text in row).rstrip())

# %% [markdown]
# NaN in the first column, in each row. The trick and the function agree, and say 0; the MaskedTensor says `--` where x
# takes no part. In the last row there is nothing undefined: b takes part, and its gradient is 3.

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Board: 1·g + 2·g + NaN·0. Common answers: nansum of the product (everybody, first),
# nan_to_num (ask what becomes of infinity), a written to in place, b.detach(). Read the table by columns: each column
# is a style. Which would you use where the mask is needed once? And where it is needed in ten lines?

# %% [markdown] concepts=["O-16"]
# ## A safe softmax
#
# Softmax over a padded row must give the padding the weight 0. The usual way writes minus infinity there, because
# exp(-∞) = 0. That works as long as *something* is left. Below, dimension 0 is summed over, and nothing of the second
# column counts (issue 55056):

# %% concepts=["O-16"]
scores = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
counts = torch.tensor([[True, False, False], [True, False, True], [False, False, False]])
filled = scores.masked_fill(~counts, float("-inf"))
print(filled)
print(filled.softmax(0))

# %% [markdown] concepts=["O-16"]
# The sum of the column is 0, and 0 / 0 is NaN. One such column in a batch, and after the next step of training all
# weights are NaN: the training **diverges**. Now masked, in the prototype and here:

# %% concepts=["O-16"] facts=["F-45"]
ours = masked_tensor(scores, counts).softmax(0)
theirs = torch.masked.masked_tensor(scores, counts).softmax(0)
print(ours)
print("the prototype, to_tensor(0), second column:", theirs.to_tensor(0)[:, 1].tolist())
print("the prototype, get_data(), second column:  ", theirs.get_data()[:, 1].tolist())
print("torch.masked.softmax, second column:       ", torch.masked.softmax(scores, 0, mask=counts)[:, 1].tolist())

# %% [markdown] facts=["F-45"]
# The column is masked, and no longer NaN. (In the prototype the NaN still lies underneath: one more reason not to read
# `get_data()`. And the *function* `torch.masked.softmax` returns it openly.)
#
# Where does one meet such a column? In **attention**, the heart of language models: each word (a *query*) looks at all
# words of a sentence (the *keys*), softmax turns the scores into weights, and the words' *values* are averaged with
# these weights. A sentence that is all padding has nothing to look at. PyTorch offers two forms,
# `F.scaled_dot_product_attention` and the module `nn.MultiheadAttention`, which with `need_weights=True` also hands out
# the weights.
#
# {{question P3}}

# %%
predict("P3", "a")

# %% concepts=["O-16"] facts=["F-45"]
torch.manual_seed(0)
attention = torch.nn.MultiheadAttention(4, num_heads=1, batch_first=True)
words = torch.randn(1, 2, 4, requires_grad=True)  # one sentence, two words, four numbers each
for need in (True, False):
    hidden = torch.ones(1, 2, dtype=torch.bool)  # here True means hidden
    out, _ = attention(words, words, words, key_padding_mask=hidden, need_weights=need)
    grad = torch.autograd.grad(out.sum(), words)[0]
    broken = [bool(t.isnan().any()) for t in (out, grad)]
    print(f"need_weights={need!s:5}: NaN in the output {broken[0]!s:5}, in the gradient {broken[1]}")
nothing = torch.zeros(1, 2, 2, dtype=torch.bool)  # here True means counts
print("scaled_dot_product_attention:", F.scaled_dot_product_attention(words, words, words, attn_mask=nothing).tolist())

# %% [markdown] facts=["F-45"]
# So today's PyTorch is safe in part: the function gives 0 where nothing counts, and `MultiheadAttention` does so only
# on the path that uses it.
#
# **Rule.** A slice in which nothing counts has no softmax. Decide what stands there: 0 is right for weights that will
# be multiplied. And decide it by the mask; whoever replaces every NaN afterwards also hides those that are true alarms.
#
# Write it for any dimension (objective 4). NaN or infinity under the mask must not matter. A NaN that *counts* has to
# stay.
#
# {{card safe_softmax}}


# %% exercise="safe_softmax"
def safe_softmax(x, mask, dim):
    """The softmax of x along dim over what counts: 0 where the mask is False, and all 0 in a slice with nothing.

    x is a float tensor, mask a bool tensor that broadcasts with it, True where an element counts; dim may be negative.
    The result is a plain tensor of the shape and dtype of x, with finite gradients, 0 for what does not count.
    """
    ### BEGIN SOLUTION
    some = mask.any(dim, keepdim=True)
    filled = torch.where(mask, x, float("-inf"))
    weights = torch.softmax(torch.where(some, filled, 0), dim)
    return torch.where(some, weights, 0)
    ### END SOLUTION


# %% check="safe_softmax"
check(safe_softmax)

# %% [markdown] concepts=["O-16"]
# **A training story.** Six stations send up to five readings, one station sends none. Each reading comes with a quality
# mark. The answer sought is twice the reading with the best mark. A tiny attention has to find that out: it has two
# numbers to learn, how much the mark matters (`sharpness`, wanted: large) and a factor (`scale`, wanted: 2). An
# **optimiser** does the step of lecture 04 for us: `optimiser.step()` moves the numbers against their gradients,
# `zero_grad()` clears those. SGD is the plain one.

# %% concepts=["O-16"]
torch.manual_seed(2)
lengths = torch.tensor([5, 3, 0, 4, 1, 2])
there = torch.arange(5) < lengths[:, None]
marks, values = torch.randn(6, 5), torch.randn(6, 5)
best = marks.masked_fill(~there, float("-inf")).argmax(1)
target = torch.where(lengths > 0, 2 * values[torch.arange(6), best], 0)


def naive_softmax(x, mask, dim):
    return torch.softmax(x.masked_fill(~mask, float("-inf")), dim)


# %%
def trained(softmax, steps=200):
    """The losses of a training with this softmax, and the weights at its end."""
    sharpness, scale = torch.zeros((), requires_grad=True), torch.ones((), requires_grad=True)
    optimiser = torch.optim.SGD([sharpness, scale], lr=0.05)
    losses = []
    for _ in range(steps):
        weights = softmax(sharpness * marks, there, 1)
        answer = (weights * (scale * values)).sum(1)
        loss = torch.where(lengths > 0, answer - target, 0).square().sum() / (lengths > 0).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses, weights.detach(), (sharpness.item(), scale.item())


# %%
def training_figure(naive, safe):
    """The losses of both trainings, the weights of the safe one, and what there is to see."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    left.plot(safe[0], label="safe softmax")
    left.plot(naive[0][:1], "rx", label="naive: NaN from step 1 on")
    left.set(title="loss", xlabel="step", ylabel="mean squared error")
    left.legend()
    right.imshow(torch.where(there, safe[1], float("nan")), cmap="Blues", vmin=0, vmax=1.6)
    for i, j in torch.cartesian_prod(torch.arange(6), torch.arange(5)).tolist():
        text = f"{safe[1][i, j]:.2f}" if there[i, j] else "--"
        right.text(j, i, text, ha="center", va="center", fontsize=8)
    right.set(title="weights at the end", xlabel="reading", ylabel="station", xticks=range(5))
    return fig, (
        "Left: the loss over 200 steps falls close to 0 with the safe softmax, and is NaN from step 1 on with the naive "
        "one. Right: the weights of six stations; in each row nearly all weight lies on one reading, padding has none, "
        "and the row of station 2 is all padding."
    )


# %% [markdown]
# Both trainings, and their picture. The cell needs your `safe_softmax`; until then it stops with "not answered yet".

# %% concepts=["O-16"]
naive, safe = trained(naive_softmax), trained(safe_softmax)
for name, (losses, _, learnt) in {"naive": naive, "safe": safe}.items():
    print(f"{name:5} first losses {losses[0]:.2f}, {losses[1]:.2f}, last {losses[-1]:.3f};", end=" ")
    print("sharpness {:.2f}, scale {:.2f}".format(*learnt))
show_figure(*training_figure(naive, safe))

# %% [markdown]
# The loss leaves the empty station out, in both. Still the naive run is NaN after a single step: the weights of the
# empty row are NaN, and on the way back 0 times NaN reaches the factor that all stations share.

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes; the exercise can be homework.** Board: a row of boxes with -∞ in all of them; what is
# exp, what is the sum? Common answers: nan_to_num at the end (ask for a NaN that counts), -1e9 (what are the weights of
# an empty row?), softmax times mask (do they sum to 1?). The story: ask *why* a loss that leaves the row out is not
# enough, before they read it.

# %% [markdown] concepts=["O-17"] facts=["F-47"]
# ## Reducing what is there
#
# For reductions, torch offers functions with *nan* in their name. In 2021 people asked for the whole family (issue
# 61474). Which are there today?

# %% concepts=["O-17"] facts=["F-47"]
print([name for name in dir(torch) if name.startswith("nan")])

# %% [markdown] concepts=["O-17"]
# No nanmax, nanmin, nanprod, nanvar. With a mask, none of them is needed: the *ordinary* operation skips what is not
# there. Three ways to the mean of the numbers that are not 0:

# %% concepts=["O-17"]
x = torch.arange(16.0)
y = x * x.fmod(4)
z = y.masked_fill(y == 0, float("nan"))
print("y:", y.tolist())
print("y.mean()           ", round(y.mean().item(), 4), " the zeros take part")
print("z.nanmean()        ", round(z.nanmean().item(), 4))
print("torch.masked.mean  ", round(torch.masked.mean(y, mask=y != 0).item(), 4))
print("torch.mean(masked) ", round(torch.mean(masked_tensor(y, y != 0)).item(), 4))

# %% [markdown] concepts=["O-19"]
# And if nothing is there?
#
# {{question P4}}

# %%
predict("P4", "d")

# %% concepts=["O-19"]
empty = torch.full((4,), float("nan"))
print("torch.nanmean:    ", torch.nanmean(empty))
print("MaskedTensor.mean:", torch.mean(masked_tensor(empty, ~empty.isnan())))
print("in the prototype: ", torch.mean(torch.masked.masked_tensor(empty, ~empty.isnan())))

# %% [markdown] concepts=["O-19"]
# `nan` is ambiguous: nothing there, or something broken? `--` says which.
#
# **Rule.** A result without anything to make it of is *undefined*. If you work with plain tensors, return a flag that
# says so.
#
# Do it for mean and variance (objective 5). The **variance** here is the mean of the squared distances from the mean.
# Count what counts; and mind the order of filling and subtracting.
#
# {{card mean_and_variance}}


# %% exercise="mean_and_variance"
def mean_and_variance(x, mask, dim):
    """Mean, variance and whether they are defined, along dim, over what counts: (mean, variance, defined).

    x is a float tensor, mask a bool tensor of its shape. The variance is the mean of (x - mean) ** 2. dim is gone in all
    three results; defined is bool, True where at least one element counts. Where none does, mean and variance may be
    any finite number, but not NaN. What does not count may hold anything; a NaN that counts makes both NaN.
    """
    ### BEGIN SOLUTION
    count = mask.sum(dim, keepdim=True).clamp(min=1)
    mean = torch.where(mask, x, 0).sum(dim, keepdim=True) / count
    variance = torch.where(mask, x - mean, 0).square().sum(dim, keepdim=True) / count
    return mean.squeeze(dim), variance.squeeze(dim), mask.any(dim)
    ### END SOLUTION


# %% check="mean_and_variance"
check(mean_and_variance)

# %% [markdown] concepts=["O-17"]
# For a sum, 0 can stand in for what is missing: adding 0 changes nothing. Such a number is called the **identity** of an
# operation. Ask the functions of `torch.masked`, with nothing to reduce, and they hand it out:

# %% concepts=["O-17"]
x, nothing = torch.ones(3), torch.zeros(3, dtype=torch.bool)
for name in ("sum", "prod", "amax", "amin", "mean"):
    print(f"{name:5} of nothing:", getattr(torch.masked, name)(x, 0, mask=nothing).item())

# %% [markdown]
# The maximum of nothing is minus infinity, for *any* number is larger. A mean has no identity.
#
# **Rule.** Fill with the identity of the operation, in the dtype at hand, then reduce.
#
# That builds the missing nanmax, nanmin and nanprod, and for integers too, which have neither NaN nor infinity: there
# the smallest number of the dtype, `torch.iinfo(x.dtype).min`, is the identity of max (objective 5).
#
# {{card reduced}}


# %% exercise="reduced"
def reduced(x, mask, which, dim):
    """The maximum (which = "max"), minimum ("min") or product ("prod") along dim of what counts, in the dtype of x.

    x holds floats or integers of any dtype, mask is a bool tensor of its shape. A slice in which nothing counts gives
    the identity: 1 for the product; for max minus infinity or the smallest integer, for min the opposite.
    """
    ### BEGIN SOLUTION
    if which == "prod":
        return x.masked_fill(~mask, 1).prod(dim, dtype=x.dtype)
    if x.is_floating_point():
        low, high = float("-inf"), float("inf")
    else:
        low, high = torch.iinfo(x.dtype).min, torch.iinfo(x.dtype).max
    if which == "max":
        return x.masked_fill(~mask, low).amax(dim)
    return x.masked_fill(~mask, high).amin(dim)
    ### END SOLUTION


# %% check="reduced"
check(reduced)

# %% [markdown] concepts=["O-18"] facts=["F-46"]
# **Where is it?** The same y as above: where is its smallest number that is not 0? By eye: at position 1. Prototype and
# course agree, and yet you cannot use one of the answers:

# %% concepts=["O-18"] facts=["F-46"]
theirs = torch.argmin(torch.masked.masked_tensor(y, y != 0))
ours = torch.argmin(masked_tensor(y, y != 0))
print("prototype:", theirs.get_data().item(), theirs.dtype, "| ours:", ours.item(), ours.dtype)
why("argmax, argmin")
print("y at that place:", y[ours.item()].item())

# %% [markdown]
# **Rule.** A position is an integer, and counts from the start of the *whole* slice, hidden elements included; else it
# is no index.
#
# Now for any dimension, from plain data and mask (objective 5). You may use a MaskedTensor. If you do it by hand: which
# element wins, if the only one that counts is infinity?
#
# {{card argmin_of_counted}}


# %% exercise="argmin_of_counted"
def argmin_of_counted(x, mask, dim):
    """The position along dim of the smallest element that counts, as a plain int64 tensor.

    x is a float tensor, mask a bool tensor of its shape; in each slice at least one element counts. Positions are those
    in the whole slice. An element that does not count is never the answer, whatever it holds. dim is gone in the
    result.
    """
    ### BEGIN SOLUTION
    return masked_tensor(x, mask).argmin(dim).to_tensor(0)
    ### END SOLUTION


# %% check="argmin_of_counted"
check(argmin_of_counted)

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes for the three.** Board: a table with operation and identity; let them fill it (and, or, gcd
# for quick ones). Common answers: 5.7 divides by all, fills before subtracting, n - 1; 5.8 fills with 0, or with
# infinity for integers, or forgets dtype= in prod; 5.9 counts positions among what counts. P4: many say 0.

# %% [markdown] concepts=["O-04", "O-06"]
# ## Find the leak
#
# A function is handed a MaskedTensor and computes with `get_data()`. It passes its author's tests, for under the mask
# lay zeros. How would you *prove* that hidden values do not matter? Put **poison** there: NaN, infinity, 1e30. If the
# result changes, there is a leak. Tick the box below, if you have a running kernel; else compare the two pictures.


# %% concepts=["O-06"]
def leaky_shares(data, mask):
    """Each element as a share of the total of its row. Or is it?"""
    m = masked_tensor(data, mask)
    total = m.get_data().sum(1, keepdim=True)
    return (m / total).to_tensor(0)


explore_mask(
    torch.tensor([[1.0, 3.0, 0.0], [2.0, 2.0, 4.0]]),
    torch.tensor([[True, True, False], [True, True, True]]),
    leaky_shares,
    name="m",
    called="leaky_shares",
)

# %% [markdown]
# **Rule.** Every function that reads a mask deserves a poison test. The checks of this lecture make one in each
# exercise.
#
# Repair it (objective 6): in and out goes a MaskedTensor. One step in your way: m and its sum have different masks, and
# two MaskedTensors may be combined only if their masks agree.

# %%
m = masked_tensor(torch.tensor([[1.0, 3.0, 0.0], [2.0, 2.0, 4.0]]), torch.tensor([[True, True, False], [True] * 3]))
try:
    m / m.sum(1, keepdim=True)
except ValueError as error:
    print("ValueError:", str(error).split(". Either")[0])

# %% [markdown]
# The total counts for the whole row, but in the first row not everything counts. A *plain* tensor counts everywhere, by
# definition: make the total plain. (Lecture 08 is about this rule.)
#
# {{card shares}}


# %% exercise="shares"
def shares(m):
    """Each element of m as a share of the total of its row: a MaskedTensor under the mask of m.

    m is a MaskedTensor of shape (rows, columns); the total of a row is the sum of what counts in it. What lies under the
    mask may be NaN, infinite or huge, and must not matter. A row in which nothing counts stays so. m is not changed.
    """
    ### BEGIN SOLUTION
    total = m.sum(1, keepdim=True)
    return m / total.to_tensor(1)
    ### END SOLUTION


# %% check="shares"
check(shares)

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Let pairs write a poison test for each other's 5.7. Common answers: get_data() * get_mask()
# (0 times NaN), fill first and sum then, m / m.sum (the error is read aloud: what are the two masks?). Plain results:
# ask who can still tell a share of 0 from a missing one.

# %% [markdown] concepts=["O-06", "O-07"]
# ## Training with missing targets
#
# Now put it to use. Temperature depends on height, and half of the stations did not report: their targets are NaN. The
# loss is the **mean squared error**. Three things can go wrong in it, and each has come up today: a NaN in the gradient,
# a hole that counts as 0, a mean over the wrong number (objective 6).
#
# {{card masked_mse}}


# %% exercise="masked_mse"
def masked_mse(prediction, target, mask):
    """The mean of (prediction - target) ** 2 over the targets that are there, with no dimension.

    All three have one shape; mask is bool, True where the target is known. Elsewhere target and prediction may hold
    anything, NaN too, and the prediction gets the gradient 0; a NaN that counts makes the loss NaN. If no target is
    known the loss is 0, connected to the prediction, so that backward() works. The gradient is a plain tensor.
    """
    ### BEGIN SOLUTION
    known = torch.where(mask, target, 0)
    error = torch.where(mask, prediction - known, 0)
    return error.square().sum() / mask.sum().clamp(min=1)
    ### END SOLUTION


# %% check="masked_mse"
check(masked_mse)

# %% [markdown]
# When it is green, train with it. Stations higher up fail more often, as in life. Beside your loss, two others: one
# fills the holes with 0, one takes the targets as they are. (`F.mse_loss` is torch's mean squared error.)

# %%
torch.manual_seed(3)
height = torch.linspace(0, 2, 40)  # km
temperature = 25 - 6.5 * height + 0.7 * torch.randn(40)
reported = torch.rand(40) > height / 2.2
targets = torch.where(reported, temperature, float("nan"))


def fitted(loss):
    """Degrees per km, and degrees at sea level, after 400 steps with this loss."""
    slope, start = torch.zeros((), requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser = torch.optim.SGD([slope, start], lr=0.2)
    for _ in range(400):
        optimiser.zero_grad()
        loss(slope * height + start).backward()
        optimiser.step()
    return slope.item(), start.item()


# %%
def lines_figure(lines):
    """The stations, the lines by the name of their loss, and what there is to see."""
    fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    ax.plot(height[reported], temperature[reported], "o", label="reported")
    ax.plot(height[~reported], temperature[~reported], "x", color="grey", label="missing (never seen)")
    for (name, (slope, start)), style in zip(lines.items(), (":", "--", "-"), strict=True):
        if slope == slope:  # not NaN
            ax.plot(height, slope * height + start, style, color="black", label=f"loss {name}")
    ax.set(title="Temperature and height, with missing targets", xlabel="height (km)", ylabel="temperature (°C)")
    ax.legend(fontsize=8)
    return fig, (
        "Temperature against height, from 25 degrees at sea level to 12 degrees at 2 km; higher up most targets are "
        "missing. The solid line of the masked loss runs through the points; the dashed line, with holes filled by 0, "
        "falls far below them. The loss that takes NaN as it is has no line."
    )


# %%
losses = {
    "as it is": lambda p: F.mse_loss(p, targets),
    "filled with 0": lambda p: F.mse_loss(p, targets.nan_to_num(0.0)),
    "masked": lambda p: masked_mse(p, targets, reported),
}
lines = {name: fitted(loss) for name, loss in losses.items()}
for name, (slope, start) in lines.items():
    print(f"{name:14} {slope:6.2f} degrees per km, {start:6.2f} at sea level")
show_figure(*lines_figure(lines))

# %% [markdown]
# The data were made with -6.5 degrees per km and 25 degrees at sea level. The masked loss finds that, from half of the
# stations. Zeros pull the line down to themselves; and one NaN is enough to learn nothing at all.

# %% [markdown] facts=["F-44"]
# **Where it breaks.** Could one train with masked gradients directly, without `where`? A plain tensor that goes
# through `as_masked_tensor` gets a masked gradient, and the optimiser has to cope with it. (Adagrad is another optimiser;
# lecture 07 is about it.) With the prototype neither does:

# %% facts=["F-44"]
for name, make in {"prototype": torch.masked.as_masked_tensor, "ours": as_masked_tensor}.items():
    for optimiser in (torch.optim.SGD, torch.optim.Adagrad):
        w = torch.ones(2, requires_grad=True)
        make(2 * w, two).sum().backward()
        try:
            with warnings.catch_warnings(action="ignore"):  # the prototype warns, and then raises
                optimiser([w], lr=0.1).step()
            print(f"{name:9} {optimiser.__name__:8} w = {[round(v, 2) for v in w.tolist()]}")
        except (TypeError, ValueError) as error:
            print(f"{name:9} {optimiser.__name__:8} {type(error).__name__}")
w.grad = w.grad.to_tensor(0)  # what to do where an optimiser refuses: missing becomes 0
print("converted:", w.grad)

# %% facts=["F-44"]
why("SGD, Adagrad, clip_grad_norm_ on masked gradients")

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes; the exercise can be homework.** Board: the sum of squares with two holes; where does a
# NaN enter, and where must it be stopped? Common answers: where around the square (M21), mask.numel() as divisor, an
# early return of a constant 0 (no gradient: backward fails on the one empty batch of the night), .mean() of an empty
# selection. Ask what the 0-filled line has learnt.

# %% [markdown] concepts=["O-05"] facts=["F-40"]
# ## Writing through a mask
#
# A slice of a plain tensor is a view: write to it, and the whole changes (lecture 02). Is a MaskedTensor a tensor in
# that way, too? First the prototype:
#
# {{question P5}}

# %%
predict("P5", "b")

# %% concepts=["O-05"] facts=["F-40"]
for name, make in {"prototype": torch.masked.masked_tensor, "ours": masked_tensor}.items():
    mt = make(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[True, False], [True, True]]))
    mt[0][0] = 9
    mt[0].add_(5)
    print(f"{name:9}", mt.to_tensor(0).tolist())
why("m[0] = 5; m[0].add_(5)")

# %% [markdown]
# In silence, the prototype writes into a copy. Ours writes through. But one thing ours refuses: a write must not change
# *which* elements are specified.

# %%
mt = masked_tensor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[True, False], [True, True]]))
try:
    mt[0] = torch.tensor([7.0, 8.0])
except ValueError as error:
    print("ValueError:", str(error).split(":")[0])
mt[0] = masked_tensor(torch.tensor([7.0, 8.0]), mt[0].get_mask())
print(mt)
print(torch.where(mt.get_mask(), mt, torch.tensor([[0.0, 8.0], [0.0, 0.0]])))

# %% [markdown]
# **Rule.** Values can be written in place, masks cannot: they are shared by everything that was computed from them. For
# another mask make another tensor, with `torch.where`, which takes value and mask from the side it chooses.
#
# The last exercise needs both (objectives 1 and 6).
#
# {{card write_row}}


# %% exercise="write_row"
def write_row(m, i, values):
    """Writes values into the specified elements of row i of m, in place; returns a tensor with the whole row filled.

    m is a MaskedTensor of shape (rows, columns), values a plain tensor of shape (columns,), i a position that may be
    negative. After the call m shows the values where it specified row i before, and hides what it hid. The result is a
    new MaskedTensor: row i specified throughout, with all of values; every other row as in m.
    """
    ### BEGIN SOLUTION
    m[i] = masked_tensor(values, m[i].get_mask())
    chosen = torch.zeros(m.shape, dtype=torch.bool, device=m.device)
    chosen[i] = True
    return torch.where(chosen, values.expand(m.shape), m)
    ### END SOLUTION


# %% check="write_row"
check(write_row)

# %% [markdown] facts=["F-48"]
# **Where it breaks.** "MaskedTensor is a tensor, so everything works." Ask a few operations. In the prototype half of
# these are missing:


# %% facts=["F-48"]
def works(operation, make):
    try:
        with warnings.catch_warnings(action="ignore"):  # the prototype warns, and then raises
            operation(make(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True])))
    except (TypeError, NotImplementedError):
        return False
    return True


names = "sum mean prod amin amax argmin argmax var std max min median any cumsum logsumexp log_softmax relu matmul"
operations = {name: getattr(torch.Tensor, name) for name in names.split()}
for name in ("cumsum", "logsumexp", "log_softmax"):
    operations[name] = lambda m, name=name: getattr(m, name)(0)
operations["matmul"] = lambda m: m @ torch.ones(3)
for said, make in {"prototype": torch.masked.masked_tensor, "ours": masked_tensor}.items():
    lacking = [name for name, operation in operations.items() if not works(operation, make)]
    print(f"{said}: {len(operations) - len(lacking)} of {len(operations)} work; lacking: {' '.join(lacking) or 'none'}")

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes; the exercise can be homework.** Board: two MaskedTensors with arrows to *one* mask;
# what would happen to the other, if it were written to? Common answers: a clone of the row, m[i] = values (refused),
# m returned (row still hidden), all ones as a mask (other rows' junk becomes data), arange == i with a negative i.

# %% [markdown] concepts=["O-20"] facts=["F-37"]
# ## Recap
#
# - A mask says which numbers count; True means specified. What is hidden must never matter: poison proves it.
# - `masked_tensor` makes a leaf, `as_masked_tensor` keeps the history; both copy. Read with `to_tensor(value)`.
# - 0, NaN and undefined are three different things. A plain gradient cannot say the third.
# - Hiding the result does not repair the gradient: make the *input* harmless first.
# - Three ways: `where` twice; a function of `torch.masked`, if it stands before the danger; a MaskedTensor.
# - Softmax of nothing: decide by the mask. Today `scaled_dot_product_attention` gives 0,
#   `torch.masked.softmax` NaN, `MultiheadAttention` both.
# - Reduce by filling with the identity of the operation. Nothing to reduce: undefined, so return a flag.
# - A mean over what counts divides by how many count, and by at least 1.
# - Values can be written through a slice, masks cannot.
# - PyTorch's own MaskedTensor is a prototype: learn from it, do not build on it.
#
# **Words.** *Mask*: a bool tensor that says which elements count. *Specified*: where the mask is True. *Padding*: what
# fills up a row. *MaskedTensor*: data and mask in one. *Poison*: NaN, infinity or huge numbers put under a mask to find a
# leak. *Leak*: a hidden value that reaches a result. *Identity*: the number that changes nothing in a sum, a product, a
# maximum. *Undefined*: neither 0 nor NaN; not there. *Prototype*: an early version, made to try out an idea. *Attention*:
# an average whose weights come from a softmax of scores.
#
# **To read on** (not needed for the course): the page "torch.masked" at docs.pytorch.org/docs/stable/masked.html. Older
# texts link to "docs/master" and to prototype tutorials that have moved; look under "stable" instead.

# %%
print(check.progress())

# %% [markdown] concepts=["O-20"]
# Next: **06 · Sparsity**. If most of a tensor is not there, why store it? Masks and sparse layouts look alike, and mean
# different things.

# %% [markdown] tags=["instructor"]
# **Instructor.** If time is short, leave out 5.3 (it is 5.2 again) and
# 5.8; lecture 07 needs 5.4, 5.10 and masked gradients. Ask at the end, without notes: "give me an example of a gradient
# of 0, of NaN and of one that is undefined."
