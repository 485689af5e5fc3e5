"""The exercises of lecture 02, indexing: reference answers, cases, wrong and right answers, predictions."""

import torch

from autograder.exercises import exercise, prediction
from autograder.properties import device_agnostic, no_loops, no_warnings, same_sharing

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
        "x[row, columns] takes an index for each dimension. A negative row counts from the end, and a slice has three "
        "parts, start:stop:step, of which you can leave out any.",
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
    "The numbers are right, but they are a copy in new memory. A list of positions picks the same elements as a slice and "
    "still is no slice: torch copies whatever a list, a tensor of positions or .clone() asks for. Only start:stop:step "
    "gives a view.",
    sample="wrong_copy",
)
def _(x, k):
    return x[-1, list(range(0, x.shape[1], k))]


@every_kth_of_last_row.wrong(
    "X-2.1-1",
    "The first element is missing: every k-th element starts with position 0 (then k, 2k ...), not with position k - 1. "
    "Leave the start of the slice out.",
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
    "These are the first k elements. In start:stop:step a number after one colon is where to stop; the step stands after "
    "the second colon.",
)
def _(x, k):
    return x[-1, :k]


@every_kth_of_last_row.wrong(
    "X-2.1-5",
    "The result has a dimension too many. A slice such as -1: keeps its dimension, even when it takes a single row; the "
    "plain number -1 removes it.",
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
    visible=6,
    hints=[
        "Ask the question of all elements at once: a comparison of a tensor with a number answers with a tensor of bools.",
        "v is a multiple of k exactly when v % k is 0. A bool tensor of the shape of x, used as an index, picks the "
        "elements where it is True. With k = 0 the question makes no sense, so raise an error first.",
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
    yield torch.tensor([], dtype=torch.int64), 4
    yield rng.integers(3, 4, low=0, high=30).t(), 2  # read row by row, although it lies in memory by columns
    yield torch.tensor([16_777_217, 16_777_218, 33_554_433]), 2  # float32 cannot hold the odd ones
    yield torch.tensor([[1, 7], [5, 11]]), 13  # none at all
    yield rng.integers(4, 5, low=-40, high=40), -7
    yield rng.integers(2, 3, 4, low=-20, high=20, dtype=torch.int32), 4
    yield rng.integers(0, 3), 0
    for _ in range(10):
        yield rng.integers(rng.integer(1, 4), rng.integer(1, 5), low=-50, high=50), rng.choice([-5, -2, 1, 2, 3, 4, 6, 9])


@multiples_of.wrong(
    "M10",
    "A tensor of the integers 0 and 1 is not a mask: as an index it means position 0 and position 1, so it picks whole rows, "
    "again and again. Keep the bool tensor that the comparison gives.",
)
def _(x, k):
    if k == 0:
        raise ValueError
    return x[(x % k == 0).long()]


@multiples_of.wrong(
    "X-2.2-1",
    "The elements are right, but torch warns: a uint8 tensor as a mask is an old form that will go away. Keep the bool "
    "tensor that the comparison gives.",
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
    "The shape is still that of x, with 0 for the rest, and a true 0 cannot be told from a filled one. x[mask] keeps only the "
    "chosen elements, in one dimension.",
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
    "For k = 0 a ValueError with a clear text is asked for. Without a test of k, torch divides by zero and ends with a "
    "RuntimeError that names no argument of yours.",
)
def _(x, k):
    return x[x % k == 0]


@multiples_of.wrong(
    "X-2.2-6",
    "Zero and negative numbers are missing. 0 is a multiple of every k, and -6 is a multiple of 3: in torch -6 % 3 is 0.",
)
def _(x, k):
    if k == 0:
        raise ValueError
    return x[(x % k == 0) & (x > 0)]


@multiples_of.wrong(
    "X-2.2-7",
    "x / k is a float32, and that cannot hold integers above 16 777 216 exactly, so some of your multiples are none. Stay "
    "with integers: x % k.",
)
def _(x, k):
    if k == 0:
        raise ValueError
    return x[x / k % 1 == 0]


@multiples_of.wrong(
    "X-2.2-8",
    "The elements are right, but Python looks at them one by one. Compare the whole tensor at once: x % k == 0 is a tensor "
    "of bools.",
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
    concepts=["L-23"],
    needs=["multiples_of"],
    properties=[no_loops],
    visible=6,
    hints=[
        "A test of floats for being whole is a test of rounding errors. Use a float only to guess the root, and let "
        "integers decide.",
        "Guess: square root in float64 (x.double()), rounded, as int64. Proof: the guess times itself, compared with x. What "
        "would the square root of a negative number be? clamp(min=0) avoids the question.",
        "root = x.clamp(min=0).double().sqrt().___().long(), and then return x[root * root == ___].",
    ],
)
def perfect_squares(x):
    root = x.clamp(min=0).double().sqrt().round().long()
    return x[root * root == x]


@perfect_squares.cases
def _(rng):
    yield torch.tensor([[0, 1, 2], [3, 4, 9]])
    yield torch.tensor([9_437_184, 9_437_185, 16_777_215])  # 3072 ** 2, one more, and 4096 ** 2 - 1
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
    "torch.sqrt turns integers into float32, with about seven digits. For large numbers the root of a number close to a square "
    "is rounded to a whole one, so it looks like a square. Guess the root in float64, round it, and let integers decide: "
    "root * root == x.",
)
def _(x):
    import torch

    return x[torch.sqrt(x) % 1 == 0]


@perfect_squares.wrong(
    "X-2.3-1",
    "float64 only moves the problem: above about 2 ** 52 a root close to a whole number is rounded to it as well. The float may "
    "guess; integers must decide: root * root == x.",
)
def _(x):
    return x[x.double().sqrt() % 1 == 0]


@perfect_squares.wrong(
    "X-2.3-2",
    "Large squares are missing: float32 holds whole numbers exactly only up to 2 ** 24, so the root that you square is a "
    "little off. Guess it in float64.",
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
    "Only squares up to a fixed size are found. The numbers in x may be as large as int64 allows, so no list of squares is "
    "long enough.",
)
def _(x):
    import torch

    return x[torch.isin(x, torch.arange(1000) ** 2)]


@perfect_squares.wrong(
    "X-2.3-5",
    "Negative numbers came back. No whole number times itself is negative: take the root of x.clamp(min=0), not of x.abs(), "
    "and compare with x.",
)
def _(x):
    root = x.abs().double().sqrt().round().long()
    return x[root * root == x.abs()]


@perfect_squares.wrong(
    "X-2.3-6",
    "The elements are right, but Python looks at them one by one. Find all roots at once, with operations on the whole tensor.",
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
        "Either a slice of length one, or a plain number and then a new dimension of size 1: unsqueeze, or None in the index. "
        "Try your way with i = -1, too.",
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
    "A plain number as an index removes its dimension: a[i] has one dimension, shape (n,). Put it back in front with "
    "unsqueeze(0), or with None in the index.",
    sample="wrong_rank",
)
def _(a, i):
    return a[i]


@keep_row.wrong(
    "M09",
    "The shape is right, but this is a copy: [i] inside the brackets is a list of positions, and torch copies what a list "
    "picks. Writing to your result would leave a as it was. Use a number or a slice.",
)
def _(a, i):
    return a[[i]]


@keep_row.wrong(
    "X-2.5-2",
    "For i = -1 your slice is -1:0, from the last row up to row 0, and that is empty. A slice of length one is safe only after "
    "the negative number is made positive.",
)
def _(a, i):
    return a[i : i + 1]


@keep_row.wrong("X-2.5-3", "This is column i. Rows are counted by the first index.")
def _(a, i):
    return a[:, i % max(a.shape[1], 1)].unsqueeze(0) if a.shape[1] else a[i].unsqueeze(0)


@keep_row.wrong(
    "X-2.5-4",
    "The new dimension stands behind, which makes a column of shape (n, 1). unsqueeze takes the place of the new dimension: "
    "0 puts it in front.",
)
def _(a, i):
    return a[i].unsqueeze(1)


@keep_row.wrong(
    "M10",
    "A mask of rows copies, always, and a negative i never equals a position that arange counts, so nothing is picked then.",
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
        "counts[values] += 1 reads, adds and writes back once for each place, so a value that comes twice is counted once. "
        "You need an operation that adds for every value.",
        "counts.index_put_((values,), ones, accumulate=True) adds, and so does counts.scatter_add_(0, values, ones). The ones "
        "have the shape and dtype of values.",
        "Start from counts, bins zeros of dtype int64; then counts.index_put_((values,), ___, accumulate=___); then return "
        "counts.",
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
    "Every value was counted at most once. counts[values] += 1 means: read the counts at all these places, add 1, write them "
    "back, and a place that comes three times is written three times with the same number. Use index_put_ with "
    "accumulate=True, or scatter_add_.",
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
    "The result ends with the largest value seen. There are `bins` counts, also for values that never come, and also when there "
    "are no values at all.",
)
def _(values, bins):
    import torch

    counts = torch.zeros(int(values.max()) + 1, dtype=torch.int64)
    return counts.index_put_((values,), torch.ones_like(values), accumulate=True)


@histogram.wrong(
    "X-2.7-3",
    "The counts are right, but Python counts the values one by one. One index_put_ with accumulate=True does it for all.",
)
def _(values, bins):
    import torch

    counts = torch.zeros(bins, dtype=torch.int64)
    for v in values:
        counts[v] += 1
    return counts


@histogram.wrong(
    "X-2.7-4",
    "Counts of values that never come are missing. torch.unique only knows the values that it saw; make a tensor of `bins` "
    "zeros and add to it.",
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
    "torch.bincount is the ready-made answer, and at work you should use it. Here, build it yourself with an index: an "
    "index_put_ that accumulates is what you will need when there is no ready-made one.",
)
def _(values, bins):
    import torch

    return torch.bincount(values, minlength=bins)


@histogram.right
def _(values, bins):
    import torch

    return torch.zeros(bins, dtype=torch.int64).scatter_add_(0, values, torch.ones_like(values))


@histogram.right
def _(values, bins):
    import torch

    return (values[:, None] == torch.arange(bins)).sum(0)


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
        "In row 0 the 1 stands in column labels[0], in row 1 in column labels[1] ... Two lists of positions, one for rows and "
        "one for columns, are read in pairs.",
        "Start with torch.zeros(n, classes, device=labels.device). Row positions are torch.arange(n), column positions are the "
        "labels.",
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
    "Each row has the ones of all labels. A slice (:) beside a list takes every row with every listed column; two lists are "
    "read in pairs. Give the rows as a list of positions, too: torch.arange(n).",
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
    "Right on the CPU, but with labels on a GPU your new tensors would still be made on the CPU, and torch refuses to mix the "
    "two. Make them with device=labels.device.",
)
def _(labels, classes):
    import torch

    out = torch.zeros(len(labels), classes)
    out[torch.arange(len(labels)), labels] = 1
    return out


@one_hot.wrong(
    "X-2.9-3",
    "The number of columns comes from the largest label. A class that no label names still needs its column: use `classes`.",
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


@one_hot.wrong("X-2.9-5", "Rows and columns are exchanged: the result has one row for each label, one column for each class.")
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
    properties=[same_sharing],
    visible=6,
    hints=[
        "Ask for each of the three: can start:stop:step say it? If so it costs nothing. If not, copy only the rows that you need.",
        "crop is a slice. reverse needs .flip(0), which copies, so crop before you flip. In swap, x[i] is a view: it changes "
        "while you write, so keep a copy of one row, or give both rows as lists.",
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
    yield rng.matrix(12, 5), "reverse", 2, 4
    yield rng.matrix(3, 4).t(), "crop", 0, 2
    yield rng.matrix(3, 2), "swap", 1, 1
    yield rng.matrix(3, 2), "crop", 2, 2  # no row at all
    yield rng.matrix(3, 2), "reverse", 1, 1
    yield rng.matrix(5, 4).t(), "reverse", 1, 4
    yield rng.matrix(12, 5), "swap", 3, 11
    for _ in range(9):
        rows = rng.integer(2, 7)
        i = rng.integer(0, rows - 2)
        yield rng.matrix(rows, rng.integer(1, 5)), rng.choice(["swap", "crop", "reverse"]), i, rng.integer(i + 1, rows - 1)


@rearranged.wrong(
    "M01",
    "After the swap both rows are the same. x[i] and x[j] on the right are views, so when the first row is written, the view "
    "that should fill the second has changed, too. Keep a copy of one row, or read both with a list, which copies.",
)
def _(x, how, i, j):
    if how == "swap":
        x[i], x[j] = x[j], x[i]
        return x
    return x[i:j] if how == "crop" else x[i:j].flip(0)


@rearranged.wrong(
    "M12",
    "torch has no negative steps, unlike Python lists and NumPy: x[::-1] ends with a ValueError. A reversed order cannot be a "
    "view here; flip makes a copy.",
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
    "Your swap made a new tensor and left x as it was. The two rows have to change places in x itself, and x is what is "
    "returned.",
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


@rearranged.wrong("X-2.10-3", "The columns were reversed. flip takes the dimension along which to reverse: 0 for the rows.")
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
        "`v` has three of the million elements of `big`, and `v` is a view. After `del big`, how much memory is still in use?",
        {
            "a": ("that of three elements", "The elements of a view lie in the storage of the tensor it came from, and a storage "
                  "is freed as a whole or not at all."),
            "b": ("that of a million elements", "Right: the view keeps the whole storage alive. v.clone() would let it go."),
            "c": ("none", "v is still there, and so is what it refers to."),
        },
        "b",
    ),
    prediction(
        "R3",
        "`t = a.t()`. What did torch copy?",
        {
            "a": ("every element", "A transpose only exchanges sizes and strides; the storage is the same."),
            "b": ("nothing", "Right: t has its own sizes and strides and shares the storage of a."),
            "c": ("the first row", "Nothing was copied at all: t shares the storage of a."),
        },
        "b",
    ),
    prediction(
        "P1",
        "`a` has shape (10, 10); `b = a[[0, 1, 3, 4, 7], 1:5:3]`, `c = b`, `d = a[5, :]`. Which of them share memory with `a`?",
        {
            "a": ("b, c and d", "The list makes b a copy, whatever stands beside it; c is the same tensor as b."),
            "b": ("only d", "Right: a number and a slice give a view; the list in b's index copies, and c is another name for b."),
            "c": ("b and d, not c", "c = b copies nothing and makes nothing new: c is b, so both share with a or none does."),
            "d": ("none", "d is made by a number and a slice. Such an index always gives a view."),
        },
        "b",
    ),
    prediction(
        "P2",
        "`a = torch.arange(100).view(10, 10)`, then `b = a[::2, 1:5:3]`, then `print(b)`, then `b[2, 1] = 0`. "
        "What is at `b[2, 1]` on the screen, in `b` now, and at `a[4, 4]`?",
        {
            "a": ("44, 0, 0", "Right: what is printed stays printed; b and a share the element, so both have 0."),
            "b": ("0, 0, 0", "The print came first, and what stands on the screen is text: it does not change any more."),
            "c": ("44, 0, 44", "b is a view: b[2, 1] and a[4, 4] are one and the same place in memory."),
            "d": ("44, 44, 44", "The assignment writes into b, and b is a view of a."),
        },
        "a",
    ),
    prediction(
        "P3",
        "`a` has shape (10, 10), `mask` has shape (10,) and is True only at position 2. Shapes of `a[mask, :]` and `a[2, :]`?",
        {
            "a": ("(10,) and (10,)", "A mask may pick any number of rows, so its dimension stays, even when it picks one."),
            "b": ("(1, 10) and (10,)", "Right: a mask keeps a dimension, as long as it has Trues; a number removes it."),
            "c": ("(1, 10) and (1, 10)", "The number 2 removes the row dimension."),
            "d": ("(10, 10) and (10,)", "Only rows where the mask is True are picked."),
        },
        "b",
    ),
    prediction(
        "P4",
        "What is `torch.arange(3)[torch.tensor([1, 0, 1])]`?",
        {
            "a": ("tensor([0, 2])", "That would be the mask [True, False, True]. These are integers: positions 1, 0, 1."),
            "b": ("tensor([1, 0, 1])", "Right: integers are positions, so this is element 1, element 0, element 1."),
            "c": ("an error", "Positions may come twice and in any order; every one is legal here."),
            "d": ("tensor([0, 0, 2])", "Nothing is multiplied: the integers say which positions to take."),
        },
        "b",
    ),
)
