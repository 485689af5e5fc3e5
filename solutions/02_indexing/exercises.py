"""The exercises of lecture 02, indexing: reference answers, cases, wrong and right answers, predictions."""

import torch

from autograder.exercises import exercise, prediction
from autograder.properties import (
    copy_budget,
    device_agnostic,
    finite_gradient,
    gradient,
    never_calls,
    no_loops,
    no_warnings,
    op_budget,
    same_sharing,
)

# ---- 2.1 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.1",
    points=2,
    minutes=5,
    stars=1,
    concepts=["L-16", "L-23"],
    properties=[same_sharing],
    visible=6,
    hints=[
        "Two things are asked of two dimensions: one row is picked, and in that row every k-th column.",
        "x[row, columns] takes an index for each dimension. A negative row counts from the end, and a slice has "
        "three parts, start:stop:step, of which you can leave out any.",
        "Pick the row with -1. For the columns, leave start and stop out, and let the step be k: x[-1, ::___].",
    ],
)
def every_kth_of_last_row(x, k):
    return x[-1, ::k]


@every_kth_of_last_row.cases
def _(rng):
    yield rng.matrix(3, 6), 2
    yield rng.matrix(5, 4).t(), 3  # columns of another tensor: not contiguous
    yield rng.matrix(2, 5), 1
    yield rng.matrix(1, 4), 3
    yield rng.matrix(3, 2), 5  # the step leaves the row at once
    yield rng.integers(4, 7), 3
    yield rng.matrix(2, 0), 2
    yield rng.matrix(1, 1), 1
    yield rng.matrix(8, 9)[::2, 1:], 2
    yield rng.normal(5).expand(4, 5), 2
    for _ in range(8):
        yield rng.matrix(rng.integer(1, 6), rng.integer(1, 9)), rng.integer(1, 4)


@every_kth_of_last_row.wrong(
    "M09",
    "The numbers are right, but they are a copy in new memory. A list of positions picks the same elements as a "
    "slice and still is no slice: torch copies whatever a list, a tensor of positions or .clone() asks for. Only "
    "start:stop:step gives a view.",
    sample="wrong_copy",
)
def _(x, k):
    return x[-1, list(range(0, x.shape[1], k))]


@every_kth_of_last_row.wrong(
    "X-2.1-1",
    "The first element is missing: every k-th element starts with position 0 (then k, 2k ...), not with position "
    "k - 1. Leave the start of the slice out.",
)
def _(x, k):
    return x[-1, k - 1 :: k]


@every_kth_of_last_row.wrong(
    "X-2.1-2",
    "This reads down the last column. The first index counts rows, the second counts columns: x[row, column].",
)
def _(x, k):
    return x[::k, -1]


@every_kth_of_last_row.wrong("X-2.1-3", "This is the first row: position 0 is the first one, -1 is the last one.")
def _(x, k):
    return x[0, ::k]


@every_kth_of_last_row.wrong(
    "X-2.1-4",
    "These are the first k elements. In start:stop:step a number after one colon is where to stop; the step "
    "stands after the second colon.",
)
def _(x, k):
    return x[-1, :k]


@every_kth_of_last_row.wrong(
    "X-2.1-5",
    "The result has a dimension too many. A slice such as -1: keeps its dimension, even when it takes a single "
    "row; the plain number -1 removes it.",
)
def _(x, k):
    return x[-1:, ::k]


@every_kth_of_last_row.wrong(
    "X-2.1-6",
    "The step is fixed. It has to be the argument k, not the number from an example.",
)
def _(x, k):
    return x[-1, ::3]


@every_kth_of_last_row.right
def _(x, k):
    return x.select(0, -1)[::k]


@every_kth_of_last_row.right
def _(x, k):
    return x.t()[::k, x.shape[0] - 1]


# ---- 2.2 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.2",
    points=2,
    minutes=5,
    stars=1,
    concepts=["L-21", "L-23"],
    properties=[no_loops, no_warnings],
    visible=7,
    hints=[
        "Ask the question of all elements at once: a comparison of a tensor with a number answers with a tensor "
        "of bools.",
        "v is a multiple of k exactly when v % k is 0. A bool tensor of the shape of x, used as an index, picks "
        "the elements where it is True. With k = 0 the question makes no sense, so raise an error first.",
        "if k == 0: raise ValueError(...), and then return x[x % k == ___].",
    ],
)
def multiples_of(x, k):
    if k == 0:
        raise ValueError("k is 0: multiples of 0 are not defined here; give another k")
    return x[x % k == 0]


@multiples_of.cases
def _(rng):
    yield torch.tensor([[-6, -5, -3], [0, 3, 4]]), 3
    yield torch.tensor([2, 1, 4]), 0
    yield torch.tensor([1, 0, 5, 10]), 5
    yield torch.tensor([4, -6, 9]), -3
    yield torch.tensor([], dtype=torch.int64), 4
    yield rng.integers(3, 4, low=0, high=30).t(), 2  # read row by row, although it lies in memory by columns
    yield torch.tensor([16_777_217, 16_777_218, 33_554_433]), 2  # float32 cannot hold the odd ones
    yield torch.tensor([[1, 7], [5, 11]]), 13  # none at all
    yield rng.integers(4, 5, low=-40, high=40), -7
    yield rng.integers(2, 3, 4, low=-20, high=20, dtype=torch.int32), 4
    yield rng.integers(0, 3), 0
    for _ in range(10):
        yield (
            rng.integers(rng.integer(1, 4), rng.integer(1, 5), low=-50, high=50),
            rng.choice([-5, -2, 1, 2, 3, 4, 6, 9]),
        )


@multiples_of.wrong(
    "M10",
    "A tensor of the integers 0 and 1 is not a mask: as an index it means position 0 and position 1, so it picks "
    "whole rows, again and again. Keep the bool tensor that the comparison gives.",
)
def _(x, k):
    if k == 0:
        raise ValueError
    return x[(x % k == 0).long()]


@multiples_of.wrong(
    "X-2.2-1",
    "The elements are right, but torch warns: a uint8 tensor as a mask is an old form that will go away. Keep "
    "the bool tensor that the comparison gives.",
)
def _(x, k):
    import torch

    if k == 0:
        raise ValueError
    return x[(x % k == 0).to(torch.uint8)]


@multiples_of.wrong(
    "X-2.2-2",
    "These are the positions of the multiples. To get the elements themselves, use the bool tensor as an index of x.",
)
def _(x, k):
    if k == 0:
        raise ValueError
    return (x % k == 0).nonzero()


@multiples_of.wrong(
    "X-2.2-3",
    "The shape is still that of x, with 0 for the rest, and a true 0 cannot be told from a filled one. x[mask] "
    "keeps only the chosen elements, in one dimension.",
)
def _(x, k):
    if k == 0:
        raise ValueError
    return (x % k == 0) * x


@multiples_of.wrong("X-2.2-4", "This is the mask, the answer to the question. Now use it as an index: x[mask].")
def _(x, k):
    if k == 0:
        raise ValueError
    return x % k == 0


@multiples_of.wrong(
    "X-2.2-5",
    "For k = 0 a ValueError with a clear text is asked for. Without a test of k, torch divides by zero and ends "
    "with a RuntimeError that names no argument of yours.",
)
def _(x, k):
    return x[x % k == 0]


@multiples_of.wrong(
    "X-2.2-6",
    "Zero and negative numbers are missing. 0 is a multiple of every k, and -6 is a multiple of 3: in torch -6 % "
    "3 is 0.",
)
def _(x, k):
    if k == 0:
        raise ValueError
    return x[(x % k == 0) & (x > 0)]


@multiples_of.wrong(
    "X-2.2-7",
    "x / k is a float32, and that cannot hold integers above 16 777 216 exactly, so some of your multiples are "
    "none. Stay with integers: x % k.",
)
def _(x, k):
    if k == 0:
        raise ValueError
    return x[x / k % 1 == 0]


@multiples_of.wrong(
    "X-2.2-8",
    "The elements are right, but Python looks at them one by one. Compare the whole tensor at once: x % k == 0 "
    "is a tensor of bools.",
)
def _(x, k):
    import torch

    if k == 0:
        raise ValueError
    return torch.tensor([v for v in x.flatten().tolist() if v % k == 0], dtype=x.dtype)


@multiples_of.right
def _(x, k):
    import torch

    if k == 0:
        raise ValueError("k must not be 0")
    return x.masked_select(torch.fmod(x, k) == 0)


@multiples_of.right
def _(x, k):
    if not k:
        raise ValueError("k must not be 0")
    places = (x - x // k * k == 0).nonzero(as_tuple=True)
    return x[places]


# ---- 2.3 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.3",
    points=4,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["L-23"],
    needs=["multiples_of"],
    properties=[no_loops],
    visible=6,
    hints=[
        "A test of floats for being whole is a test of rounding errors. Use a float only to guess the root, and "
        "let integers decide.",
        "Guess: square root in float64 (x.double()), rounded, as int64. Proof: the guess times itself, compared "
        "with x. What would the square root of a negative number be? clamp(min=0) avoids the question.",
        "root = x.clamp(min=0).double().sqrt().___().long(), and then return x[root * root == ___].",
    ],
)
def perfect_squares(x):
    root = x.clamp(min=0).double().sqrt().round().long()
    return x[root * root == x]


@perfect_squares.cases
def _(rng):
    yield torch.tensor([[0, 1, 2], [3, 4, 9]])
    yield torch.tensor([900_000_000, 900_000_001, 899_999_999])  # 30000 ** 2 and its neighbours: one number in float32
    yield torch.tensor([-9, -4, -1, 9])
    n = 3_000_000_001
    yield torch.tensor([n * n - 1, n * n, n * n + 1])
    yield torch.tensor([], dtype=torch.int64)
    yield rng.integers(4, 5, low=0, high=30).t()
    yield torch.tensor([(2**25 + 1) ** 2, (2**25 + 1) ** 2 + 1])
    yield torch.tensor([(2**27 + 1) ** 2 - 1, (2**27 + 1) ** 2, (2**27 + 1) ** 2 + 1])
    yield torch.tensor([2**63 - 1, 3_037_000_499**2, -(2**63)])
    yield torch.tensor([25, 26, 2_147_395_600, 2_147_395_601], dtype=torch.int32)  # 46340 ** 2
    yield torch.tensor([[2, 3], [5, 7]])
    for _ in range(6):
        yield rng.integers(rng.integer(1, 4), rng.integer(2, 6), low=-10, high=100)
    for _ in range(6):
        roots = rng.integers(4, low=0, high=3_037_000_499)
        yield roots * roots + rng.integers(4, low=-1, high=1)


@perfect_squares.wrong(
    "M13",
    "torch.sqrt turns integers into float32, with about seven digits. For large numbers the root of a number "
    "close to a square is rounded to a whole one, so it looks like a square. Guess the root in float64, round "
    "it, and let integers decide: root * root == x.",
)
def _(x):
    import torch

    return x[torch.sqrt(x) % 1 == 0]


@perfect_squares.wrong(
    "X-2.3-1",
    "float64 only moves the problem: above about 2 ** 52 a root close to a whole number is rounded to it as "
    "well. The float may guess; integers must decide: root * root == x.",
)
def _(x):
    return x[x.double().sqrt() % 1 == 0]


@perfect_squares.wrong(
    "X-2.3-2",
    "Large squares are missing: float32 holds whole numbers exactly only up to 2 ** 24, so the root that you "
    "square is a little off. Guess it in float64.",
)
def _(x):
    root = x.clamp(min=0).float().sqrt().round().long()
    return x[root * root == x]


@perfect_squares.wrong("X-2.3-3", "These are the roots. The squares themselves are asked for: index x with your mask.")
def _(x):
    root = x.clamp(min=0).double().sqrt().round().long()
    return root[root * root == x].to(x.dtype)


@perfect_squares.wrong(
    "X-2.3-4",
    "Only squares up to a fixed size are found. The numbers in x may be as large as int64 allows, so no list of "
    "squares is long enough.",
)
def _(x):
    import torch

    return x[torch.isin(x, torch.arange(1000) ** 2)]


@perfect_squares.wrong(
    "X-2.3-5",
    "Negative numbers came back. No whole number times itself is negative: take the root of x.clamp(min=0), not "
    "of x.abs(), and compare with x.",
)
def _(x):
    root = x.abs().double().sqrt().round().long()
    return x[root * root == x.abs()]


@perfect_squares.wrong(
    "X-2.3-6",
    "The elements are right, but Python looks at them one by one. Find all roots at once, with operations on the "
    "whole tensor.",
)
def _(x):
    import math

    import torch

    found = []
    for v in x.flatten().tolist():
        if v >= 0 and math.isqrt(v) ** 2 == v:
            found.append(v)
    return torch.tensor(found, dtype=x.dtype)


@perfect_squares.wrong("X-2.3-7", "0 is missing. It is a perfect square: 0 times 0.")
def _(x):
    root = x.clamp(min=0).double().sqrt().round().long()
    return x[(root * root == x) & (x > 0)]


@perfect_squares.right
def _(x):
    import torch

    near = torch.where(x > 0, x, 0).to(torch.float64).sqrt().to(torch.int64)
    return x[(near**2 == x) | ((near + 1) ** 2 == x)]


@perfect_squares.right
def _(x):
    import torch

    root = torch.floor(x.clamp(min=0).double().pow(0.5) + 0.5).long()
    return torch.masked_select(x, root.square() == x)


# ---- 2.4 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.4",
    points=2,
    minutes=10,
    stars=2,
    concepts=["L-16"],
    needs=["every_kth_of_last_row"],
    properties=[same_sharing],
    visible=5,
    hints=[
        "x[rows, cols] = ... does not make a new tensor: it writes into the memory of x. So does a method of the "
        "block that ends in an underscore.",
        "The block is x[rows, cols], a view. Either assign to it in brackets, or call .zero_() on it. Then "
        "return x, not the block.",
        "x[rows, cols] = ___, and then return x.",
    ],
)
def zero_block(x, rows, cols):
    x[rows, cols] = 0
    return x


@zero_block.call
def _(zero_block, x, rows, cols):
    writes = x._version  # the count that autograd keeps of the writes to a memory
    returned = zero_block(x, rows, cols)
    return {"returned": returned, "x": x, "writes that autograd counted": x._version - writes}


@zero_block.facts
def _(result, x, rows, cols):
    import torch

    after = result["x"]
    changed = not torch.equal(after.nan_to_num(-1), x.nan_to_num(-1))
    unseen = changed and not result["writes that autograd counted"]
    return {"returned": result["returned"], "written behind the back of autograd": unseen}


@zero_block.cases
def _(rng):
    yield rng.matrix(3, 4), slice(0, 2), slice(1, 3)
    yield torch.tensor([[1.0, float("inf")], [float("nan"), 2.0]]), slice(None), slice(1, None)
    yield rng.matrix(5, 4).t(), slice(None, None, 2), slice(-2, None)
    yield rng.matrix(2, 3), slice(None), slice(None)
    yield rng.matrix(3, 4), slice(1, 1), slice(None)  # an empty block: nothing changes
    yield rng.matrix(3, 3, dtype=torch.int64), slice(-1, None), slice(0, 1)
    yield rng.matrix(6, 6)[1:5, ::2], slice(1, 3), slice(0, 2)
    yield rng.matrix(1, 1), slice(0, 5), slice(0, 5)
    for _ in range(10):
        m, n = rng.integer(2, 6), rng.integer(2, 6)
        i, j = rng.integer(0, m - 1), rng.integer(0, n - 1)
        yield rng.matrix(m, n), slice(i, rng.integer(i + 1, m)), slice(j, rng.integer(j + 1, n), rng.integer(1, 2))


@zero_block.wrong(
    "X-2.4-1",
    "Your zeros are in a copy, and the caller's tensor is as it was. Here the write has to reach x itself: no "
    "clone, and no new tensor that only has the name x.",
)
def _(x, rows, cols):
    x = x.clone()
    x[rows, cols] = 0
    return x


@zero_block.wrong(
    "X-2.4-2",
    "Nothing changed. block = ... gives the name block to another tensor; it does not write. Writing needs "
    "brackets on the left, block[:] = 0, or a method such as block.zero_().",
)
def _(x, rows, cols):
    import torch

    block = x[rows, cols]
    block = torch.zeros_like(block)
    return x


@zero_block.wrong("X-2.4-3", "The block was returned. Return the whole tensor x, which now has zeros in it.")
def _(x, rows, cols):
    return x[rows, cols].zero_()


@zero_block.wrong(
    "X-2.4-4",
    "Too much became zero: whole rows and whole columns. The block is where the rows and the columns cross, and "
    "both slices belong into one pair of brackets.",
)
def _(x, rows, cols):
    x[rows] = 0
    x[:, cols] = 0
    return x


@zero_block.wrong(
    "X-2.4-5",
    "NaN and infinity are still there, because 0 times NaN is NaN. Assign the zeros instead of multiplying by them.",
)
def _(x, rows, cols):
    x[rows, cols] *= 0
    return x


@zero_block.wrong(
    "X-2.4-6",
    "The zeros are there, but .data writes behind the back of autograd, which counts the writes to be able to "
    "warn of wrong gradients. Write to x itself.",
)
def _(x, rows, cols):
    x.data[rows, cols] = 0
    return x


@zero_block.wrong("X-2.4-7", "The write is right, but nothing was returned: end with return x.")
def _(x, rows, cols):
    x[rows, cols] = 0


@zero_block.wrong(
    "X-2.4-8",
    "The second pair of brackets counts rows again: in x[rows][cols] both slices are about rows. One pair of brackets "
    "takes both, rows first: x[rows, cols].",
)
def _(x, rows, cols):
    x[rows][cols] = 0
    return x


@zero_block.right
def _(x, rows, cols):
    x[rows, cols].zero_()
    return x


@zero_block.right
def _(x, rows, cols):
    x[rows][:, cols].fill_(0)  # two slices in a row are a view of a view
    return x


# ---- 2.5 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.5",
    points=2,
    minutes=10,
    stars=2,
    concepts=["L-20"],
    needs=["every_kth_of_last_row"],
    properties=[same_sharing],
    visible=5,
    hints=[
        "A plain number as an index removes a dimension, a list keeps it but copies. What keeps it and does not copy?",
        "Either a slice of length one, or a plain number and then a new dimension of size 1: unsqueeze, or None "
        "in the index. Try your way with i = -1, too.",
        "a[i] is a view of shape (n,). Put a dimension in front: a[i].unsqueeze(___).",
    ],
)
def keep_row(a, i):
    return a[i].unsqueeze(0)


@keep_row.cases
def _(rng):
    yield rng.matrix(3, 4), 1
    yield rng.matrix(3, 2), -1
    yield rng.matrix(4, 4), 0
    yield rng.matrix(4, 3).t(), 2
    yield rng.matrix(5, 2), -5
    yield rng.matrix(1, 1), 0
    yield rng.matrix(2, 0), 1
    yield rng.matrix(6, 6)[::2, ::3], -2
    for _ in range(8):
        rows = rng.integer(1, 6)
        yield rng.matrix(rows, rng.integer(1, 6)), rng.integer(-rows, rows - 1)


@keep_row.wrong(
    "X-2.5-1",
    "A plain number as an index removes its dimension: a[i] has one dimension, shape (n,). Put it back in front "
    "with unsqueeze(0), or with None in the index.",
    sample="wrong_rank",
)
def _(a, i):
    return a[i]


@keep_row.wrong(
    "M09",
    "The shape is right, but this is a copy: [i] inside the brackets is a list of positions, and torch copies "
    "what a list picks. Writing to your result would leave a as it was. Use a number or a slice.",
)
def _(a, i):
    return a[[i]]


@keep_row.wrong(
    "X-2.5-2",
    "For i = -1 your slice is -1:0, from the last row up to row 0, and that is empty. A slice of length one is "
    "safe only after the negative number is made positive.",
)
def _(a, i):
    return a[i : i + 1]


@keep_row.wrong("X-2.5-3", "This is column i. Rows are counted by the first index.")
def _(a, i):
    return a[:, i % max(a.shape[1], 1)].unsqueeze(0) if a.shape[1] else a[i].unsqueeze(0)


@keep_row.wrong(
    "X-2.5-4",
    "The new dimension stands behind, which makes a column of shape (n, 1). unsqueeze takes the place of the new "
    "dimension: 0 puts it in front.",
)
def _(a, i):
    return a[i].unsqueeze(1)


@keep_row.wrong(
    "M10",
    "A mask of rows copies, always, and a negative i never equals a position that arange counts, so nothing is "
    "picked then.",
)
def _(a, i):
    import torch

    return a[torch.arange(a.shape[0]) == i]


@keep_row.right
def _(a, i):
    return a[i % a.shape[0] :][:1]


@keep_row.right
def _(a, i):
    return a[None, i]


@keep_row.right
def _(a, i):
    return a.narrow(0, i % len(a), 1)


# ---- 2.6 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.6",
    points=6,
    minutes=40,
    stars=4,
    homework=True,
    concepts=["L-18", "L-20"],
    needs=["keep_row"],
    properties=[op_budget(0)],
    forbidden=["torch"],
    visible=9,
    hints=[
        "Walk through the index from left to right, with the sizes of shape at your side. For each kind of item "
        "say two things: does it use up a size, and what does it add to the result?",
        "A number uses up a size and adds nothing. A slice adds len(range(n)[item]). None adds 1 and uses up "
        "nothing. ... stands for as many full slices as there are sizes that nothing else uses. All lists "
        "together add one size: at their place if nothing that adds to the result stands between them, else in "
        "front.",
        "For each list note len(result) as its place, and its length (of bools: the number of Trues). At the "
        "end: result.insert(places[0] if len(set(places)) == 1 else ___, length), where a length of 1 gives way "
        "to any other.",
    ],
)
def result_shape(shape, index):
    items = list(index) if Ellipsis in index else [*index, Ellipsis]
    dots, asked = items.index(Ellipsis), sum(item is not None for item in items) - 1
    items[dots : dots + 1] = [slice(None)] * (len(shape) - asked)
    sizes, result, lists = iter(shape), [], []
    for item in items:
        n = None if item is None else next(sizes)
        if item is None:
            result.append(1)
        elif isinstance(item, slice):
            result.append(len(range(n)[item]))
        elif isinstance(item, list):
            lists.append((len(result), sum(v is not False for v in item)))
    if lists:
        places, lengths = zip(*lists, strict=True)
        result.insert(places[0] if len(set(places)) == 1 else 0, next((k for k in lengths if k != 1), 1))
    return tuple(result)


@result_shape.cases
def _(rng):
    yield (4, 5), (0, slice(1, 4))
    yield (2, 3), ([0, 1, 1],)
    yield (2, 3, 4), (0, slice(None), [0, 1])  # (3, 2) in torch, (2, 3) in NumPy
    yield (5, 6), ([True, False, True, True, False], 2)
    yield (5, 7), (slice(None, None, 2), slice(1, 6, 3))
    yield (2, 3, 4), (Ellipsis, None, 0)
    yield (5, 3, 4, 2), (slice(None), [0, 1], slice(None), [1, 0])
    yield (4, 4, 2), (slice(1, 2), [0, 1, 2], [1, 0, 1])
    yield (2, 3, 4), (None, [0, 1], 1, [0, 1])  # a number does not stand between lists
    yield (3,), ()
    yield (3, 4), (None, slice(1, 1), None)
    yield (0, 3), (slice(None), [0, 0, 2])
    yield (4, 3, 4, 5), (slice(None), [1, 2], None, [0, 3])  # a new dimension does stand between them
    yield (2, 3, 4), ([0], Ellipsis, [0, 1, 2])
    yield (2, 3), (Ellipsis, slice(None), slice(None))
    yield (4, 3), ([False, False, False, False],)
    yield (4, 3), ([False, False, False, False], [1])  # lengths 0 and 1: nothing is picked
    yield (3, 4), (slice(None), [])
    for _ in range(24):
        shape = tuple(rng.integer(2, 5) for _ in range(rng.integer(1, 4)))
        yield shape, _legal_index(rng, shape)


def _legal_index(rng, shape):
    """An index with something for each dimension, of which a part may give way to ... or be left out at the end."""
    length, items = rng.integer(1, 2), []
    for n in shape:
        kind = rng.choice(["number", "slice", "list", "list", "bools"])
        if kind == "number":
            items.append(rng.integer(-n, n - 1))
        elif kind == "slice":
            items.append(slice(rng.integer(0, n - 1), rng.integer(1, n + 1), rng.integer(1, 3)))
        elif kind == "list":
            items.append([rng.integer(-n, n - 1) for _ in range(rng.choice([length, length, 1]))])
        else:
            items.append([place < length for place in rng.permutation(n).tolist()])
    first = rng.integer(0, len(items))
    last = rng.choice([first, min(first + 1, len(items)), len(items)])
    items[first:last] = rng.choice([items[first:last], [] if last == len(shape) else items[first:last], [Ellipsis]])
    if rng.integer(0, 2) == 0:
        items.insert(rng.integer(0, len(items)), None)
    return tuple(items)


@result_shape.wrong(
    "M12",
    "This is NumPy's answer. Where a number and a list stand apart, NumPy counts the number as one of the lists "
    "and moves their size to the front. torch takes the number first, so that it is out of the way.",
)
def _(shape, index):
    import numpy

    return numpy.broadcast_to(0, shape)[index].shape


@result_shape.wrong(
    "X-2.6-1",
    "The shape is right, but torch found it: a tensor was made and indexed. Find the rules yourself, from the "
    "numbers in shape and index alone.",
)
def _(shape, index):
    import torch

    return tuple(torch.empty(shape)[index].shape)


@result_shape.wrong(
    "M09",
    "Each list got a dimension of its own, as slices do. Several lists are read in pairs (or in threes), so "
    "together they give one dimension.",
)
def _(shape, index):
    items = list(index) if Ellipsis in index else [*index, Ellipsis]
    dots, asked = items.index(Ellipsis), sum(item is not None for item in items) - 1
    items[dots : dots + 1] = [slice(None)] * (len(shape) - asked)
    sizes, result = iter(shape), []
    for item in items:
        n = None if item is None else next(sizes)
        if item is None:
            result.append(1)
        elif isinstance(item, slice):
            result.append(len(range(n)[item]))
        elif isinstance(item, list):
            result.append(sum(v is not False for v in item))
    return tuple(result)


@result_shape.wrong(
    "X-2.6-2",
    "A number kept a dimension of size 1. A number picks one place and removes its dimension; a slice or a list "
    "of length one keeps it.",
)
def _(shape, index):
    items = list(index) if Ellipsis in index else [*index, Ellipsis]
    dots, asked = items.index(Ellipsis), sum(item is not None for item in items) - 1
    items[dots : dots + 1] = [slice(None)] * (len(shape) - asked)
    sizes, result, lists = iter(shape), [], []
    for item in items:
        n = None if item is None else next(sizes)
        if isinstance(item, slice):
            result.append(len(range(n)[item]))
        elif isinstance(item, list):
            lists.append((len(result), sum(v is not False for v in item)))
        else:
            result.append(1)
    if lists:
        places, lengths = zip(*lists, strict=True)
        result.insert(places[0] if len(set(places)) == 1 else 0, next((k for k in lengths if k != 1), 1))
    return tuple(result)


@result_shape.wrong(
    "X-2.6-3",
    "The size of the lists stands where the first list stood, although something stands between them. Then torch "
    "cannot tell which of the places to take, and puts it in front.",
)
def _(shape, index):
    items = list(index) if Ellipsis in index else [*index, Ellipsis]
    dots, asked = items.index(Ellipsis), sum(item is not None for item in items) - 1
    items[dots : dots + 1] = [slice(None)] * (len(shape) - asked)
    sizes, result, lists = iter(shape), [], []
    for item in items:
        n = None if item is None else next(sizes)
        if item is None:
            result.append(1)
        elif isinstance(item, slice):
            result.append(len(range(n)[item]))
        elif isinstance(item, list):
            lists.append((len(result), sum(v is not False for v in item)))
    if lists:
        places, lengths = zip(*lists, strict=True)
        result.insert(places[0], next((k for k in lengths if k != 1), 1))
    return tuple(result)


@result_shape.wrong(
    "M10",
    "A list of bools was counted by its length. It is a mask: it gives as many places as it has Trues.",
)
def _(shape, index):
    items = list(index) if Ellipsis in index else [*index, Ellipsis]
    dots, asked = items.index(Ellipsis), sum(item is not None for item in items) - 1
    items[dots : dots + 1] = [slice(None)] * (len(shape) - asked)
    sizes, result, lists = iter(shape), [], []
    for item in items:
        n = None if item is None else next(sizes)
        if item is None:
            result.append(1)
        elif isinstance(item, slice):
            result.append(len(range(n)[item]))
        elif isinstance(item, list):
            lists.append((len(result), len(item)))
    if lists:
        places, lengths = zip(*lists, strict=True)
        result.insert(places[0] if len(set(places)) == 1 else 0, next((k for k in lengths if k != 1), 1))
    return tuple(result)


@result_shape.wrong(
    "X-2.6-4",
    "A slice with a step is one too short: 0:5:2 takes the places 0, 2 and 4. Round up, or count with "
    "len(range(n)[item]).",
)
def _(shape, index):
    items = list(index) if Ellipsis in index else [*index, Ellipsis]
    dots, asked = items.index(Ellipsis), sum(item is not None for item in items) - 1
    items[dots : dots + 1] = [slice(None)] * (len(shape) - asked)
    sizes, result, lists = iter(shape), [], []
    for item in items:
        n = None if item is None else next(sizes)
        if item is None:
            result.append(1)
        elif isinstance(item, slice):
            start, stop, step = item.indices(n)
            result.append(max(stop - start, 0) // step)
        elif isinstance(item, list):
            lists.append((len(result), sum(v is not False for v in item)))
    if lists:
        places, lengths = zip(*lists, strict=True)
        result.insert(places[0] if len(set(places)) == 1 else 0, next((k for k in lengths if k != 1), 1))
    return tuple(result)


@result_shape.wrong(
    "X-2.6-5", "None was left out. It uses up no dimension of the tensor, and adds one of size 1 to the result."
)
def _(shape, index):
    items = [item for item in index if item is not None]
    items = items if Ellipsis in items else [*items, Ellipsis]
    dots = items.index(Ellipsis)
    items[dots : dots + 1] = [slice(None)] * (len(shape) - len(items) + 1)
    result, lists = [], []
    for n, item in zip(shape, items, strict=True):
        if isinstance(item, slice):
            result.append(len(range(n)[item]))
        elif isinstance(item, list):
            lists.append((len(result), sum(v is not False for v in item)))
    if lists:
        places, lengths = zip(*lists, strict=True)
        result.insert(places[0] if len(set(places)) == 1 else 0, next((k for k in lengths if k != 1), 1))
    return tuple(result)


@result_shape.wrong(
    "X-2.6-6",
    "The dimensions that the index does not mention are missing. They stay whole, as if : stood for each of them "
    "at the end.",
)
def _(shape, index):
    items, asked = list(index), sum(item is not None for item in index)
    if Ellipsis in items:
        dots = items.index(Ellipsis)
        items[dots : dots + 1] = [slice(None)] * (len(shape) - asked + 1)
    sizes, result, lists = iter(shape), [], []
    for item in items:
        n = None if item is None else next(sizes)
        if item is None:
            result.append(1)
        elif isinstance(item, slice):
            result.append(len(range(n)[item]))
        elif isinstance(item, list):
            lists.append((len(result), sum(v is not False for v in item)))
    if lists:
        places, lengths = zip(*lists, strict=True)
        result.insert(places[0] if len(set(places)) == 1 else 0, next((k for k in lengths if k != 1), 1))
    return tuple(result)


@result_shape.right
def _(shape, index):
    import numpy

    # with the numbers taken out beforehand, torch and NumPy agree
    asked, sizes, items = sum(i is not None and i is not Ellipsis for i in index), list(shape), []
    kept = []
    for item in index:
        if item is Ellipsis:
            kept += sizes[: len(shape) - asked]
            sizes = sizes[len(shape) - asked :]
        elif item is not None:
            n, *sizes = sizes
            if type(item) is int:
                continue
            kept.append(n)
        items.append(item)
    return tuple(numpy.broadcast_to(0, (*kept, *sizes))[tuple(items)].shape)


@result_shape.right
def _(shape, index):
    def walk(shape, index, open_dims):
        """The sizes that the rest of the index adds, and (sizes before it, length) of each list in it."""
        if not index:
            return list(shape), []
        item, *rest = index
        if item is Ellipsis:
            skipped = len(shape) - sum(i is not None for i in rest)
            sizes, lists = walk(shape[skipped:], rest, open_dims + skipped)
            return [*shape[:skipped], *sizes], lists
        if item is None:
            sizes, lists = walk(shape, rest, open_dims + 1)
            return [1, *sizes], lists
        if isinstance(item, slice):
            start, stop, step = item.indices(shape[0])
            sizes, lists = walk(shape[1:], rest, open_dims + 1)
            return [max(0, -((start - stop) // step)), *sizes], lists
        sizes, lists = walk(shape[1:], rest, open_dims)
        if isinstance(item, int):
            return sizes, lists
        length = item.count(True) if item and type(item[0]) is bool else len(item)
        return sizes, [(open_dims, length), *lists]

    sizes, lists = walk(tuple(shape), index, 0)
    if not lists:
        return tuple(sizes)
    first = lists[0][0]
    at = first if all(place == first for place, _ in lists) else 0
    lengths = {length for _, length in lists}
    return (*sizes[:at], min(lengths) if 0 in lengths else max(lengths), *sizes[at:])


# ---- 2.7 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.7",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-18"],
    properties=[no_loops],
    forbidden=["bincount", "histc"],
    visible=5,
    hints=[
        "counts[values] += 1 reads, adds and writes back once for each place, so a value that comes twice is "
        "counted once. You need an operation that adds for every value.",
        "counts.index_put_((values,), ones, accumulate=True) adds, and so does counts.scatter_add_(0, values, "
        "ones). The ones have the shape and dtype of values.",
        "Start from counts, bins zeros of dtype int64; then counts.index_put_((values,), ___, accumulate=___); "
        "then return counts.",
    ],
)
def histogram(values, bins):
    counts = torch.zeros(bins, dtype=torch.int64, device=values.device)
    return counts.index_put_((values,), torch.ones_like(values), accumulate=True)


@histogram.cases
def _(rng):
    yield torch.tensor([1, 1, 2]), 4
    yield torch.tensor([], dtype=torch.int64), 3
    yield torch.tensor([0, 0, 0, 0]), 1
    yield torch.tensor([3, 0, 3, 1, 3]), 5
    yield torch.tensor([2, 0, 1]), 3  # no duplicates
    yield torch.tensor([4, 9, 4, 9, 4, 9])[::2], 6
    yield rng.integers(40, low=0, high=5), 9
    for _ in range(8):
        bins = rng.integer(1, 7)
        yield rng.integers(rng.integer(1, 20), low=0, high=bins - 1), bins


@histogram.wrong(
    "M11",
    "Every value was counted at most once. counts[values] += 1 means: read the counts at all these places, add "
    "1, write them back, and a place that comes three times is written three times with the same number. Use "
    "index_put_ with accumulate=True, or scatter_add_.",
    sample="wrong_duplicates",
)
def _(values, bins):
    import torch

    counts = torch.zeros(bins, dtype=torch.int64)
    counts[values] += 1
    return counts


@histogram.wrong(
    "X-2.7-1",
    "The counts are floats. torch.zeros makes float32 unless you say dtype=torch.int64.",
)
def _(values, bins):
    import torch

    return torch.zeros(bins).index_put_((values,), torch.ones(values.shape), accumulate=True)


@histogram.wrong(
    "X-2.7-2",
    "The result ends with the largest value seen. There are `bins` counts, also for values that never come, and "
    "also when there are no values at all.",
)
def _(values, bins):
    import torch

    counts = torch.zeros(int(values.max()) + 1, dtype=torch.int64)
    return counts.index_put_((values,), torch.ones_like(values), accumulate=True)


@histogram.wrong(
    "X-2.7-3",
    "The counts are right, but Python counts the values one by one. One index_put_ with accumulate=True does it "
    "for all.",
)
def _(values, bins):
    import torch

    counts = torch.zeros(bins, dtype=torch.int64)
    for v in values:
        counts[v] += 1
    return counts


@histogram.wrong(
    "X-2.7-4",
    "Counts of values that never come are missing: torch.unique and bincount know only the values that they saw. Make "
    "a tensor of `bins` zeros and add to it.",
)
def _(values, bins):
    import torch

    return torch.unique(values, return_counts=True)[1]


@histogram.wrong(
    "X-2.7-5",
    "The values themselves were added up. What is added for each value is 1, and the value says where.",
)
def _(values, bins):
    import torch

    return torch.zeros(bins, dtype=torch.int64).scatter_add_(0, values, values)


@histogram.wrong(
    "X-2.7-6",
    "torch.bincount is the ready-made answer, and at work you should use it. Here, build it yourself with an "
    "index: an index_put_ that accumulates is what you will need when there is no ready-made one.",
)
def _(values, bins):
    import torch

    return torch.bincount(values, minlength=bins)


@histogram.wrong(
    "X-2.7-7",
    "All counts are still 0. Without an underscore at the end, scatter_add and index_put leave counts as they were and "
    "return a new tensor. Return that one, or use scatter_add_ or index_put_.",
)
def _(values, bins):
    import torch

    counts = torch.zeros(bins, dtype=torch.int64)
    counts.scatter_add(0, values, torch.ones_like(values))
    return counts


@histogram.right
def _(values, bins):
    import torch

    counts = torch.zeros(bins, dtype=torch.int64, device=values.device)
    return counts.scatter_add_(0, values, torch.ones_like(values))


@histogram.right
def _(values, bins):
    import torch

    return (values[:, None] == torch.arange(bins, device=values.device)).sum(0)


# ---- 2.8 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.8",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-18"],
    needs=["zero_block"],
    properties=[same_sharing],
    visible=7,
    hints=[
        "Two pairs of brackets are two steps, and the first step, x[rows], copies. The write has to happen in "
        "one pair of brackets.",
        "In one pair of brackets two lists are read in pairs, unless they broadcast: rows as a column of shape "
        "(r, 1) and cols of shape (c,) meet in a grid of shape (r, c). A wrong position must be found before the "
        "write: reading the same places first finds it.",
        "Make int64 tensors of both lists, rows as a column: torch.tensor(rows, dtype=torch.int64)[:, ___]. With "
        "these two, read x[r, c] once, which finds wrong positions; then write x[r, c] = ___, and return x.",
    ],
)
def set_grid(x, rows, cols, value):
    grid = torch.tensor(rows, dtype=torch.int64)[:, None], torch.tensor(cols, dtype=torch.int64)
    x[grid]  # reading first: a position that is not there raises before anything is written
    x[grid] = value
    return x


@set_grid.cases
def _(rng):
    yield rng.matrix(3, 3), [0, 2], [0, 1], -1
    yield rng.matrix(3, 4), [0, 1], [0, 2, 3], -5
    yield rng.matrix(2, 3), [0], [2], -2
    yield rng.matrix(2, 3), [0, 1], [0, -4], -1  # there is no column -4
    yield rng.matrix(4, 3), [2, 0], [-1], -4
    yield rng.matrix(2, 2), [0, 7], [1, 0], -1
    yield rng.matrix(3, 3).t(), [0, 2], [0, 2], -7
    yield rng.matrix(2, 2), [], [0, 1], -1
    yield rng.matrix(2, 2), [1], [], -1
    yield rng.matrix(3, 3), [1, 1, 0], [2, 2], -3
    yield rng.matrix(3, 5, dtype=torch.int64), [-3, 1], [4, 0, 1], -8
    yield rng.matrix(2, 2), [0, -3], [1, 0], -1  # there is no row -3
    yield rng.matrix(2, 3), [0, 1], [0, 3], -1
    for _ in range(10):
        m, n = rng.integer(2, 5), rng.integer(2, 5)
        rows = rng.permutation(m)[: rng.integer(1, m)].tolist()
        cols = rng.permutation(n)[: rng.integer(1, n)].tolist()
        yield rng.matrix(m, n), rows, cols, -rng.integer(1, 9)


@set_grid.wrong(
    "M11",
    "Nothing was written to x. x[rows] with a list is a copy; the second pair of brackets writes into that copy, "
    "and then it is gone. Put both lists into one pair of brackets.",
)
def _(x, rows, cols, value):
    x[rows][:, cols] = value
    return x


@set_grid.wrong(
    "M09",
    "Two lists in one pair of brackets are read in pairs: (rows[0], cols[0]), (rows[1], cols[1]) ... For a grid, "
    "make the rows a column, of shape (r, 1), so that the two broadcast.",
)
def _(x, rows, cols, value):
    x[rows, cols] = value
    return x


@set_grid.wrong(
    "X-2.8-1",
    "Too much was written: whole rows and whole columns. The grid is only where a row of the list and a column "
    "of the list cross.",
)
def _(x, rows, cols, value):
    x[rows][:, cols]
    x[rows] = value
    x[:, cols] = value
    return x


@set_grid.wrong(
    "X-2.8-2",
    "Your result is right, and it is another tensor: x itself has to be changed, and returned.",
)
def _(x, rows, cols, value):
    import torch

    x = x.clone()
    grid = torch.tensor(rows, dtype=torch.int64)[:, None], torch.tensor(cols, dtype=torch.int64)
    x[grid] = value
    return x


@set_grid.wrong(
    "X-2.8-3",
    "The IndexError came too late: when torch finds the wrong position, it has written to others already. Find "
    "out before you write whether all positions exist, for example by reading x[grid] first.",
)
def _(x, rows, cols, value):
    import torch

    x[torch.tensor(rows, dtype=torch.int64)[:, None], torch.tensor(cols, dtype=torch.int64)] = value
    return x


@set_grid.wrong(
    "X-2.8-4",
    "The rectangle from the first to the last position was filled. Only the rows and the columns that are listed "
    "belong to the grid.",
)
def _(x, rows, cols, value):
    x[rows][:, cols]
    if rows and cols:
        r, c = [i % x.shape[0] for i in rows], [j % x.shape[1] for j in cols]
        x[min(r) : max(r) + 1, min(c) : max(c) + 1] = value
    return x


@set_grid.wrong("X-2.8-5", "The write is right, but nothing was returned: end with return x.")
def _(x, rows, cols, value):
    import torch

    grid = torch.tensor(rows, dtype=torch.int64)[:, None], torch.tensor(cols, dtype=torch.int64)
    x[grid]
    x[grid] = value


@set_grid.wrong(
    "X-2.8-6",
    "Positions can be too small as well: below minus the number of rows or columns there is nothing, and the error then "
    "comes in the middle of the write. Look at both ends, or read x[grid] first.",
)
def _(x, rows, cols, value):
    import torch

    if any(row >= x.shape[0] for row in rows) or any(col >= x.shape[1] for col in cols):
        raise IndexError("a position lies outside of x")
    x[torch.tensor(rows, dtype=torch.int64)[:, None], torch.tensor(cols, dtype=torch.int64)] = value
    return x


@set_grid.right
def _(x, rows, cols, value):
    block = x[rows]  # a copy, which is written back
    block[:, cols] = value
    x[rows] = block
    return x


@set_grid.right
def _(x, rows, cols, value):
    m, n = x.shape
    if any(not -m <= i < m for i in rows) or any(not -n <= j < n for j in cols):
        raise IndexError("a position lies outside of x")
    for i in rows:
        x[i, cols] = value
    return x


# ---- 2.9 ------------------------------------------------------------------------------------------------------------


@exercise(
    "2.9",
    points=3,
    minutes=10,
    stars=2,
    concepts=["L-18"],
    needs=["histogram"],
    properties=[no_loops, device_agnostic],
    forbidden=["one_hot"],
    visible=5,
    hints=[
        "In row 0 the 1 stands in column labels[0], in row 1 in column labels[1] ... Two lists of positions, one "
        "for rows and one for columns, are read in pairs.",
        "Start with torch.zeros(n, classes, device=labels.device). Row positions are torch.arange(n), column "
        "positions are the labels.",
        "out[torch.arange(n, device=labels.device), ___] = 1, and then return out.",
    ],
)
def one_hot(labels, classes):
    out = torch.zeros(len(labels), classes, device=labels.device)
    out[torch.arange(len(labels), device=labels.device), labels] = 1
    return out


@one_hot.cases
def _(rng):
    yield torch.tensor([2, 0, 2]), 4  # a repeated class, and one that never comes
    yield torch.tensor([0, 1, 2]), 3
    yield torch.tensor([3]), 4  # the last class alone
    yield torch.tensor([], dtype=torch.int64), 2
    yield torch.tensor([1, 1, 1, 0]), 2
    yield torch.tensor([0, 0]), 1
    yield torch.tensor([4, 9, 1, 9, 0, 9])[::2], 5
    for _ in range(8):
        classes = rng.integer(1, 6)
        yield rng.integers(rng.integer(1, 6), low=0, high=classes - 1), classes


@one_hot.wrong(
    "M09",
    "Each row has the ones of all labels. A slice (:) beside a list takes every row with every listed column; "
    "two lists are read in pairs. Give the rows as a list of positions, too: torch.arange(n).",
)
def _(labels, classes):
    import torch

    out = torch.zeros(len(labels), classes, device=labels.device)
    out[:, labels] = 1
    return out


@one_hot.wrong("X-2.9-1", "The result holds integers. A float32 tensor is asked for: torch.zeros makes one by itself.")
def _(labels, classes):
    import torch

    out = torch.zeros(len(labels), classes, dtype=labels.dtype, device=labels.device)
    out[torch.arange(len(labels), device=labels.device), labels] = 1
    return out


@one_hot.wrong(
    "X-2.9-2",
    "Right on the CPU, but with labels on a GPU your new tensors would still be made on the CPU, and torch "
    "refuses to mix the two. Make them with device=labels.device.",
)
def _(labels, classes):
    import torch

    out = torch.zeros(len(labels), classes)
    out[torch.arange(len(labels)), labels] = 1
    return out


@one_hot.wrong(
    "X-2.9-3",
    "The number of columns comes from the largest label. A class that no label names still needs its column: use "
    "`classes`.",
)
def _(labels, classes):
    import torch

    columns = int(labels.max()) + 1 if len(labels) else 0
    out = torch.zeros(len(labels), columns, device=labels.device)
    out[torch.arange(len(labels), device=labels.device), labels] = 1
    return out


@one_hot.wrong(
    "X-2.9-4",
    "The values are right, but Python writes the ones row by row. Two tensors of positions write all of them at once.",
)
def _(labels, classes):
    import torch

    out = torch.zeros(len(labels), classes, device=labels.device)
    for row in range(len(labels)):
        out[row, labels[row]] = 1
    return out


@one_hot.wrong(
    "X-2.9-5", "Rows and columns are exchanged: the result has one row for each label, one column for each class."
)
def _(labels, classes):
    import torch

    out = torch.zeros(classes, len(labels), device=labels.device)
    out[labels, torch.arange(len(labels), device=labels.device)] = 1
    return out


@one_hot.wrong(
    "X-2.9-6",
    "Only the first row was written. out[0, labels] puts all the ones into row 0; give each label its own row.",
)
def _(labels, classes):
    import torch

    out = torch.zeros(len(labels), classes, device=labels.device)
    out[:1, labels] = 1
    return out


@one_hot.wrong(
    "X-2.9-7",
    "torch.nn.functional.one_hot is the ready-made answer. Here, build it with an index; it takes two lines.",
)
def _(labels, classes):
    import torch

    return torch.nn.functional.one_hot(labels, classes).float()


@one_hot.right
def _(labels, classes):
    import torch

    return torch.eye(classes, device=labels.device)[labels]


@one_hot.right
def _(labels, classes):
    import torch

    return (labels[:, None] == torch.arange(classes, device=labels.device)).float()


@one_hot.right
def _(labels, classes):
    import torch

    return torch.zeros(len(labels), classes, device=labels.device).scatter_(1, labels[:, None], 1.0)


# ---- 2.10 -----------------------------------------------------------------------------------------------------------


@exercise(
    "2.10",
    points=4,
    minutes=20,
    stars=3,
    concepts=["L-17", "L-22"],
    needs=["keep_row"],
    properties=[same_sharing, copy_budget()],
    visible=6,
    hints=[
        "Ask for each of the three: can start:stop:step say it? If so it costs nothing. If not, copy only the "
        "rows that you need.",
        "crop is a slice. reverse needs .flip(0), which copies, so crop before you flip. In swap, x[i] is a "
        "view: it changes while you write, so keep a copy of one row, or give both rows as lists.",
        "swap: x[[i, j]] = x[[j, ___]] and return x. crop: return x[i:___]. reverse: return x[i:j].flip(___).",
    ],
)
def rearranged(x, how, i, j):
    if how == "swap":
        x[[i, j]] = x[[j, i]]
        return x
    return x[i:j] if how == "crop" else x[i:j].flip(0)


@rearranged.cases
def _(rng):
    yield rng.matrix(4, 3), "swap", 0, 2
    yield rng.matrix(4, 3), "crop", 1, 3
    yield rng.matrix(4, 3), "reverse", 0, 3
    yield rng.matrix(3, 4), "swap", 1, -1
    yield rng.matrix(16, 6), "reverse", 2, 4
    yield rng.matrix(16, 6), "swap", 3, 11
    yield rng.matrix(3, 4).t(), "crop", 0, 2
    yield rng.matrix(3, 2), "swap", 1, 1
    yield rng.matrix(3, 2), "crop", 2, 2  # no row at all
    yield rng.matrix(3, 2), "reverse", 1, 1
    yield rng.matrix(5, 4).t(), "reverse", 1, 4
    for _ in range(9):
        rows = rng.integer(2, 7)
        i = rng.integer(0, rows - 2)
        yield (
            rng.matrix(rows, rng.integer(1, 5)),
            rng.choice(["swap", "crop", "reverse"]),
            i,
            rng.integer(i + 1, rows - 1),
        )


@rearranged.wrong(
    "M01",
    "After the swap both rows are the same. x[i] and x[j] on the right are views, so when the first row is "
    "written, the view that should fill the second has changed, too. Keep a copy of one row, or read both with a "
    "list, which copies.",
)
def _(x, how, i, j):
    if how == "swap":
        x[i], x[j] = x[j], x[i]
        return x
    return x[i:j] if how == "crop" else x[i:j].flip(0)


@rearranged.wrong(
    "M12",
    "torch has no negative steps, unlike Python lists and NumPy: x[::-1] ends with a ValueError. A reversed "
    "order cannot be a view here; flip makes a copy.",
)
def _(x, how, i, j):
    if how == "swap":
        x[[i, j]] = x[[j, i]]
        return x
    return x[i:j] if how == "crop" else x[i:j][::-1]


@rearranged.wrong(
    "M09",
    "Your crop is a copy. Rows that stand one after another can be told by a slice, i:j, and a slice copies nothing.",
)
def _(x, how, i, j):
    if how == "swap":
        x[[i, j]] = x[[j, i]]
        return x
    return x[list(range(i, j))] if how == "crop" else x[i:j].flip(0)


@rearranged.wrong(
    "X-2.10-1",
    "Your swap made a new tensor and left x as it was. The two rows have to change places in x itself, and x is "
    "what is returned.",
)
def _(x, how, i, j):
    if how == "swap":
        x = x.clone()
        x[[i, j]] = x[[j, i]]
        return x
    return x[i:j] if how == "crop" else x[i:j].flip(0)


@rearranged.wrong("X-2.10-2", "Row j is in the crop, but a range i to j ends before j, as everywhere in Python.")
def _(x, how, i, j):
    if how == "swap":
        x[[i, j]] = x[[j, i]]
        return x
    return x[i : j + 1] if how == "crop" else x[i:j].flip(0)


@rearranged.wrong(
    "X-2.10-3", "The columns were reversed. flip takes the dimension along which to reverse: 0 for the rows."
)
def _(x, how, i, j):
    if how == "swap":
        x[[i, j]] = x[[j, i]]
        return x
    return x[i:j] if how == "crop" else x[i:j].flip(1)


@rearranged.wrong(
    "X-2.10-4",
    "These are the wrong rows: after x.flip(0) the rows have new numbers. Crop first, then flip.",
)
def _(x, how, i, j):
    if how == "swap":
        x[[i, j]] = x[[j, i]]
        return x
    return x[i:j] if how == "crop" else x.flip(0)[i:j]


@rearranged.wrong(
    "X-2.10-5",
    "The rows are right, but all of x was copied to get them: flip copies whatever it is given. Crop first, "
    "which is free, and flip the crop.",
)
def _(x, how, i, j):
    if how == "swap":
        x[[i, j]] = x[[j, i]]
        return x
    return x[i:j] if how == "crop" else x.flip(0)[len(x) - j : len(x) - i]


@rearranged.wrong(
    "X-2.10-6",
    "The swap is right, but it goes through a copy of the whole of x. A copy of one row is enough.",
)
def _(x, how, i, j):
    if how == "swap":
        before = x.clone()
        x[i], x[j] = before[j], before[i]
        return x
    return x[i:j] if how == "crop" else x[i:j].flip(0)


@rearranged.right
def _(x, how, i, j):
    import torch

    if how == "swap":
        kept = x[i].clone()
        x[i] = x[j]
        x[j] = kept
        return x
    if how == "crop":
        return x.narrow(0, i, j - i)
    return x[torch.arange(j - 1, i - 1, -1)]


@rearranged.right
def _(x, how, i, j):
    rows = slice(i, j)
    if how == "reverse":
        return x[rows].flipud()
    if how == "swap":
        x.index_copy_(0, x.new_tensor([i % len(x), j % len(x)]).long(), x[[j, i]])
        return x
    return x[rows]


# ---- 2.11 -----------------------------------------------------------------------------------------------------------


@exercise(
    "2.11",
    points=3,
    minutes=15,
    stars=3,
    concepts=["L-20", "L-21"],
    needs=["multiples_of"],
    properties=[gradient, finite_gradient],
    gradient=True,
    visible=6,
    hints=[
        "Two questions for each story: must the shape stay, and what may stand where the mask is False? "
        "Arithmetic with the hidden numbers (times 0, or their logarithm) is not safe.",
        "only: the mask as an index. fill: masked_fill(where, value), with the mask turned round by ~. log: give "
        "the hidden places a harmless number before you take the logarithm, with torch.where(mask, x, number).",
        "x[mask]; x.masked_fill(~mask, 0); torch.where(mask, x, ___).log(), where the logarithm of the number "
        "you fill in is the 0 that is asked for.",
    ],
)
def select(x, mask, story):
    if story == "only":
        return x[mask]
    if story == "fill":
        return x.masked_fill(~mask, 0)
    return torch.where(mask, x, 1).log()


@select.cases
def _(rng):
    nan, inf = float("nan"), float("inf")

    def tracked(values, dtype=torch.float32):
        return torch.tensor(values, dtype=dtype, requires_grad=True)

    yield tracked([1.0, 2.0, 4.0]), torch.tensor([True, False, True]), "only"
    yield tracked([[1.0, nan], [inf, 2.0]]), torch.tensor([[True, False], [False, True]]), "fill"
    yield tracked([1.0, 0.0, 2.0]), torch.tensor([True, False, True]), "log"
    yield tracked([[3.0, -1.0], [0.5, 4.0]]), torch.tensor([[True, False], [False, True]]), "log"
    yield tracked([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[False, True], [True, True]]), "only"
    yield tracked([1.0, 2.0], torch.float64), torch.tensor([False, False]), "fill"
    yield tracked([5.0, nan]), torch.tensor([False, False]), "only"
    yield tracked([nan, 1.0]), torch.tensor([False, True]), "log"
    yield tracked([]), torch.tensor([], dtype=torch.bool), "log"
    yield tracked([[2.0, 3.0]]), torch.tensor([[True, True]]), "fill"
    for story in ("only", "fill", "log") * 4:
        x, mask = rng.normal(rng.integer(1, 3), rng.integer(1, 4)).abs() + 0.5, None
        mask = rng.mask(*x.shape)
        hidden = torch.tensor([0.0, nan, -1.0, inf])[torch.randint(4, x.shape, generator=rng.generator)]
        yield torch.where(mask, x, hidden).requires_grad_(), mask, story


@select.wrong(
    "M22",
    "NaN or infinity came through: 0 times NaN is NaN. A product does not hide a number. masked_fill puts the 0 "
    "there without looking at what it replaces.",
)
def _(x, mask, story):
    import torch

    if story == "only":
        return x[mask]
    if story == "fill":
        return x * mask
    return torch.where(mask, x, 1).log()


@select.wrong(
    "M21",
    "The numbers are right, the gradient is not finite. where picks after both sides are computed: the logarithm "
    "of the hidden 0 was taken, its slope is infinite, and 0 times infinity is NaN. Replace the hidden numbers "
    "first, then take the logarithm.",
)
def _(x, mask, story):
    import torch

    if story == "only":
        return x[mask]
    if story == "fill":
        return x.masked_fill(~mask, 0)
    return torch.where(mask, x.log(), 0)


@select.wrong(
    "X-2.11-1",
    "The shape is gone. For fill and log each number has to stay at its place; x[mask] strings the chosen ones "
    "together.",
)
def _(x, mask, story):
    return x[mask].log() if story == "log" else x[mask]


@select.wrong(
    "X-2.11-2",
    "The result has lost its connection to x, so no gradient reaches x. detach(), .data and a tensor made anew "
    "from numbers all cut it.",
)
def _(x, mask, story):
    import torch

    x = x.detach()
    if story == "only":
        return x[mask]
    if story == "fill":
        return x.masked_fill(~mask, 0)
    return torch.where(mask, x, 1).log()


@select.wrong(
    "M23",
    "The mask was read the wrong way round. Here True means: this one counts. masked_fill fills where its mask "
    "is True, so it needs ~mask.",
)
def _(x, mask, story):
    import torch

    if story == "only":
        return x[~mask]
    if story == "fill":
        return x.masked_fill(mask, 0)
    return torch.where(mask, 1, x).log()


@select.wrong(
    "X-2.11-3",
    "masked_fill_ with an underscore writes into x itself, and torch refuses: x is a tensor whose gradient is "
    "asked for. Without the underscore you get a new tensor.",
)
def _(x, mask, story):
    import torch

    if story == "only":
        return x[mask]
    if story == "fill":
        return x.masked_fill_(~mask, 0)
    return torch.where(mask, x, 1).log()


@select.wrong(
    "X-2.11-4",
    "The logarithm of 0 is minus infinity. Fill the hidden places with the number whose logarithm is 0.",
)
def _(x, mask, story):

    if story == "only":
        return x[mask]
    filled = x.masked_fill(~mask, 0)
    return filled if story == "fill" else filled.log()


@select.wrong(
    "X-2.11-5",
    "It is the other way round: masked_fill fills where its mask is True, and here True means that the element counts. "
    "Turn the mask round with ~.",
)
def _(x, mask, story):
    import torch

    if story == "only":
        return x[mask]
    if story == "fill":
        return x.masked_fill(mask, 0)
    return torch.where(mask, x, 1).log()


@select.right
def _(x, mask, story):
    import torch

    if story == "only":
        return x.masked_select(mask)
    filled = torch.where(mask, x, 0 if story == "fill" else 1)
    return filled if story == "fill" else filled.log()


@select.right
def _(x, mask, story):
    import torch

    places = mask.nonzero(as_tuple=True)
    if story == "only":
        return x[places]
    chosen = x[places].log() if story == "log" else x[places]
    return torch.zeros_like(x).index_put(places, chosen)


# ---- 2.12 -----------------------------------------------------------------------------------------------------------


@exercise(
    "2.12",
    points=6,
    minutes=40,
    stars=4,
    homework=True,
    concepts=["L-21"],
    needs=["multiples_of", "histogram"],
    properties=[never_calls("index", "masked_select", "nonzero"), op_budget(8)],
    forbidden=["tolist", "numpy"],
    visible=5,
    hints=[
        "Each chosen element has to know its place in the result, and that is the number of chosen elements "
        "before it. A running sum over the mask counts them.",
        "mask.cumsum(0) - 1 is that place. result.scatter(0, places, x) writes x[i] to places[i]. Elements that "
        "are not chosen need a place, too: one behind the end, which you cut off.",
        "n = int(mask.sum()); places = torch.where(mask, mask.cumsum(0) - ___, n); return x.new_zeros(n + "
        "1).scatter(0, places, x)[:___].",
    ],
)
def compact(x, mask):
    n = int(mask.sum())
    places = torch.where(mask, mask.cumsum(0) - 1, n)
    return x.new_zeros(n + 1).scatter(0, places, x)[:n]


@compact.cases
def _(rng):
    yield torch.tensor([5.0, 6.0, 7.0, 8.0]), torch.tensor([False, True, False, True])
    yield torch.tensor([5, 6, 7]), torch.tensor([False, False, False])
    yield torch.tensor([5, 6, 7]), torch.tensor([True, True, True])
    yield torch.tensor([4, 9, 2, 7]), torch.tensor([True, False, True, True])
    yield rng.permutation(40).float(), rng.mask(40)
    yield torch.tensor([]), torch.tensor([], dtype=torch.bool)
    yield torch.tensor([3]), torch.tensor([True])
    yield torch.tensor([3]), torch.tensor([False])
    yield rng.permutation(24)[::2], rng.mask(12)
    yield torch.tensor([0.0, float("nan"), float("inf")]), torch.tensor([True, False, False])
    for _ in range(8):
        n = rng.integer(1, 30)
        yield rng.integers(n), rng.mask(n, density=rng.choice([0.1, 0.5, 0.9]))


@compact.wrong(
    "X-2.12-1",
    "The elements are right, and torch chose them: x[mask] (or nonzero, or masked_select) is what you are asked "
    "to build. Use a running sum to find out where each element goes.",
)
def _(x, mask):
    return x[mask]


@compact.wrong(
    "M11",
    "Elements that are not chosen are written to place 0, over the one that belongs there: of several writes to "
    "one place, the last stays. Send them to a place of their own, behind the end.",
)
def _(x, mask):
    import torch

    n = int(mask.sum())
    places = torch.where(mask, mask.cumsum(0) - 1, 0)
    return x.new_zeros(n + 1).scatter(0, places, x)[:n]


@compact.wrong(
    "X-2.12-2",
    "All is one place too far: the running sum counts the element itself. The first chosen one has the sum 1 and "
    "belongs to place 0.",
)
def _(x, mask):
    import torch

    n = int(mask.sum())
    places = torch.where(mask, mask.cumsum(0), 0)
    return x.new_zeros(n + 1).scatter(0, places, x)[:n]


@compact.wrong(
    "X-2.12-3",
    "The result is as long as x. Cut it off after as many elements as the mask has Trues.",
)
def _(x, mask):
    import torch

    places = torch.where(mask, mask.cumsum(0) - 1, len(x))
    return x.new_zeros(len(x) + 1).scatter(0, places, x)[: len(x)]


@compact.wrong(
    "X-2.12-4",
    "The elements are still at their old places, with zeros between them. They have to move together.",
)
def _(x, mask):
    import torch

    return torch.where(mask, x, 0)


@compact.wrong(
    "X-2.12-5",
    "The elements are right, but Python moves them one by one, which takes several operations for each. cumsum "
    "and scatter do it in a handful, whatever the length.",
)
def _(x, mask):
    result, n = x.new_zeros(int(mask.sum())), 0
    for i in range(len(x)):
        if mask[i]:
            result[n] = x[i]
            n += 1
    return result


@compact.wrong(
    "X-2.12-6",
    "The elements are in another order than in x. A sort that is not stable, or that sorts the other way round, "
    "mixes them up.",
)
def _(x, mask):
    n = int(mask.sum())
    return x.gather(0, mask.int().argsort(stable=True).flip(0))[:n]


@compact.right
def _(x, mask):
    import torch

    total = mask.cumsum(0)
    count = torch.arange(1, int(mask.sum()) + 1, device=mask.device)
    return x.gather(0, torch.searchsorted(total, count))


@compact.right
def _(x, mask):
    order = (~mask).int().argsort(stable=True)
    return x.gather(0, order)[: int(mask.sum())]


@compact.right
def _(x, mask):
    result = x.new_empty(int(mask.sum().item()) + 1)
    place = (mask.long().cumsum(0) - 1).masked_fill(~mask, -1)
    result[place] = x
    return result.narrow(0, 0, len(result) - 1)


# ---- predictions ----------------------------------------------------------------------------------------------------

PREDICTIONS = (
    prediction(
        "R1",
        "A tensor `a` of shape (4, 3) is contiguous. What are its strides, in elements?",
        {
            "a": ("(3, 1)", "Right: one row further is three elements further in memory, one column further is one."),
            "b": ("(1, 4)", "These are the strides of a (4, 3) tensor that lies in memory column by column."),
            "c": ("(4, 3)", "These are the sizes. The stride says how far to go in memory for the next element."),
            "d": ("(12, 4)", "These are bytes of float32. Strides are counted in elements: (3, 1)."),
        },
        "a",
    ),
    prediction(
        "R2",
        "`v` has three of the million elements of `big`, and `v` is a view. After `del big`, how much memory is "
        "still in use?",
        {
            "a": (
                "that of three elements",
                "The elements of a view lie in the storage of the tensor it came from, and a storage is freed as "
                "a whole or not at all.",
            ),
            "b": (
                "that of a million elements",
                "Right: the view keeps the whole storage alive. v.clone() would let it go.",
            ),
            "c": ("none", "v is still there, and so is what it refers to."),
        },
        "b",
    ),
    prediction(
        "R3",
        "`t = a.t()`. What did torch copy?",
        {
            "a": ("nothing", "Right: t has its own sizes and strides and shares the storage of a."),
            "b": ("every element", "A transpose only exchanges sizes and strides; the storage is the same."),
            "c": ("the first row", "Nothing was copied at all: t shares the storage of a."),
        },
        "a",
    ),
    prediction(
        "P1",
        "What is `torch.arange(3)[torch.tensor([1, 0, 1])]`?",
        {
            "a": (
                "`tensor([0, 2])`",
                "That would be the mask [True, False, True]. These are integers: positions 1, 0, 1.",
            ),
            "b": ("`tensor([1, 0, 1])`", "Right: integers are positions, so this is element 1, element 0, element 1."),
            "c": ("an error", "Positions may come twice and in any order; every one is legal here."),
            "d": ("`tensor([0, 0, 2])`", "Nothing is multiplied: the integers say which positions to take."),
        },
        "b",
    ),
    prediction(
        "P2",
        "`a = torch.arange(100).view(10, 10)`, then `b = a[::2, 1:5:3]`, then `print(b)`, then `b[2, 1] = 0`. "
        "What is at `b[2, 1]` on the screen, in `b` now, and at `a[4, 4]`?",
        {
            "a": ("44, 0, 0", "Right: what is printed stays printed; b and a share the element, so both have 0."),
            "b": (
                "0, 0, 0",
                "The print came first, and what stands on the screen is text: it does not change any more.",
            ),
            "c": ("44, 0, 44", "b is a view: b[2, 1] and a[4, 4] are one and the same place in memory."),
            "d": ("44, 44, 44", "The assignment writes into b, and b is a view of a."),
        },
        "a",
    ),
    prediction(
        "P3",
        "`a` has shape (10, 10); `b = a[[0, 1, 3, 4, 7], 1:5:3]`, `c = b`, `d = a[5, :]`. Which of them share "
        "memory with `a`?",
        {
            "a": ("b, c and d", "The list makes b a copy, whatever stands beside it; c is the same tensor as b."),
            "b": (
                "only d",
                "Right: a number and a slice give a view; the list in b's index copies, and c is another name for b.",
            ),
            "c": (
                "b and d, not c",
                "c = b copies nothing and makes nothing new: c is b, so both share with a or none does.",
            ),
            "d": ("none", "d is made by a number and a slice. Such an index always gives a view."),
        },
        "b",
    ),
    prediction(
        "P4",
        "`a` has shape (10, 10), `mask` has shape (10,) and is True only at position 2. Shapes of `a[mask, :]` "
        "and `a[2, :]`?",
        {
            "a": (
                "(10,) and (10,)",
                "A mask may pick any number of rows, so its dimension stays, even when it picks one.",
            ),
            "b": (
                "(1, 10) and (10,)",
                "Right: a mask keeps a dimension, as long as it has Trues; a number removes it.",
            ),
            "c": ("(1, 10) and (1, 10)", "The number 2 removes the row dimension."),
            "d": ("(10, 10) and (10,)", "Only rows where the mask is True are picked."),
        },
        "b",
    ),
    prediction(
        "P5",
        "`t` has shape (2, 3, 4). What is the shape of `t[0, :, [0, 1]]`?",
        {
            "a": ("(1, 3, 2)", "A number removes its dimension. 0:1 would keep it."),
            "b": ("(2, 3)", "That is NumPy's answer: there the number 0 counts as a list, and the lists stand apart."),
            "c": (
                "(3, 2)",
                "Right: the number goes first and leaves (3, 4); of that, all rows and two columns are taken.",
            ),
            "d": ("(3, 4)", "That is t[0]. The list still picks two of the four columns."),
        },
        "c",
    ),
    prediction(
        "P6",
        "`places = torch.tensor([1, 1, 1, 2])`, `counts` are four zeros. What are they after `counts[places] += 1`?",
        {
            "a": ("[0, 1, 1, 0]", "Right: three times 0 + 1 is written to place 1. The next cells show why."),
            "b": (
                "[0, 3, 1, 0]",
                "It looks like that. But all four counts are read before any is written, so each time 1 is added to 0.",
            ),
            "c": ("an error, because a place comes twice", "torch allows it, and says nothing. That is the trap."),
        },
        "a",
    ),
    prediction(
        "P7",
        "`grid` is a (3, 4) tensor of zeros. What does `grid[[0, 2]][:, [1, 3]] = 7` change in it?",
        {
            "a": (
                "the four places in rows 0 and 2, columns 1 and 3",
                "That was meant. But grid[[0, 2]] is a copy, because of the list, and the 7s are written into it.",
            ),
            "b": (
                "only (0, 1) and (2, 3)",
                "That is what grid[[0, 2], [1, 3]] = 7 writes: one pair of brackets, in pairs.",
            ),
            "c": ("nothing", "Right: the first brackets make a copy, the second write into it, and then it is gone."),
            "d": ("it ends with an error", "It runs without a word, and that makes it dangerous."),
        },
        "c",
    ),
    prediction(
        "P8",
        "The rows of `x` are 1s, 2s and 3s. What are they after `x[0], x[2] = x[2], x[0]`?",
        {
            "a": ("3s, 2s, 1s", "With numbers or lists Python does that. x[0] and x[2] are views, and views change."),
            "b": ("1s, 2s, 3s: nothing is written", "Each x[...] = on the left writes into x, so something changes."),
            "c": (
                "3s, 2s, 3s",
                "Right: after row 0 is written, the view of row 0 that should fill row 2 shows 3s, too.",
            ),
            "d": ("1s, 2s, 1s", "Row 0 is written first, with the 3s of row 2. Then row 2 gets what row 0 has now."),
        },
        "c",
    ),
)
