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

# %% [markdown] concepts=["A-01"]
# # 07 · Adagrad with masked gradients
#
# A table of a million words, and a sentence of ten. After one step of training, ten rows have a gradient and all the
# others have *none*. None is not zero, and this lecture is about the difference: in what an optimiser computes, in
# what it writes, and in what it costs. You need masks (lecture 05), sparse layouts (06), and from the earlier ones
# in-place writing, indices and `backward`. After it you can
#
# 1. **derive** Adagrad's step and write it for plain tensors;
# 2. write it for a **sparse** gradient, and say why duplicates are added before they are squared;
# 3. write it for a **masked** gradient, so that nothing under the mask matters;
# 4. tell three meanings of a **zero** apart, and where **eps** matters;
# 5. **train** an embedding in which only used rows move, and say what stock optimisers do with masked gradients;
# 6. **measure** what elegance costs.
#
# {{times}}

# %% setup=true
import warnings

import matplotlib.pyplot as plt
import torch
import torch.masked
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.benchmark import Timer

import maskedtensor_ref
from autograder.check import Checker
from lecture_pictures import adagrad_row_map, explore_adagrad, mask_grid, show_figure, sparse_layouts
from maskedtensor_ref.optim import MaskedAdam

check = Checker("07_adagrad")
predict, hint = check.predict, check.hint

# What these three lines are for is said where sparse tensors first appear.
torch.sparse.check_sparse_tensor_invariants.enable()
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
warnings.filterwarnings("ignore", "The PyTorch API of MaskedTensors is in prototype", UserWarning)

# %% [markdown]
# ## From the earlier lectures
#
# Answer from memory, without looking back. Put a letter, in quotes, in place of each `...`, and run the cell.
#
# {{question R1}}
#
# {{question R2}}
#
# {{question R3}}

# %%
predict("R1", "b")
predict("R2", "b")
predict("R3", "a")

# %% [markdown] concepts=["A-04"]
# ## A step size for each element
#
# Gradient descent subtracts lr · gradient, with one **learning rate** lr for all. But a frequent word gets a thousand
# gradients while a rare one gets three. So give each element a step of its own. Two wishes lead to the formula:
#
# - The *unit* of the gradient must not matter: a gradient 1000 times as large is to make the same step. So divide by
#   something that grows like the gradient.
# - Who has moved much moves less from now on. So divide by the *whole history*: add up all squared gradients, and take
#   the root, which brings the unit of a gradient back.
#
# This is **Adagrad**. The sum is its **state**; a tiny **eps** keeps 0 / 0 away.
#
# **Rule.** state ← state + grad², then param ← param − lr · grad / (√state + eps). For each element by itself.
#
# The cell shows both wishes come true with a gradient that stays the same. Then write the step, *in place*: the
# caller's tensors change (objective 1).
#
# {{card dense_step}}

# %% concepts=["A-04"]
for gradient in (1.0, 1000.0):
    state, steps = 0.0, []
    for _ in range(5):
        state += gradient**2
        steps.append(f"{0.1 * gradient / state**0.5:.4f}")
    print(f"gradient {gradient:6}: steps", *steps)


# %% exercise="dense_step"
def dense_step(param, state_sum, grad, lr, eps):
    """One step of Adagrad, in place: state_sum and param are written to. Nothing is returned.

    param, state_sum and grad are tensors of one shape and a float dtype; lr and eps are numbers. grad stays as it is.
    eps is added to the root, not under it.
    """
    ### BEGIN SOLUTION
    state_sum.addcmul_(grad, grad)
    param.addcdiv_(grad, state_sum.sqrt().add_(eps), value=-lr)
    ### END SOLUTION


# %% check="dense_step"
check(dense_step)

# %% [markdown]
# torch has the same step in `torch.optim.Adagrad`. Twenty steps of yours and twenty of torch's, from the same start:

# %%
random = torch.Generator().manual_seed(0)
first, grads = torch.randn(3, 4, generator=random), torch.randn(20, 3, 4, generator=random)
mine, state, theirs = first.clone(), torch.zeros(3, 4), torch.nn.Parameter(first.clone())
adagrad = torch.optim.Adagrad([theirs], lr=0.1, eps=1e-10)
for each in grads:
    dense_step(mine, state, each, 0.1, 1e-10)
    theirs.grad = each
    adagrad.step()
print("equal up to rounding:", torch.allclose(mine, theirs))

# %% [markdown]
# **Where it breaks.** A sum of squares never becomes smaller. After long training all steps are tiny, also where they
# should not be; Adam, later in this lecture, lets old squares fade instead.

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes with the review.** Board: two elements, one with gradients 1, 1, 1, 1 and one with 0, 0, 0, 1;
# let the class fill in state and step. Common answers: eps under the root, the step before the state, `param = param -
# ...` (nothing happens outside), one norm for the whole tensor. Ask: what is the first
# step always? (lr times the sign.)

# %% [markdown] concepts=["A-02"]
# ## A gradient with holes
#
# An **embedding** is a table with one row of numbers for each word; looking a word up is taking its row. Only rows that
# were looked up take part in the loss. With `sparse=True` the gradient says so: it is a COO tensor (lecture 06) whose
# entries are whole rows. (Such a COO tensor, sparse in its first dimension and dense in the other, is called hybrid.)
# `from_pretrained` makes a table of numbers that we have; unless we say `freeze=False`, they are not trained.

# %% concepts=["A-02"]
table = torch.nn.Embedding.from_pretrained(torch.zeros(6, 2), freeze=False, sparse=True)
words = torch.tensor([1, 4, 1])
(table(words) * torch.tensor([[1.0, 2.0], [0.5, -1.0], [1.0, 1.0]])).sum().backward()
print(table.weight.grad)

# %% [markdown]
# Three entries for a table of six rows; word 1 was looked up twice and stands there twice. A dense gradient would hold
# twelve numbers, eight of them 0, and for a million words a few million zeros.
#
# *Three lines of the setup cell, as promised.* torch can check whether the indices of a sparse tensor lie inside its
# shape, and says a word of warning the first time if nobody has chosen whether it should. We have chosen: yes,
# `enable()`. It also says, once, that CSR is "in beta state", and with every MaskedTensor of `torch.masked` that this
# is a prototype. Both are true, and need not be repeated: those two messages are filtered, and no others.

# %% [markdown] concepts=["A-02", "A-03"] facts=["F-55"]
# Why do torch's optimisers need so many lines for such gradients? That was asked early (issue 1369). The answer that
# this lecture works out: a sparse layout was made for **compression**. What is not stored is 0, and storing it or not
# must make no difference. The optimiser uses it for something else, for **semantics**: what is not stored *is not
# there*, and nothing happens to it. That is what a mask says.
#
# Here is the example that we shall follow: eight parameters, a gradient for three of them. (The gradient is sparse, the
# parameter is dense. The published code has a comment here, "we don't support sparse gradients", which means sparse
# *parameters*.)

# %% concepts=["A-03"]
lr, eps = 0.1, 1e-10
indices = torch.tensor([[0, 1, 1], [2, 0, 2]])
values = torch.tensor([3.0, 4.0, 5.0])
grad = torch.sparse_coo_tensor(indices, values, (2, 4))
print(grad.to_dense())

# %% [markdown]
# {{question P1}}

# %%
predict("P1", "c")

# %% concepts=["A-03"]
adagrad_row_map(torch.arange(8.0).view(2, 4), torch.full((2, 4), 0.5), grad, lr, eps)

# %% [markdown]
# **Rule.** Compression: what is not stored is zero. Semantics: what is not stored is not there. Adagrad's sparse step
# means the second.
#
# **Where it breaks.** As long as the step of a zero gradient is zero, the two look alike. They part as soon as a zero
# gradient *does* something. You will meet three such places.

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Board: a tall table, three arrows into it from a sentence. Ask who would send a million
# zeros over a network. P1: the second choice is right for embeddings, so let its defenders speak. The word *semantics*
# frightens; "what it means" will do.

# %% [markdown] concepts=["A-07"]
# ## Twice in one place
#
# Word 1 was looked up twice, so its row is named twice, and the true gradient is the *sum*. For gradient descent it does
# not matter when you add. Adagrad squares:

# %% concepts=["A-07"]
pair = torch.tensor([1.0, 2.0])
twice = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), pair, (1,))
print("squared one by one, then added:", (pair**2).sum().item())
print("added, then squared:           ", (twice.coalesce().values() ** 2).item())

# %% [markdown]
# 1² + 2² = 5, but (1 + 2)² = 9. Which of the two is larger depends on signs.
#
# **Rule.** A step that is not linear in the gradient needs each place once: `coalesce()` first.
#
# Show it, and repair it (objective 2): construct a gradient for which squaring one by one gives too much, too little,
# or just the right total by luck; and return its right squares with it.
#
# {{card show_and_fix}}


# %% exercise="show_and_fix"
def show_and_fix(kind, n):
    """A COO gradient of shape (n,) that names a place twice, and its right squares: (grad, squares).

    kind says what comes out if the entries of grad are squared one by one and added up over everything: "too large",
    "too small", or "right by luck". n is at least 2. grad is not coalesced. squares is a COO tensor of shape (n,), too:
    it names each place of grad once, with the square of what stands there in sum.
    """
    ### BEGIN SOLUTION
    second = {"too large": -1.0, "too small": 1.0, "right by luck": 0.0}[kind]
    grad = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.tensor([1.0, second]), (n,))
    return grad, grad.coalesce().pow(2)
    ### END SOLUTION


# %% check="show_and_fix"
check(show_and_fix)

# %% [markdown]
# **Where it breaks.** Nobody warns you. The wrong state is a number like any other, and the training is merely a little
# worse.

# %% [markdown] tags=["instructor"]
# **Instructor, 8 minutes.** Board: (a + b)² = a² + b² + 2ab, and the sign of ab under it. Common answers: two *places*
# instead of two entries, the coalesced gradient returned, a dense one. The third kind has two solutions, an entry of 0
# or two places that make up for each other; collect both.

# %% [markdown] concepts=["A-05", "A-07", "A-08"] facts=["F-56", "F-58"]
# ## The sparse step, line by line
#
# This is what torch does with a COO gradient, slightly shortened. Beside your dense step it looks like another
# algorithm. Why is each line as it is?
#
# | line | why |
# | --- | --- |
# | `coalesce()` | the step squares, so each place once |
# | `pow(2)` on the values | 0² is 0: squaring keeps what is not stored out, in either meaning |
# | `sparse_mask(grad)` | takes out of the dense state what stands at the places of grad. This is no compression: it is a *mask* |
# | root and `eps` on the values | eps "should" be added to every element; here only to those that are there |
# | division on the values | 0 / 0 has no value, so torch refuses to divide sparse tensors |
# | a new sparse tensor | adding it to param writes to its places only, though a sparse *sum* with a dense tensor is dense |
#
# (`x.add_(y, alpha=a)` adds a · y to x, in place.)

# %% concepts=["A-05", "A-07"] facts=["F-58"]
param, state_sum = torch.arange(8.0).view(2, 4), torch.full((2, 4), 0.5)
g = grad.coalesce()
state_sum.add_(torch.sparse_coo_tensor(g.indices(), g.values().pow(2), g.shape))
std = state_sum.sparse_mask(g)
std_values = std.values().sqrt().add(eps)
param.add_(torch.sparse_coo_tensor(g.indices(), g.values() / std_values, g.shape), alpha=-lr)
print("state:", state_sum, "\nstd at the three places:", std_values, "\nparam:", param)

# %% [markdown] concepts=["A-08"]
# (`std` is torch's name for the root of the state.) Two of these lines rest on luck. **eps** is added to three
# elements, not to eight; it happens not to matter, because the others are not used. And `add_` is *meant* to give a
# dense result from sparse and dense; that it touches only the places of the sparse one is an optimisation on which we
# rely.
#
# The names, too. In the published version you read `grad._indices()` and `std._values()`. An underscore in front means
# private; these two also answer where a place is named twice. The public ones refuse:

# %% concepts=["A-07"] facts=["F-56", "F-58"]
tests = {
    "twice.indices()": lambda: twice.indices(),
    "sparse / sparse": lambda: g / g,
    "sparse + 1": lambda: g + 1,
    "sparse / number": lambda: g / 2,
    "sparse.sqrt()": lambda: g.sqrt(),
}
for name, test in tests.items():
    try:
        test()
        print(f"{name:16} works")
    except RuntimeError as error:
        print(f"{name:16} RuntimeError: {str(error).splitlines()[0][:76]}")

# %% [markdown]
# **Rule.** With a sparse gradient, compute on its values and write at its places.
#
# It need not take six lines. An index does the same as `sparse_mask` and the new sparse tensors: after `coalesce()`,
# `tuple(grad.indices())` is a list of places as in lecture 02, and no place comes twice (objective 2). No tensor as
# large as the parameter may come to be.
#
# {{card sparse_step}}


# %% exercise="sparse_step"
def sparse_step(param, state_sum, grad, lr, eps):
    """One step of Adagrad for a sparse COO gradient, in place. Nothing is returned.

    param and state_sum are dense; grad is a COO tensor of their shape, perhaps with duplicates; its entries are numbers
    or whole rows. Elements without an entry keep their bits, and no tensor of the size of param is made. grad stays as
    it is. Only public names: no _indices, no _values.
    """
    ### BEGIN SOLUTION
    grad = grad.coalesce()
    at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)
    ### END SOLUTION


# %% check="sparse_step"
check(sparse_step)

# %% [markdown]
# **Where it breaks.** `state_sum[at] += ...` is only right because no place comes twice (prediction R1). Leave out
# `coalesce()`, use the private names, and one of two gradients of a word is lost, without any error.

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes; the exercise can be homework.** Cover the right column of the table and ask for each
# line. Common answers: `state_sum.sqrt()` of everything (right, and as expensive as the dense step: the check counts
# bytes), `state = state_sum[at]` and writing into the copy (lecture 02), `values().mul_()` (writes into the gradient of
# the caller), no coalesce.

# %% [markdown] concepts=["A-06", "A-10", "A-11"]
# ## Say what you mean: the masked step
#
# The sparse step mixed two questions. *Where are the numbers kept?* is a question of storage. *Which of them are
# there?* is one of meaning. A MaskedTensor keeps them apart: it has a mask that gives the meaning, and a layout for the
# storage. So there can be masked meaning with dense storage, and dense meaning with sparse storage.
#
# With it, the authors of `torch.masked` wrote the step like this. No indices, no values:


# %% concepts=["A-06", "A-11"]
def published_step(param, state_sum, grad, masked_tensor):
    mask = (grad.to_dense() != 0).to_sparse()
    masked_grad = masked_tensor(grad.coalesce(), mask)
    state_sum = state_sum + masked_grad.pow(2).get_data()
    std = masked_tensor(state_sum.to_sparse(), mask).sqrt().add(eps)
    param = param.add((masked_grad / std).get_data(), alpha=-lr)
    return param, state_sum, std


start, half = torch.arange(8.0).view(2, 4), torch.full((2, 4), 0.5)
param2, state_sum2, std2 = published_step(start, half, grad, torch.masked.masked_tensor)
print(std2)

# %% [markdown] concepts=["A-12"]
# The dashes are what is not specified. It divides masked by masked, which sparse tensors refused. What comes out where
# both are missing? Nothing, and it says so: undefined / undefined is undefined.
#
# The state and the parameter agree with those of the sparse step. How well?
#
# {{question P2}}

# %%
predict("P2", "b")

# %% concepts=["A-12"] facts=["F-52"]
print("equal states:          ", torch.equal(state_sum, state_sum2))
print("parameters, up to 1e-6:", torch.allclose(param, param2, atol=1e-6))
print("param2:", param2)

# %% [markdown] facts=["F-52"]
# To be equal in every bit is another matter. The next cell's answer depends on your processor:

# %% concepts=["A-12"] facts=["F-52"] tags=["nbval-ignore-output"] reason="the last digit depends on the processor"
print("torch.equal(param, param2):", torch.equal(param, param2))
print("largest difference:", (param - param2).abs().max().item())

# %% [markdown] facts=["F-52"]
# Both compute 4 − 0.1 · q, where q is grad / std. One rounds 0.1 · q to float32 and then the difference; the other, on
# processors that can, multiplies and subtracts in *one* instruction and rounds once. Here are both, done by hand with
# float64, which is exact enough to play either:

# %% facts=["F-52"]
q = torch.tensor(4.0) / (torch.tensor(16.5).sqrt() + eps)
tenth = torch.tensor(0.1)
once = (4 - tenth.double() * q.double()).float()
twice_rounded = 4 - tenth * q
print(f"rounded once {once.item():.9f}, rounded twice {twice_rounded.item():.9f}")
print(f"difference {(twice_rounded - once).item():.2g}")

# %% [markdown] concepts=["A-11"] facts=["F-57"]
# **Rule.** Equal formulas do not give equal bits. Compare floats with `allclose` or `assert_close`.
#
# Why does the published step make new tensors everywhere? Because in-place addition of `torch.masked` fails for sparse
# storage: it leaves what was added side by side, not coalesced, and then refuses to look at it, as its message below
# says. The package `maskedtensor_ref`, which this course uses, can: its masks never change, so a write can only concern
# values.

# %% concepts=["A-11"] facts=["F-57"]
three = torch.sparse_coo_tensor(g.indices(), torch.ones(3, dtype=torch.bool), g.shape).coalesce()
for package in (torch.masked, maskedtensor_ref):
    m = package.masked_tensor(g, three)
    try:
        m.add_(m)
        print(f"{package.__name__:17} add_ works:", m.get_data().values().tolist())
    except RuntimeError as error:
        print(f"{package.__name__:17} RuntimeError: {str(error)[:48]}")

# %% [markdown] concepts=["A-11"]
# Now write the masked step yourself, as a formula, with `maskedtensor_ref` (objective 3). The gradient comes as a
# MaskedTensor, in COO or in dense storage: the same lines do for both. What you need:
#
# - arithmetic between masked and plain tensors is masked; `g * g`, `.sqrt()`, `+ eps` work as usual;
# - `m.to_tensor(0)` is plain, with 0 where nothing is specified. A change of 0 is no change;
# - `m.get_data()` gives what lies under the mask, too. There may be anything.
#
# {{card masked_step}}


# %% exercise="masked_step"
def masked_step(param, state_sum, grad, lr, eps):
    """One step of Adagrad for a masked gradient, out of place: (new_param, new_state, std).

    param and state_sum are plain tensors and stay as they are; grad is a MaskedTensor of maskedtensor_ref, strided or
    COO. new_param and new_state are plain and have the old values where grad is not specified. std, the root of the new
    state plus eps, is a MaskedTensor with the mask and the layout of grad. What stands under False must not matter.
    """
    ### BEGIN SOLUTION
    total = state_sum + grad * grad
    std = total.sqrt() + eps
    new_state = state_sum + (grad * grad).to_tensor(0)
    return param - (lr * grad / std).to_tensor(0), new_state, std
    ### END SOLUTION


# %% check="masked_step"
check(masked_step)

# %% [markdown] concepts=["A-12"]
# Your step on the example, and its `std`. Compare with the sparse step above:

# %% concepts=["A-12"]
masked_grad = maskedtensor_ref.masked_tensor(g, three)
param3, state_sum3, std3 = masked_step(start, half, masked_grad, lr, eps)
print("state:", state_sum3, "\nstd:", std3, "\nparam:", param3)

# %% [markdown]
# **Where it breaks.** `published_step` adds `get_data()` to the state. In its example everything that is stored is
# specified, so nothing bad comes along. Store a NaN under False, and the state is lost for ever.

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes.** Board: two axes, storage (dense, COO, CSR) and meaning (plain, masked); put every tensor
# of the lecture on it. P2: 2.4e-7 on most machines, 0 on a few. Common answers: get_data() (poison), a plain std,
# to_tensor(0) on the result instead of on the change (parameters become 0), a mask made anew with != 0.

# %% [markdown] concepts=["A-08"] facts=["F-54"]
# ## Three kinds of zero
#
# `published_step` takes its mask from the values: `grad.to_dense() != 0`. Suppose that one gradient is exactly 0, as it
# often is behind a ReLU. It is stored, for the word *was* looked up. Then look at the second row, first column:

# %% concepts=["A-08"] facts=["F-54"]
with_zero = torch.sparse_coo_tensor(indices, torch.tensor([3.0, 0.0, 5.0]), (2, 4)).coalesce()
print("stored entries:", with_zero.values().tolist())
print("mask from values:\n", published_step(start, half, with_zero, torch.masked.masked_tensor)[2], sep="")
m = maskedtensor_ref.masked_tensor(with_zero, three)
print("mask from structure:\n", (half + m * m).sqrt() + eps, sep="")

# %% [markdown]
# A stored zero is a value: "the gradient here is 0". `!= 0` made a hole of it. There are three readings:
#
# | reading | what counts |
# | --- | --- |
# | dense: not stored means 0 | every element |
# | masked: stored means specified | what is stored, zeros too |
# | by value: 0 means missing | what is not 0 |
#
# For the plain Adagrad step all three give the same parameter, as a gradient of 0 moves nothing. **Weight decay** brings
# it to light: to keep weights small, decay · param is added to the gradient before anything else. Now a gradient of 0
# makes a step. Which elements should it move? torch refuses to say:

# %% concepts=["A-08"]
p = torch.nn.Parameter(torch.ones(2, 4))
p.grad = with_zero
try:
    torch.optim.Adagrad([p], lr=0.1, weight_decay=0.1).step()
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# **Rule.** Zero, missing and not stored are three things. Take the mask from the structure, never from the values.
#
# Compute all three answers side by side (objective 4). It may cost dense tensors this time. Mind duplicates: 1.5 and
# -1.5 at one place are a stored 0.
#
# {{card three_meanings}}


# %% exercise="three_meanings"
def three_meanings(param, state_sum, grad, lr, eps, decay):
    """The parameter after one Adagrad step with weight decay, in three readings of a zero: (dense, stored, nonzero).

    param and state_sum are plain, grad is COO, perhaps with duplicates and stored zeros; its entries are numbers or
    whole rows. The gradient is grad + decay * param. dense: every element steps. stored: those with an entry in grad.
    nonzero: those whose gradient in grad, duplicates added, is not 0. The others stay as they are. Out of place.
    """
    ### BEGIN SOLUTION
    g = grad.to_dense()
    stored = torch.zeros_like(param, dtype=torch.bool)
    stored[tuple(grad.coalesce().indices())] = True
    total = g + decay * param
    new = param - lr * total / ((state_sum + total**2).sqrt() + eps)
    return new, torch.where(stored, new, param), torch.where(g != 0, new, param)
    ### END SOLUTION


# %% check="three_meanings"
check(three_meanings)

# %% concepts=["A-08"]
names = ("dense: everything", "stored: three", "nonzero: two")
for name, new in zip(names, three_meanings(start, half, with_zero, 0.1, eps, 0.5), strict=True):
    print(f"{name:18} moved {int((new != start).sum())} of 8:", [round(v, 3) for v in new.flatten().tolist()])

# %% [markdown]
# (The first element does not move in any of them: it is 0, and decays to 0.)
#
# **Where it breaks.** In the conversion. `to_dense()` forgets which zeros were stored, and `to_sparse()` of a dense
# tensor guesses: not one. There and back, a stored zero is gone.

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Ask for an example from life before the table: a form with 0 children, a form with that
# field empty, and a form that nobody handed in. Common answers: the mask from values (M24), `grad._values() != 0` entry
# by entry (two that cancel), decay beside the step instead of in the gradient.

# %% [markdown] concepts=["A-10"]
# ## A mask and a plain tensor
#
# Masked meaning needs no MaskedTensor. A tensor of values, a bool tensor, and care will do; you will meet this in most
# code that people write. The care is the hard part. Here is a step that looks careful:


# %% concepts=["A-10"]
def looks_careful(values, mask):
    g = values * mask  # what is not specified becomes 0
    state = 0.5 + g * g
    return -0.1 * g / state.sqrt()


row = torch.tensor([3.0, 7.0, 4.0])
mask_grid(row, torch.tensor([True, False, True]), poison=True, function=looks_careful, name="g", called="step")

# %% [markdown]
# The picture has put NaN under the mask and called the step twice. 0 · NaN is NaN. This **poison test** (replace what
# is hidden by NaN, by infinity, by 1e30; nothing may change) is how the check will treat you, too.
#
# **Rule.** Do not multiply by a mask: choose with `torch.where`, before you compute.
#
# {{card where_step}}


# %% exercise="where_step"
def where_step(param, state_sum, values, mask, lr, eps):
    """One step of Adagrad for a gradient given as plain values and a bool mask, in place. Nothing is returned.

    All four are tensors of one shape; True in mask means that the gradient is specified there and counts, a NaN too. What
    values holds under False must not matter, whatever it is. There, param and state_sum keep their bits, also where the
    state is 0 and eps is 0. values and mask stay as they are.
    """
    ### BEGIN SOLUTION
    g = torch.where(mask, values, 0)
    state_sum += g * g
    param -= torch.where(mask, lr * g / (state_sum.sqrt() + eps), 0)
    ### END SOLUTION


# %% check="where_step"
check(where_step)

# %% [markdown]
# **Where it breaks.** At the second choice. After the first `where` nothing bad is in the gradient, and yet 0 / 0 can
# come up again: no gradient, a state of 0, an eps of 0. Whoever keeps mask and values apart has to think of it at every
# line; a MaskedTensor does so for you.

# %% [markdown] tags=["instructor"]
# **Instructor, 10 minutes.** Let the class find a cure for the picture before the rule is read. Common answers:
# nan_to_num (1e30 stays), the mask the wrong way round, the state unmasked ("but param is right!"), one where too few.
# Quick ones: which of these mistakes would a MaskedTensor have made impossible?

# %% [markdown] concepts=["A-09"] facts=["F-50"]
# ## One step for every layout ★★★★
#
# The sparse step was written for COO. A gradient in CSR has no `indices()`; there is CSC, BSR and BSC besides, and each
# would need lines of its own. Code for each layout is what makes optimisers long. And a MaskedTensor? Neither package
# takes all of them:

# %% concepts=["A-09"] facts=["F-50"]
for layout in ("csr", "csc"):
    eye = getattr(torch.eye(2), f"to_sparse_{layout}")()
    for package in (torch.masked, maskedtensor_ref):
        try:
            package.masked_tensor(eye, eye.bool())
            print(f"{layout}, {package.__name__:17} works")
        except TypeError as error:
            print(f"{layout}, {package.__name__:17} TypeError: {str(error)[:47]}")

# %% concepts=["A-09"]
sparse_layouts(g, "grad")

# %% [markdown]
# **Rule.** A layout answers two questions: which values, and at which places? Ask both first; write the step once.
#
# Write one step for strided, COO and CSR (objectives 2 and 3). In CSR the places of a row lie between two neighbours in
# `crow_indices()`; `.diff()` gives how many, `repeat_interleave` repeats a number as often. Do not make anything dense.
#
# {{card any_layout_step}}


# %% exercise="any_layout_step"
def any_layout_step(param, state_sum, grad, lr, eps):
    """One step of Adagrad for a gradient in any of three layouts, in place. Nothing is returned.

    param and state_sum are dense; grad has their shape and is strided (then every element has a gradient), COO (perhaps
    with duplicates, with numbers or whole rows as entries) or CSR. With a sparse gradient, elements without an entry
    keep their bits, and no tensor of the size of param is made. grad stays as it is. Only public names.
    """
    ### BEGIN SOLUTION
    if grad.layout == torch.strided:
        at, g = ..., grad
    elif grad.layout == torch.sparse_csr:
        counts = grad.crow_indices().diff()
        rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        at, g = (rows, grad.col_indices()), grad.values()
    else:
        grad = grad.coalesce()
        at, g = tuple(grad.indices()), grad.values()
    state_sum[at] += g * g
    param[at] -= lr * g / (state_sum[at].sqrt() + eps)
    ### END SOLUTION


# %% check="any_layout_step"
check(any_layout_step)

# %% [markdown]
# **Where it breaks.** With the next layout. BSR stores blocks, and CSC goes by columns: you would add a branch for each,
# and so would everybody who writes an optimiser. That is the price of asking storage for meaning.

# %% [markdown] tags=["instructor"]
# **Instructor, 5 minutes; the exercise is homework for most.** Board: crow = 0, 1, 3; which rows do the three
# entries belong to? Common answers: row starts as row numbers, empty rows left out (ask for a matrix with an empty
# first row), rows and columns exchanged, to_dense().

# %% [markdown] concepts=["A-02"]
# ## Training with holes
#
# Enough of single steps. Take a table of vectors, one for each word, and train it so that each word's vector comes near
# a target. In each **batch**, a handful of examples for one step, some words come up. Two things are to be seen: the
# loss falls, and a word that never comes up never moves (objective 5).
#
# {{card train_embedding}}


# %% exercise="train_embedding"
def train_embedding(weight, batches, lr):
    """Train a copy of weight with sparse gradients: (trained weight, losses).

    weight has shape (rows, d): row k is the vector of word k. It stays as it is. batches is a list of pairs (words,
    targets): int64 of shape (n,) and float of shape (n, d). For each batch in turn: the loss is
    torch.nn.functional.mse_loss (the mean of the squared differences) between the rows of words and the targets; take
    one step of torch.optim.Adagrad with this lr, and its other settings at their defaults. losses holds each batch's
    loss before its step, as a float. The gradient of the table is sparse.
    """
    ### BEGIN SOLUTION
    table = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=True)
    adagrad, losses = torch.optim.Adagrad(table.parameters(), lr=lr), []
    for words, targets in batches:
        adagrad.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), targets)
        losses.append(loss.item())
        loss.backward()
        adagrad.step()
    return table.weight.detach(), losses
    ### END SOLUTION


# %% check="train_embedding"
check(train_embedding)

# %% [markdown]
# Try it on twelve words, of which only the first six come up:

# %%
random = torch.Generator().manual_seed(7)
vectors, goals = torch.randn(12, 2, generator=random), torch.randn(12, 2, generator=random)
drawn = [torch.randint(0, 6, (4,), generator=random) for _ in range(40)]
trained, losses = train_embedding(vectors, [(words, goals[words]) for words in drawn], lr=0.3)
print("rows that moved:", (trained != vectors).any(1).nonzero().flatten().tolist())
print(f"mean loss, first ten batches {sum(losses[:10]) / 10:.2f}, last ten {sum(losses[-10:]) / 10:.2f}")

# %% [markdown]
# And row by row, for the first steps of a smaller table. With a running kernel, move the slider (Tab and arrow keys);
# else the steps stand below one another. The gradients are the same every time. Row 0 is touched in every step: by how
# much does it move in the first, the second, the third? And by how much does row 3, in its only one?

# %%
entries = torch.tensor([[1.0, -1.0], [2.0, 0.5]])
some_grads = [torch.sparse_coo_tensor(torch.tensor([[0, row]]), entries, (5, 2)) for row in (1, 3, 1)]
explore_adagrad(torch.zeros(5, 2), torch.zeros(5, 2), some_grads, lr=0.1)

# %% [markdown]
# Row 0 moves by 0.1, 0.071 and 0.058: its history grows. Row 3, new in the second step, moves by a full 0.1, for its
# history is its own. Rows 2 and 4 keep their bits.

# %% [markdown] facts=["F-44"]
# ### A masked gradient in a stock optimiser
#
# Must the optimiser know about masks at all? Give `torch.optim.Adagrad`, as it is, a gradient that is a MaskedTensor.
# First that of `torch.masked`. (Besides its errors that package warns, to the same effect; the cell leaves the warnings
# out.)
#
# {{question P3}}

# %%
predict("P3", "c")

# %% facts=["F-44"]
seen = torch.tensor([True, True, False, False])
for package in (torch.masked, maskedtensor_ref):
    for optimiser in (torch.optim.Adagrad, torch.optim.SGD):
        w = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        try:
            with warnings.catch_warnings(action="ignore"):
                package.as_masked_tensor(w * w, seen).sum().backward()
                optimiser([w], lr=0.1).step()
            answer = [round(v, 4) for v in w.tolist()]
        except (TypeError, ValueError) as error:
            answer = f"{type(error).__name__}: {str(error).splitlines()[0][:54]}"
        print(f"{package.__name__:17} {optimiser.__name__:8}", answer)

# %% [markdown] concepts=["A-11"]
# With `maskedtensor_ref` the stock code works, because of one rule of that package: **a plain tensor that is changed in
# place by a masked one changes only where that one is specified.** Adagrad's lines are `state.addcmul_(grad, grad)`,
# which adds the product of the two, and `param.addcdiv_(grad, std)`, which adds their quotient (times -lr): both write
# where the gradient is. The dense step of your first exercise does it, too. No
# line in it knows of masks:

# %% concepts=["A-11"]
param4, state_sum4 = start.clone(), half.clone()
dense_step(param4, state_sum4, masked_grad, lr, eps)
print("dense_step on a masked gradient:", torch.allclose(param4, param), torch.allclose(state_sum4, state_sum))

# %% [markdown]
# (If yours is written otherwise, with a line that makes a new tensor of the whole state and copies it, it may answer
# differently here. Then look at which line mixes masked and plain.)
#
# And **Adam**, the optimiser that most people use? It keeps a running mean of gradients and steps along *that*, whether
# or not there is a gradient now. A missing gradient adds nothing to the mean, but the old mean is still there, and so
# the parameter goes on moving. `MaskedAdam` of `maskedtensor_ref.optim` (as torch's own `SparseAdam`) leaves mean and
# parameter alone where nothing is specified.
#
# The same training as before, but word 6 now comes up in the first ten steps only. Each gradient is put under a mask
# that says which rows were used, with dense storage, for stock Adam refuses sparse layouts. How far has word 6 moved?


# %% concepts=["A-10"]
def under_mask(grad):
    """A sparse gradient as a MaskedTensor with dense storage: specified is what is stored."""
    grad = grad.coalesce()
    true = torch.ones_like(grad.values(), dtype=torch.bool)
    mask = torch.sparse_coo_tensor(grad.indices(), true, grad.shape, is_coalesced=True)
    return maskedtensor_ref.masked_tensor(grad, mask).to_dense()


def story(make_optimiser):
    """The losses, and how far each row is from its start after each step."""
    table = torch.nn.Embedding.from_pretrained(vectors.clone(), freeze=False, sparse=True)
    optimiser, losses, distances = make_optimiser(table.parameters()), [], []
    for step, words in enumerate(drawn):
        words = torch.cat([words, torch.tensor([6])]) if step < 10 else words
        optimiser.zero_grad()
        loss = torch.nn.functional.mse_loss(table(words), goals[words])
        loss.backward()
        table.weight.grad = under_mask(table.weight.grad)
        optimiser.step()
        losses.append(loss.detach().item())
        distances.append((table.weight.detach() - vectors).norm(dim=1))
    return losses, torch.stack(distances)


# %% concepts=["A-10"]
stories = {
    "Adagrad": story(lambda params: torch.optim.Adagrad(params, lr=0.3)),
    "Adam": story(lambda params: torch.optim.Adam(params, lr=0.1)),
    "MaskedAdam": story(lambda params: MaskedAdam(params, lr=0.1)),
}
print("distance of word 6 from its start, after step      10    20    40")
for name, (_, distances) in stories.items():
    print(f"{name:50}", *(f"{distances[step - 1, 6]:5.2f}" for step in (10, 20, 40)))
never = max(distances[-1, 7:].max().item() for _, distances in stories.values())
print("largest distance of the words 7 to 11, which never came up:", never)

# %% concepts=["A-10"]
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
for (name, (losses, distances)), style in zip(stories.items(), ("-", "--", ":"), strict=True):
    smooth = torch.tensor(losses).unfold(0, 8, 1).mean(1)  # the mean of eight batches
    left.plot(range(8, 41), smooth, style, label=name)
    right.plot(range(1, 41), distances[:, 6], style, label=name)
left.set(title="loss, mean of eight batches", xlabel="step", ylabel="mse loss")
right.set(title="word 6: distance from its start", xlabel="step", ylabel="distance")
right.axvline(10, color="gray", linewidth=0.8)
right.legend()
alt = (
    "Two panels over 40 steps for Adagrad, Adam and MaskedAdam. Left: all three losses fall. Right: the distance of word "
    "6 from its start grows until step 10, when the word is last seen; then Adagrad and MaskedAdam stay level at 1.2 and "
    "1.0, while Adam goes on rising to 4.1."
)
show_figure(fig, alt)

# %% [markdown]
# **Rule.** A masked gradient protects what an optimiser does *with the gradient*. What it does without it (the mean of
# Adam, the momentum of SGD, the decay of AdamW) goes on everywhere.
#
# **Where it breaks.** In silence: the loss of Adam looks fine, because nobody asks for word 6 any more.

# %% [markdown] tags=["instructor"]
# **Instructor, 15 minutes.** Cover the right panel and let the class draw the line of Adam after step 10. Common answers
# to 7.8: no zero_grad, the caller's weight trained (from_pretrained shares memory), an optimiser a step, sparse=True
# forgotten (right numbers, dense gradient). Discuss: is it a *fault* of Adam that word 6 moves on?

# %% [markdown] concepts=["A-08"]
# ## Where eps matters
#
# "eps is always very small, so it does not matter": true as long as it is compared with something larger. It stands
# beside the root of the state. When is that root small? When an element has only ever had tiny gradients, or none. The
# cell makes a first step (state 0) with smaller and smaller gradients:

# %% concepts=["A-08"]
for gradient in (1.0, 1e-6, 1e-10, 1e-11):
    outside = 0.1 * gradient / (gradient + 1e-10)
    inside = 0.1 * gradient / (gradient**2 + 1e-10) ** 0.5
    print(f"gradient {gradient:5.0e}: step with eps beside the root {outside:.4f}, under the root {inside:.6f}")

# %% [markdown]
# Adagrad's promise, "the unit of the gradient does not matter", ends at eps. Under the root it ends far earlier, for
# there eps is compared with the *square*.
#
# **Rule.** eps matters where the root of the state is as small as eps, or smaller; 0 / 0 is the extreme.
#
# Construct examples (objective 4). Each of these claims is wrong for some state and gradient:
#
# | claim | in words |
# | --- | --- |
# | `"eps changes nothing"` | the steps with this eps and with eps = 0 differ by less than a tenth |
# | `"inside or outside is the same"` | so do the steps with eps under the root and beside it |
# | `"without eps all is well"` | with eps = 0 the step is a number |
#
# {{card eps_example}}


# %% exercise="eps_example"
def eps_example(claim, eps):
    """A state and a gradient for which the claim fails, for one step of Adagrad with this eps: (state_sum, grad).

    Both are float32 tensors of shape (1,), finite; the state, before the step, is 0 or more. claim is one of "eps
    changes nothing", "inside or outside is the same", "without eps all is well"; eps lies between 1e-12 and 0.25. The
    check computes in float64.
    """
    ### BEGIN SOLUTION
    grad = 0.0 if claim == "without eps all is well" else eps
    return torch.zeros(1), torch.tensor([grad])
    ### END SOLUTION


# %% check="eps_example"
check(eps_example)

# %% [markdown]
# **Where it breaks.** In float32 a gradient of 1e-25 has a square of 0: the state learns nothing from it, and eps alone
# decides. Half precision (float16) gets there with 1e-4.

# %%
for dtype, tiny in ((torch.float32, 1e-25), (torch.float16, 1e-4)):
    print(dtype, "| gradient", tiny, "| its square:", (torch.tensor(tiny, dtype=dtype) ** 2).item())

# %% [markdown] tags=["instructor"]
# **Instructor, 7 minutes.** Board: a number line from 1e-20 to 1 with marks at eps and eps². Common answers: a state of
# 1 (nothing to see), a state of eps (its root is far larger), 0-d tensors, 0 for all three claims. Ask for the sign: can
# a negative gradient serve? (Yes.)

# %% [markdown] concepts=["A-06", "A-13"] facts=["F-53"]
# ## What it costs
#
# The masked step was published with two claims: it is shorter, and it avoids conversions between dense and sparse. Read
# `published_step` again and count: one `to_dense()`, two `to_sparse()`, and new tensors for state and parameter.
#
# {{question P4}}

# %%
predict("P4", "b")

# %% [markdown]
# First the memory, which is the same on every machine. `Made` watches every operation and adds up the bytes of the
# tensors that it makes. The table has 2000 rows of 16 numbers, and 8 rows have a gradient.


# %% concepts=["A-13"] facts=["F-53"]
class Made(TorchDispatchMode):
    """Adds up the bytes of all tensors that are made inside a with block, sparse ones included."""

    total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(t, (torch.masked.MaskedTensor, maskedtensor_ref.MaskedTensor)) for t in types):
            return NotImplemented  # look at the plain operations inside
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            sparse = result.layout != torch.strided
            parts = (result._indices(), result._values()) if sparse else (result,)
            known = {t.data_ptr() for t in args if isinstance(t, torch.Tensor) and t.layout == torch.strided}
            self.total += sum(part.nbytes for part in parts if part.data_ptr() not in known)
        return result


# %% concepts=["A-13"] facts=["F-53"]
def variants(rows, columns, used):
    """The variants of one step, by name, each as a function without arguments."""
    random = torch.Generator().manual_seed(0)
    places = torch.randperm(rows, generator=random)[:used].sort().values
    size, values = (rows, columns), torch.rand(used, columns, generator=random) + 0.5
    param, state = torch.rand(size, generator=random), torch.full(size, 0.5)
    whole_rows = torch.sparse_coo_tensor(places[None], values, size).coalesce()
    dense = whole_rows.to_dense()
    entries = dense.to_sparse()
    true = torch.sparse_coo_tensor(places[None], torch.ones_like(values, dtype=torch.bool), size).coalesce()
    masked = maskedtensor_ref.masked_tensor(whole_rows, true)
    return {
        "dense": lambda: dense_step(param, state, dense, lr, eps),
        "sparse": lambda: sparse_step(param, state, whole_rows, lr, eps),
        "published": lambda: published_step(param, state, entries, torch.masked.masked_tensor),
        "masked": lambda: in_place_step(param, state, masked),
    }


def in_place_step(param, state_sum, grad):
    """The masked step with maskedtensor_ref, in place: as short as the published one."""
    state_sum.add_(grad * grad)
    std = (torch.zeros_like(grad) + state_sum).sqrt() + eps
    param.sub_(lr * grad / std)


# %% concepts=["A-13"] facts=["F-53"]
for name, step in variants(2000, 16, 8).items():
    with Made() as made:
        step()
    print(f"{name:10} made {made.total / (2000 * 16 * 4):6.2f} times the parameter")

# %% [markdown]
# Now the time, as in lecture 01: many runs, median and spread, one thread. Write the report first, then feed it with
# real numbers. A report is a table and *what the table says*, in words (objective 6). The quantile 0.25 of some times
# is what a quarter of them stays below, the quantile 0.75 what a quarter exceeds; between the two lies the middle half.
#
# {{card cost_report}}


# %% exercise="cost_report"
def cost_report(times):
    """A report on measured times: (table, text).

    times: for each variant's name a list of times in seconds, of an odd number of runs. table is a list with a tuple of
    four for each variant, the fastest first: name, median in milliseconds, spread in milliseconds (quantile 0.75 minus
    quantile 0.25, as torch.quantile finds them), and how many times the fastest median it takes. text is two sentences of
    five words or more that name the fastest and the slowest variant and say why, as far as you know.
    """
    ### BEGIN SOLUTION
    rows = []
    for name, runs in times.items():
        runs = torch.tensor(runs, dtype=torch.float64) * 1000
        low, median, high = (runs.quantile(q).item() for q in (0.25, 0.5, 0.75))
        rows.append((name, median, high - low))
    rows.sort(key=lambda row: row[1])
    table = [(*row, row[1] / rows[0][1]) for row in rows]
    text = (
        f"Fastest is {table[0][0]}, and {table[-1][0]} takes {table[-1][3]:.1f} times as long. "
        "What touches the whole table pays for the whole table, whoever asked for how little."
    )
    return table, text
    ### END SOLUTION


# %% check="cost_report"
check(cost_report)

# %% [markdown] facts=["F-53"]
# And here is your report on 100 000 rows of 16 numbers, 64 of them used. Before you run it: how many times as long as
# the sparse step will the published one take? Guess the number of zeros.

# %% concepts=["A-13"] facts=["F-53"] tags=["nbval-ignore-output"] reason="prints times"
times = {}
for name, step in variants(100_000, 16, 64).items():
    timer = Timer("step()", globals={"step": step}, num_threads=1)
    timer.timeit(1)  # a run to warm up
    times[name] = [timer.timeit(1).median for _ in range(9)]
report, said = cost_report(times)
print(f"{'variant':10} {'median ms':>10} {'spread ms':>10} {'times fastest':>14}")
for name, median, spread, ratio in report:
    print(f"{name:10} {median:10.3f} {spread:10.3f} {ratio:14.1f}")
print(said)

# %% [markdown] concepts=["A-13"] facts=["F-53"]
# Numbers of one quiet machine, to compare with: sparse 0.1 ms, dense 1.5 ms, published 151 ms, that is some 1500 times
# the sparse step. On a busy one we saw 20 000. Yours will differ; the order should not. (If a spread is as large as its
# median, the machine was busy with something else: run the cell again.)
#
# So the second claim fails, and the first one misleads: the published code is short *because* it converts. That is no
# objection to masks. `masked` in the table is as short and as clear, and touches only what is specified.
#
# **Rule.** Short code is not cheap code. Ask which elements each line touches.
#
# **Where it breaks.** For a table of eight elements none of this matters, and for one that is used as a whole the dense
# step is the best. Measure at *your* sizes.

# %% [markdown] tags=["instructor"]
# **Instructor, 12 minutes.** Collect guesses as powers of ten. Common answers to 7.10: the mean, seconds, the slowest
# first, the ratio upside down, the range for the spread, no words. Read two of the texts aloud and let the class say
# which one a colleague could act on.

# %% [markdown] concepts=["A-13"]
# ## What masks are for
#
# The sparse code path of Adagrad says "sparse" and means "masked". Writing the mask down made three things visible that
# were hidden in it: eps goes to specified elements only, a stored zero counts, and 0 / 0 is not computed where nobody
# asked. And what is undefined stays undefined:

# %% concepts=["A-13"]
x = maskedtensor_ref.masked_tensor(torch.tensor([0.0, 0.0, 6.0]), torch.tensor([False, True, True]))
print("masked:", x / x)
print("plain: ", x.get_data() / x.get_data())

# %% [markdown]
# The first element is missing and stays missing. The second is a *specified* zero, and 0 / 0 of that is a genuine NaN,
# which you want to see.

# %% [markdown] concepts=["A-13", "A-14"]
# ## Recap
#
# - Adagrad: state ← state + grad², param ← param − lr · grad / (√state + eps), for each element by itself.
# - Not stored can mean 0 (compression) or not there (semantics). The sparse step means the second.
# - A step that squares needs each place once: `coalesce()` first.
# - Compute on the values, write at the places; make nothing of the size of the table.
# - Storage and meaning are two questions. A mask answers the second, in any layout.
# - Zero, missing, not stored: take the mask from the structure, never from the values.
# - Choose with `where` before computing; poison what is hidden to test it.
# - Masked gradients guard what is done with gradients, not what an optimiser does without them.
# - eps matters where the root of the state is as small.
# - Short is not cheap: count what each line touches.
#
# **Words.** *Optimiser*: what turns gradients into steps. *Learning rate*: the factor of a step. *Adagrad*: an optimiser
# with a step size for each element. *State*: what an optimiser remembers. *eps*: a tiny number against 0 / 0.
# *Embedding*: a table with a row for each word. *Hybrid*: sparse in some dimensions, dense in the others. *Coalesce*:
# add up what stands at one place. *Weight decay*: a gradient that pulls weights to 0. *Poison test*: put junk under a
# mask; nothing may change. *In place, out of place*: into the memory that is there, into new memory. *Semantics*: what
# something means.
#
# **To read on** (not needed for the course): Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning
# and stochastic optimization" (2011); torch's page on Adagrad, docs.pytorch.org/docs/stable/generated/
# torch.optim.Adagrad.html; and issue 1369 of pytorch/pytorch.

# %%
print(check.progress())

# %% [markdown] concepts=["A-14"]
# Next: **08 · Advanced semantics of masks**. What do masks of two operands make together? NumPy's masked arrays answer
# differently from MaskedTensor, and reductions have rules of their own.

# %% [markdown] tags=["instructor"]
# **Instructor.** If time is short, leave out layouts (7.7) and the claims on
# eps (7.9); lecture 08 needs only masked_step and the three zeros. Ask at the end, without notes: "name a line of code
# in which a missing gradient and a zero gradient differ".
