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

# %% [markdown] concepts=["O-01"]
# # 09 · Build your own MaskedTensor
#
# For four lectures you have used a MaskedTensor that others wrote, and have seen what the one inside torch cannot do.
# Now you write one: a class `MiniMask`, from an empty page to a model that trains on data with holes. There is no
# `maskedtensor_ref` in this lecture. You need everything so far: views (02), softmax (03), gradients and TensorBoard
# (04), masks (05), sparse storage (06), optimisers (07) and policies (08). After it you can
#
# 1. **design** a container: what it holds, what it refuses, how it shows itself;
# 2. **state and keep** a rule for each kind of operation: elementwise, of two operands, reductions, products;
# 3. **keep what is missing out** of values *and* gradients, and test it by poison;
# 4. give a class **view semantics**, and know what sharing costs;
# 5. **plug it into torch** by `__torch_function__`, and put another storage behind the same words;
# 6. **train** with it, report, and **defend your decisions** in a note of one page.
#
# {{times}}

# %% setup=true
import warnings

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.masked
from torch.utils.tensorboard import SummaryWriter

from autograder.check import Checker
from autograder.tensorboard import fresh_run, read_runs
from lecture_pictures import broadcast, index_overlay, mask_grid, show_figure, sparse_layouts

check = Checker("09_minimask")
predict, hint = check.predict, check.hint

torch.sparse.check_sparse_tensor_invariants.enable()
warnings.filterwarnings("ignore", "The PyTorch API of MaskedTensors is in prototype", UserWarning)
warnings.filterwarnings("ignore", "It is not recommended to create a MaskedTensor", UserWarning)

# %% [markdown]
# ## From the earlier lectures
#
# Answer from memory, without looking back: that is what makes it stay. Put a letter, in quotes, in place of each `...`,
# and run the cell.
#
# {{question R1}}
#
# {{question R2}}
#
# {{question R3}}
#
# {{question R4}}

# %%
predict("R1", "b")
predict("R2", "a")
predict("R3", "c")
predict("R4", "b")

# %% [markdown] concepts=["O-03"]
# ## The plan
#
# | level | milestones | what your class can do then |
# | --- | --- | --- |
# | **Bronze** | C1 container, C2 one operand, C3 two operands, C4 reductions (exercises 9.0 to 9.4) | what you expect of numpy.ma |
# | **Silver** | C5 indexing, C6 gradients, C7 relu, matmul, log_softmax (9.5 to 9.7) | train; more than `torch.masked` |
# | **Gold** | C8 `__torch_function__`, C9 COO storage, C10 a model (9.8 to 9.11) | stand beside tensors in real code |
#
# Each level is a good place to stop. The progress line under every check says how far you are: 5 exercises are Bronze, 8
# are Silver, 11 are Gold.
#
# **How it is built.** A milestone is a *rule*: a function of plain tensors that gets data and mask, and returns data and
# mask. The class only packs and unpacks; a short cell behind each milestone hangs your rule into it. So a rule can be
# read, tested and replaced alone, and a fault in one costs one exercise, not all that come after. (Serious libraries are
# built so, too: rules in the middle, a thin shell around them.)
#
# **One law above all**: True means *there*. What lies under False is **unspecified**: no result, and no gradient, may
# ever depend on it. Every check of this lecture puts **poison** there: NaN, infinity, 1e30, and for integers a 0 where
# something divides.

# %% [markdown]
# ## C1 · What it holds
#
# A MiniMask is two tensors. Which pairs will do? Before you answer, a look at what a careless mask does:

# %%
x = torch.tensor([10.0, 20.0, 30.0])
careless = torch.tensor([1, 0, 1])
print("as an index:", x[careless])
print("under ~:    ", ~careless)

# %% [markdown]
# Integers as an index *name* elements: 20, 10, 20. And ~1 is -2. Neither says a word of warning. A container that refuses
# such a mask at the door finds the mistake where it was made.
#
# **Rule.** Check at the door, and nowhere else: TypeError for the wrong kind of thing, ValueError for the wrong size, and
# a sentence that says what to do (objective 1).
#
# {{card checked}}


# %% exercise="checked"
def checked(data, mask):
    """data and mask themselves, if they can make a MiniMask: (data, mask).

    Both must be tensors and the mask torch.bool, else TypeError; they must have one shape, else ValueError.
    """
    ### BEGIN SOLUTION
    if not torch.is_tensor(data) or not torch.is_tensor(mask):
        raise TypeError(f"data and mask must be tensors, got {type(data).__name__} and {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(f"the mask must be bool, got {mask.dtype}; compare to make one, as in x > 0")
    if mask.shape != data.shape:
        raise ValueError(f"the mask has shape {tuple(mask.shape)}, data {tuple(data.shape)}; expand the mask first")
    return data, mask
    ### END SOLUTION


# %% check="checked"
check(checked)

# %% [markdown] concepts=["O-04"]
# Now the class. It keeps what it is given, without copies, so that it can be a view of somebody's tensor. It knows its
# shape and dtype, it can become a plain tensor, and it shows itself honestly: a dash where nothing is there, and enough
# digits. (`torch.masked` prints 4.54e-05 as 0.0000.)
#
# {{card MiniMask}}


# %% exercise="MiniMask"
class MiniMask:
    """Data, and a mask that is True where the data is there.

    MiniMask(data, mask) keeps both as .data and .mask, without copies; it refuses what `checked` refuses.
    shape, dtype: those of data.
    to_tensor(fill): a new tensor with data where it is there, and the number fill elsewhere; data stays as it is.
    repr: MiniMask([[1.5, --], [--, 4.54e-05]]), brackets as data.tolist() has them, a number v as f"{v:g}", what is not
    there as --.
    """

    def __init__(self, data, mask):
        ### BEGIN SOLUTION
        self.data, self.mask = checked(data, mask)

    @property
    def shape(self):
        return self.data.shape

    @property
    def dtype(self):
        return self.data.dtype

    def to_tensor(self, fill):
        return torch.where(self.mask, self.data, fill)

    def __repr__(self):
        return f"MiniMask({self._text(self.data.tolist(), self.mask.tolist())})"

    def _text(self, value, there):
        if isinstance(value, list):
            return "[" + ", ".join(self._text(v, t) for v, t in zip(value, there, strict=True)) + "]"
        return f"{value:g}" if there else "--"

    ### END SOLUTION


# %% check="MiniMask"
check(MiniMask)

# %%
m = MiniMask(torch.tensor([[1.5, float("nan")], [1e30, 4.54e-05]]), torch.tensor([[True, False], [False, True]]))
print(m, m.shape, m.dtype)
print(m.to_tensor(0.0))

# %%
mask_grid(m.data, m.mask, name="m")

# %% [markdown]
# **Where it breaks.** Nothing keeps a user from reading `m.data` and believing it. An underscore in front of the name
# would say "private"; it would not stop anybody either. Which is better is a decision, and the first one for your design
# note (exercise 9.11): write it down while you remember why.

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes with the review and the plan.** Say the law aloud and let the class repeat it in their own
# words. Common answers: a mask of ints let through, assert, `mask.expand_as(data)`, `.clone()` in the constructor, four
# fixed digits. Let pairs write down one decision each for the design note, here and at the end of every section.

# %% [markdown] concepts=["S-06", "V-07"]
# ## C2 · One operand
#
# sqrt, abs, isnan: an **elementwise** function never mixes elements, so what is missing stays missing, and the rest is
# torch's work. What can go wrong in two lines? The dtype, which torch knows better than we do. And this:
#
# {{question P1}}

# %%
predict("P1", "a")

# %% concepts=["V-07"]
a = MiniMask(torch.tensor([4.0, -7.0]), torch.tensor([True, False]))
b = MiniMask(a.data.sqrt(), a.mask)  # hands the mask on
print("a before:", a)
b.mask[1] = True
print("a after: ", a)

# %% [markdown]
# **Rule.** A result owns its mask. (Here masks can be written to, from C5 on. A library in which masks never change may
# share them, and saves a byte an element. That is a decision, too.)
#
# {{card unary}}


# %% exercise="unary"
def unary(name, data, mask):
    """The elementwise torch function of this name, applied to masked data: (data, mask).

    name: "sqrt", "abs", "isnan" and the like. The result has the dtype that torch gives it, and a mask in memory of its own.
    A specified NaN stays specified. What comes out where the mask is False does not matter. The arguments stay as they are.
    """
    ### BEGIN SOLUTION
    function = getattr(torch, name)
    return function(data), mask.clone()
    ### END SOLUTION


# %% check="unary"
check(unary)

# %% [markdown]
# Hang it into the class. `setattr(MiniMask, "sqrt", f)` is what `def sqrt` in the class body does, and every object that is
# already there can do it at once:


# %%
def method_of_one(name):
    return lambda self: MiniMask(*unary(name, self.data, self.mask))


for name in ("abs", "exp", "log", "neg", "sqrt", "isnan"):
    setattr(MiniMask, name, method_of_one(name))
ints = MiniMask(torch.tensor([4, -7, 9]), torch.tensor([True, False, True]))
print(ints.sqrt(), ints.sqrt().dtype)
print(ints.abs(), ints.abs().dtype)

# %% [markdown]
# **Where it breaks.** Elsewhere: the *gradient* of sqrt at whatever lies under the mask. That is C6.

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes.** Board: two boxes that point to one mask. Common answers: `.to(data.dtype)` at the end, NaN
# declared missing, the mask handed on. Ask which functions are *not* elementwise, although they look so (softmax, sort).

# %% [markdown] concepts=["S-07", "V-02", "V-03"] facts=["F-60"]
# ## C3 · Two operands, and a policy
#
# a + b, where different elements are there. Three policies, as in lecture 08:
#
# | policy | the result is there where | used by |
# | --- | --- | --- |
# | match | the masks must be equal, else an error | `torch.masked` |
# | intersection | both are | numpy.ma |
# | union | any is; what is missing counts as the identity | sums of what is known |
#
# {{question P2}}

# %%
predict("P2", "b")

# %% concepts=["V-02"]
left = np.ma.masked_array([1.0, 99.0], mask=[False, True])  # True hides, in NumPy
right = np.ma.masked_array([99.0, 2.0], mask=[True, False])
print(
    "numpy.ma: a + b =",
    left + right,
    "| its sum:",
    (left + right).sum(),
    "| sum(a) + sum(b):",
    left.sum() + right.sum(),
)

# %% [markdown] facts=["F-60"]
# Masks are **broadcast** like data: a column of masks and a row of masks make a grid. In `torch.masked` two masks of
# different shape refuse, even if all of both is there:

# %% facts=["F-60"]
column = torch.masked.masked_tensor(torch.ones(2, 1), torch.ones(2, 1, dtype=torch.bool))
row = torch.masked.masked_tensor(torch.ones(3), torch.ones(3, dtype=torch.bool))
try:
    column + row
except ValueError as error:
    print("ValueError:", str(error)[:78])

# %%
broadcast(torch.tensor([[1], [0]]), torch.tensor([1, 0, 1]), "*", names=("a_mask", "b_mask"))

# %% [markdown]
# The picture has 1 for there and 0 for missing, so a product is an "and": where it is 1, both operands are there.
#
# One more trap. Among floats, 8 / 0 under a mask is an infinity that nobody sees. Integers refuse:

# %%
try:
    torch.tensor([7, 8]) % torch.tensor([4, 0])
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# **Rule.** First the mask, then the values: give the function only operands that cannot hurt (objective 2).
#
# {{card binary}}


# %% exercise="binary"
def binary(name, a, a_mask, b, b_mask, policy):
    """The torch function of this name of two masked operands: (data, mask), both of the shape that broadcasting gives.

    policy "match": the masks must be equal after broadcasting, else ValueError. "intersection": the result is there where
    both operands are. "union": where any is; a missing operand counts as the identity, which "add" (0) and "mul" (1) have
    and every other name has not: ValueError. Another policy is a ValueError, too. The result has the dtype that torch gives
    it, and a mask in memory of its own. What lies under the masks must not matter; a and b may be integers, and name may
    be one that divides.
    """
    ### BEGIN SOLUTION
    function, identities = getattr(torch, name), {"add": 0, "mul": 1}
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        if name not in identities:
            raise ValueError(f"what is missing has no value in {name}: union is for {', '.join(identities)}")
        fill = identities[name]
        return function(a.masked_fill(~a_mask, fill), b.masked_fill(~b_mask, fill)), left | right
    if policy not in ("match", "intersection"):
        raise ValueError(f"unknown policy {policy!r}: choose match, intersection or union")
    if policy == "match" and not torch.equal(left, right):
        raise ValueError("the masks differ: fill with to_tensor, or choose intersection or union")
    both = left & right
    return function(torch.where(both, a, 1), torch.where(both, b, 1)), both
    ### END SOLUTION


# %% check="binary"
check(binary)

# %% [markdown]
# In the class, an operand that is no MiniMask is there as a whole. The policy is an attribute of the class, "match" unless
# you say otherwise:


# %%
def parts(value):
    """Data and mask of an operand; a plain tensor or a number is there as a whole."""
    if isinstance(value, MiniMask):
        return value.data, value.mask
    value = torch.as_tensor(value)
    return value, torch.ones_like(value, dtype=torch.bool)


def method_of_two(name):
    return lambda self, other: MiniMask(*binary(name, *parts(self), *parts(other), MiniMask.policy))


MiniMask.policy = "match"
for operator, name in {"__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div"}.items():
    setattr(MiniMask, operator, method_of_two(name))
MiniMask.__radd__, MiniMask.__rmul__ = MiniMask.__add__, MiniMask.__mul__

a = MiniMask(torch.tensor([1.0, 99.0]), torch.tensor([True, False]))
b = MiniMask(torch.tensor([99.0, 2.0]), torch.tensor([False, True]))
for policy in ("intersection", "union", "match"):
    MiniMask.policy = policy
    try:
        print(f"{policy:12} a + b =", a + b)
    except ValueError:
        print(f"{policy:12} ValueError, for the masks differ")

# %% [markdown]
# (After the loop the policy is "match" again, the last one. A plain number meets a masked operand with "all of it is
# there", so under "match" `m + 1` refuses as soon as m has a hole. Whether it should is a decision for your note; the next
# cell decides that plain operands always mix.)


# %%
def method_of_two(name):
    def method(self, other):
        policy = MiniMask.policy if isinstance(other, MiniMask) else "intersection"
        return MiniMask(*binary(name, *parts(self), *parts(other), policy))

    return method


for operator, name in {"__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div"}.items():
    setattr(MiniMask, operator, method_of_two(name))
MiniMask.__radd__, MiniMask.__rmul__ = MiniMask.__add__, MiniMask.__mul__
print(a + 1, 3 * b)

# %% [markdown]
# **Where it breaks.** Operations in silence: under "intersection" each step of a long formula can only lose elements. Under
# "union" a sum of 1 and nothing is 1, and nobody sees that half of it was missing.

# %% [markdown] tags=["instructor"]
# **Instructor, 7 minutes.** Board: a 2×2 table, a there or not, b there or not, and one column a policy. P2 by hand.
# Common answers: masks compared before they are broadcast, fill 0 for mul, the mask of a only, junk divided by junk
# (integers find it). Ask: which policy for adding up invoices, which for temperatures?

# %% [markdown] concepts=["S-08", "V-05", "O-19"]
# ## C4 · Reductions
#
# A sum over a row leaves out what is missing: put 0 there and sum. A largest element, too, with 0? Look at two rows of
# negative numbers:

# %% concepts=["V-05"]
cold = torch.tensor([[-5.0, float("nan")], [-8.0, -3.0]])
known = torch.tensor([[True, False], [True, True]])
mask_grid(cold, known, function=lambda x, mask: torch.where(mask, x, 0).amax(1), name="cold", called="largest")

# %% [markdown]
# In the first row, 0 won: a number that nobody measured. What can be thrown into an amax without changing it? Something
# that loses against everything, minus infinity; or, among integers, the least one there is. It is called the **identity**
# of the reduction.
#
# And a row with nothing in it has no sum and no largest element. That is what the second result says, **defined**: a
# truth value for each slice, which becomes the mask of the result.
#
# **Rule.** Fill with the identity, reduce, and count: defined is where at least one is there.
#
# {{card reduction}}


# %% exercise="reduction"
def reduction(name, data, mask, dim, keepdim):
    """A reduction of what is there: (value, defined), both of the shape that torch's reduction has.

    name: "sum", "mean", "prod", "amax" or "amin". dim: None for all, a number, or a tuple of numbers, negative ones too.
    Defined is a bool tensor: True where at least one element was there. dtypes are torch's; the mean of integers is a
    float. A specified NaN counts, and comes through. What lies under the mask must not matter, nor does the value where
    nothing is defined.
    """
    ### BEGIN SOLUTION
    real = data.is_floating_point()
    info = torch.finfo(data.dtype) if real else torch.iinfo(data.dtype)
    low, high = (float("-inf"), float("inf")) if real else (info.min, info.max)
    filled = torch.where(mask, data, {"sum": 0, "mean": 0, "prod": 1, "amax": low, "amin": high}[name])
    dims = list(range(data.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    count = mask.sum(dims, keepdim)
    if name == "mean":
        return filled.sum(dims, keepdim) / count.clamp(min=1), count > 0
    if name == "prod":  # one dimension at a time, the last one first
        for each in sorted((each % data.dim() for each in dims), reverse=True):
            filled = filled.prod(each, keepdim)
        return filled, count > 0
    return getattr(torch, name)(filled, dims, keepdim), count > 0
    ### END SOLUTION


# %% check="reduction"
check(reduction)


# %% concepts=["V-05", "O-19"]
def method_of_reduction(name):
    return lambda self, dim=None, keepdim=False: MiniMask(*reduction(name, self.data, self.mask, dim, keepdim))


for name in ("sum", "mean", "amax", "amin", "prod"):
    setattr(MiniMask, name, method_of_reduction(name))

m = MiniMask(torch.tensor([[-5.0, 7.0], [1.0, 2.0], [3.0, 9.0]]), torch.tensor([[1, 0], [0, 0], [1, 1]]) == 1)
for name in ("sum", "mean", "amax", "amin", "prod"):
    print(f"{name:5}", getattr(m, name)(1), getattr(m, name)())

# %% [markdown] concepts=["V-06"]
# ### Is it right? Ask others, and ask the laws
#
# Where two libraries have one policy, they must give one answer. numpy.ma knows "intersection" (with the mask turned
# round), `torch.masked` knows "match". A **differential test** runs them side by side on random input:

# %% concepts=["V-06"]
random = torch.Generator().manual_seed(9)
agree = 0
for _ in range(50):
    x, y = torch.randn(3, 4, generator=random), torch.randn(3, 4, generator=random)
    p, q = (torch.rand(3, 4, generator=random) < 0.6 for _ in range(2))
    MiniMask.policy = "intersection"
    mine = (MiniMask(x, p) * MiniMask(y, q)).mean(1)
    theirs = (np.ma.array(x.numpy(), mask=~p.numpy()) * np.ma.array(y.numpy(), mask=~q.numpy())).mean(1)
    theirs = np.ma.array(theirs)
    agree += np.array_equal(mine.mask.numpy(), ~np.ma.getmaskarray(theirs))
    agree += np.allclose(mine.to_tensor(0).numpy(), theirs.filled(0), atol=1e-6)
    MiniMask.policy = "match"
    mine = (MiniMask(x, p) / MiniMask(y, p)).sum(0)
    theirs = (torch.masked.masked_tensor(x, p) / torch.masked.masked_tensor(y, p)).sum(0)
    agree += torch.equal(mine.mask, theirs.get_mask())
    agree += torch.allclose(mine.to_tensor(0), theirs.to_tensor(0), atol=1e-5)
print(agree, "of 200 comparisons agree")

# %% [markdown] concepts=["V-06"]
# A **law** needs no other library. Does sum(a + b) = sum(a) + sum(b) hold? Here for each policy that adds at all:

# %% concepts=["V-06"]
for policy in ("union", "intersection", "match"):
    MiniMask.policy, holds = policy, 0
    for _ in range(50):
        x, y = (torch.randint(-9, 10, (4,), generator=random) for _ in range(2))
        p, q = (torch.rand(4, generator=random) < 0.7 for _ in range(2))
        a, b = MiniMask(x, p), MiniMask(y, p if policy == "match" else q)
        holds += (a + b).sum().to_tensor(0).item() == (a.sum().to_tensor(0) + b.sum().to_tensor(0)).item()
    print(f"{policy:12} holds in {holds} of 50")

# %% [markdown]
# **Where it breaks.** A mean of means is no mean: with holes, rows have different weights. `m.mean(1).mean()` and
# `m.mean()` differ above; compute both.
#
# **Bronze.** Your class does what numpy.ma does, with a policy that you chose.

# %%
print(check.progress())

# %% [markdown] tags=["instructor"]
# **Instructor, 7 minutes.** Board: a table, reduction against identity; let the class fill it in, with integers in a
# column of its own. Common answers: 0 for everything, the mean over all, all() for defined, nansum (eats specified NaN),
# a mean dimension by dimension. End of Bronze: collect two decisions from each pair.

# %% [markdown] concepts=["O-05", "L-17"] facts=["F-40"]
# ## C5 · Indexing, with views
#
# `m[0][1] = 5`: take a row, then write into it. With a tensor that reaches m, since a row is a view (lecture 02). With
# `torch.masked`?

# %% concepts=["O-05"] facts=["F-40"]
theirs = torch.masked.masked_tensor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2, dtype=torch.bool))
theirs[0][1] = 5
print(theirs.get_data()[0])

# %% [markdown] concepts=["L-17"] facts=["F-40"]
# Nothing has happened, and nothing was said. You can do better with little: index data and mask alike, and let torch
# decide what is a view. The picture shows the memory of one row:

# %% concepts=["L-17"]
index_overlay(torch.arange(6.0).view(2, 3), 0, name="data")

# %% [markdown]
# Writing has two cases. A plain value *is there*: it fills a gap. A masked value brings its own mask along.
#
# **Rule.** What happens to the data happens to the mask, in the same memory (objective 4).
#
# {{card Indexing}}


# %% exercise="Indexing"
class Indexing:
    """Reading and writing by index, for a class whose objects have .data and .mask and are made by type(self)(data, mask).

    m[index]: the same index into data and mask, as an object of the class of m; a view wherever torch gives views.
    m[index] = value: writes into data and mask in place. A value of the class of m brings data and mask along; of any other
    value (a number, a plain tensor) all is there.
    """

    def __getitem__(self, index):
        ### BEGIN SOLUTION
        return type(self)(self.data[index], self.mask[index])

    def __setitem__(self, index, value):
        if isinstance(value, type(self)):
            self.data[index], self.mask[index] = value.data, value.mask
        else:
            self.data[index], self.mask[index] = value, True

    ### END SOLUTION


# %% check="Indexing"
check(Indexing)

# %%
MiniMask.__getitem__, MiniMask.__setitem__ = Indexing.__getitem__, Indexing.__setitem__
m = MiniMask(torch.tensor([[1.0, float("nan"), 3.0], [4.0, 5.0, 6.0]]), torch.tensor([[1, 0, 1], [1, 1, 1]]) == 1)
m[0][1] = 2.5
print("a gap filled through a row:", m)
m[:, 0] = MiniMask(torch.tensor([8.0, 8.0]), torch.tensor([True, False]))
print("a masked column written:  ", m)
m[[0]][0, 2] = 99.0
print("through a list, a copy:   ", m)

# %% [markdown]
# **Where it breaks.** In the last line, as in torch: a list copies, and the write is lost. And writing into data that
# requires a gradient is refused by autograd, for the values that backward needs would be gone.

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes; the exercise is homework, and so is all of Silver and Gold.** Ask before the cell what
# `theirs[0][1] = 5` will do. Common answers: clone in getitem, the mask forgotten in setitem (the gap stays a gap),
# `self.data = torch.where(...)` (a new tensor under the old name), a plain tensor from getitem.

# %% [markdown] concepts=["O-07", "O-12", "O-13"] facts=["F-44"]
# ## C6 · Gradients
#
# The gradient of a MiniMask's data is a plain tensor. It should be exactly 0 where nothing is there, so that any optimiser
# can use it. (Gradients of `torch.masked` are masked themselves, and no optimiser of torch takes them.) Does yours?

# %% concepts=["O-07"]
weights = torch.tensor([4.0, float("nan"), 0.0], requires_grad=True)
there = torch.tensor([True, False, False])
MiniMask(weights, there).sqrt().sum().to_tensor(0).backward()
print("gradient:", weights.grad)
with torch.no_grad():
    print("after a step:", weights - 0.1 * weights.grad)

# %% concepts=["O-07"] facts=["F-44"]
w = torch.nn.Parameter(torch.tensor([4.0, 9.0, 1.0]))
with warnings.catch_warnings(action="ignore"):
    torch.masked.as_masked_tensor(w * w, there).sum().backward()
for optimiser in (torch.optim.SGD, torch.optim.Adagrad):
    try:
        with warnings.catch_warnings(action="ignore"):
            optimiser([w], lr=0.1).step()
    except (TypeError, ValueError) as error:
        print(f"torch.masked, {optimiser.__name__}: {type(error).__name__}: {str(error).splitlines()[0][:54]}")

# %% [markdown] concepts=["O-12", "O-13"]
# The values are right, since the sum left the holes out; but on its way back the gradient passes sqrt at NaN and at 0. There
# the derivative is NaN, or infinite, and 0 times that is NaN. One step, and the parameter is lost.
#
# The cure you know: make operands harmless *before* the function sees them. With two operands there is a subtlety:
#
# {{question P3}}

# %%
predict("P3", "c")

# %% concepts=["O-12", "O-13"]
x = torch.tensor([float("nan")], requires_grad=True)
d = torch.tensor([0.0], requires_grad=True)
x_mask, d_mask = torch.tensor([False]), torch.tensor([True])
y = torch.where(x_mask, x, 1) / torch.where(d_mask, d, 1)  # each by its own mask
torch.where(x_mask & d_mask, y, 0).sum().backward()
print("gradient of d:", d.grad)

# %% [markdown]
# d is there, so it was not filled, and 1 / 0 took place. But the *result* is missing, and nothing of it may come back.
#
# **Rule.** Fill every operand by the mask of the *result* (objective 3).
#
# One rule for one, two or three operands takes the place of `unary` and of "intersection":
#
# {{card safe}}


# %% exercise="safe"
def safe(name, operands, masks):
    """The elementwise torch function of this name, with clean gradients: (data, mask).

    operands: one to three float tensors that broadcast; masks: as many bool tensors, each of the shape of its operand. The
    result is there where all operands are. A loss that reads it only there gets, for each operand, the true gradient, and
    exactly 0 from every element whose result is missing, whatever lies under the masks. A gradient that is truly infinite
    or NaN stays so. The mask of the result lies in memory of its own.
    """
    ### BEGIN SOLUTION
    mask = torch.stack(torch.broadcast_tensors(*masks)).all(0)
    harmless = [torch.where(mask, operand, 1) for operand in operands]
    return getattr(torch, name)(*harmless), mask
    ### END SOLUTION


# %% check="safe"
check(safe)

# %% [markdown]
# Put it under the methods that you have, and try again. No other line of the class changes, which is what the thin shell is
# good for:


# %%
def method_of_one(name):
    return lambda self: MiniMask(*safe(name, [self.data], [self.mask]))


def method_of_two(name):
    def method(self, other):
        (a, p), (b, q) = parts(self), parts(other)
        if isinstance(other, MiniMask) and MiniMask.policy != "intersection":
            values, mask = binary(name, a, p, b, q, MiniMask.policy)  # "match" may refuse, "union" has rules of its own
            if MiniMask.policy == "union":
                return MiniMask(values, mask)
        return MiniMask(*safe(name, [a, b], [p, q]))

    return method


for name in ("abs", "exp", "log", "neg", "sqrt"):
    setattr(MiniMask, name, method_of_one(name))
for operator, name in {"__add__": "add", "__sub__": "sub", "__mul__": "mul", "__truediv__": "div"}.items():
    setattr(MiniMask, operator, method_of_two(name))
MiniMask.__radd__, MiniMask.__rmul__ = MiniMask.__add__, MiniMask.__mul__

# %%
weights = torch.tensor([4.0, float("nan"), 0.0], requires_grad=True)
sgd = torch.optim.SGD([weights], lr=0.1)
MiniMask(weights, there).sqrt().sum().to_tensor(0).backward()
sgd.step()
print("gradient:", weights.grad, "\nafter a step:", weights.detach())

# %% [markdown]
# The NaN that lay under the mask is still there, and so is the 0: nobody touched them.
#
# **Where it breaks.** A plain gradient has a 0 where a masked one has nothing. SGD does not mind; momentum, weight decay and
# Adam move such elements all the same (lecture 07). Plain or masked gradients: the third decision for your note.

# %% [markdown] tags=["instructor"]
# **Instructor, 6 minutes; the exercise is homework.** Board: a chain with NaN in the middle, forward above, backward below;
# follow the 0 back. Let P3 take its time, it is the heart of the lecture. Common answers: where on the result (M21), each
# operand by its own mask, nan_to_num in a hook (hides true infinities), detach.

# %% [markdown] concepts=["O-16", "V-05"] facts=["F-48"]
# ## C7 · What a network needs
#
# relu, matrix products, log_softmax: without them nothing is classified. `torch.masked` has none of the three:

# %% facts=["F-48"]
theirs = torch.masked.masked_tensor(torch.ones(2, 2), torch.eye(2) == 1)
attempts = {
    "relu": lambda: torch.relu(theirs),
    "matmul": lambda: torch.matmul(theirs, torch.ones(2, 1)),
    "log_softmax": lambda: torch.log_softmax(theirs, 1),
}
for name, attempt in attempts.items():
    with warnings.catch_warnings(action="ignore"):
        try:
            attempt()
            print(name, "works")
        except (TypeError, NotImplementedError, RuntimeError) as error:
            print(f"{name:12} {type(error).__name__}")

# %% [markdown] concepts=["V-05", "O-16"]
# A matrix product is a sum of products. A term with a missing factor is missing, and a sum leaves out what is missing. So
# an element is there as soon as *some* term has both factors; for which, products of the masks count. log_softmax is a
# softmax over those that are there: the others take no weight, which is what minus infinity is for.
#
# **Rule.** Take an operation apart into elementwise steps and reductions, and the rules that you have say the rest.
#
# {{card layer}}


# %% exercise="layer"
def layer(name, x, mask, y, y_mask):
    """One of three steps of a network on masked data: (data, mask), with gradients as clean as those of `safe`.

    "relu": elementwise; x of any shape. "log_softmax": over the last dimension, among the elements that are there; the mask
    stays. "matmul": x (n, k) times y (k, m), where a term with a missing factor is left out; an element is there if some
    term is. y and y_mask are None except for "matmul". The mask of the result lies in memory of its own. Values that are
    there are finite, but for relu.
    """
    ### BEGIN SOLUTION
    if name == "relu":
        return torch.where(mask, x, 0).relu(), mask.clone()
    if name == "log_softmax":
        return torch.log_softmax(x.masked_fill(~mask, float("-inf")), -1), mask.clone()
    product = x.masked_fill(~mask, 0) @ y.masked_fill(~y_mask, 0)
    terms = mask.to(x.dtype) @ y_mask.to(x.dtype)
    return product, terms > 0
    ### END SOLUTION


# %% check="layer"
check(layer)

# %%
MiniMask.relu = lambda self: MiniMask(*layer("relu", *parts(self), None, None))
MiniMask.log_softmax = lambda self: MiniMask(*layer("log_softmax", *parts(self), None, None))
MiniMask.__matmul__ = lambda self, other: MiniMask(*layer("matmul", *parts(self), *parts(other)))

scores = MiniMask(torch.tensor([[2.0, 1.0, 1e30], [0.0, 5.0, 9.0]]), torch.tensor([[1, 1, 0], [0, 0, 0]]) == 1)
print(scores.log_softmax())
print("weights of the first row:", scores.log_softmax().exp()[0])
print(scores @ torch.ones(3, 2))

# %% [markdown]
# ### Poison everything
#
# Now the law of the first page, for every operation that your class has: three kinds of poison, values and gradients. What
# must not change is compared with a fourth run, in which a harmless 1 lies under the mask.

# %%
operations = {
    "sqrt": lambda m: m.sqrt(),
    "log": lambda m: m.log(),
    "m / m": lambda m: m / m,
    "m * 2 + 1": lambda m: m * 2 + 1,
    "mean(0)": lambda m: m.mean(0),
    "prod()": lambda m: m.prod(),
    "amax(1)": lambda m: m.amax(1),
    "m[:, 1]": lambda m: m[:, 1],
    "relu": lambda m: m.relu(),
    "log_softmax": lambda m: m.log_softmax(),
    "m @ ones": lambda m: m @ torch.ones(3, 2),
}
values = torch.rand(4, 3, generator=random) + 0.5
mask = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 0, 1], [1, 1, 1]]) == 1


def outcome(operation, poison):
    """What is there of the result, and the gradient of its sum."""
    data = torch.where(mask, values, poison).requires_grad_()
    result = operation(MiniMask(data, mask)).to_tensor(0)
    result.sum().backward()
    return result.detach(), data.grad


for name, operation in operations.items():
    harmless = outcome(operation, 1.0)
    same = [
        all(map(torch.equal, harmless, outcome(operation, poison))) for poison in (float("nan"), float("inf"), 1e30)
    ]
    print(f"{name:12}", "nothing changes" if all(same) else f"LEAK: {same}")

# %%
mask_grid(
    values,
    mask,
    poison=True,
    function=lambda x, mask: MiniMask(x, mask).sqrt().sum(1).to_tensor(0),
    name="m",
    called="row_sums",
)

# %% [markdown]
# **Where it breaks.** A *specified* infinity. In `matmul` the missing factor became 0, and 0 times infinity is NaN: in that
# one case a term that should be left out is not. The cure costs memory (all n · k · m terms, chosen one by one). Say in your
# note whether it is worth it.
#
# **Silver.** Your class can train, and does three things that `torch.masked` cannot.

# %%
print(check.progress())

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes; the exercise is homework.** Board: one element of a product as a sum of four terms, two of them
# crossed out. Common answers: 0 for log_softmax, -1e9 (ask for scores of -3e9), every term needed, `product != 0`, log of
# the mask added. Use the poison table as the acceptance test of Silver.

# %% [markdown] concepts=["O-03"]
# ## C8 · torch's own functions
#
# Your users write `torch.sqrt(m)`, and a library that calls `torch.sum` inside will do so, too.
#
# {{question P4}}

# %%
predict("P4", "a")

# %%
try:
    torch.sqrt(m)
except TypeError as error:
    print("TypeError:", str(error).splitlines()[0])

# %% [markdown]
# The door is a class method, `__torch_function__`. If an operand has one, torch calls it *instead* of computing, with the
# function itself, the types of all operands that have such a method, and the arguments. Your answer is one of three:
#
# - the result;
# - `return NotImplemented`: "not me, ask the other class", when a type comes up that you do not know;
# - `raise NotImplementedError(...)`: "nobody taught me that", by name, when there is no rule. *Never* fall through to plain
#   torch: the result would lose its mask, and be made of whatever lies under it.
#
# **Rule.** Refuse by name. A wrong answer costs more than none.
#
# Which rule answers which function is *data*: a dict, filled by a decorator (objective 5).
#
# {{card Registry}}


# %% exercise="Registry"
class Registry:
    """Which rule answers which torch function; each registry has rules of its own.

    @registry.implements(torch.abs, torch.absolute) enters the rule below it for each of these functions, and gives it back
    as it is. dispatch(owner, func, types, args, kwargs) is what __torch_function__ of the class owner returns: NotImplemented
    if types holds a class that is not owner and no subclass of it; NotImplementedError, which names func, if func has no
    rule; else the result of the rule on args and kwargs.
    """

    def __init__(self):
        ### BEGIN SOLUTION
        self.rules = {}

    def implements(self, *functions):
        def enter(rule):
            for function in functions:
                self.rules[function] = rule
            return rule

        return enter

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(issubclass(kind, owner) for kind in types):
            return NotImplemented
        if func not in self.rules:
            name = getattr(func, "__name__", str(func))
            raise NotImplementedError(f"{owner.__name__} has no rule for {name}; there are {len(self.rules)} others")
        return self.rules[func](*args, **kwargs)

    ### END SOLUTION


# %% check="Registry"
check(Registry)


# %%
def teach(registry):
    """Enter the rules of MiniMask."""
    for function in (torch.abs, torch.exp, torch.log, torch.sqrt, torch.relu):
        registry.implements(function)(lambda m, name=function.__name__: getattr(m, name)())
    for function in (torch.sum, torch.mean, torch.prod, torch.amax, torch.amin):
        registry.implements(function)(
            lambda m, dim=None, keepdim=False, name=function.__name__: getattr(m, name)(dim, keepdim)
        )

    @registry.implements(torch.add, torch.Tensor.add)
    def add(a, b):
        return a + b if isinstance(a, MiniMask) else b + a


def answer(cls, func, types, args=(), kwargs=None):
    return registry.dispatch(cls, func, types, args, kwargs or {})


registry = Registry()
teach(registry)
MiniMask.__torch_function__ = classmethod(answer)

m = MiniMask(torch.tensor([[4.0, -1.0], [9.0, 16.0]]), torch.tensor([[True, False], [True, True]]))
print(torch.sqrt(m), torch.sum(m, 1), torch.add(m, 1), torch.ones(2) + m)
try:
    torch.cumsum(m, 0)
except NotImplementedError as error:
    print("NotImplementedError: cumsum" if "cumsum" in str(error) else error)

# %% [markdown]
# `torch.ones(2) + m` works, too: a plain tensor's + hands you `torch.Tensor.add`, which is why `add` is entered under two
# names. Take one of them away, and your class refuses by name.
#
# **Where it breaks.** Functions that are written in C look at their arguments *before* they ask you: `torch.sum(m, dim="a")`
# fails in torch. And there are more than a thousand functions. Which would you teach your class next?

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes; the exercise is homework.** Board: the three answers, each with its reader (the user, the other
# class, the user). Common answers: `return NotImplemented` for everything, falling through to func(*args), a class-level
# dict, a decorator that returns None. The difference between NotImplemented and NotImplementedError deserves a minute.

# %% [markdown] concepts=["S-03", "A-10"]
# ## C9 · Another storage behind the same words ★★★★★
#
# A table of three million by three million with five entries: a mask for it would have nine million million elements. With
# COO storage (lecture 06) *stored* can mean *there*, and no mask is needed. The meaning stays, the storage changes; lecture
# 07 called these two questions.

# %% concepts=["S-03"]
s = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [0, 2, 1]]), torch.tensor([4.0, 0.0, 9.0]), (2, 3)).coalesce()
sparse_layouts(s, "s")

# %% [markdown] concepts=["S-06", "S-07", "S-08"]
# The 0 at (0, 2) is stored, so it is there, and its cosine is 1. What torch itself does with two sparse tensors means
# something else: not stored counts as 0, and `s + t` has the places of both. Under "intersection" only common places stay.
#
# To find them, make one number of each place: (i, j) becomes i · columns + j, its **key**. Keys can be compared
# (`torch.isin`), and they say into which slot of a reduction a value goes (`scatter_reduce_`).

# %% concepts=["S-07"]
t = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 1, 2]]), torch.tensor([5.0, -1.0, 7.0]), (2, 3)).coalesce()
keys_of = lambda c: c.indices()[0] * 3 + c.indices()[1]
print("keys of s:", keys_of(s).tolist(), " keys of t:", keys_of(t).tolist())
print("in both:  ", keys_of(s)[torch.isin(keys_of(s), keys_of(t))].tolist())
print("torch's own s + t stores", (s + t).coalesce().values().tolist())

# %% [markdown]
# **Rule.** Compute on the stored values, decide by the places, and make nothing dense (objective 5).
#
# {{card coo_rule}}


# %% exercise="coo_rule"
def coo_rule(name, a, b, dim):
    """A rule for COO storage, in which what is stored is there (zeros, too) and nothing else.

    a: a COO tensor without dense dimensions, perhaps with duplicates, which stand for their sum.
    b and dim None: the elementwise torch function of this name on what is stored, as a COO tensor.
    b a COO tensor of the shape of a: the function of both where both are stored, as a COO tensor ("intersection").
    dim a number, negative ones too: the reduction "sum" or "amax" over that dimension, as a dense pair (value, defined).
    Each place is named once in a result. Nothing of the size of the whole shape is made; a and b stay as they are.
    """

    ### BEGIN SOLUTION
    def keys(places, shape):
        key = places.new_zeros(places.shape[1])
        for row, size in zip(places, shape, strict=True):
            key = key * size + row
        return key

    a = a.coalesce()
    places, values = a.indices(), a.values()
    if dim is not None:
        kept = [each for each in range(a.dim()) if each != dim % a.dim()]
        shape = torch.Size(a.shape[each] for each in kept)
        slot = keys(places[kept], shape)
        value = values.new_zeros(shape.numel()).scatter_reduce(0, slot, values, name, include_self=False)
        defined = torch.zeros_like(value, dtype=torch.bool)
        defined[slot] = True
        return value.reshape(shape), defined.reshape(shape)
    function = getattr(torch, name)
    if b is None:
        return torch.sparse_coo_tensor(places, function(values), a.shape)
    b = b.coalesce()
    left, right = keys(places, a.shape), keys(b.indices(), b.shape)
    in_b, in_a = torch.isin(left, right), torch.isin(right, left)
    return torch.sparse_coo_tensor(places[:, in_b], function(values[in_b], b.values()[in_a]), a.shape)
    ### END SOLUTION


# %% check="coo_rule"
check(coo_rule)

# %% [markdown]
# The shell is as thin as the other, and has the same words. A reduction ends in a dense MiniMask, for it is small:


# %% concepts=["S-06", "S-08"]
class SparseMiniMask:
    """A MiniMask that stores what is there as COO."""

    def __init__(self, coo):
        self.coo = coo.coalesce()

    def __repr__(self):
        entries = zip(self.coo.indices().t().tolist(), self.coo.values().tolist(), strict=True)
        shown = ", ".join(f"{tuple(place)}: {value:g}" for place, value in entries)
        return f"SparseMiniMask({{{shown}}}, shape={tuple(self.coo.shape)})"

    def cos(self):
        return SparseMiniMask(coo_rule("cos", self.coo, None, None))

    def __add__(self, other):
        return SparseMiniMask(coo_rule("add", self.coo, other.coo, None))

    def sum(self, dim):
        return MiniMask(*coo_rule("sum", self.coo, None, dim))

    def amax(self, dim):
        return MiniMask(*coo_rule("amax", self.coo, None, dim))


print(SparseMiniMask(s).cos())
print(SparseMiniMask(s) + SparseMiniMask(t))
print(SparseMiniMask(s).sum(1), SparseMiniMask(s).amax(0))
n = 3_000_000
huge = torch.sparse_coo_tensor(torch.tensor([[7, 7, n - 1], [5, n - 1, 0]]), torch.tensor([1.0, -2.0, 3.0]), (n, n))
print(SparseMiniMask(huge) + SparseMiniMask(huge))

# %% [markdown]
# Differential testing again, this time against yourself: dense and sparse storage must mean the same.

# %% concepts=["A-10"]
MiniMask.policy, same = "intersection", 0
for _ in range(40):
    x, y = torch.randn(3, 4, generator=random), torch.randn(3, 4, generator=random)
    p, q = (torch.rand(3, 4, generator=random) < 0.5 for _ in range(2))
    stored = lambda data, mask: SparseMiniMask(torch.sparse_coo_tensor(mask.nonzero().t(), data[mask], mask.shape))
    dense, sparse = MiniMask(x, p) + MiniMask(y, q), stored(x, p) + stored(y, q)
    for one, two in ((dense.sum(1), sparse.sum(1)), (dense.amax(0), sparse.amax(0))):
        same += torch.equal(one.mask, two.mask) and torch.allclose(one.to_tensor(0), two.to_tensor(0), atol=1e-6)
MiniMask.policy = "match"
print(same, "of 80 agree")

# %% [markdown]
# **Where it breaks.** With a key that is too large: three dimensions of three million each have more places than int64 has
# numbers. And a union is another rule again. Which would you write first?

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes; the exercise is homework for those who want Gold.** Board: a place, its key, and back. Common
# answers: `_values()` without coalesce, torch's own add (not stored as 0), zeros dropped, values paired by their order,
# amax that starts at 0, to_dense (the check counts bytes, on a table of 2000 by 2000).

# %% [markdown] concepts=["L-44", "O-01"]
# ## C10 · Use it
#
# Eighty patients, four measurements each, and a third of the measurements were never taken. Which patients can you use if
# you demand complete rows?

# %% concepts=["O-01"]
random = torch.Generator().manual_seed(10)
truth = torch.tensor([2.0, -1.0, 0.5, 1.5])
measured = torch.rand(80, 4, generator=random) < 0.65
features = torch.randn(80, 4, generator=random)
targets = torch.where(measured, features, 0) @ truth + 3 + torch.randn(80, generator=random) / 10
features[~measured] = float("nan")
print("complete rows:", measured.all(1).sum().item(), "| rows with something:", measured.any(1).sum().item(), "of 80")

# %% [markdown]
# A linear model with masked features: the prediction of a row is the sum of weight times feature over the features that
# are there, plus a bias. That is your `matmul`. A row of which nothing is there has no prediction, and no part in the loss.
#
# (Other readings exist: to guess what is missing, by a mean or by a model, is called *imputation*. Here a missing feature
# is read as "says nothing".)
#
# **Rule.** Decide what a hole means for the *task*, before you choose the code.
#
# Fit it, log it, report it (objective 6). Use your rules: the check sees only what comes out.
#
# {{card fit}}


# %% exercise="fit"
def fit(x, mask, y, steps, lr, folder):
    """Fit a linear model to features with holes: (weight, bias, report).

    x, mask: (rows, features), float32 and bool; y: (rows,), all of it there. prediction of a row = bias + the sum of weight
    times feature over those that are there. The loss is the mean of (prediction - y)² over the rows with at least one
    feature. weight, of shape (features,), and bias, a tensor without dimensions, begin at 0; each of the `steps` steps is
    one of torch.optim.SGD with this lr. The loss before each step goes to TensorBoard, into `folder` itself, as the
    scalar "loss" at steps 0, 1, 2, ...; the writer is closed. weight and bias come back without history. report is a text
    in which stand, as numbers: how many rows were used, the percentage of features that is missing (one decimal), the
    first and the last loss (four digits).
    """
    ### BEGIN SOLUTION
    weight = torch.zeros(x.shape[1], requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    everything = torch.ones(x.shape[1], 1, dtype=torch.bool)
    optimiser, losses = torch.optim.SGD([weight, bias], lr=lr), []
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            optimiser.zero_grad()
            sums, there = layer("matmul", x, mask, weight[:, None], everything)
            error = (sums[:, 0] + bias - y)[there[:, 0]]
            loss = error.square().mean()
            loss.backward()
            losses.append(loss.item())
            writer.add_scalar("loss", losses[-1], step)
            optimiser.step()
    missing = 100 * (1 - mask.float().mean().item())
    report = f"{len(error)} rows, {missing:.1f} % of the features missing, loss {losses[0]:.4g} at first, {losses[-1]:.4g} at last"
    return weight.detach(), bias.detach(), report
    ### END SOLUTION


# %% check="fit"
check(fit)

# %% concepts=["L-44"]
run = fresh_run("minimask")
weight, bias, report = fit(features, measured, targets, 60, 0.1, run)
print(report)
print(
    "weight:", [round(w, 2) for w in weight.tolist()], "truth:", truth.tolist(), f"| bias: {bias.item():.2f}, truth: 3"
)

# %% concepts=["L-44"]
logged = read_runs(run)["."]["scalars"]["loss"]
fig, axes = plt.subplots(figsize=(5, 2.6), layout="constrained")
axes.semilogy([step for step, _ in logged], [loss for _, loss in logged], "-")
axes.set(title="loss, as logged for TensorBoard", xlabel="step", ylabel="mean squared error")
alt = (
    "One line over 60 steps, on a logarithmic axis: the loss of the masked fit falls steeply from about 11 to below 0.1 "
    "in the first 30 steps and then stays level near 0.01."
)
show_figure(fig, alt)

# %% [markdown]
# To see the run in TensorBoard, execute these two lines in a cell of your own, or `make tensorboard` in a terminal:
#
# ```
# %load_ext autograder.tensorboard
# %tensorboard --logdir runs
# ```
#
# **Where it breaks.** If what is missing is missing *for a reason*. Had the sickest patients skipped the test, "says nothing"
# would be false, and no mask can know it.

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes; the exercise is homework.** Ask first how many of 80 rows are complete, and take guesses. Common
# answers: x * mask (NaN), rows without features in the loss, only complete rows, no zero_grad, a writer left open, a
# report without numbers. Discuss the last paragraph: when is "missing" itself a feature?

# %% [markdown] concepts=["V-08", "A-10"]
# ## Say what you decided
#
# A class like this is mostly decisions. Write a **design note** of one page, for the colleague who takes it over (objective
# 6):
#
# 1. what a MiniMask is and means, in two or three sentences;
# 2. three decisions: what you chose, what you could have chosen, what it costs, with an example or a number. You met
#    policies, plain operands under "match", masks that can be written to, plain gradients, private names, storage;
# 3. two limits that are true of *your* class;
# 4. evidence: a test or a number that can be run again; and what you would do next.
#
# {{card design_note}}

# %% [markdown] exercise="design_note"
# A MiniMask is a data tensor with a bool mask of the same shape; True says that the element is there. Whatever lies under
# False is unspecified, and neither a value nor a gradient may depend on it.
#
# *Policy.* Unequal masks are an error unless MiniMask.policy says otherwise. Intersection, NumPy's choice, needs no thought
# and loses elements in silence: [1, --] + [--, 2] is [--, --], while the sums are 1 and 2. Union keeps the law of sums and
# exists for add and mul only. The error costs a line of code at each such place. *Masks can be written to*, so that
# m[0][1] = 5 fills a gap through a view. The alternative, masks that never change, could share them between results; ours
# copies a byte an element for every result. *Gradients are plain*, 0 where nothing is there, so that SGD and Adagrad take
# them as they are; a masked gradient would keep momentum from moving missing elements, and no stock optimiser accepts one.
#
# *Limits.* In matmul a specified infinity meets the 0 of a missing factor, which is NaN. torch.cumsum and all else without
# a rule raises NotImplementedError. *Evidence.* The table under "Poison everything": eleven operations, three kinds of
# poison, nothing changes; and fit recovers the four weights to within 0.05 with a third of the features missing. *Next*
# comes softmax over any dimension, for attention.

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes; the note is homework.** Graded by hand, 6 points: 1 for what it is, 3 for three decisions (choice,
# alternative, cost), 1 for two true limits, 1 for evidence and outlook. Half a point off for a wrong statement, once, and
# for more than a page. Insist on costs: "we chose union because it is better" earns nothing.

# %% [markdown]
# ## Review a colleague's class
#
# Swap notebooks. Run the other's class, not your memory of your own; write one line of **evidence** for each answer (a cell
# that can be run again). Praise counts as an answer, too.
#
# | | question | yes / no | evidence |
# | --- | --- | --- | --- |
# | 1 | Does the constructor refuse an integer mask, and a mask of another shape, with a sentence that helps? | | |
# | 2 | Does the text of an object show no value that is not there, and 4.54e-05 as such? | | |
# | 3 | Is a policy chosen on purpose, and does an error say which cures there are? | | |
# | 4 | Does the poison table hold for all its rows, and for one operation of your own choice? | | |
# | 5 | `m[0][1] = 5`: does m change, and no result that was computed before? | | |
# | 6 | 1 / 0 with the numerator missing: is the gradient of the divisor 0? | | |
# | 7 | `torch.cumsum(m, 0)`: refused by name? | | |
# | 8 | Can you find one line in the design note that you would have decided otherwise, and say what yours would cost? | | |
#
# Then talk for five minutes about 8, and only about 8.

# %% [markdown]
# ## Recap
#
# - A container checks at the door, shares what it is given, and never shows what is not there.
# - Elementwise: the mask stays. Two operands: a policy, chosen on purpose. Reductions: identity and a defined flag.
# - A result owns what can be written to.
# - Choose before you compute, and by the mask of the *result*: that is all of clean gradients.
# - Products and softmax are made of steps whose rules you have.
# - Refuse by name; never fall through.
# - Meaning and storage are two questions: one set of words, two classes behind them.
# - Test by poison, by laws, and against others where the policies agree.
#
# **Words.** *Container*: a class that keeps things together. *Elementwise*: each element by itself. *Policy*: which rule
# decides about unequal masks. *Identity*: what can be thrown into a reduction without changing it. *Defined*: at least one
# element was there. *View semantics*: a write into a part reaches the whole. *Dispatch*: finding the rule that answers a
# call. *Registry*: rules by function. *Key*: one number for a place. *Differential test*: two implementations, one answer.
# *Poison*: junk put under a mask; nothing may change. *Imputation*: to guess what is missing.
#
# **To read on** (not needed for the course): "Extending PyTorch", docs.pytorch.org/docs/stable/notes/extending.html, on
# `__torch_function__`; numpy.org/doc/stable/reference/maskedarray.html; and the sources of `maskedtensor_ref` in the
# repository of this course, which is your class with a few hundred operations more. Read its README first.

# %%
print(check.progress())

# %% [markdown]
# That was the last lecture. What you have built is small, and right: keep it.

# %% [markdown] tags=["instructor"]
# **Instructor.** Bronze fits into a session; Silver and Gold are a project of one or two weeks, with the review in class at
# its end. If time is short, leave out C9. Let every pair present one decision with its cost.
