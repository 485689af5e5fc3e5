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
# # 02 · Indexing, views, copies
#
# Square brackets look harmless. Behind them torch makes one decision that decides about speed, memory and bugs: does
# the result look into the same memory, or has it memory of its own? After this lecture (about 90 minutes) you can
#
# 1. tell from an index alone whether the result is a **view** or a **copy**;
# 2. tell the **shape** of the result before you run the line;
# 3. **write through** a view on purpose, and never by accident;
# 4. avoid the two ways in which a write gets lost: places that come **twice**, and **two brackets** in a row;
# 5. choose between a mask as an index, `where` and `masked_fill`;
# 6. say where torch differs from NumPy.
#
# Run the next cell, then answer three questions about lecture 01.

# %% setup=true
import warnings

import torch

from autograder.check import Checker

check = Checker("02_indexing")
predict, hint = check.predict, check.hint

# %% [markdown]
# ## From lecture 01
#
# Answer from memory, without looking back: that is what makes it stay.
#
# {{question R1}}
#
# {{question R2}}
#
# {{question R3}}

# %%
predict("R1", "a")

# %%
predict("R2", "b")

# %%
predict("R3", "b")

# %% [markdown] concepts=["L-23"]
# ## One row, every third column
#
# `x[row, column]` takes one index for each dimension. A number picks one place (`-1` is the last). A slice
# `start:stop:step` picks a range; leave out what you do not need. Run the next cell, then write your first answer.
#
# {{card every_kth_of_last_row}}

# %% concepts=["L-23"]
x = torch.arange(24).view(4, 6)
print(x)
print("last row:            ", x[-1])
print("columns 1 up to 4:   ", x[0, 1:4])
print("every second column: ", x[0, ::2])

# %% exercise="every_kth_of_last_row"
def every_kth_of_last_row(x, k):
    """Every k-th element of the last row of x, beginning with its first, as a view of x.

    x has shape (rows, columns), k is at least 1. The result has one dimension.
    """
    ### BEGIN SOLUTION
    return x[-1, ::k]
    ### END SOLUTION

# %% check="every_kth_of_last_row"
check(every_kth_of_last_row)

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes with the review.** Let them read a whole table of the check once, also when it is green.
# Board: the word `x[-1, ::k]` with an arrow from each part to its dimension. Common answers: `x[-1, range(...)]` or a list
# (right numbers, a copy: ask "who can tell the difference by printing?"), `x[-1, k-1::k]`, `x[-1:, ::k]`. The answer
# to "why does the check care about the copy?" is the next but one section.

# %% [markdown] concepts=["L-21"]
# ## A question to every element
#
# Suppose you want all multiples of 7. You know where they are only after looking at the numbers, so no slice can say
# it. Ask the question of the whole tensor instead: a comparison answers with a tensor of bools, a **mask**.
#
# But first: what if the mask were written with 1 and 0 instead of `True` and `False`?
#
# {{question P4}}

# %%
predict("P4", "b")

# %%
values = torch.arange(3)
print("integers:", values[torch.tensor([1, 0, 1])])
print("bools:   ", values[torch.tensor([True, False, True])])

# %% concepts=["L-21"]
a = torch.arange(100).view(10, 10)
mask = a % 7 == 0
print("the mask:", mask.dtype, tuple(mask.shape))
print("first row:", mask[0])
print("picked:", a[mask])

# %% [markdown]
# **Rule.** Bools say *whether*, integers say *where*. `a[mask]` walks through `a` row by row and keeps what is `True`,
# in one dimension, as a copy.
#
# {{card multiples_of}}

# %% exercise="multiples_of"
def multiples_of(x, k):
    """All elements of x that are multiples of k, row by row, in one dimension.

    x holds integers and has any shape. k may be negative. For k = 0 raise a ValueError before anything is computed.
    """
    ### BEGIN SOLUTION
    if k == 0:
        raise ValueError("multiples of 0 are not defined here: give another k")
    return x[x % k == 0]
    ### END SOLUTION

# %% check="multiples_of"
check(multiples_of)

# %% [markdown] facts=["F-20"]
# **Where it breaks.** There is an old form of mask, of dtype uint8. It still works, and torch warns each time, because
# it reads like positions and is none. If you see this warning, look for a missing comparison.

# %% facts=["F-20"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    values[torch.tensor([1, 0, 1], dtype=torch.uint8)]
print(caught[0].category.__name__, "-", str(caught[0].message).split(",")[0])

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** P4 splits most classes in half; let two people argue before the cell is run. Board: a row of
# numbers, below it once T F T and once 1 0 1, arrows to what is picked. Common answers: `.nonzero()` (positions),
# `torch.where(..., x, 0)` (keeps the shape, and adds zeros that look like multiples), no test for k = 0.

# %% [markdown] concepts=["L-23"] facts=["F-22"]
# ## When a float is asked about integers
#
# Which elements are perfect squares? The short answer is `x[torch.sqrt(x) % 1 == 0]`, and it is right for 0 to 99. But
# `torch.sqrt` of integers gives float32, which keeps about seven digits. Look at one more than 3072²:

# %% facts=["F-22"]
n = torch.tensor([3072**2, 3072**2 + 1, 4096**2 - 1])
print("numbers:      ", n)
print("root % 1 == 0:", torch.sqrt(n) % 1 == 0)
root = torch.sqrt(n).round().long()
print("root * root:  ", root * root)

# %% [markdown]
# **Rule.** A float may guess, integers decide: round the root, multiply it by itself, compare.
#
# {{card perfect_squares}}

# %% exercise="perfect_squares"
def perfect_squares(x):
    """All elements of x that are perfect squares (0, 1, 4, 9 ...), row by row, in one dimension.

    x holds integers, as large as int64 allows, and has any shape. A negative number is no square.
    """
    ### BEGIN SOLUTION
    root = x.clamp(min=0).double().sqrt().round().long()
    return x[root * root == x]
    ### END SOLUTION

# %% check="perfect_squares"
check(perfect_squares)

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** The hidden cases go up to 2⁶³ − 1. Why float64 is enough for the guess: the root of a
# 63-bit number has at most 32 bits, float64 holds 53, so after rounding the guess is the root if there is one. Common
# answers: `sqrt(x) % 1` in float32, the same in float64 (fails above 2⁵²), a loop over `.tolist()` with `math.isqrt` (right,
# and refused for the loop).

# %% [markdown] concepts=["L-16"] facts=["F-14"]
# ## A slice is a window
#
# A slice does not take numbers out. It makes a new tensor that looks at the same memory, with its own start, shape and
# strides. So what happens when you write into it?

# %% concepts=["L-16"] facts=["F-14"]
a = torch.arange(12).view(4, 3)
b = a[1:3, 1:2]
b[1, 0] = 0
print("b:", b)
print("a:", a)

# %% [markdown]
# The write went through the window: `a[2, 1]` is 0 as well, because it is the same place. Now with steps:
#
# {{question P2}}

# %%
predict("P2", "a")

# %% concepts=["L-17"] facts=["F-15"]
a = torch.arange(100).view(10, 10)
b = a[::2, 1:5:3]
print(b)
b[2, 1] = 0
print("b[2, 1] now:", b[2, 1].item(), "  a[4, 4] now:", a[4, 4].item())

# %% [markdown]
# **Rule.** Numbers and slices make a view. A write to the view is a write to the original.

# %% [markdown] concepts=["L-18", "L-19"]
# ## A list makes a copy
#
# Some choices of rows no start, stop and step can say: 0, 1, 3, 4, 7. For them there is a list (or a tensor) of
# positions. The result has to be put together anew.
#
# {{question P1}}

# %%
predict("P1", "b")

# %% concepts=["L-18", "L-19"] facts=["F-18"]
def shares_memory(x, y):
    """Whether two tensors, neither of them empty, live in one storage."""
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


a = torch.arange(100).view(10, 10)
b = a[[0, 1, 3, 4, 7], 1:5:3]
c, d = b, a[5, :]
print(b, "strides", b.stride())
print("with a:", {"b": shares_memory(a, b), "c": shares_memory(a, c), "d": shares_memory(a, d)})
print("c is b:", c is b)

# %% [markdown]
# **Rule.** One list, tensor of positions or mask anywhere in the index, and the whole result is a copy.

# %% [markdown] concepts=["L-20"] facts=["F-21"]
# ## One row, three shapes
#
# {{question P3}}

# %%
predict("P3", "b")

# %% concepts=["L-20"] facts=["F-21"]
mask = a[:, 0] == 20  # integers compare exactly; a[:, 0] / 20 == 1 would go through floats
for text, row in {"a[mask, :]": a[mask, :], "a[2, :]": a[2, :], "a[2:3, :]": a[2:3, :]}.items():
    print(f"{text:11} shape {tuple(row.shape)!s:8} shares memory with a: {shares_memory(a, row)}")

# %% [markdown]
# **Rule.** A number removes its dimension, a slice, a list and a mask keep one.
#
# {{card keep_row}}

# %% exercise="keep_row"
def keep_row(a, i):
    """Row i of a as a view of shape (1, n).

    a has shape (m, n). i may be negative: -1 is the last row.
    """
    ### BEGIN SOLUTION
    return a[i].unsqueeze(0)
    ### END SOLUTION

# %% check="keep_row"
check(keep_row)

# %% [markdown]
# ## Places that come twice
#
# Count how often each value comes. It seems enough to add 1 at every place named:

# %%
counts = torch.zeros(4, dtype=torch.int64)
places = torch.tensor([1, 1, 1, 2])
counts[places] += 1
print("counts[places] += 1:      ", counts)
counts = torch.zeros(4, dtype=torch.int64)
counts.index_put_((places,), torch.ones_like(places), accumulate=True)
print("index_put_, accumulate:   ", counts)

# %% [markdown]
# **Rule.** `x[places] += 1` reads all places, adds, and writes all of them back. A place named three times is written
# three times with the same number. To add each time, accumulate.
#
# {{card histogram}}

# %% exercise="histogram"
def histogram(values, bins):
    """How often each of 0, 1 ... bins - 1 comes in values, as an int64 tensor of shape (bins,).

    values is an int64 tensor of one dimension; each of its elements is at least 0 and below bins. It may be empty.
    """
    ### BEGIN SOLUTION
    counts = torch.zeros(bins, dtype=torch.int64)
    return counts.scatter_add_(0, values, torch.ones_like(values))
    ### END SOLUTION

# %% check="histogram"
check(histogram)

# %% [markdown]
# ## Two lists are read in pairs
#
# {{card one_hot}}

# %%
grid = torch.zeros(3, 4, dtype=torch.int64)
grid[[0, 1, 2], [3, 0, 3]] = 1
print(grid)

# %% exercise="one_hot"
def one_hot(labels, classes):
    """A float32 tensor of shape (n, classes): in row r a 1 in column labels[r], and 0 elsewhere.

    labels is an int64 tensor of shape (n,); each label is at least 0 and below classes. The result is on its device.
    """
    ### BEGIN SOLUTION
    rows = torch.arange(len(labels), device=labels.device)
    result = torch.zeros(len(labels), classes, device=labels.device)
    result[rows, labels] = 1
    return result
    ### END SOLUTION

# %% check="one_hot"
check(one_hot)

# %% [markdown] concepts=["L-22"] facts=["F-16"]
# ## What a window cannot show
#
# A stride in torch is never negative, so no view can run backwards.

# %% concepts=["L-17"] facts=["F-16"]
try:
    a[::-1]
except ValueError as error:
    print("ValueError:", error)

# %% [markdown]
# {{card rearranged}}

# %% exercise="rearranged"
def rearranged(x, how, i, j):
    """The rows of x moved, with no more copying than needed.

    x has shape (m, n).
    how = "swap":    rows i and j change places in x itself; returns x.
    how = "crop":    rows i up to but not including j, as a view; i and j are not negative.
    how = "reverse": the same rows as "crop" in reverse order, in memory of their own.
    """
    ### BEGIN SOLUTION
    if how == "swap":
        kept = x[i].clone()
        x[i] = x[j]
        x[j] = kept
        return x
    rows = x[i:j]
    return rows if how == "crop" else rows.flip(0)
    ### END SOLUTION

# %% check="rearranged"
check(rearranged)

# %% [markdown] concepts=["L-46"]
# ## Recap
#
# - Numbers and slices: a view. A list, a tensor of positions or a mask: a copy.
# - A number removes its dimension, everything else keeps one.
# - `x[places] += 1` counts each place once.
