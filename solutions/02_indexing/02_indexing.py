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
# Square brackets look harmless. Yet with each pair of them torch decides something that speed, memory and many bugs
# hang on: does the result look into the same memory as before, or does it get memory of its own? After this lecture
# you can
#
# 1. tell from the index alone whether a result is a **view** or a **copy**;
# 2. tell the **shape** of a result before you run the line;
# 3. **write** through a view on purpose, and never by accident;
# 4. spot the two kinds of lost write: places that come **twice**, and **two pairs of brackets** in a row;
# 5. choose between a mask as an index, `where` and `masked_fill`;
# 6. say where torch differs from NumPy.
#
# {{times}}
#
# Run the next cell. Then come three questions on lecture 01, and right after them your first exercise.

# %% setup=true
import warnings

import torch
from torch.utils.benchmark import Timer

from autograder.check import Checker
from lecture_pictures import broadcast, explore_index, index_overlay

check = Checker("02_indexing")
predict, hint = check.predict, check.hint

# %% [markdown]
# ## From lecture 01
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
predict("R3", "a")

# %% [markdown] concepts=["L-23"]
# ## One row, every k-th column
#
# An index has one part for each dimension: `x[row, column]`. A **number** picks one place; `-1` is the last. A
# **slice** `start:stop:step` picks a range; what you leave out means "from the beginning", "to the end" and "each
# one".
#
# Run the next cell, compare each line with the picture of `x` in your head, and then write your first answer
# (objective 1).
#
# {{card every_kth_of_last_row}}

# %% concepts=["L-23"]
x = torch.arange(24).view(4, 6)
print(x)
print("row 0, columns 1 up to 4:  ", x[0, 1:4])
print("row 0, every second column:", x[0, ::2])
print("the last row:              ", x[-1])


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
# **Instructor, 10 minutes with the review.** Let everybody read one table of the check from top to bottom, also when
# it is green. Board: `x[-1, ::k]` in large letters, an arrow from each part to its dimension. Common answers: a list
# of positions (right numbers, and a copy: ask "how could you tell the two apart by printing?" You cannot, and that is
# what the lecture is about), a slice that starts at k - 1, a result of shape (1, m) because of `-1:`.

# %% [markdown] concepts=["L-21"]
# ## A question to every element
#
# Which numbers are multiples of 7? No slice can say that, because it depends on the values. So ask the question of
# the whole tensor: a comparison answers with a tensor of bools, a **mask**, and the mask is an index.
#
# Before you see one at work: what if somebody writes the mask with 1 and 0?
#
# {{question P1}}

# %%
predict("P1", "b")

# %%
values = torch.arange(3)
print("indexed with integers:", values[torch.tensor([1, 0, 1])])
print("indexed with bools:   ", values[torch.tensor([True, False, True])])

# %% concepts=["L-21"]
a = torch.arange(100).view(10, 10)
sevens = a % 7 == 0
print("the mask: ", sevens.dtype, tuple(sevens.shape))
print("its row 1:", sevens[1])
print("picked:   ", a[sevens])

# %%
small = torch.arange(12).view(3, 4)
index_overlay(small, small % 5 == 0, name="small", result="fives")

# %% [markdown]
# (The picture uses two words of NumPy's: an index is *basic* if it consists of numbers and slices, and *advanced* if
# there is a list, a tensor of positions or a mask in it.)
#
# **Rule.** Bools say *whether*, integers say *where*. A mask of the shape of `a` walks through `a` row by row, keeps
# what is True, and puts it into one dimension, as a copy.
#
# Now for any k (objective 5):
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
# **Where it breaks.** Old code has masks of dtype uint8. They still work as masks, and torch warns each time, because
# they look like positions. If you meet this warning, compare: `mask == 1` is a proper one.

# %% facts=["F-20"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(values[torch.tensor([1, 0, 1], dtype=torch.uint8)])
print(caught[0].category.__name__, "|", str(caught[0].message).split(",")[0])

# %% [markdown] tags=["instructor"]
# **Instructor, 9 minutes.** P1 splits most classes in half; let two people argue before anybody runs the cell. Board:
# three boxes, below them T F T and then 1 0 1, with arrows to what is picked. Common answers: the positions instead
# of the elements, the shape kept with zeros for the rest (and who can tell those from a true 0?), no test for k = 0.

# %% [markdown] concepts=["L-23"] facts=["F-22"]
# ## A float is asked about integers
#
# Which elements are perfect squares? It is tempting to take the square root and see whether it is whole. For the
# numbers 0 to 99 that works. But `torch.sqrt` of integers gives float32, with some seven digits. The first of the
# next three numbers is a square, and its two neighbours are not:

# %% facts=["F-22"]
n = torch.tensor([30000**2, 30000**2 + 1, 30000**2 - 1])
guess = torch.sqrt(n)
print("numbers:           ", n)
print("is the root whole? ", guess % 1 == 0)
print("the root, squared: ", guess.long() * guess.long())

# %% [markdown]
# All three roots look whole, for as float32 the three numbers are one. Multiply the roots back as integers, and the
# truth comes out.
#
# **Rule.** A float may guess, integers decide.
#
# The guess itself needs care, too: int64 reaches 2⁶³ − 1 and float32 is too coarse for the roots of such numbers
# (objective 5, and a good nose for rounding).
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

# %% [markdown]
# **Where it breaks.** float64 only moves the limit. Just above the square of 2²⁷ + 1 it is fooled in the same way:

# %%
n = torch.tensor([(2**27 + 1) ** 2 + 1])
print("is the root whole?", n.double().sqrt() % 1 == 0)

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes; the exercise can be homework.** Hidden cases go up to 2⁶³ − 1. Why float64 is good enough
# for the guess: a root of a 63-bit number has at most 32 bits, float64 has 53, so a rounded guess is the root if
# there is one. Common answers: the root's remainder in float32, the same in float64, `math.isqrt` in a loop over
# Python numbers (right, and refused for its loop), negative squares after `.abs()`.

# %% [markdown] concepts=["L-16"] facts=["F-14"]
# ## A slice is a window
#
# In lecture 01 a tensor was a storage, an offset, sizes and strides. A slice only makes a new offset, new sizes and
# new strides. The storage is the same one. So what does a write into a slice do?

# %% concepts=["L-16"] facts=["F-14"]
a = torch.arange(12).view(4, 3)
b = a[1:3, 1:2]
b[1, 0] = 0
print("b:", b)
print("a:", a)

# %%
index_overlay(torch.arange(12).view(4, 3), (slice(1, 3), slice(1, 2)), write=0)

# %% [markdown]
# `b[1, 0]` and `a[2, 1]` are one place with two names. Both prints came after the write, so both show it. In the next
# example one print comes before:
#
# {{question P2}}

# %%
predict("P2", "a")

# %% concepts=["L-17"] facts=["F-15"]
a = torch.arange(100).view(10, 10)
b = a[::2, 1:5:3]
print(b)
b[2, 1] = 0
print("b[2, 1] now:", b[2, 1].item(), "| a[4, 4] now:", a[4, 4].item())

# %% [markdown]
# **Rule.** An index of numbers and slices gives a view, and a write to a view is a write to the original.
#
# This is how to change a part of a tensor on purpose. The brackets stand on the left of `=`, or the block gets a
# method that ends in an underscore, such as `zero_()` (objective 3).
#
# {{card zero_block}}


# %% exercise="zero_block"
def zero_block(x, rows, cols):
    """Set the block of x where rows and cols cross to 0, in x itself, and return x.

    x has two dimensions and may hold NaN; rows and cols are slices. Nothing outside of the block changes.
    """
    ### BEGIN SOLUTION
    x[rows, cols] = 0
    return x
    ### END SOLUTION


# %% check="zero_block"
check(zero_block)

# %% [markdown] facts=["F-23"]
# **Where it breaks.** `block = ...` is no write: it gives the name `block` to something else. And what is written has
# to fit into the memory that is there. A tensor of integers stays one, so in-place methods whose result is a float
# fail:

# %% facts=["F-23"]
counts = torch.arange(4)
block = counts[1:3]
block = torch.zeros(2)
print("after block = ...:   ", counts)
counts[1:3] = 0
print("after counts[...] =: ", counts)
try:
    counts.exp_()
except RuntimeError as error:
    print("counts.exp_():", error)

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Board: twelve cells of storage in a row; a frame for `b` over cells 4 and 7, and the
# stride of 3 between them. P2: many believe that the printed text is "live". Common answers: a clone that is changed
# and returned, `block = zeros_like(block)`, times 0 (NaN stays NaN), rows and columns zeroed whole.

# %% [markdown] concepts=["L-18", "L-19"]
# ## A list makes a copy
#
# Rows 0, 1, 3, 4 and 7: no start, stop and step can say that. A list of positions can, or a tensor of them. But then
# there is no stride for the result either, so torch has to collect the elements into new memory.
#
# {{question P3}}

# %%
predict("P3", "b")


# %% concepts=["L-18", "L-19"] facts=["F-18"]
def shares_memory(x, y):
    """Whether two tensors, neither of them empty, live in one storage."""
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


a = torch.arange(100).view(10, 10)
b = a[[0, 1, 3, 4, 7], 1:5:3]
c = b
d = a[5, :]
print(b, "strides", b.stride())
print("share memory with a:", {"b": shares_memory(a, b), "c": shares_memory(a, c), "d": shares_memory(a, d)})
print("c is b:", c is b)

# %% [markdown]
# The strides say it as well: (2, 1), those of a fresh tensor with two columns. In the picture, look at the badge and
# at what a write does. If you have a running kernel, choose another index in the menu.

# %%
indices = [(1, slice(None)), ([1],), (slice(0, 3, 2), slice(1, 3)), ([0, 2], slice(1, 3))]
explore_index(small, indices, write=99)

# %% [markdown]
# **Rule.** One list, tensor of positions or mask anywhere in the index, and the whole result is a copy.

# %% [markdown] tags=["instructor"]
# **Instructor, 6 minutes.** P3 has three questions in one; the wrong answers to `c = b` are about Python, not torch.
# Ask: "so does `a[[2, 3]] = 0` change a?" It does: on the left of `=` nothing is copied, the index says where to
# write. Two pairs of brackets in a row are another matter, and come later.

# %% [markdown] concepts=["L-20"] facts=["F-21"]
# ## One row, several shapes
#
# Three ways to get row 2. The mask is made with `==` on integers, which is exact; dividing first and comparing floats
# would only ask for trouble.
#
# {{question P4}}

# %%
predict("P4", "b")

# %% concepts=["L-20"] facts=["F-21"]
twenty = a[:, 0] == 20
for text, row in {"a[twenty, :]": a[twenty, :], "a[2, :]": a[2, :], "a[2:3, :]": a[2:3, :]}.items():
    print(f"{text:13} shape {tuple(row.shape)!s:8} shares memory with a: {shares_memory(a, row)}")

# %% [markdown]
# **Rule.** A number removes its dimension. A slice, a list and a mask keep one, however few places they pick.
#
# Some functions want a row *with* its dimension, shape (1, n), and you want to be able to write through it
# (objectives 1 and 2).
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
# **Where it breaks.** A slice of length one is fine for row 2, and empty for the last row: from -1 up to 0 there is
# nothing.

# %%
for i in (2, -1):
    print(f"i = {i:2}: shape", tuple(a[i : i + 1].shape))

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Board: a table with columns "index", "shape", "view?" and rows 2, 2:3, [2], mask. Common
# answers: `[i]` in brackets (a copy), the bare number (no dimension left), `i:i+1` (ask for i = -1), `unsqueeze(1)`.

# %% [markdown] concepts=["L-18"] facts=["F-17"]
# ## The shape of a result
#
# Shapes are where indexing goes wrong most often, so here are all the rules, one for each kind of item:
#
# | item | uses up | adds to the shape |
# | --- | --- | --- |
# | number | a dimension | nothing |
# | slice | a dimension | its length |
# | `None` | nothing | 1 |
# | `...` | as many as nothing else uses | those dimensions, whole |
# | lists (also of bools) | a dimension each | **one** size for all of them together |
#
# Lists are read in pairs: `x[[0, 1], [2, 3]]` has two elements, `x[0, 2]` and `x[1, 3]`. Where does their one size
# go? To their place, if they stand side by side; to the front, if something stands between them. Now guess:
#
# {{question P5}}

# %%
predict("P5", "c")

# %% facts=["F-17"]
t = torch.arange(24).view(2, 3, 4)
print("torch, number and list apart:", tuple(t[0, :, [0, 1]].shape))
print("NumPy, the same index:       ", t.numpy()[0, :, [0, 1]].shape)
print("torch, two lists apart:      ", tuple(t[[0, 1], :, [0, 1]].shape))
print("torch, two lists together:   ", tuple(t[:, [0, 1, 2], [0, 1, 3]].shape))

# %% [markdown]
# **Rule.** torch takes numbers first, so they never stand between lists. NumPy counts a number as one of the lists,
# as soon as there is a list. Without such a number, the two agree on shapes.
#
# The hardest exercise so far: the rules as a program, without any tensor (objective 2).
#
# {{card result_shape}}


# %% exercise="result_shape"
def result_shape(shape, index):
    """The shape of x[index] for a tensor x of the given shape, as a tuple, found without making a tensor.

    shape and index are tuples. The items of index are numbers, slices with positive steps, lists of numbers, lists of
    bools, None, and at most one ... (Ellipsis). The index is legal. If there are several lists, their lengths (of
    bools: the number of Trues) are equal, or 1.
    """
    ### BEGIN SOLUTION
    asked = sum(item is not None and item is not Ellipsis for item in index)
    index = index if Ellipsis in index else (*index, Ellipsis)
    sizes, result, lengths, places = list(shape), [], [], []
    for item in index:
        if item is None:
            result.append(1)
        elif item is Ellipsis:
            result += [sizes.pop(0) for _ in range(len(shape) - asked)]
        elif isinstance(item, slice):
            result.append(len(range(*item.indices(sizes.pop(0)))))
        else:
            sizes.pop(0)
        if isinstance(item, list):
            lengths.append(item.count(True) if item and isinstance(item[0], bool) else len(item))
            places.append(len(result))
    if lengths:
        size = 0 if 0 in lengths else max(lengths)
        result.insert(places[0] if len(set(places)) == 1 else 0, size)
    return tuple(result)
    ### END SOLUTION


# %% check="result_shape"
check(result_shape)

# %% [markdown] facts=["F-19"]
# **Where it breaks.** A list of lists is read in two ways: as two lists, or as one tensor of positions. torch still
# takes the first way, and warns that this will change. Be clear: a tuple for several lists, a tensor for one of two
# dimensions.

# %% facts=["F-19"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    unclear = small[[[0, 1], [0, 1]]]
print("list of lists:", tuple(unclear.shape), "and", caught[0].category.__name__)
print("tuple:        ", tuple(small[([0, 1], [0, 1])].shape))
print("tensor:       ", tuple(small[torch.tensor([[0, 1], [0, 1]])].shape))

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes; the exercise is homework or for the quick ones.** Board: the index `(0, :, [0, 1])`
# below the shape (2, 3, 4), and what each item leaves. Common answers: a size for each list (a grid), the size never
# moved to the front, a list of bools counted by its length, `(stop - start) // step`, dimensions at the end
# forgotten, and NumPy asked to do it.

# %% [markdown]
# ## Places that come twice
#
# To count how often each value comes, add 1 at each value's place. Three of these four values are 1:
#
# {{question P6}}

# %%
predict("P6", "a")

# %%
places = torch.tensor([1, 1, 1, 2])
counts = torch.zeros(4, dtype=torch.int64)
counts[places] += 1
print("counts[places] += 1:", counts)

# %% [markdown]
# Python turns that line into three steps: read `counts[places]`, which is a *copy* with four elements; add 1 to each;
# write the four back. Place 1 is written three times, each time with 0 + 1. Two functions add for each of them
# instead. `index_put_` takes a tuple, with one tensor of places for each dimension; `scatter_add_` takes the number of
# the dimension in which the places count, here 0:

# %%
ones = torch.ones_like(places)
counts = torch.zeros(4, dtype=torch.int64)
print("index_put_, accumulate:", counts.index_put_((places,), ones, accumulate=True))
counts = torch.zeros(4, dtype=torch.int64)
print("scatter_add_:          ", counts.scatter_add_(0, places, ones))

# %% [markdown]
# **Rule.** `x[places] += 1` counts each place once. Where places may come twice, accumulate (objective 4).
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
# **Where it breaks.** Plain assignment has the same trouble: of several values for one place, one stays, and on a GPU
# it is not said which. At work you would call `torch.bincount(values, minlength=bins)`; what you have built also
# works when you add other things than ones.

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Board: the three steps of `+=` as three lines of code. Then: "which of them loses the
# count?" Common answers: `+= 1` itself, float counts from `torch.zeros(bins)`, as many counts as the largest value
# says (what if `values` is empty?), a loop.

# %% [markdown]
# ## Two pairs of brackets
#
# Here somebody wants to write 7 to rows 0 and 2, columns 1 and 3.
#
# {{question P7}}

# %%
predict("P7", "c")

# %%
grid = torch.zeros(3, 4, dtype=torch.int64)
grid[[0, 2]][:, [1, 3]] = 7
print("two pairs of brackets:", grid.tolist())
grid[[0, 2], [1, 3]] = 7
print("one pair, two lists:  ", grid.tolist())

# %% [markdown]
# The first line writes into a copy that nobody keeps. The second writes to the original, and reads the lists in
# pairs: (0, 1) and (2, 3). For a grid, make the rows a *column* of shape (2, 1). Then the two **broadcast**, as in an
# addition: sizes of 1 are stretched until the shapes agree, and each row meets each column. In the picture, read 21
# as "row 2, column 1".

# %%
rows, cols = torch.tensor([0, 2])[:, None], torch.tensor([1, 3])
broadcast(rows * 10, cols, names=("rows × 10", "cols"))

# %%
grid = torch.zeros(3, 4, dtype=torch.int64)
grid[rows, cols] = 7
print(grid)

# %% [markdown]
# **Rule.** A write needs one pair of brackets. Lists in it are read in pairs, after broadcasting.
#
# Repair the broken line for any rows, columns and value (objectives 3 and 4). One thing more: if a position does not
# exist, nothing may have been written when the error comes.
#
# {{card set_grid}}


# %% exercise="set_grid"
def set_grid(x, rows, cols, value):
    """Write value to x wherever a row of rows and a column of cols cross, in x itself, and return x.

    x has two dimensions, rows and cols are lists of positions, possibly empty or negative. If one of them lies outside
    of x, raise an IndexError and leave x as it was.
    """
    ### BEGIN SOLUTION
    r = torch.tensor(rows, dtype=torch.int64)[:, None]
    c = torch.tensor(cols, dtype=torch.int64)
    x[r, c]  # raises if a position is not there, before anything is written
    x[r, c] = value
    return x
    ### END SOLUTION


# %% check="set_grid"
check(set_grid)

# %% [markdown]
# **Where it breaks.** torch checks positions while it writes. An error in the middle leaves half of the work done:

# %%
grid = torch.zeros(2, 3, dtype=torch.int64)
try:
    grid[torch.tensor([[0], [1]]), torch.tensor([0, 1, 5])] = 7
except IndexError as error:
    print("IndexError:", error)
print("and yet:", grid.tolist())

# %% [markdown] tags=["instructor"]
# **Instructor, 9 minutes.** Board: the broken line with brackets numbered 1 and 2; under 1 write "copy". With slices
# in both pairs it would have worked, since a view of a view writes through: let the class find that out. Common
# answers: both lists in one pair of brackets (a diagonal, or an error about shapes), whole rows and columns, the
# smallest rectangle around them all.

# %% [markdown]
# ## Pairs, on purpose
#
# That two lists are read in pairs is just what you need when each row has a column of its own. Classifiers use it all
# the time: in row r, the 1 belongs into the column of that row's label.

# %%
index_overlay(torch.zeros(3, 4, dtype=torch.int64), ([0, 1, 2], [3, 0, 3]), name="table", result="picked")

# %% [markdown]
# One row of the result for each label, and a position for the row beside each label. New tensors that you make belong
# on the device of the labels: `device=labels.device` costs nothing here, and saves an error on a GPU (objectives 2
# and 3).
#
# {{card one_hot}}


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

# %% [markdown]
# **Where it breaks.** With a slice in place of the rows, nothing is paired: every row gets the columns of *all*
# labels.

# %%
table = torch.zeros(3, 4, dtype=torch.int64)
table[:, [3, 0, 3]] = 1
print(table)

# %% [markdown] tags=["instructor"]
# **Instructor, 7 minutes.** Board: labels 2, 0, 2 beside an empty table; fill in the ones together. Common answers: a
# slice for the rows, integers instead of floats, columns counted from the largest label, new tensors on the CPU. The
# check runs the function with tensors on a pretended GPU, so the last one is found on every machine.

# %% [markdown] concepts=["L-22"] facts=["F-16"]
# ## What a window cannot show
#
# Views cost next to nothing, and memory is scarce: so take a view wherever one will do. When will none do? A view has
# one stride a dimension, and a stride in torch is never negative. Python lists and NumPy can run backwards, torch
# cannot.

# %% concepts=["L-17"] facts=["F-16"]
print("a list:", [0, 1, 2][::-1])
try:
    torch.arange(3)[::-1]
except ValueError as error:
    print("torch: ValueError:", error)
flipped = torch.arange(3).flip(0)
print("flip:  ", flipped)

# %% [markdown]
# Views have a trap of their own. You know how Python exchanges two things:
#
# {{question P8}}

# %%
predict("P8", "c")

# %%
x = torch.tensor([[1, 1], [2, 2], [3, 3]])
x[0], x[2] = x[2], x[0]
print(x)

# %% [markdown]
# On the right stand two views. When row 0 is written, the view of row 0 that waits for its turn shows the new
# numbers.
#
# **Rule.** Take a view where one will do. Where the order is turned round, or where you overwrite what you still
# need, copy that part, and no more (objectives 1 and 3).
#
# {{card rearranged}}


# %% exercise="rearranged"
def rearranged(x, how, i, j):
    """The rows of x moved about, with no more copying than needed.

    x has shape (m, n).
    how = "swap":    rows i and j change places in x itself; returns x. i and j may be negative.
    how = "crop":    rows i up to but not including j, as a view; 0 <= i <= j <= m.
    how = "reverse": the rows of "crop" in reverse order, in memory of their own.
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

# %% [markdown] facts=["F-24"]
# **Where it breaks.** A view is cheap to make and may be dear to keep: it holds the whole storage. The next cell
# counts bytes. The one after it measures time, each statement in five rounds: the copy moves half a million numbers,
# the view none.

# %% facts=["F-24"]
big = torch.zeros(1000, 1000)
print("two elements, view: ", big[0, :2].untyped_storage().nbytes(), "bytes kept alive")
print("two elements, clone:", big[0, :2].clone().untyped_storage().nbytes(), "bytes")

# %% tags=["nbval-ignore-output"] reason="It shows times, which differ from run to run."
for statement in ("big[:, ::2]", "big[:, ::2].clone()"):
    timer = Timer(statement, globals={"big": big}, num_threads=1)
    times = sorted(1e6 * timer.timeit(5).mean for _ in range(5))
    print(f"{statement:20} median {times[2]:8.1f} µs, from {times[0]:.1f} to {times[-1]:.1f} µs")

# %% [markdown] tags=["instructor"]
# **Instructor, 9 minutes.** Board: the storage of x as a strip, two frames for the rows, and the write running from
# one into the other. Common answers: the tuple exchange, a step of -1, a list for the crop, flip before crop (ask how
# many bytes it copies), a clone of everything.

# %% [markdown]
# ## Keep the shape, or not
#
# A mask says which numbers count. Then there are three stories, and each has its tool: take only those that count
# (`x[mask]`), put a fixed number in place of the others (`masked_fill`), or compute something that must not touch the
# others (`where`). `masked_fill` fills where its mask is True, so it gets `~mask`: `~` turns every True into False and
# back.
#
# What is hidden may be NaN, infinite or illegal for what you compute. Look at the result *and at the gradient*: the
# number for each element of x that says by how much the sum of the result moves when that element moves.

# %%
mask = torch.tensor([True, False, True])


def gradient_of(function, numbers):
    """The result, and how its sum depends on each of the numbers (lecture 04 tells how this is found)."""
    x = torch.tensor(numbers, requires_grad=True)
    result = function(x)
    result.sum().backward()
    return result.tolist(), x.grad.tolist()


nan = float("nan")
print("times the mask:", gradient_of(lambda x: x * mask, [1.0, nan, 2.0]))
print("masked_fill:   ", gradient_of(lambda x: x.masked_fill(~mask, 0), [1.0, nan, 2.0]))

# %%
print("log, then where:", gradient_of(lambda x: torch.where(mask, x.log(), 0), [1.0, 0.0, 2.0]))

# %% [markdown]
# In the first line NaN comes through, because 0 times NaN is NaN. In the last the numbers are right, and the gradient
# has a NaN: `where` picks *after* both sides are computed, and the slope of the logarithm at the hidden 0 is
# infinite.
#
# **Rule.** `x[mask]` loses the shape, `masked_fill` and `where` keep it. Replace hidden numbers before you compute
# with them, not after (objective 5).
#
# {{card select}}


# %% exercise="select"
def select(x, mask, story):
    """What counts of x, as the story asks. True in mask means that the element counts.

    x is a float tensor that asks for its gradient, mask a bool tensor of the same shape.
    story = "only": the elements that count, row by row, in one dimension.
    story = "fill": x with 0 in place of the others.
    story = "log":  the logarithm of the elements that count, and 0 in place of the others.
    The others may be 0, negative, infinite or NaN. They show neither in the result nor in the gradient.
    """
    ### BEGIN SOLUTION
    if story == "only":
        return x[mask]
    harmless = torch.where(mask, x, 0 if story == "fill" else 1)
    return harmless.log() if story == "log" else harmless
    ### END SOLUTION


# %% check="select"
check(select)

# %% [markdown]
# **Where it breaks.** If nothing counts, nothing is left, and the mean of nothing is NaN. With the shape kept you get
# a number, but divided by the wrong count: in a mean, what is filled in counts as well.

# %%
x = torch.tensor([4.0, 6.0, 8.0])
for mask in (torch.tensor([True, False, True]), torch.tensor([False, False, False])):
    print("mean of x[mask]:", x[mask].mean().item(), "| filled with 0:", x.masked_fill(~mask, 0).mean().item())

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Gradients come in lecture 04; here they are a second column that must not show NaN.
# Board: the two orders, "log, then choose" and "choose, then log". Common answers: times the mask, where after the
# logarithm, the mask the wrong way round in masked_fill (it fills where True), masked_fill_ with an underscore.

# %% [markdown] concepts=["L-21"]
# ## How a mask can work inside
#
# `x[mask]` looks like magic on a GPU, where thousands of elements move at once: how does each know its place in the
# result without waiting for the ones before it? The answer is a running sum over the mask.

# %% concepts=["L-21"]
mask = torch.tensor([False, True, True, False, True])
print("mask:       ", mask.int())
print("running sum:", mask.cumsum(0))
moved = torch.zeros(4, dtype=torch.int64).scatter(0, torch.tensor([2, 0, 3]), torch.tensor([7, 8, 9]))
print("scatter 7, 8, 9 to the places 2, 0, 3:", moved)

# %% [markdown]
# **Rule.** The place of a chosen element is the number of chosen elements before it.
#
# The last exercise is the hard one: build `x[mask]` yourself. Think about what happens to the elements that are *not*
# chosen: `scatter` sends every element somewhere (objectives 4 and 5).
#
# {{card compact}}


# %% exercise="compact"
def compact(x, mask):
    """The elements of x where mask is True, in their order, as x[mask] would give them, but built from a running sum.

    x has one dimension, mask is a bool tensor of the same length. Do not put a mask or positions into brackets to read
    (slices are fine), nor use masked_select or nonzero. A handful of torch operations is enough for any length.
    """
    ### BEGIN SOLUTION
    n = int(mask.sum())
    places = torch.where(mask, mask.cumsum(0) - 1, n)  # the others go behind the end
    result = torch.zeros(n + 1, dtype=x.dtype, device=x.device)
    return result.scatter(0, places, x)[:n]
    ### END SOLUTION


# %% check="compact"
check(compact)

# %% [markdown]
# **Where it breaks.** The shape of `x[mask]` depends on values, not on shapes alone. A GPU works ahead of your
# program, but here the program has to wait for it, only to learn how long the result is. `where` and `masked_fill`
# never wait.

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes to set it; solving it is homework.** Board: mask, running sum, running sum minus one, and arrows.
# Common answers: the others sent to place 0 (which overwrites the first chosen element), one place too far, a result
# that is as long as x, a loop. Quick ones may look for a second way: a stable sort of the turned mask, or
# searchsorted in the running sum.

# %% [markdown] facts=["F-16", "F-17", "F-19", "F-20"]
# ## torch and NumPy
#
# | | torch | NumPy |
# | --- | --- | --- |
# | a number and a list apart, `x[0, :, [0, 1]]` | the number goes first: (3, 2) | counts as a list: (2, 3) |
# | negative step, `x[::-1]` | ValueError; `flip` copies | a view |
# | mask of dtype uint8 | a mask, with a warning | positions |
# | list of lists, `x[[[0, 1], [0, 1]]]` | two lists, with a warning | one array of positions |
# | places that come twice, `x[i] += 1` | once each; `index_put_(accumulate=True)` | once each; `np.add.at` |
# | a list anywhere | a copy | a copy |

# %% facts=["F-19"]
array = small.numpy()
print("list of lists, NumPy:", array[[[0, 1], [0, 1]]].shape)
print("reversed, NumPy:     ", array[::-1].strides[0] < 0)

# %% [markdown] concepts=["L-46"]
# ## Recap
#
# - Numbers and slices: a **view**. A list, positions in a tensor, a mask: a **copy**. A write to a view changes the
#   original.
# - A number removes its dimension, everything else keeps one; all lists together make one.
# - Bools say whether, integers say where.
# - `x[places] += 1` counts each place once: accumulate. `x[rows][:, cols] = v` is lost: one pair of brackets.
# - Lists are read in pairs, after broadcasting.
# - `x[mask]` loses the shape; `masked_fill` and `where` keep it. Replace first, then compute.
# - A float may guess, integers decide.
# - Views are cheap to make; a small one keeps a large storage alive.
#
# **Words.** *View*: a tensor that looks into the storage of another. *Copy*: a tensor with a storage of its own.
# *Basic indexing*: with numbers, slices, `None` and `...` only. *Advanced indexing*: with lists, positions or masks.
# *Mask*: a tensor of bools that says which elements count. *Broadcasting*: sizes of 1 are stretched so that two
# shapes fit. *In place*: written into the memory that is there. *Accumulate*: add each time, instead of writing once.
#
# **To read on** (not needed for the course): NumPy's user guide, chapter "Indexing on ndarrays", at
# numpy.org/doc/stable/user/basics.indexing.html; torch's pages "Tensor Views" and "torch.Tensor" at
# docs.pytorch.org/docs/stable/tensor_view.html and docs.pytorch.org/docs/stable/tensors.html.

# %%
print(check.progress())

# %% [markdown]
# Next: **03 · Elementwise functions, activations, softmax**. You will meet `where` again, and find out more about
# gradients that are not finite.

# %% [markdown] tags=["instructor"]
# **Instructor.** If time is short, leave out the sections on squares and on
# masks inside; both stand alone. Ask at the end, without notes: "name one index that gives a view and one that
# copies, and how you would find out".
