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
# # 06 · Sparsity
#
# Who rated which film, which word stands in which text, who follows whom: tables with millions of cells, and next to
# nothing in them. Torch can store such a table without its zeros. After this lecture you can
#
# 1. build the layouts **COO** and **CSR** by hand, and read them;
# 2. say what it means when a place is stored **twice**, and put it right;
# 3. compute what a layout **costs**, and at which density it pays;
# 4. tell which operations **keep a tensor sparse**, and write ones that never make it dense;
# 5. keep apart three things that look alike: **zero**, **missing** and **not stored**;
# 6. build masks in sparse layouts, and say where torch's support ends.
#
# {{times}}
#
# Run the next cell. Then come three questions on earlier lectures, and right after them your first exercise.

# %% setup=true
import warnings

import matplotlib.pyplot as plt
import torch
import torch.masked
from torch.utils.benchmark import Timer

from autograder.check import Checker
from lecture_pictures import explore_layouts, mask_grid, show_figure, sparse_layouts, stacked
from maskedtensor_ref import masked_tensor
from maskedtensor_ref.differences import DIFFERENCES

check = Checker("06_sparsity")
predict, hint = check.predict, check.hint

# Three notices of torch are answered here, once for the whole lecture; the next sections say what they are about.
torch.sparse.check_sparse_tensor_invariants.enable()  # test every sparse tensor when it is built
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta state", UserWarning)
warnings.filterwarnings("ignore", "The PyTorch API of MaskedTensors is in prototype stage", UserWarning)

# %% [markdown]
# ## From earlier lectures
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
predict("R2", "a")
predict("R3", "c")

# %% [markdown] concepts=["S-03", "S-05"]
# ## Only what is there
#
# An ordinary tensor has a place for every element, zeros included. We call it **dense** (torch calls its layout
# `strided`). A **sparse** tensor writes down its **entries** only: where something is, and what. Take
#
#     0 0 3
#     4 0 5
#
# and make a list of it, row by row:
#
# | | first entry | second | third |
# | --- | --- | --- | --- |
# | row | 0 | 1 | 1 |
# | column | 2 | 0 | 2 |
# | value | 3 | 4 | 5 |
#
# That is already a layout. It is called **COO**, for *coordinates*: a tensor of **indices** (int64, one row for each
# dimension, one column for each entry) and a tensor of **values**. Torch's own short word for the number of entries
# is **nnz**. (It stands for "number of nonzeros", and you will see that this is not quite true.)

# %% concepts=["S-03", "S-05", "S-10"]
x = torch.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])
s = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0]), (2, 3))
print("built from its parts:\n", s)
print("made dense again:\n", s.to_dense())
print("the other way, x.to_sparse_coo() stores", x.to_sparse_coo()._nnz(), "entries")

# %% [markdown]
# **Rule.** COO: one column of indices and one value for each entry; what is not stored is zero.
#
# Now do by hand what `to_sparse_coo` does, for a tensor of any number of dimensions (objective 1). The card names torch's
# ready-made ways, some of which come later in this lecture: here you do without them.
#
# {{card coo_parts}}


# %% exercise="coo_parts"
def coo_parts(x):
    """The indices and the values of what is not zero in x: (indices, values), in the order in which x is read.

    x is a dense tensor of one dimension or more and of any dtype; NaN is not zero. indices has shape (dimensions of x,
    entries) and dtype int64; values has shape (entries,) and the dtype of x.
    """
    ### BEGIN SOLUTION
    index = x.nonzero(as_tuple=True)
    return torch.stack(index), x[index]
    ### END SOLUTION


# %% check="coo_parts"
check(coo_parts)

# %% [markdown]
# **Where it breaks.** Nothing in a list of coordinates keeps you from writing one that lies outside. By default torch
# does not look, because looking costs time, and a later operation may then read memory that is not its own, or crash.
# The setup cell said: look, please. (Without a decision, torch reminds you once. That is the first of the three
# notices.)

# %%
try:
    torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (2,))
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes with the review.** Board: the 2 × 3 table, three fingers pointing at entries, and the list
# growing below. R2 prepares the section on duplicates: write `index_add` beside it. Common answers to 6.1: the
# indices lying on their side (`nonzero()` without as_tuple), `x > 0`, flat positions.

# %% [markdown] concepts=["S-04", "S-12"]
# ## Borders instead of rows
#
# In the list above the rows come in order: 0, 1, 1. Said once a row, that is shorter: row 0 has the entries from 0 up
# to 1, row 1 those from 1 up to 3. So the **borders** 0, 1, 3 are enough. This is **CSR**, *compressed sparse row*:
#
# - `crow_indices`: the borders ("row starts" in the picture below), one more than there are rows; row r owns the entries
#   `crow[r]` up to, and without, `crow[r + 1]`;
# - `col_indices`: the column of each entry;
# - `values`.
#
# CSR is for matrices. (Torch marks it as "beta" and says so once; that is the second of the three notices.)

# %% concepts=["S-04", "S-12", "S-10"]
c = torch.sparse_csr_tensor(torch.tensor([0, 1, 3]), torch.tensor([2, 0, 2]), torch.tensor([3.0, 4.0, 5.0]), (2, 3))
print(c)
print("row 1 owns entries", c.crow_indices()[1].item(), "up to", c.crow_indices()[2].item())
sparse_layouts(x, "x")

# %% [markdown]
# **Rule.** CSR: a border before each row and one at the end, then a column and a value for each entry. An empty row
# has two equal borders.
#
# {{card csr_parts}}


# %% exercise="csr_parts"
def csr_parts(x):
    """The parts of the matrix x in CSR: (crow, col, values), for what is not zero in x.

    crow has shape (rows + 1,) and col shape (entries,), both int64; values has the dtype of x. There may be empty rows
    anywhere, no rows at all, or no columns.
    """
    ### BEGIN SOLUTION
    kept = x != 0
    start = torch.zeros(1, dtype=torch.int64, device=x.device)
    return torch.cat([start, kept.sum(1).cumsum(0)]), x.nonzero(as_tuple=True)[1], x[kept]
    ### END SOLUTION


# %% check="csr_parts"
check(csr_parts)

# %% [markdown] concepts=["S-08"]
# What are borders good for? For everything that goes row by row: the entries of a row lie side by side. Take the sum of
# each row. Torch can do it, in its own way:

# %% concepts=["S-08"]
try:
    c.sum(1)
except RuntimeError as error:
    print("c.sum(1):", error)
print("with keepdim=True: a matrix of one column,", c.sum(1, keepdim=True).layout)

# %% [markdown] concepts=["S-04"]
# Now write it yourself, so that it costs what the *entries* cost. A matrix of 16 rows and 4000 columns has 64 000
# cells; with 32 entries, 32 additions are enough. Three tools help: differences of neighbours, repeating, and adding by
# index, where an index that comes twice adds up.

# %%
print("diff:             ", torch.tensor([0, 1, 3]).diff())
print("repeat_interleave:", torch.repeat_interleave(torch.tensor([7, 8]), torch.tensor([1, 2])))
print("index_add:        ", torch.zeros(2).index_add(0, torch.tensor([1, 0, 1]), torch.tensor([3.0, 4.0, 5.0])))

# %% [markdown]
# **Rule.** Work on the values, and let the indices say where each result goes. Then the cost follows the entries. The
# check counts the bytes that your code asks for (objective 4).
#
# {{card row_sums}}


# %% exercise="row_sums"
def row_sums(c):
    """The sum of each row of the CSR matrix c, as a dense tensor of shape (rows,).

    The dtype is that of c, float32 or float64; an empty row has the sum 0. A NaN or an infinity shows in its own row
    only. No matrix is made dense.
    """
    ### BEGIN SOLUTION
    crow, values = c.crow_indices(), c.values()
    rows = torch.repeat_interleave(torch.arange(c.shape[0], device=crow.device), crow.diff())
    return values.new_zeros(c.shape[0]).index_add(0, rows, values)
    ### END SOLUTION


# %% check="row_sums"
check(row_sums)

# %% [markdown]
# **Where it breaks.** CSR is quick from row to row and slow from column to column: for column 2 you have to look at
# every entry. (There is a **CSC**, which compresses columns instead.) And adding a new entry moves everything after it.
# COO takes one more column at its end. That is why one collects in COO and computes in CSR.

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes.** Board: the list of 6.1, the rows struck out, borders drawn between the entries like fence
# posts. "Three fields need four posts." Common answers: counts instead of borders, no 0 in front, empty rows at the end
# lost by bincount. For 6.3 ask: what is the smallest number of additions? `c @ ones` is a fine answer.

# %% [markdown] concepts=["S-03"] facts=["F-58"]
# ## The same place twice
#
# Two people count words, each writes a list, and somebody puts the lists one behind the other. The same place now
# occurs twice. COO allows that, and it has a meaning: **the values of one place are added**.

# %% concepts=["S-03"] facts=["F-58"]
d = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3))
print("entries:", d._nnz(), "| coalesced:", d.is_coalesced())
print("dense:", d.to_dense().tolist())
print("after coalesce():", d.coalesce()._nnz(), "entry, value", d.coalesce().values().tolist())
sparse_layouts(d, "d")

# %% [markdown]
# To **coalesce** is to add what belongs together, and to sort: afterwards each place is stored once, row by row.
#
# {{question P1}}

# %%
predict("P1", "b")

# %% facts=["F-58"]
print("sum of the squared parts:       ", (d._values() ** 2).sum().item())
print("sum of the squares of the tensor:", d.square().sum().item())
try:
    d.values()
except RuntimeError as error:
    print("d.values():", error)

# %% [markdown] facts=["F-58"]
# `d.values()` and `d.indices()` refuse until you coalesce, and rightly so: the parts are not yet what they seem. The
# names with an underscore hand them out anyway. They are private; leave them to those who know what they do. (Only
# `_nnz()`, the number of entries, has no other name in torch, so this lecture uses it.)
#
# How does one find equal places? `unique` gives each column of a matrix once, sorted, and on request also the number
# under which each column of the original is found there:

# %%
columns, number = torch.tensor([[1, 0, 1], [2, 5, 2]]).unique(dim=1, return_inverse=True)
print("each place once:", columns.tolist())
print("the three columns are numbers", number.tolist())

# %% [markdown]
# **Rule.** Duplicates add up. A sum does not notice them, everything else does: coalesce first (objective 2).
#
# {{card coalesced_square}}


# %% exercise="coalesced_square"
def coalesced_square(indices, values, shape):
    """The elementwise square of a COO matrix that may store places several times: (indices, values), coalesced.

    indices has shape (2, entries), values (entries,); shape is (rows, columns). In the result each place stands once,
    row by row, also where its values add up to 0; values keep their dtype. No matrix is made dense.
    """
    ### BEGIN SOLUTION
    places, at = indices.unique(dim=1, return_inverse=True)
    sums = values.new_zeros(places.shape[1]).index_add(0, at, values)
    return places, sums**2
    ### END SOLUTION


# %% check="coalesced_square"
check(coalesced_square)

# %% [markdown]
# **Where it breaks.** Whether a tensor *is* coalesced depends on who made it, not on whether there are duplicates.
# A constructor does not look: what it builds from two entries or more counts as not coalesced.

# %%
fresh = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,))
print("no duplicates, and still coalesced =", fresh.is_coalesced())
print("from a dense tensor: coalesced =", x.to_sparse_coo().is_coalesced())

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Board: (1 + 2)² and 1² + 2². Where does it happen in earnest? Gradients of an embedding: a
# word that occurs twice in a batch is stored twice, and Adagrad squares it (next lecture). Common answers to 6.4:
# squares added (M26), the last one kept, places with the sum 0 thrown away.

# %% [markdown] concepts=["S-03", "S-04"]
# ## Does it pay?
#
# Fewer entries, less memory? Each of them brings its indices along.
#
# {{question P2}}

# %%
predict("P2", "c")

# %% [markdown]
# Move the number of entries, if you have a running kernel, and look for the point at which the bars are equal; else
# compare the four states. (In this picture values have 8 bytes, float64, so the point lies elsewhere: at one third for
# COO.)

# %%
explore_layouts(4, 6)

# %% [markdown]
# The **density** of a matrix is its entries, divided by its cells. Where a layout takes as many bytes as dense does,
# there is its **break-even**. One detail: torch turns the indices of COO into int64, whatever you pass. CSR keeps
# int32, if you ask for it.

# %%
short = torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([2, 0, 2], dtype=torch.int32), torch.ones(3)
print("CSR keeps", torch.sparse_csr_tensor(*short, (2, 3)).crow_indices().dtype)
two = torch.tensor([[0, 1], [2, 0]], dtype=torch.int32)
print("COO makes", torch.sparse_coo_tensor(two, torch.ones(2), (2, 3)).coalesce().indices().dtype)

# %% [markdown]
# **Rule.** Count values *and* indices: sparse pays below its break-even only (objective 3).
#
# {{card layout_bytes}}


# %% exercise="layout_bytes"
def layout_bytes(shape, nnz, dtype, index_dtype):
    """What a matrix takes in three layouts, and where the sparse ones begin to pay, as a dict.

    "dense", "coo", "csr": bytes of all numbers that are stored, for a matrix of this shape (rows, columns), with nnz
    entries of this dtype; index_dtype is that of the indices of CSR, those of COO are always int64. "coo_break_even",
    "csr_break_even": the density (a float) at which the layout takes exactly as many bytes as dense; 0.0 where it never
    takes fewer. There is at least one cell.
    """
    ### BEGIN SOLUTION
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    dense, borders = rows * columns * v, (rows + 1) * i
    return {
        "dense": dense,
        "coo": nnz * (v + 16),
        "csr": nnz * (v + i) + borders,
        "coo_break_even": v / (v + 16),
        "csr_break_even": max(0.0, (dense - borders) / ((v + i) * rows * columns)),
    }
    ### END SOLUTION


# %% check="layout_bytes"
check(layout_bytes)

# %% [markdown]
# When your check is green, let your function draw the picture for 100 × 100 numbers of float32:

# %% concepts=["S-04"]
densities = [n / 20 for n in range(21)]
sizes = [layout_bytes((100, 100), int(10_000 * p), torch.float32, torch.int64) for p in densities]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for name, style in (("dense", "-"), ("coo", "--"), ("csr", ":")):
    ax.plot(densities, [size[name] / 1000 for size in sizes], style, label=name)
ax.set(xlabel="density", ylabel="kilobytes", title="100 × 100 float32 in three layouts")
ax.legend()
alt = (
    "Kilobytes over density: dense is level at 40; COO and CSR rise in straight lines from nearly 0 to 200 and 121. "
    "COO crosses dense at a density of 0.2, CSR at 0.33."
)
show_figure(fig, alt)

# %% [markdown]
# **Where it breaks.** Memory is not time. A dense product reads numbers that lie side by side; a sparse one jumps from
# entry to entry. The cell below times both for one matrix at three densities: medians of many runs, and their spread
# (IQR, lecture 01). Where is the break-even on *your* machine?

# %% tags=["nbval-ignore-output"] reason="prints times"
generator = torch.Generator().manual_seed(0)
vector = torch.randn(1000, generator=generator)
for density in (0.01, 0.1, 0.5):
    dense = torch.randn(1000, 1000, generator=generator)
    dense[torch.rand(1000, 1000, generator=generator) > density] = 0
    timed = [
        Timer("m @ v", globals={"m": m, "v": vector}, num_threads=1).blocked_autorange(min_run_time=0.1)
        for m in (dense, dense.to_sparse_csr())
    ]
    texts = [f"{1e6 * t.median:8.1f} µs (IQR {1e6 * t.iqr:6.1f})" for t in timed]
    print(f"density {density:4}: dense {texts[0]}, CSR {texts[1]}")

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Collect guesses for P2 as a show of hands before anybody counts; "half" wins. Board: one
# entry drawn as five boxes of 4 bytes, four of them hatched. Common answers to 6.5: no indices at all (M25), int32 for
# COO, no + 1. Discuss: what is the density of *their* data?

# %% [markdown] concepts=["S-06"] facts=["F-56"]
# ## What keeps a zero zero
#
# sin(0) is 0, so the sine of a sparse tensor is sparse again: only the entries have to be computed. cos(0) is 1, and
# each of the cells that nobody stored would become a 1. Torch applies the first and refuses the second:


# %% concepts=["S-06"] facts=["F-56"]
def tried(what):
    """What a call gives; of an error its kind and its first words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.masked warns before it raises
            return what()
    except Exception as error:
        text = str(error).splitlines()[0]
        return f"{type(error).__name__}: {text[:62]}{'…' if len(text) > 62 else ''}"


for name in ("sin", "sqrt", "relu", "cos", "exp", "square"):
    call = getattr(torch, name)
    results = [tried(lambda call=call, t=t: call(t).layout) for t in (s, c)]
    print(f"{name:7} COO: {results[0]}\n        CSR: {results[1]}")

# %% facts=["F-56"]
print("s * 2 →", tried(lambda: (s * 2).layout))
print("s / 2 →", tried(lambda: (s / 2).layout))
print("s + 1 →", tried(lambda: s + 1))
print("s / s →", tried(lambda: s / s))

# %% [markdown]
# The square of a CSR tensor is refused, though 0² is 0: nobody has written it. And s / s would be 0 / 0 wherever
# nothing is stored, which is NaN in nearly every cell.
#
# **Rule.** A function keeps a tensor sparse exactly if f(0) is 0. Then f of the values is enough.
#
# Write this for any f, and for both layouts (objective 4). Two things are easy to forget: duplicates, and that an entry
# stays an entry when f makes a 0 of it. Here f is a function of your function; call it as `f(...)`.
#
# {{card on_entries}}


# %% exercise="on_entries"
def on_entries(f, s):
    """f applied to every element of the sparse tensor s, as a sparse tensor of the same layout; s stays as it is.

    f takes a dense tensor and returns one of the same shape, element by element (like torch.sin); s is COO, perhaps not
    coalesced, or CSR. The result stores the places that s stores, each once. If f(0) is not 0, raise a ValueError,
    whatever s holds. Nothing is made dense.
    """
    ### BEGIN SOLUTION
    s = s.coalesce() if s.layout == torch.sparse_coo else s
    if not (f(torch.zeros(1, dtype=s.dtype, device=s.device)) == 0).all():
        raise ValueError("f(0) is not 0: every cell would have to be stored")
    if s.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(s.indices(), f(s.values()), s.shape)
    return torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), f(s.values()), s.shape)
    ### END SOLUTION


# %% check="on_entries"
check(on_entries)

# %% [markdown]
# **Where it breaks.** "Zero is kept" is about *one* argument. Of two sparse tensors, a product stores what both store,
# a sum what either stores, so sums fill up as they go. And a dense tensor plus a sparse one is dense (the other way
# round, sparse plus dense, torch refuses):

# %%
one, other = x.to_sparse_coo(), torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]).to_sparse_coo()
print("entries:", one._nnz(), "and", other._nnz(), end=" | ")
print("of the product", (one * other)._nnz(), "| of the sum", (one + other)._nnz())
print("dense + sparse:", (torch.ones(2, 3) + one).layout)

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Let the class sort twenty functions by hand into "keeps" and "does not": sigmoid (0.5!),
# x², |x|, x + 1, log1p, expm1, tanh, cosh. Common answers to 6.6: f on the values without asking (M24), `f(s)` and
# torch's own error, through to_dense (M25).

# %% [markdown] concepts=["S-04"]
# ## A product that stays thin
#
# A matrix A of 100 000 texts and 100 000 words, ten words a text: a million entries, 12 MB of values and columns. Dense
# it would take 40 GB. A linear model on it is a product, A w, and training it needs two gradients: with respect to w,
# and sometimes to the entries of A. The result of `c @ x` is right, and so are both gradients. But what happens on the
# way back? The cell below writes down the largest dense tensor that comes up. (You need not be able to write such a
# thing; it watches each operation that torch carries out.)


# %%
class Largest(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the number of elements of the largest dense tensor that an operation returns."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.layout == torch.strided:
            self.elements = max(self.elements, result.numel())
        return result


def largest(product, rows, columns, entries):
    """The largest dense tensor in `product` forward, and backward to the entries and to the vector."""
    g = torch.Generator().manual_seed(1)
    crow = torch.arange(rows + 1) * (entries // rows)
    col = torch.arange(entries) * 7 % columns
    values = torch.randn(entries, generator=g, requires_grad=True)
    w = torch.randn(columns, generator=g, requires_grad=True)
    with Largest() as forward:
        y = product(crow, col.view(rows, -1).sort(1).values.flatten(), values, w)
    with Largest() as backward:
        y.sum().backward()
    return f"forward {forward.elements}, backward {backward.elements}"


def by_torch(crow, col, values, w):
    return torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, len(w))) @ w


print("torch's product, 200 × 1000, 400 entries:", largest(by_torch, 200, 1000, 400))

# %% [markdown]
# Backward, torch forms all 200 · 1000 = 200 000 products of a gradient with an element of w, and keeps the 400 that
# belong to entries. For our texts, those would be 40 GB. It need not be so: entry (r, k) meets w[k] and nothing else.
#
# **Rule.** Gather, multiply, add: bring each entry what it meets, and add up by row. Each of the three steps has a
# gradient that is just as thin.
#
# There is a second gain. A NaN in w that no entry meets stays out, while a dense product would meet it with a 0, and 0
# times NaN is NaN (objective 4).
#
# {{card csr_times}}


# %% exercise="csr_times"
def csr_times(crow, col, values, x):
    """The product of a CSR matrix, given by its parts, with the vector x, with gradients for values and for x.

    crow has shape (rows + 1,) and col shape (entries,), int64 or int32; values (entries,) and x (columns,) have one
    float dtype, which is that of the result, of shape (rows,). An element of x that no entry meets has no influence,
    even if it is NaN. Nothing of the size of the matrix is made, forward or backward.
    """
    ### BEGIN SOLUTION
    rows = torch.arange(len(crow) - 1, device=crow.device)
    rows = torch.repeat_interleave(rows, crow.diff(), output_size=len(col))
    return values.new_zeros(len(crow) - 1).index_add(0, rows, values * x[col])
    ### END SOLUTION


# %% check="csr_times"
check(csr_times)

# %% [markdown]
# When your check is green: your product at work. First its size, then a training. 400 texts, 100 words, 8 words in
# each; some hidden weights say how good a text is, and the model has to find them. Each step is the one of lecture 04:
# loss, backward, a small step against the gradient.

# %%
print("your product, 200 × 1000, 400 entries:", largest(csr_times, 200, 1000, 400))

# %%
generator = torch.Generator().manual_seed(0)
words = torch.stack([torch.randperm(100, generator=generator)[:8].sort().values for _ in range(400)]).flatten()
borders, counts = torch.arange(401) * 8, torch.ones(3200)
hidden = torch.randn(100, generator=generator)
quality = csr_times(borders, words, counts, hidden)

w, losses = torch.zeros(100, requires_grad=True), []
for _step in range(150):
    loss = ((csr_times(borders, words, counts, w) - quality) ** 2).mean()
    losses.append(loss.item())
    loss.backward()
    with torch.no_grad():
        w -= 1.0 * w.grad
        w.grad = None
print(f"loss at first {losses[0]:.2f}, after 50 steps {losses[50]:.4f}, at last {losses[-1]:.0e}")
print(f"largest error of a weight: {(w - hidden).abs().max():.3f}")

fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
ax.semilogy(losses)
ax.set(xlabel="step", ylabel="mean squared error", title="A linear model on a sparse matrix")
alt = (
    "Mean squared error over 150 steps, on a logarithmic axis: it falls steadily from about 8 to a ten-millionth, first "
    "quickly, then in a nearly straight line."
)
show_figure(fig, alt)

# %% [markdown]
# **Where it breaks.** The gradient for w is dense: `x[col]` reads a few places, and its gradient has one number for
# *every* place of x, nearly all of them 0. With millions of words that is the largest thing in the whole step. A table
# of words that is read by index (`torch.nn.Embedding`) gives a COO gradient instead, if it is made with `sparse=True`;
# the next lecture is about what an optimiser can do with it.

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes; the exercise can be homework.** Board: one row of A above w, lines from each entry down
# to its word. Common answers to 6.7: a dense matrix in between, `sparse_csr_tensor(...) @ x` (right, but fat on the way
# back: praise it, then show the number), `x[rows]`. Ask: which of the three steps makes the gradient of x dense?

# %% [markdown] concepts=["S-01", "S-02", "S-05"]
# ## Zero, missing, not stored
#
# Three things that look alike in a picture. **Zero** is a number: the film got no stars. **Missing** is no number: she
# has not seen it. **Not stored** is a way of keeping things: this layout has no entry there. A plain sparse tensor has
# only two of them, because not stored *means* zero. People have used it for "missing" all the same, and what comes of
# that you see next.
#
# {{question P3}}

# %%
predict("P3", "a")

# %% concepts=["S-09"]
a = torch.tensor([0.0, 2.0]).to_sparse()
b = torch.sparse_coo_tensor([[0, 1]], [0.0, 2.0], (2,))
print("converted:", a._nnz(), "entry | built:", b._nnz(), "entries")
print("equal when dense:", torch.equal(a.to_dense(), b.to_dense()))
as_row = torch.sparse_coo_tensor([[0, 0], [0, 1]], [0.0, 2.0], (1, 2))  # b once more, as a matrix of one row
pictures = sparse_layouts(a.to_dense()[None], "a"), sparse_layouts(as_row, "b")
stacked("A zero that is not stored, and one that is", pictures)

# %% [markdown] concepts=["S-01", "S-02", "S-05"]
# A stored zero is called an **explicit** zero. (So nnz counts entries, not nonzeros.)
#
# A **MaskedTensor** says which elements are specified, in lecture 05's way, and it may be sparse, too. Then its data
# and its mask are both sparse. There are two ways to get one: convert a dense one, or build it from two sparse tensors.

# %% concepts=["S-05", "S-03", "S-04"]
k = torch.tensor([[False, False, True], [False, False, True]])
dense = masked_tensor(x, k)
m = dense.to_sparse_coo()
print(m)
print("data:", m.get_data().indices().tolist(), m.get_data().values().tolist())
print("mask:", m.get_mask().indices().tolist(), m.get_mask().values().tolist())
r = dense.to_sparse_csr()
print("CSR: borders", r.get_data().crow_indices().tolist(), "columns", r.get_data().col_indices().tolist())
mask_grid(x, k)

# %% [markdown] concepts=["S-01", "S-02"]
# Data and mask have to fit each other. Here is what happens if they do not, in `maskedtensor_ref` and in torch's own
# prototype, `torch.masked`. (The prototype reminds you of its state at every single tensor. That is the third of the
# three notices.)

# %% concepts=["S-01", "S-02"]
packages = {"maskedtensor_ref": masked_tensor, "torch.masked": torch.masked.masked_tensor}
pairs = {
    "layouts differ": (x.to_sparse_coo(), k),
    "sizes differ": (x, k[:1]),
    "CSC": (x.to_sparse_csc(), k.to_sparse_csc()),
}
for what, (data, mask) in pairs.items():
    for package, make in packages.items():
        print(f"{what:15} {package:17} {tried(lambda make=make, data=data, mask=mask: make(data, mask))}")

# %% [markdown] concepts=["S-01", "S-02", "S-09"]
# **Rule.** Data and mask have the same layout and the same size, and they store the same places. A False is stored as
# well as a True.
#
# The three things, told apart: an entry with True is specified, be it 0 or not; an entry with False is missing; what is
# not stored is missing, too (objectives 5 and 6).
#
# {{card coo_masked}}


# %% exercise="coo_masked"
def coo_masked(indices, values, specified, shape):
    """A COO MaskedTensor of this shape that stores `values` at `indices`, each specified or not as `specified` says.

    indices has shape (dimensions, entries), values and specified, which is bool, (entries,); no place occurs twice.
    Data and mask store the same places, those of `indices`. A value may be 0, and where it is not specified anything.
    """
    ### BEGIN SOLUTION
    data = torch.sparse_coo_tensor(indices, values, shape)
    return masked_tensor(data, torch.sparse_coo_tensor(indices, specified, shape))
    ### END SOLUTION


# %% check="coo_masked"
check(coo_masked)

# %% [markdown] concepts=["S-09"]
# **Where it breaks.** What if the mask stores a place that the data does not? `maskedtensor_ref` refuses: it has no value
# for it. `torch.masked` makes one up. What the mask calls specified, it fills with zeros that nobody ever stored:

# %% concepts=["S-09"]
for package, make in packages.items():
    result = tried(lambda make=make: make(x.to_sparse_coo(), (~k).to_sparse_coo()))
    print(f"{package}: {result if isinstance(result, str) else result.to_dense()}")

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes.** Board: three boxes, "0", "--" and an empty dotted one; ask for a story of each (stars,
# not seen, no row in the table). Common answers to 6.8: mask from `values != 0` (M24), only the True places stored, the
# mask inverted (M23). P3 looks easy; ask afterwards what `b.coalesce()` stores (two: coalesce does not look at numbers).

# %% [markdown] concepts=["S-09"]
# ## Same print, other entries
#
# Two MaskedTensors that print the same need not store the same. Here one was converted, and the other built with an
# entry that is False.
#
# {{question P4}}

# %%
predict("P4", "b")

# %% concepts=["S-09"]
places = torch.tensor([[0, 1, 1], [2, 0, 2]])
threes = torch.sparse_coo_tensor(places, torch.tensor([3.0, 4.0, 5.0]), (2, 3))
held = torch.sparse_coo_tensor(places, torch.tensor([True, False, True]), (2, 3))
for package, make in packages.items():
    converted, built = make(x, k).to_sparse_coo(), make(threes, held)
    print(package, "| entries:", converted.get_data()._nnz(), "and", built.get_data()._nnz())
    print("  equal print:", repr(converted.to_dense()) == repr(built.to_dense()))
    added = tried(lambda a=converted, b=built: a + b)
    print("  sum:", added if isinstance(added, str) else added.to_dense())

# %% [markdown] concepts=["S-09"]
# For `maskedtensor_ref` a layout is how things are kept, not what they are: equal masks may be stored differently. In
# `torch.masked` the entries are compared one by one. There you have to bring both to the same entries first;
# `sparse_mask` picks from a dense tensor the entries that a sparse mask stores, zeros included:

# %% concepts=["S-09"]
picked = torch.tensor([[0.0, 0.0, 0.0], [4.0, 0.0, 5.0]]).sparse_mask(k.to_sparse_coo())
print("indices", picked.indices().tolist(), "values", picked.values().tolist(), "← the 0 is an entry")

# %% [markdown] facts=["F-54"]
# This brings us to the most expensive line of this lecture. Somebody has a sparse gradient, wants a mask of what it
# touches, and writes `grad.to_dense() != 0`. It is short, it makes the whole thing dense, and it forgets an entry whose
# gradient *is* 0:

# %% facts=["F-54"]
grad = torch.sparse_coo_tensor([[0, 1]], [0.0, 2.0], (3,))
print("stored places:", grad._nnz(), "| True in grad.to_dense() != 0:", int((grad.to_dense() != 0).sum()))

# %% [markdown]
# **Rule.** Which places are stored, the indices say. Numbers never do (objectives 5 and 6).
#
# {{card by_structure}}


# %% exercise="by_structure"
def by_structure(s):
    """A MaskedTensor with the values and in the layout of s, in which exactly the places that s stores are specified.

    s is COO, perhaps not coalesced, or CSR. Data and mask store the places of s, each once, whatever the numbers there
    are: 0, NaN and infinity too. Nothing is made dense.
    """
    ### BEGIN SOLUTION
    if s.layout == torch.sparse_coo:
        s = s.coalesce()
        return masked_tensor(s, torch.sparse_coo_tensor(s.indices(), torch.ones_like(s.values()).bool(), s.shape))
    yes = torch.ones_like(s.values(), dtype=torch.bool)
    return masked_tensor(s, torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), yes, s.shape))
    ### END SOLUTION


# %% check="by_structure"
check(by_structure)

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes; the exercise can be homework.** The line `grad.to_dense() != 0` comes back in lecture
# 07, where it loses an update: keep the sentence "numbers never do" on the board. Common answers to 6.9: exactly this
# line, a mask that stores False for zeros, always COO, no coalesce.

# %% [markdown] concepts=["S-10", "S-11"] facts=["F-51"]
# ## From one layout to another
#
# `to_dense`, `to_sparse_coo`, `to_sparse_csr`: a MaskedTensor has the same three as a tensor. How do you ask which layout
# it has?
#
# {{question P5}}

# %%
predict("P5", "c")

# %% concepts=["S-11"] facts=["F-51"]
print("tensor, CSR: ", "is_sparse", c.is_sparse, "| is_sparse_csr", c.is_sparse_csr, "| layout", c.layout)
for package, make in packages.items():
    v = make(x, k).to_sparse_csr()
    print(f"{package}, CSR: is_sparse {v.is_sparse} | is_sparse_csr() {v.is_sparse_csr()} | layout {v.layout}")

# %% [markdown] facts=["F-51"]
# Two traps in one line: the meaning differs, and `is_sparse_csr` is an attribute of a tensor but a method of a
# MaskedTensor. (Without brackets, a method is always true.) `.layout` means the same everywhere: use it.
#
# **Rule.** A conversion changes how elements are kept, never which of them are specified. Ask `.layout`.
#
# {{card in_layout}}


# %% exercise="in_layout"
def in_layout(m, layout):
    """The MaskedTensor m with the same elements in another layout: torch.strided, torch.sparse_coo or torch.sparse_csr.

    m is a matrix in any of the three; what is not specified may hold anything. A 0 or a NaN that is specified stays
    specified. A sparse result stores what is specified, and nothing else. (A sparse m does, too.)
    """
    ### BEGIN SOLUTION
    if layout == torch.sparse_coo:
        return m.to_sparse_coo()
    return m.to_sparse_csr() if layout == torch.sparse_csr else m.to_dense()
    ### END SOLUTION


# %% check="in_layout"
check(in_layout)

# %% [markdown] concepts=["S-06", "S-07", "S-08"] facts=["F-49"]
# What can a sparse MaskedTensor do, once you have it? Functions of one argument, also those that do not keep zero, for
# here nothing is claimed about the rest; operations of two, if their masks are equal; and reductions. One of the
# questions is whether all of them work.
#
# {{question P6}}

# %%
predict("P6", "b")

# %% concepts=["S-06", "S-07", "S-08"] facts=["F-49"]
both = torch.tensor([[False, True, False], [False, False, True]])
left, right = torch.tensor([[0.0, 20.0, 0.0], [0.0, 0.0, 40.0]]), torch.tensor([[0.0, 3.0, 0.0], [0.0, 0.0, 5.0]])


def shown(result):
    """The specified elements of a sparse or dense MaskedTensor as a list."""
    result = tried(result)
    if isinstance(result, str):
        return result
    result = result.to_dense() if result.layout != torch.strided else result
    return [round(v, 4) for v in result.get_data()[result.get_mask()].tolist()]


for package, make in packages.items():
    m = make(x, k).to_sparse_coo()
    p, q = make(left, both).to_sparse_coo(), make(right, both).to_sparse_coo()
    print(package)
    print("  sin(m)    ", shown(m.sin))
    print("  cos(m)    ", shown(m.cos))
    print("  p / q     ", shown(lambda p=p, q=q: p / q))
    print("  p * q     ", shown(lambda p=p, q=q: p * q))
    print("  m.sum()   ", shown(m.sum))
    print("  m.amin()  ", shown(m.amin))
    print("  m.sum(1)  ", shown(lambda m=m: m.sum(dim=1)))

# %% [markdown] facts=["F-57"]
# **Where it breaks.** In the prototype: several conversions, writing in place, and some answers that are wrong without a
# word. The first lines below try three of them, and `add_` of dense ones, which works, for comparison. (In the last line 8
# is divided by the *three* entries that are stored, of which one is False.) The list after that is kept by the package
# itself, with its reasons.

# %% concepts=["S-10"] facts=["F-57"]
for package, make in packages.items():
    print(package)
    print("  CSR to COO      ", shown(lambda make=make: make(x, k).to_sparse_csr().to_sparse_coo()))
    print("  add_ dense      ", shown(lambda make=make: make(x, k).add_(make(x, k))))
    print("  add_ COO        ", shown(lambda make=make: make(x, k).to_sparse_coo().add_(make(x, k).to_sparse_coo())))
    print("  mean of 3 and 5 ", shown(lambda make=make: make(threes, held).mean()))

# %%
for known in DIFFERENCES:
    if "COO" in known.call or "CSR" in known.call:
        print(f"{known.call}\n  torch.masked: {known.peer}\n  maskedtensor_ref: {known.here}, because {known.reason}")

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** P5: have them print `c.is_sparse_csr` and `m.is_sparse_csr` without brackets. Common
# answers to 6.10: fill with 0 and keep what is not 0 (M24), NaN as a mark, reading get_data() under the mask (M22). The
# mean is worth a minute: 8 / 3 looks harmless, and there are two numbers in it.

# %% [markdown] concepts=["A-09"] facts=["F-50"]
# ## Blocks
#
# Sometimes entries come in groups: 2 × 2, 16 × 16. **BSR**, *block sparse row*, is CSR with tiles in place of numbers:
# one index for a whole tile, and all its numbers, zeros too.

# %% concepts=["A-09"]
tiles = torch.zeros(4, 4)
tiles[:2, 2:] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
tiles[3, 0] = 5.0
t = tiles.to_sparse_bsr((2, 2))
print("borders", t.crow_indices().tolist(), "columns", t.col_indices().tolist())
print("values ", t.values().tolist())

# %% [markdown]
# Of eight stored numbers five are not zero, so the tiles are filled to 5/8. Are tiles worth it? They save indices and
# store zeros: it depends on how full they are.
#
# **Rule.** BSR pays where tiles are full. Count before you choose (objective 3).
#
# {{card block_report}}


# %% exercise="block_report"
def block_report(x, block):
    """Whether the dense matrix x is worth storing in tiles of block × block numbers, as a dict.

    "blocks": how many tiles hold something that is not zero; "fill": numbers that are not zero, divided by the cells of
    those tiles, 1.0 if there are none; "csr", "bsr": bytes in both layouts, with the element size of x and int64
    indices; "bsr_pays": whether BSR takes fewer. If the tiles do not cover x exactly, raise a ValueError.
    """
    ### BEGIN SOLUTION
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError(f"tiles of {block} × {block} do not cover {rows} × {columns}")
    kept = (x != 0).reshape(rows // block, block, columns // block, block)
    blocks, nnz, v = int(kept.any(3).any(1).sum()), int(kept.sum()), x.element_size()
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * (block**2 * v + 8) + (rows // block + 1) * 8
    fill = nnz / (blocks * block**2) if blocks else 1.0
    return {"blocks": blocks, "fill": fill, "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}
    ### END SOLUTION


# %% check="block_report"
check(block_report)

# %% [markdown] concepts=["A-09"] facts=["F-50"]
# **Where it breaks.** Five sparse layouts, and each operation has to be written for each of them. Here is what works on
# the torch that is installed, and what a MaskedTensor takes:

# %% concepts=["A-09"] facts=["F-50"]
layouts = {
    "COO": x.to_sparse_coo,
    "CSR": x.to_sparse_csr,
    "CSC": x.to_sparse_csc,
    "BSR": lambda: x.to_sparse_bsr((1, 1)),
    "BSC": lambda: x.to_sparse_bsc((1, 1)),
}
calls = {
    "sin(s)": torch.sin,
    "s * s": lambda s: s * s,
    "s @ v": lambda s: s @ torch.ones(3),
    "dense.add_(s)": lambda s: torch.zeros(2, 3).add_(s),
    "masked_tensor": lambda s: masked_tensor(s, s.bool()),
}
print(" " * 14, *(f"{name:5}" for name in layouts))
for name, call in calls.items():
    works = [not isinstance(tried(lambda call=call, make=make: call(make())), str) for make in layouts.values()]
    print(f"{name:14}", *("yes  " if yes else "no   " for yes in works))

# %% [markdown] concepts=["A-09"]
# Look at `dense.add_(s)`: a parameter that is dense, and a gradient that is sparse. For the operation it does not matter
# *how* the gradient is stored. What should matter is which of its elements there are. That is the thought behind
# MaskedTensor, and the subject of the next lecture: keep **what is specified** apart from **how it is stored**.

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes; the exercise can be homework.** Board: a 4 × 4 matrix, tiles drawn over it in colour and
# hatching. Common answers to 6.11: reshape(rows // b, columns // b, b, b) (runs of memory, not tiles: good for a
# question back to lecture 01), fill as the density of the whole, the borders of CSR. Numbers for those who doubt: 16 ×
# 16 tiles on a GPU are full or nothing.

# %% [markdown]
# ## Recap
#
# - COO: indices of shape (dimensions, entries), and values. CSR: borders of rows, columns, values.
# - Duplicates in COO add up. Coalesce before anything that is not a sum.
# - Count values *and* indices. COO of float32 pays below one fifth, CSR below one third; in time, measure.
# - A function keeps a tensor sparse exactly if it keeps zero.
# - Gather, multiply, add: a product whose gradients are thin, too.
# - Zero, missing, not stored: three things. Which places are stored, the indices say; numbers never do.
# - Data and mask: same layout, same size, same places.
# - A layout is how elements are kept. Ask `.layout`, and expect that not everything is written for all of them.
#
# **Words.** *Dense, strided*: a place for every element. *Sparse*: entries only. *COO*: coordinates and values. *CSR,
# CSC*: compressed rows, columns. *BSR, BSC*: the same with tiles. *Entry*: a place that is stored, with its value.
# *nnz*: the number of entries. *Borders*: where each row starts and the last one ends. *Coalesce*: add the values of
# equal places, and sort. *Density*: entries, divided by cells. *Break-even*: the density at which two layouts take the
# same. *Explicit zero*: an entry whose value is 0. *Missing*: no value; a False in the mask, or nothing stored in a
# sparse one.
#
# **To read on** (not needed for the course): torch's pages on sparse layouts and on masked tensors,
# docs.pytorch.org/docs/stable/sparse.html and docs.pytorch.org/docs/stable/masked.html.

# %%
print(check.progress())

# %% [markdown]
# Next: **07 · Adagrad with masked gradients**. A gradient that is nearly all missing, and an optimiser that has to know
# the difference between that and zero.

# %% [markdown] tags=["instructor"]
# **Instructor.** If time is short, leave out blocks (6.11) and the
# timing; lecture 07 needs coalescing (6.4), masks from structure (6.9) and the sentence on storage and meaning. Ask at
# the end, without notes: "three cells print as 0; what may each of them be?"
