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

# %% [markdown] concepts=["L-G"]
# # 01 · Storage, strides, contiguity
#
# A tensor looks like a grid. The computer has no grids: its memory is one long row of numbered cells. This lecture
# is about what stands between the two. After it you can
#
# 1. describe a tensor as storage + offset + sizes + strides + dtype + device;
# 2. compute in which cell any element lies;
# 3. tell a view from a copy, and a contiguous tensor from one that is not, without running anything;
# 4. explain why `view` sometimes refuses and when `reshape` copies;
# 5. measure fairly, and say when the layout of memory matters;
# 6. budget memory over GPU, RAM and disk.
#
# {{times}}

# %% setup=true
import io
import time
import warnings
from math import prod

import torch
from torch.utils.benchmark import Timer

from autograder.check import Checker
from lecture_pictures import explore_strides, memory_hierarchy, memory_ruler, stacked, stride_view

check = Checker("01_storage")
predict, hint = check.predict, check.hint

# %% [markdown]
# ## From lecture 00
#
# Answer from memory: trying to recall is what makes it stay. Put a letter, in quotes, in place of each `...`, and run
# the cell.
#
# {{question R1}}
#
# {{question R2}}
#
# {{question R3}}

# %%
predict("R1", "b")
predict("R2", "a")
predict("R3", "c")

# %% [markdown] concepts=["L-03", "L-07", "L-08", "L-09", "L-11"]
# ## What a tensor is made of
#
# Where are the nine numbers of `a` below, and where are the four of `b`? Both are windows on one **storage**, a
# plain row of cells. A window consists of an **offset** (the cell of its first element), its **sizes**, and a
# **stride** for each dimension: how many cells further the next index lies. `dtype` says how many bytes a cell has,
# `device` where it is.
#
# Brackets take one slice for each dimension, as with a Python list: `a[1:3, 1:3]` is rows 1 and 2, and of them columns
# 1 and 2. (Lecture 02 is about brackets.) Run the cell and compare its numbers with the picture. Then write exercise
# 1.1 (objective 1).
#
# **Rule.** Tensor = storage + offset + sizes + strides. Offset and strides count elements; storages count bytes.
#
# {{card describe}}

# %% concepts=["L-07", "L-08", "L-09", "L-11"] facts=["F-03"]
a = torch.tensor([[3 * i + j for j in range(3)] for i in range(3)])
b = a[1:3, 1:3]
print("bytes of one element: ", b.element_size(), " elements of b:", b.numel())
print("offset, strides of b: ", b.storage_offset(), b.stride())
print("bytes of its storage: ", b.untyped_storage().nbytes(), "(9 elements, not 4)")
print("is b contiguous?      ", b.is_contiguous(), "(why: see below)")
memory_ruler(b, "b")


# %% exercise="describe"
def describe(t):
    """A dict of plain numbers that says where the elements of the tensor t are.

    Keys: element_size (bytes), numel, storage_bytes (the whole storage), offset (in elements),
    offset_bytes, strides (in elements), contiguous (a bool). It must not warn.
    """
    ### BEGIN SOLUTION
    answer = {"element_size": t.element_size(), "numel": t.numel(), "offset": t.storage_offset()}
    answer["storage_bytes"] = t.untyped_storage().nbytes()
    answer["offset_bytes"] = answer["offset"] * answer["element_size"]
    return {**answer, "strides": t.stride(), "contiguous": t.is_contiguous()}
    ### END SOLUTION


# %% check="describe"
check(describe)

# %% [markdown] concepts=["L-04"] facts=["F-01", "F-02", "F-03", "F-04", "F-06"]
# **Where it breaks.** Older material differs from the torch you have, in four places:
#
# - `t.storage()` gives a storage of an old kind, and warns. Use `t.untyped_storage()`.
# - The size of an untyped storage counts *bytes*. An old text that says “elements” means the old kind.
# - A plain tensor has exactly *one* storage. (Sparse tensors, lecture 06, are made of several tensors.)
# - `t.data_ptr()` is the address of the tensor's *first element*; that of the storage is where the storage begins.
#
# Addresses differ from run to run, so print differences of addresses, never addresses.

# %% concepts=["L-04"] facts=["F-01", "F-03", "F-04", "F-06"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    b.storage()
for warning in caught:
    print(warning.category.__name__, "|", str(warning.message).split(".")[0])
print("an untyped storage counts in units of", b.untyped_storage().element_size(), "byte")
print("bytes from the start of the storage to b[0, 0]:", b.data_ptr() - b.untyped_storage().data_ptr())
print("the same, from offset and element size:        ", b.storage_offset() * b.element_size())

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Board: nine cells in a row; circle the four of `b`; let the class name offset, sizes
# and strides before you show the picture. Common answers to 1.1: storage bytes as `numel * element_size` (32 instead
# of 72: M07), bytes for the offset. Ask: “which of the seven numbers can differ between two tensors that print
# alike?” (storage bytes, offset, strides, contiguous).

# %% [markdown] concepts=["L-09", "L-14"]
# ## From an index to a cell
#
# {{question P1}}

# %%
predict("P1", "a")

# %% [markdown] concepts=["L-09"]
# This is why torch keeps strides, and not just sizes: a transpose swaps two sizes and two strides, and is done. Here
# is `a.t()`, on the same nine cells as `a`.

# %% concepts=["L-09"]
print("a    :", a.shape, a.stride())
print("a.t():", a.t().shape, a.t().stride())
memory_ruler(a.t(), "t")

# %% [markdown] concepts=["L-09", "L-14"]
# **Rule.** Element `[i, j, ...]` lies in cell `offset + i·stride[0] + j·stride[1] + ...`
#
# For `b` above: `b[1, 0]` is in cell 4 + 1·3 + 0·1 = 7. Check it in the picture, then write the rule down (objective
# 2).
#
# {{card flat_index}}


# %% exercise="flat_index"
def flat_index(index, stride, offset):
    """The number of the cell, an int, in which the element at `index` lies. Plain Python, no torch.

    index and stride are tuples of ints, the strides and the offset count elements.
    Raises ValueError when the two have different lengths, IndexError when a number of the index is negative.
    """
    ### BEGIN SOLUTION
    if len(index) != len(stride):
        raise ValueError(f"{len(index)} numbers in the index, {len(stride)} strides")
    if any(i < 0 for i in index):
        raise IndexError(f"negative number in {index}")
    for i, step in zip(index, stride, strict=True):
        offset += i * step
    return offset
    ### END SOLUTION


# %% check="flat_index"
check(flat_index)

# %% [markdown]
# Your formula is what torch does. `as_strided` takes sizes, strides and an offset as they are, so a window of one
# element at your cell must show the element that the index finds. (`arange(24)` counts from 0 to 23, `view(2, 3, 4)`
# lays the numbers out in this shape, `transpose(0, 2)` swaps dimensions 0 and 2.)

# %% concepts=["L-09"]
t = torch.arange(24).view(2, 3, 4).transpose(0, 2)[1:, ::2]
print("shape", tuple(t.shape), "strides", t.stride(), "offset", t.storage_offset())
for index in [(0, 0, 0), (2, 1, 1), (1, 1, 0)]:
    cell = flat_index(index, t.stride(), t.storage_offset())
    print(index, "is in cell", cell, "| there:", t.as_strided((1,), (1,), cell).item(), "| by index:", t[index].item())

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Board: write the formula, then ask for the cell of `a.t()[0, 2]` (cell 6) before the
# picture. Common answers to 1.2: the offset forgotten (right for every fresh tensor, so it survives a quick test);
# `zip` that stops at the shorter tuple without a word. “Why is a negative index an error here?” Because the size is
# not given.

# %% [markdown] concepts=["L-13"]
# ## Contiguous: in order and without gaps
#
# {{question P2}}

# %%
predict("P2", "b")

# %% concepts=["L-13", "L-14"] facts=["F-12"]
row = a[:1]
for name, view in {"a[1:3, 1:3]": a[1:3, 1:3], "a[1:3]": a[1:3], "a.t()": a.t(), "row.t()": row.t()}.items():
    print(f"{name:12} size {tuple(view.shape)} strides {view.stride()} contiguous: {view.is_contiguous()}")

# %% [markdown] concepts=["L-14"] facts=["F-12"]
# “But `a[1:3, 1:3]` *looks* contiguous!” On the screen it does. In memory its rows are 2 long and start 3 cells apart:
# strides (3, 1), where gapless rows of 2 would have (2, 1). The picture shows the gap as a hatched cell; below it, two
# whole rows, which have none.

# %% concepts=["L-14"]
stacked("A corner has a gap, whole rows have none", [memory_ruler(b, "b"), memory_ruler(a[1:3], "c")])

# %% [markdown] concepts=["L-13", "L-14"]
# **Rule.** Contiguous: walking through the elements in order, the last index fastest, you step from each cell to the
# very next one. Then each stride is the product of the sizes to its right.
#
# Two kinds of dimension do not care: one of size 1 is never stepped along, and with a size of 0 there is no element
# at all. Decide it from the numbers alone (objective 3).
#
# {{card is_contiguous_from}}


# %% exercise="is_contiguous_from"
def is_contiguous_from(size, stride):
    """Whether a tensor of this size and these strides, two tuples of ints, is contiguous. Plain Python, no torch."""
    ### BEGIN SOLUTION
    expected = 1
    for n, step in zip(size[::-1], stride[::-1], strict=True):
        if n > 1 and step != expected and 0 not in size:
            return False
        expected *= n
    return True
    ### END SOLUTION


# %% check="is_contiguous_from"
check(is_contiguous_from)

# %% [markdown]
# **Your own example** (not graded). Find sizes and strides that look scattered and are contiguous all the same, other
# than those you have seen. Put them in place of ours; torch has the last word.

# %%
size, stride = (1, 2, 1, 3), (50, 3, 7, 1)
print("you: ", is_contiguous_from(size, stride))
print("torch:", torch.empty_strided(size, stride).is_contiguous())

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes.** Take a show of hands for P2 before anybody runs it; most choose c. Board: cells 4 5 _ 7
# 8. Common answers to 1.3: `stride[-1] == 1` (M02), strides that only fall. Good question to the class: “can a
# tensor without any gap be non-contiguous?” (yes, a transposed one: the order is wrong).

# %% [markdown] concepts=["L-05", "L-10"]
# ## One storage, several tensors
#
# {{question P3}}

# %%
predict("P3", "b")

# %% [markdown]
# Look at the last two lines. (`randn` makes random numbers, the same ones after the same `manual_seed`; `exp` computes
# eˣ of each.)

# %% concepts=["L-05", "L-10"] facts=["F-07", "F-09"]
torch.manual_seed(0)
a = torch.randn(4, 3)
b, c = a.cpu(), torch.exp(a)
print("contiguous:", a.is_contiguous(), "| shape:", tuple(a.shape), "| size(1), the columns only:", a.size(1))
a[1, 1] = 0
print(b)
print("b is a:", b is a)
print("c starts where a starts:", c.data_ptr() == a.data_ptr())

# %% [markdown] concepts=["L-05", "L-12"] facts=["F-05", "F-09"]
# `.cpu()`, `.contiguous()` and `.to(...)` do what is needed and no more. When nothing is needed, you get the tensor
# that you had. Other operations, such as slices and `t()`, give a new tensor on the old storage, a **view**; still
# others, such as `exp`, a new storage.
#
# **Rule.** Two tensors share memory when their storages begin at the same address, and hold at least one byte.
# All storages without a byte report address 0. (objective 3)
#
# {{card same_memory}}


# %% exercise="same_memory" concepts=["L-12"] facts=["F-05"]
def same_memory(x, y):
    """Whether the tensors x and y live in the same storage, a bool. An empty storage is shared with nobody."""
    ### BEGIN SOLUTION
    starts = {t.untyped_storage().data_ptr() for t in (x, y)}
    return len(starts) == 1 and 0 not in starts
    ### END SOLUTION


# %% check="same_memory"
check(same_memory)

# %% concepts=["L-12"] facts=["F-05"]
a = torch.arange(9).view(3, 3)
b = a[1:3, 1:3]
print("b is a view of a:                ", same_memory(a, b))
print("a[0] and a[1], no element shared:", same_memory(a[0], a[1]))
print("a and a clone of equal numbers:  ", same_memory(a, a.clone()))
print("two empty tensors:               ", same_memory(torch.empty(0), torch.empty(0)))
print("memory of a NumPy array:         ", same_memory(a, torch.from_numpy(a.numpy())))

# %% [markdown] facts=["F-05"]
# **Where it breaks.** Sharing a storage is not the same as having an element in common: `a[0]` and `a[1]` share one
# storage, and no cell. That finer question is exercise 1.11. And a tensor made from a *part* of a NumPy array has a
# storage that begins at that part, so this test calls it a stranger although the bytes are the same.

# %% [markdown] concepts=["L-06"] facts=["F-08"]
# ### On to the GPU
#
# `.cuda()` copies to the GPU if the tensor is not there yet. Without a GPU it is an error, so code that is to run
# anywhere asks first which device there is, and uses `.to(device)`, which copies only if it has to. The cell below
# works on every machine.

# %% concepts=["L-05", "L-06"] facts=["F-08"] tags=["nbval-ignore-output"] reason="is there a GPU?"
accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
device = accelerator or torch.device("cpu")
there = a.to(device)
print("device:", device.type, "| moved without a copy:", there is a)
try:
    a.cuda()
    print("a.cuda() made a copy on the GPU")
except (AssertionError, RuntimeError) as error:
    print("a.cuda():", type(error).__name__, "|", str(error).splitlines()[0])

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** P3 goes wrong with most who come from other frameworks. Board: two arrows from the
# names `a` and `b` to one box. Common answers to 1.4: comparing `data_ptr()` of the tensors (fails for rows),
# forgetting empties. If you have a GPU, run the cell there, and ask what `.to(device)` does the second time
# (nothing).

# %% [markdown] concepts=["L-09", "L-11"]
# ## Views by numbers
#
# If a tensor is nothing but a window on a storage, then you can make any view by choosing size, strides and offset.
# Move the sliders (Tab and arrow keys): each stops where the view would leave the storage. Try to get
#
# - every second column,
# - the transpose,
# - one row, four times,
# - pieces that overlap.
#
# Without sliders, for instance on a printed page, you see four fixed views instead.

# %% concepts=["L-09"]
explore_strides(cells=12, size=(3, 4), stride=(4, 1))

# %% [markdown] concepts=["L-09"]
# A stride of 0 stays on its cell: one stored row, shown as often as you like. Strides smaller than the size beside
# them overlap. Both cost no memory:

# %% concepts=["L-09"]
stride_view((4, 3), (1, 1), 0, cells=6, name="w")

# %% [markdown] concepts=["L-22"]
# **Rule.** A view is arithmetic with numbers of cells. It is free, however large the tensor.
#
# The next exercise asks for six views as *formulas*: for each a triple (size, stride, offset). The check lays them
# over a fresh matrix of `rows` × `cols` elements with `as_strided`, for many shapes. (objectives 2 and 3)
#
# | name | dimensions | what it shows |
# | --- | --- | --- |
# | `last_column` | 1 | the last column |
# | `diagonal` | 1 | from the upper left corner down and right, as far as it goes |
# | `every_second_row` | 2 | rows 0, 2, 4, ... |
# | `first_row_repeated` | 2 | row 0, `rows` times |
# | `windows` | 2 | each run of `cols` neighbouring cells; row k begins in cell k |
# | `blocks` | 4 | `[i, j]` is the i-th 2×2 block down, the j-th across; an odd last row or column is left out |
#
# {{card strided_views}}


# %% exercise="strided_views"
def strided_views(rows, cols):
    """The six views of the table, of a fresh (rows, cols) matrix: a dict name -> (size, stride, offset)."""
    ### BEGIN SOLUTION
    return {
        "last_column": ([rows], [cols], cols - 1),
        "diagonal": ([min(rows, cols)], [cols + 1], 0),
        "every_second_row": ([-(-rows // 2), cols], [2 * cols, 1], 0),
        "first_row_repeated": ([rows, cols], [0, 1], 0),
        "windows": ([(rows - 1) * cols + 1, cols], [1, 1], 0),
        "blocks": ([rows // 2, cols // 2, 2, 2], [2 * cols, 2, cols, 1], 0),
    }
    ### END SOLUTION


# %% check="strided_views"
check(strided_views)

# %% concepts=["L-09"]
x = torch.arange(12).view(3, 4)
size, stride, offset = strided_views(3, 4)["blocks"]
print(x)
print("the two blocks:\n", x.as_strided(size, stride, offset))

# %% [markdown]
# **Where it breaks.** `as_strided` is for learning and for experts: it checks that you stay inside the storage, not
# that you mean what you wrote. And never write through a view that repeats or overlaps: one cell stands behind
# several elements, and torch refuses where it notices.

# %%
repeated = torch.zeros(3).expand(2, 3)
try:
    repeated.add_(1)
except RuntimeError as error:
    print("RuntimeError:", str(error).split(".")[0])

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes.** Let pairs do one view each and explain it at the board. Common answers to 1.5: `rows`
# and `cols` swapped (survives on square matrices: ask why), `rows // 2` for every second row, blocks with 4
# neighbouring cells. The blocks are what pooling and image patches are made of.

# %% [markdown] concepts=["L-13"] facts=["F-13"]
# ## `view` refuses, `reshape` copies
#
# `view` makes a tensor of another shape on the same storage. When no strides can do that, it raises an error.
# `reshape` does the same when it can, and copies when it must; it does not tell you which.
#
# {{question P4}}

# %%
predict("P4", "c")

# %% concepts=["L-13"] facts=["F-13"]
b = a[1:3, 1:3]
try:
    b.view(4)
except RuntimeError as error:
    print("b.view(4):", str(error).split(" (")[0], "...", str(error).split(". ")[-1])
print("b.reshape(4):", b.reshape(4), "| still at the address of b:", b.reshape(4).data_ptr() == b.data_ptr())
print("a.reshape(9):", a.reshape(9), "| still at the address of a:", a.reshape(9).data_ptr() == a.data_ptr())

# %% [markdown] concepts=["L-05", "L-13"]
# **Rule.** `view` never copies and may refuse; `reshape` never refuses and may copy; `contiguous` copies unless
# there is nothing to do; `clone` always copies.
#
# Sometimes a function needs contiguous input. Give it that without copying for nothing. (objective 4)
#
# {{card ensure_contiguous}}


# %% exercise="ensure_contiguous"
def ensure_contiguous(x):
    """x itself when it is contiguous; otherwise a contiguous copy with the same elements, shape and dtype."""
    ### BEGIN SOLUTION
    return x if x.is_contiguous() else x.clone(memory_format=torch.contiguous_format)
    ### END SOLUTION


# %% check="ensure_contiguous"
check(ensure_contiguous)

# %% [markdown]
# **Where it breaks.** `clone()` alone is not enough: it keeps the order of the strides of a tensor that has no gaps.

# %%
print("strides of a.t():             ", a.t().stride())
print("strides of a.t().clone():     ", a.t().clone().stride())
print("strides of a.t().contiguous():", a.t().contiguous().stride())

# %% [markdown] concepts=["L-14"]
# ### When does `view` work? ★★★★
#
# Not only for contiguous tensors. Take sizes (2, 3, 4) with strides (24, 4, 1): the last two dimensions lie end to
# end, since one step along the middle one, 4, is as far as the whole last one. They can be merged: `view(2, 12)`
# works. The first is further away, so nothing can be merged across it: `view(6, 4)` does not.

# %% concepts=["L-14"]
t = torch.arange(48).view(2, 6, 4)[:, :3]
print("sizes", tuple(t.shape), "strides", t.stride())
print("view(2, 12) works:", tuple(t.view(2, 12).shape))
try:
    t.view(6, 4)
except RuntimeError:
    print("view(6, 4) does not")

# %% [markdown] concepts=["L-14"]
# Find the rule behind it, from the numbers alone. This one is hard; the hints go step by step. (objective 4)
#
# {{card can_view}}


# %% exercise="can_view"
def can_view(size, stride, new_shape):
    """Whether torch can `view` a tensor of this size and stride as new_shape. Three tuples of ints >= 0, no torch."""
    ### BEGIN SOLUTION
    if prod(size) != prod(new_shape) or 0 in size:
        return prod(size) == prod(new_shape)
    old = [(n, step) for n, step in zip(size, stride, strict=True) if n > 1]
    new = list(new_shape)
    chunk = 1
    while old and chunk == 1:  # from the right: a chunk of even steps, then the new dimensions that fill it
        chunk, step = old.pop()
        while old and old[-1][1] == chunk * step:
            chunk *= old.pop()[0]
        while chunk > 1 and chunk % new[-1] == 0:
            chunk //= new.pop()
    return chunk == 1
    ### END SOLUTION


# %% check="can_view"
check(can_view)

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Give 1.7 as homework. Common answers: equal numbers of elements (M04),
# contiguous tensors only. Board: (2, 3, 4) with strides (24, 4, 1) as two islands of 12 cells; a new dimension may
# not span the water.

# %% [markdown] concepts=["L-22"]
# ## A small view can keep a large storage
#
# {{question P5}}

# %%
predict("P5", "b")

# %% concepts=["L-22"]
x = torch.arange(1_000_000.0)
y = x[:2]
del x
print("y shows", y.numel() * y.element_size(), "bytes and keeps", y.untyped_storage().nbytes())
for name, tensor in {"y": y, "y.clone()": y.clone()}.items():
    file = io.BytesIO()
    torch.save(tensor, file)
    print(f"{name:9} saved to a file takes more than a megabyte:", file.tell() > 1_000_000)

# %% [markdown] concepts=["L-22"]
# **Rule.** Prefer views: they cost nothing. Copy on purpose when a small piece has to outlive a large storage, or when
# somebody else may write into it.
#
# (objectives 3 and 6)
#
# {{card slim}}


# %% exercise="slim"
def slim(x, n):
    """The first n elements of the 1-d tensor x, 0 <= n <= len(x), in a storage of just n elements.

    dtype and device are those of x.
    """
    ### BEGIN SOLUTION
    return x.new_empty(n).copy_(x[:n])
    ### END SOLUTION


# %% check="slim"
check(slim)

# %% [markdown]
# **Where it breaks.** `x[:n].contiguous()` looks like a copy and is none: a slice from the front is contiguous
# already. `x.clone()[:n]` copies everything, and then keeps it all.

# %%
x = torch.arange(1000.0)
tries = {"x[:2].contiguous()": x[:2].contiguous(), "x.clone()[:2]": x.clone()[:2], "x[:2].clone()": x[:2].clone()}
for name, t in tries.items():
    shared = t.data_ptr() == x.data_ptr()
    print(f"{name:20} keeps {t.untyped_storage().nbytes()} bytes, begins in the memory of x: {shared}")

# %% [markdown] tags=["instructor"]
# **Instructor, 6 minutes.** A true story helps: a list of “small” results that are slices of batches keeps every
# batch alive. Common answers to 1.8: `contiguous()` (M08), clone first and slice then. Ask what `torch.save(y)`
# writes: the whole storage.

# %% [markdown] concepts=["L-01", "L-02"]
# ## Where the data is: GPU, RAM, disk
#
# Moving data is what takes the time, more than computing with it. So six questions come before every larger program:
#
# 1. Where is the data now?
# 2. How does it get to where it is needed?
# 3. Does all of it fit there at once?
# 4. Does it have to, or are pieces enough?
# 5. If it stays on disk: is it read again in every round?
# 6. Does it fit into RAM? Does it even fit into GPU memory?
#
# No answer is right for every program. What is always wrong is not to ask.

# %% concepts=["L-01"]
memory_hierarchy()

# %% [markdown] concepts=["L-02", "L-08"]
# How much does training take? For each **parameter** (a number that is learned) there is a **gradient** (lecture 04)
# of the same size, and whatever the **optimiser** keeps.
#
# {{question P6}}

# %%
predict("P6", "c")

# %% [markdown] concepts=["L-08"]
# Count what is kept instead of believing a table:

# %% concepts=["L-08"]
for optimiser in (torch.optim.SGD, torch.optim.Adagrad, torch.optim.Adam):
    p = torch.zeros(1000, requires_grad=True)
    step = optimiser([p], lr=0.1)
    p.sum().backward()
    step.step()
    kept = [t for state in step.state.values() for t in state.values() if torch.is_tensor(t) and t.numel() == 1000]
    print(f"{optimiser.__name__:8} keeps {len(kept)} tensors as large as the parameters")

# %% [markdown] concepts=["L-02", "L-08"]
# **Rule.** Bytes = number of elements × bytes of one element, summed over parameters, gradients, optimiser state and
# batch. The optimisers here: "sgd", "adagrad" and "adam".
#
# Mind the units: 1 MiB = 2²⁰ = 1 048 576 bytes; 1 MB = 10⁶. (objective 6)
#
# {{card memory_budget}}


# %% exercise="memory_budget"
def memory_budget(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    """The bytes that training takes, as a dict of ints: parameters, gradients, state, batch, total; and place.

    Both counts are elements of `dtype` (a torch.dtype). place: "gpu" if the total fits into gpu_mib MiB, else "ram" if
    it fits into ram_mib MiB, else "disk". ValueError for an optimizer not in the list above, or a negative count.
    """
    ### BEGIN SOLUTION
    copies = {"parameters": 1, "gradients": 1, "state": {"sgd": 0, "adagrad": 1, "adam": 2}.get(optimizer)}
    if copies["state"] is None or min(parameters, batch_elements) < 0:
        raise ValueError(f"{optimizer=}, {parameters=}, {batch_elements=}")
    budget = {name: k * parameters * dtype.itemsize for name, k in copies.items()}
    budget["batch"] = batch_elements * dtype.itemsize
    mib = (total := sum(budget.values())) / 2**20
    return {**budget, "total": total, "place": "gpu" if mib <= gpu_mib else "ram" if mib <= ram_mib else "disk"}
    ### END SOLUTION


# %% check="memory_budget"
check(memory_budget)

# %% concepts=["L-02"]
for dtype in (torch.float32, torch.bfloat16):
    found = memory_budget(1_000_000_000, 50_000_000, dtype, "adam", gpu_mib=12 * 1024, ram_mib=64 * 1024)
    print(f"a billion parameters, Adam, {dtype}: {found['total'] / 2**30:.1f} GiB -> {found['place']}")

# %% [markdown]
# **Where it breaks.** The budget leaves out what the computation itself needs on its way (activations, lecture 03,
# kept for the gradients, lecture 04). Take it as a lower bound.

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Ask the six questions about a project that the class knows. Board: the pyramid with the
# numbers left out; let them guess the factors. Common answers to 1.9: gradients forgotten, one tensor for Adam, MB
# for MiB.

# %% [markdown] concepts=["L-15"]
# ## Does contiguity matter? Measure fairly
#
# {{question P7}}

# %%
predict("P7", "d")

# %% [markdown] concepts=["L-15"] facts=["F-10", "F-11"]
# “Contiguous is faster” is a sentence that is often said and seldom measured. A fair measurement
#
# - warms up first (the first run also pays for loading and allocating),
# - fixes the number of threads,
# - repeats, and gives the **median** and the **interquartile range** (how far apart the middle half of the times
#   lies).
#
# `torch.utils.benchmark.Timer` does all three.

# %% concepts=["L-15"] facts=["F-10", "F-11"] tags=["nbval-ignore-output"] reason="prints times"
torch.manual_seed(0)
c = torch.randn(1000, 1000)
values = {"c": c, "nc": c.t()}
pairs = [("nc @ nc", "c @ c"), ("nc + 1", "c + 1"), ("nc + c", "c + c"), ("nc.reshape(-1)", "c.reshape(-1)")]
print(f"{'statement':15} {'median':>9} {'IQR':>9}    {'statement':15} {'median':>9} {'IQR':>9}   ratio of medians")
for pair in pairs:
    m, n = [Timer(s, globals=values, num_threads=1).blocked_autorange(min_run_time=0.1) for s in pair]
    shown = [f"{s:15} {1e3 * t.median:6.3f} ms {1e3 * t.iqr:6.3f} ms" for s, t in zip(pair, (m, n), strict=True)]
    print("    ".join(shown), f"{m.median / n.median:10.1f}")

# %% [markdown] concepts=["L-15"] facts=["F-10", "F-11"]
# Why these ratios? (An IQR as large as its median says that the machine was busy with something else: measure again.)
#
# - `nc @ nc`: the routine for products takes transposed matrices as they are. Contiguity hardly matters: look
#   whether the two medians differ by more than their spread.
# - `nc + 1`: torch walks through the storage in its own order and gives the result the same strides.
# - `nc + c`: the two have different orders, so one of them is read in jumps. This costs several times as much.
# - `reshape(-1)`: a view for `c`, a copy of a million elements for `nc`. The ratio is large because one of them is
#   free.
#
# **Rule.** Layout matters where orders meet or a copy is forced. Where it matters in *your* program, only measuring
# tells.

# %% concepts=["L-15"] facts=["F-10"]
nc = c.t()
print("strides of nc + 1:", (nc + 1).stride(), "| strides of nc:", nc.stride())
print("c.reshape(-1) copies:", c.reshape(-1).data_ptr() != c.data_ptr())
print("nc.reshape(-1) copies:", nc.reshape(-1).data_ptr() != nc.data_ptr())

# %% [markdown] concepts=["L-15"]
# Now write the measurement as a function. The check looks at how you measure, not at how fast your machine is: it
# replaces the clock by one that always tells the same. (objective 5)
#
# {{card fair_timings}}


# %% exercise="fair_timings"
def fair_timings(statements, values, threads, seconds):
    """For each statement (a text) a dict with the keys measurement, median and iqr, in a list, in the same order.

    Measured by torch.utils.benchmark's Timer with the names in the dict `values`, on `threads` threads, repeatedly
    for at least `seconds` seconds; measurement is the Measurement, median and iqr are in seconds.
    """
    ### BEGIN SOLUTION
    answers = []
    for statement in statements:
        timer = Timer(stmt=statement, globals=values, num_threads=threads)
        measurement = timer.blocked_autorange(min_run_time=seconds)
        answers.append({"measurement": measurement, "median": measurement.median, "iqr": measurement.iqr})
    return answers
    ### END SOLUTION


# %% check="fair_timings"
check(fair_timings)

# %% [markdown] facts=["F-11"]
# **Where it breaks.** With one `time.time()` before and one after, the first statement looks slow, whichever it is:
# it pays for the warm-up. Below the *same* statement is timed three times like that. If its three times differ, what
# could a single one have told you about two *different* statements?

# %% concepts=["L-15"] facts=["F-11"] tags=["nbval-ignore-output"] reason="prints times"
d = torch.randn(700, 700)
for run in range(3):
    start = time.perf_counter()
    d @ d
    print(f"run {run + 1} of the same statement: {1e3 * (time.perf_counter() - start):.2f} ms")

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes.** Collect guesses for P7 as a table of ratios before you run the cell. Common answers to
# 1.10: `timeit` (one time, no spread: M05), threads left at the default, mean for median. Discuss: what would have
# to be measured for *their* program?

# %% [markdown] concepts=["L-03", "L-12"]
# ## Do two views overlap? ★★★★
#
# Back to the finer question that exercise 1.4 left open. The even and the odd elements of one tensor share a storage
# and interleave, and still no cell belongs to both. Which views may you write into without changing the other?

# %% concepts=["L-12"]
a = torch.arange(10)
even, odd = memory_ruler(a[::2], "even"), memory_ruler(a[1::2], "odd")
stacked("Even and odd elements: one storage, no common cell", [even, odd])

# %% [markdown] concepts=["L-12", "L-14"]
# **Rule.** Two views overlap when some cell of one storage is reached by both. You have the formula for the cells
# since exercise 1.2. (objectives 2 and 3)
#
# {{card overlaps}}


# %% exercise="overlaps"
def overlaps(x, y):
    """Whether the tensors x and y, of the same dtype, have a cell of one storage in common: a bool."""
    ### BEGIN SOLUTION
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return False
    cells = torch.arange(x.untyped_storage().nbytes() // x.element_size())
    of_x, of_y = (cells.as_strided(t.shape, t.stride(), t.storage_offset()) for t in (x, y))
    return not set(of_x.flatten().tolist()).isdisjoint(of_y.flatten().tolist())
    ### END SOLUTION


# %% check="overlaps"
check(overlaps)

# %% concepts=["L-12"]
m = torch.arange(12).view(3, 4)
print("row 0 and row 1:     ", overlaps(m[0], m[1]))
print("row 1 and column 2:  ", overlaps(m[1], m[:, 2]))
print("even and odd columns:", overlaps(m[:, ::2], m[:, 1::2]))
m[:, ::2] = -1
print(m)

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes; the exercise is homework.** Common answers to 1.11: same storage (X-overlaps-1), ranges of cells that cross. Sets of
# cells are fine. Discuss afterwards how to answer without listing cells (two slices in one dimension meet where o₁ +
# i·s₁ = o₂ + j·s₂ has a solution in range: an equation in whole numbers).

# %% [markdown] concepts=["L-G", "L-22"]
# ## Recap
#
# - A tensor is a window on a storage: offset, sizes, strides. Element `[i, j]` is in cell offset + i·stride[0] +
#   j·stride[1].
# - Contiguous means in order and without gaps; how it prints does not matter, nor do dimensions of size 1.
# - Slices, `t()`, `view` and `expand` share memory. `clone` always copies; `contiguous`, `reshape`, `cpu` and `to`
#   copy when they must.
# - Prefer views. Clone when a small piece has to outlive a large storage.
# - Measure with warm-up, fixed threads, median and IQR. Layout matters where orders meet or a copy is forced.
# - Ask where the data is, and count its bytes before you run.
#
# ## Words
#
# | word | meaning |
# | --- | --- |
# | storage | the row of cells in memory that holds the numbers |
# | cell | one place in a storage, of the size of one element |
# | offset | the cell of a tensor's first element |
# | stride | how many cells further the next index of a dimension lies |
# | contiguous | in order and without gaps: each element in the cell after the one before |
# | view | a tensor on the storage of another one |
# | copy | a tensor with a storage of its own |
# | device | where a storage is: CPU memory or GPU memory |
# | median, IQR | the middle one of many times; how far apart the middle half of them lies |
#
# More: the documentation of torch on *tensor views* and on `torch.Tensor.view`, `reshape` and `as_strided`.

# %%
print(check.progress())

# %% [markdown]
# Next: **02 · Indexing, views, copies**: which brackets give a view, and which a copy.
