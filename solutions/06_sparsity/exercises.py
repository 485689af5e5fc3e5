"""The exercises of lecture 06, sparsity: references, cases, wrong and right answers, predictions."""

import warnings

import torch

from autograder.exercises import exercise, prediction
from autograder.properties import copy_budget, never_calls, no_loops, op_budget
from maskedtensor_ref import masked_tensor

SPARSE_MAKERS = (
    "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "sparse_coo_tensor",
    "sparse_csr_tensor", "coalesce",
)  # fmt: skip
ROOM = 32 << 10  # bytes: a vector or two beside the entries, and no matrix of the large cases
INF, NAN = float("inf"), float("nan")


def coo(indices, values, shape, coalesced=None):
    """A COO tensor that keeps every value it is given, zeros and doubles included."""
    indices, values = torch.as_tensor(indices, dtype=torch.int64), torch.as_tensor(values)
    return torch.sparse_coo_tensor(indices, values, shape, is_coalesced=coalesced, check_invariants=True)


def csr(crow, col, values, shape):
    """A CSR tensor. Torch says once a process that CSR is in beta state, which is no news to those who make cases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = torch.as_tensor(crow), torch.as_tensor(col, dtype=torch.int64), torch.as_tensor(values)
        return torch.sparse_csr_tensor(*parts, shape, check_invariants=True)


def scattered(rng, rows, columns, density=0.4, dtype=torch.float32):
    """A dense matrix of which about this share is not zero; negative numbers, too."""
    numbers = rng.integers(rows, columns, low=1, high=9) * rng.choice([1, -1])
    return torch.where(rng.mask(rows, columns, density=density), numbers, 0).to(dtype)


def as_csr(dense):
    """What is not zero in a dense matrix, as CSR."""
    kept = dense != 0
    crow = torch.cat([torch.zeros(1, dtype=torch.int64), kept.sum(1).cumsum(0)])
    return csr(crow, kept.nonzero()[:, 1], dense[kept], tuple(dense.shape))


def as_coo(dense):
    """What is not zero in a dense tensor, as COO."""
    return coo(dense.nonzero().t(), dense[dense != 0], tuple(dense.shape), True)


def wide(rng, rows=16, columns=4000, per_row=2):
    """A CSR matrix of which nearly everything is empty: made dense, it is a thousand times as large."""
    col = torch.stack([rng.permutation(columns)[:per_row].sort().values for _ in range(rows)]).flatten()
    return csr(torch.arange(rows + 1) * per_row, col, rng.normal(rows * per_row), (rows, columns))


# ---- 6.1 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.1",
    points=2,
    minutes=5,
    stars=1,
    concepts=["S-03"],
    properties=[no_loops],
    forbidden=SPARSE_MAKERS,
    visible=6,
    hints=[
        "You need two things: where x is not zero, and what stands there. Lecture 02 had an index that finds places.",
        "x.nonzero(as_tuple=True) gives one tensor of positions for each dimension, row by row. torch.stack puts them "
        "on top of one another, and the same tuple is an index for x.",
        "index = x.nonzero(as_tuple=___); return torch.stack(___), x[___].",
    ],
)
def coo_parts(x):
    index = x.nonzero(as_tuple=True)
    return torch.stack(index), x[index]


@coo_parts.cases
def _(rng):
    yield torch.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])
    yield torch.tensor([0, -7, 0, 2])
    yield torch.zeros(2, 3)
    yield torch.tensor([[0.0, NAN], [INF, 0.0]])
    yield scattered(rng, 3, 2).t()
    yield torch.tensor([[[0, 1], [2, 0]], [[0, 0], [0, 3]]])
    yield torch.zeros(0, 3)
    yield torch.tensor([[True, False], [False, True]])
    yield torch.tensor([0.5, -0.0, 2.0], dtype=torch.float16)
    yield torch.ones(2, 2, dtype=torch.float64)
    for _ in range(12):
        yield scattered(rng, rng.integer(1, 5), rng.integer(1, 5), dtype=rng.choice([torch.float32, torch.int32]))


@coo_parts.wrong(
    "X-6.1-1",
    "The indices lie on their side: nonzero() without as_tuple gives one row for each entry. COO keeps one row for "
    "each dimension, so the shape is (dimensions, entries).",
    sample="wrong_rank",
)
def _(x):
    return x.nonzero(), x[x != 0]


@coo_parts.wrong("X-6.1-2", "Negative numbers are missing. Everything that is not zero is an entry: != 0, and not > 0.")
def _(x):
    import torch

    index = (x > 0).nonzero(as_tuple=True)
    return torch.stack(index), x[index]


@coo_parts.wrong(
    "M25", "Every cell is stored, zeros too. That takes more memory than the dense tensor: three numbers for one."
)
def _(x):
    import torch

    index = torch.ones_like(x, dtype=torch.bool).nonzero(as_tuple=True)
    return torch.stack(index), x[index]


@coo_parts.wrong(
    "X-6.1-3",
    "NaN is missing. It is not greater than zero, and no number either, but it is not zero: compare with != 0.",
)
def _(x):
    import torch

    index = (x.abs() > 0 if x.dtype != torch.bool else x).nonzero(as_tuple=True)
    return torch.stack(index), x[index]


@coo_parts.wrong(
    "X-6.1-4",
    "The positions count through the flattened tensor. COO keeps one index for each dimension: (row, column), not a "
    "running number.",
)
def _(x):
    flat = x.flatten()
    return flat.nonzero().t(), flat[flat != 0]


@coo_parts.wrong(
    "X-6.1-5", "The entries stand in another order: go through the tensor row by row, as it is read, not by columns."
)
def _(x):
    import torch

    index = x.permute(*range(x.dim())[::-1]).nonzero(as_tuple=True)[::-1]
    return torch.stack(index), x[index]


@coo_parts.wrong(
    "X-6.1-6", "The values were turned into float32. They keep the dtype of x; only the indices are always int64."
)
def _(x):
    import torch

    index = x.nonzero(as_tuple=True)
    return torch.stack(index), x[index].float()


@coo_parts.wrong(
    "X-6.1-7", "The indices are int32. In a COO tensor they are always int64, which is what nonzero gives."
)
def _(x):
    import torch

    index = x.nonzero(as_tuple=True)
    return torch.stack(index).int(), x[index]


@coo_parts.wrong(
    "X-6.1-8",
    "This calls torch's finished conversion. The task is to find the two parts yourself, with nonzero and an index.",
)
def _(x):
    s = x.to_sparse()
    return s.indices(), s.values()


@coo_parts.right
def _(x):
    places = (x != 0).nonzero()
    return places.t(), x[x != 0]


@coo_parts.right
def _(x):
    import torch

    where = torch.where(x != 0)
    return torch.stack(where, dim=0), torch.masked_select(x, x != 0)


# ---- 6.2 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.2",
    points=3,
    minutes=10,
    stars=2,
    concepts=["S-04", "S-12"],
    needs=["coo_parts"],
    properties=[no_loops],
    forbidden=SPARSE_MAKERS,
    visible=6,
    hints=[
        "Columns and values are those of COO. What is new are the borders: after row r, how many entries have there been "
        "in all?",
        "(x != 0).sum(1) counts the entries of each row, an empty row has 0. cumsum(0) adds them up, and torch.cat puts "
        "the 0 in front with which the first row starts.",
        "kept = x != 0; ends = kept.sum(___).cumsum(___); crow = torch.cat([ends.new_zeros(1), ends]); "
        "return crow, x.nonzero(as_tuple=True)[___], x[kept].",
    ],
)
def csr_parts(x):
    kept = x != 0
    crow = torch.cat([torch.zeros(1, dtype=torch.int64, device=x.device), kept.sum(1).cumsum(0)])
    row, col = kept.nonzero(as_tuple=True)
    return crow, col, x[row, col]


@csr_parts.cases
def _(rng):
    yield torch.tensor([[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]])
    yield torch.tensor([[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]])
    yield torch.tensor([[0.0, -1.0, 0.0], [0.0, 0.0, 0.0], [NAN, 0.0, 2.0]])
    yield torch.zeros(3, 2)
    yield torch.tensor([[0, 0], [0, 0], [7, 8], [9, 0], [0, 0]])
    yield scattered(rng, 3, 4).t()
    yield torch.zeros(0, 3)
    yield torch.zeros(2, 0)
    yield torch.ones(2, 3, dtype=torch.float64)
    for _ in range(14):
        density = rng.choice([0.2, 0.4, 0.8])
        yield scattered(rng, rng.integer(1, 6), rng.integer(1, 5), density, rng.choice([torch.float32, torch.int32]))


@csr_parts.wrong(
    "X-6.2-1",
    "The first border is missing: crow starts with 0 and has one number more than there are rows, so that row r is "
    "crow[r]:crow[r + 1] for the first row, too.",
)
def _(x):
    kept = x != 0
    row, col = kept.nonzero(as_tuple=True)
    return kept.sum(1).cumsum(0), col, x[row, col]


@csr_parts.wrong(
    "X-6.2-2",
    "These are the numbers of entries of each row. crow holds where each row starts: add them up as you go (cumsum).",
)
def _(x):
    import torch

    kept = x != 0
    row, col = kept.nonzero(as_tuple=True)
    return torch.cat([torch.zeros(1, dtype=torch.int64), kept.sum(1)]), col, x[row, col]


@csr_parts.wrong(
    "X-6.2-3",
    "The first part is the row of every entry: that is COO. CSR says only where each row starts, one number a row and "
    "one at the end.",
)
def _(x):
    row, col = x.nonzero(as_tuple=True)
    return row, col, x[row, col]


@csr_parts.wrong(
    "X-6.2-4",
    "Rows without an entry are missing in crow: counting what occurs does not count what occurs zero times. An empty "
    "row has two equal borders.",
)
def _(x):
    import torch

    row, col = x.nonzero(as_tuple=True)
    counts = row.unique(return_counts=True)[1]
    return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]), col, x[row, col]


@csr_parts.wrong(
    "X-6.2-5",
    "Empty rows at the end are missing in crow: bincount stops at the largest row that occurs. It has a minlength.",
)
def _(x):
    import torch

    row, col = x.nonzero(as_tuple=True)
    return torch.cat([torch.zeros(1, dtype=torch.int64), row.bincount().cumsum(0)]), col, x[row, col]


@csr_parts.wrong(
    "M14",
    "You compressed the columns: crow has one number more than there are columns. That layout exists (CSC), but in CSR "
    "the rows are compressed.",
)
def _(x):
    import torch

    t = x.t()
    kept = t != 0
    row, col = kept.nonzero(as_tuple=True)
    return torch.cat([torch.zeros(1, dtype=torch.int64), kept.sum(1).cumsum(0)]), col, t[row, col]


@csr_parts.wrong(
    "X-6.2-6",
    "The last border is missing: crow ends with the number of all entries, so that the last row has an end, too.",
)
def _(x):
    import torch

    kept = x != 0
    row, col = kept.nonzero(as_tuple=True)
    return torch.cat([torch.zeros(1, dtype=torch.int64), kept.sum(1).cumsum(0)[:-1]]), col, x[row, col]


@csr_parts.wrong("X-6.2-7", "crow is int32. The indices here are int64, which is what sum and cumsum give.")
def _(x):
    import torch

    kept = x != 0
    row, col = kept.nonzero(as_tuple=True)
    crow = torch.zeros(x.shape[0] + 1, dtype=torch.int32)
    crow[1:] = kept.sum(1).cumsum(0)
    return crow, col, x[row, col]


@csr_parts.wrong("X-6.2-8", "This calls torch's finished conversion. Find the borders yourself: count, then add up.")
def _(x):
    s = x.to_sparse_csr()
    return s.crow_indices(), s.col_indices(), s.values()


@csr_parts.wrong(
    "X-6.2-9",
    "The parts are right, but Python goes through the rows one by one. Counting along a dimension and cumsum do it for "
    "all rows at once.",
)
def _(x):
    import torch

    crow = [0]
    for row in x:
        crow.append(crow[-1] + int((row != 0).sum()))
    return torch.tensor(crow), x.nonzero(as_tuple=True)[1], x[x != 0]


@csr_parts.wrong(
    "X-6.2-10",
    "The entries were counted in each column: crow has one number more than there are columns. sum(1) adds along a row, "
    "and gives one count for each row.",
)
def _(x):
    import torch

    kept = x != 0
    row, col = kept.nonzero(as_tuple=True)
    return torch.cat([torch.zeros(1, dtype=torch.int64), kept.sum(0).cumsum(0)]), col, x[row, col]


@csr_parts.right
def _(x):
    import torch

    row, col = x.nonzero(as_tuple=True)
    counts = torch.bincount(row, minlength=x.shape[0])
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0)), col, x[row, col]


@csr_parts.right
def _(x):
    import torch

    row, col = torch.where(x != 0)
    return torch.searchsorted(row, torch.arange(x.shape[0] + 1, device=x.device)), col, x[x != 0]


# ---- 6.3 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.3",
    points=3,
    minutes=8,
    stars=2,
    concepts=["S-04", "S-08"],
    needs=["csr_parts"],
    properties=[never_calls("to_dense"), copy_budget(ROOM), no_loops],
    tolerance=(1e-4, 1e-5),
    visible=6,
    hints=[
        "An entry must know its row, and CSR only says where rows start. How long is each row, and how often does its "
        "number have to be repeated?",
        "c.crow_indices().diff() are the lengths of the rows, and torch.repeat_interleave(rows, lengths) repeats each "
        "row's number. index_add(0, rows, values) adds values up by their row (lecture 02's duplicates).",
        "rows = torch.repeat_interleave(torch.arange(c.shape[0], device=c.device), c.crow_indices().___()); "
        "return c.values().new_zeros(c.shape[0]).index_add(0, ___, c.values()).",
    ],
)
def row_sums(c):
    crow, values = c.crow_indices(), c.values()
    rows = torch.repeat_interleave(torch.arange(c.shape[0], device=values.device), crow.diff())
    return values.new_zeros(c.shape[0]).index_add(0, rows, values)


@row_sums.cases
def _(rng):
    yield csr([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3))
    yield csr([0, 0, 2, 2], [0, 1], [1.0, -1.0], (3, 2))
    yield csr([0, 1, 3, 4], [0, 0, 1, 1], [NAN, 1.0, 2.0, INF], (3, 2))
    yield wide(rng)
    yield csr([0, 0, 0], [], torch.tensor([]), (2, 4))
    yield csr([0, 2, 3], [0, 2, 1], torch.tensor([0.0, 2.0, 0.5], dtype=torch.float64), (2, 3))
    yield csr([0], [], torch.tensor([]), (0, 3))
    yield csr([0, 1, 2, 2], [0, 0], [1e30, 1.0], (3, 1))
    for _ in range(10):
        kind = rng.choice([torch.float32, torch.float64])
        yield as_csr(scattered(rng, rng.integer(1, 6), rng.integer(1, 6), dtype=kind))
    yield wide(rng, 12, 5000, 3)


@row_sums.wrong(
    "M25",
    "to_dense() gives a place to every zero. Of the whole matrix that is thousands of additions for nothing, and for a "
    "column of sums it is not needed either: add up c.values() by row, and the result is dense from the start.",
    sample="wrong_copy",
)
def _(c):
    return c.to_dense().sum(1)


@row_sums.wrong(
    "X-6.3-1",
    "No to_dense, but something as large as the whole matrix all the same. Start from one zero a row, and add to it what "
    "is stored in that row.",
)
def _(c):
    import torch

    return torch.zeros(c.shape, dtype=c.dtype).add_(c).sum(1)


@row_sums.wrong("M14", "These are sums of columns: col_indices() says in which column an entry stands. Add up by row.")
def _(c):
    return c.values().new_zeros(c.shape[1]).index_add(0, c.col_indices(), c.values())


@row_sums.wrong("X-6.3-2", "These are the numbers of entries in each row. Add up their values.")
def _(c):
    return c.crow_indices().diff().to(c.dtype)


@row_sums.wrong(
    "M11",
    "Of several entries of a row only one has arrived: out[rows] = values writes each value over the one before. "
    "index_add adds them.",
)
def _(c):
    import torch

    rows = torch.repeat_interleave(torch.arange(c.shape[0]), c.crow_indices().diff())
    out = c.values().new_zeros(c.shape[0])
    out[rows] = c.values()
    return out


@row_sums.wrong(
    "X-6.3-3",
    "A sum over everything before, minus the one up to this row: a NaN or a very large number in one row then spoils "
    "all rows after it. Add up each row by itself.",
)
def _(c):
    import torch

    total = torch.cat([c.values().new_zeros(1), c.values().cumsum(0)])
    return total[c.crow_indices()].diff()


@row_sums.wrong(
    "X-6.3-4",
    "Rows without an entry are missing. Their sum is 0, and the result has one number for each row of c.",
)
def _(c):
    import torch

    rows = torch.repeat_interleave(torch.arange(c.shape[0]), c.crow_indices().diff())
    used, at = rows.unique(return_inverse=True)
    return c.values().new_zeros(len(used)).index_add(0, at, c.values())


@row_sums.wrong(
    "X-6.3-5",
    "torch's sum of a CSR matrix wants keepdim=True, and gives a CSR matrix of one column. A plain tensor of one "
    "dimension is asked for.",
)
def _(c):
    return c.sum(1, keepdim=True)


@row_sums.wrong(
    "X-6.3-6",
    "The sums are right, but Python goes through the rows one by one. repeat_interleave gives every entry its row, and "
    "then one index_add is enough.",
)
def _(c):
    import torch

    crow, values = c.crow_indices(), c.values()
    sums = [values[crow[r] : crow[r + 1]].sum() for r in range(c.shape[0])]
    return torch.stack(sums) if sums else values.new_zeros(0)


@row_sums.wrong(
    "X-6.3-7",
    "All sums are still 0. index_add gives a new tensor and leaves the one that it is called on as it was: return what it "
    "gives, or call index_add_, which writes in place.",
)
def _(c):
    import torch

    rows = torch.repeat_interleave(torch.arange(c.shape[0]), c.crow_indices().diff())
    out = c.values().new_zeros(c.shape[0])
    out.index_add(0, rows, c.values())
    return out


@row_sums.right
def _(c):
    import torch

    return c @ torch.ones(c.shape[1], dtype=c.dtype, device=c.device)


@row_sums.right
def _(c):
    import torch

    crow, values = c.crow_indices(), c.values()
    entry = torch.arange(len(values), device=crow.device)
    rows = torch.bucketize(entry, crow, right=True) - 1
    return torch.zeros(c.shape[0], dtype=values.dtype, device=values.device).scatter_add_(0, rows, values)


# ---- 6.4 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.4",
    points=4,
    minutes=12,
    stars=2,
    concepts=["S-03"],
    needs=["coo_parts"],
    properties=[copy_budget(ROOM), no_loops],
    forbidden=SPARSE_MAKERS,
    visible=7,
    hints=[
        "Values of one place are added first, and squared then: which element of which list tells that two entries have "
        "the same place?",
        "indices.unique(dim=1, return_inverse=True) gives each column (row, column) once, sorted, and for every entry "
        "the number of its place. Then index_add, as in the row sums.",
        "places, at = indices.unique(dim=___, return_inverse=True); sums = "
        "values.new_zeros(places.shape[1]).index_add(0, ___, values); return places, sums * ___.",
    ],
)
def coalesced_square(indices, values, shape):
    places, at = indices.unique(dim=1, return_inverse=True)
    sums = values.new_zeros(places.shape[1]).index_add(0, at, values)
    return places, sums * sums


@coalesced_square.cases
def _(rng):
    yield torch.tensor([[0, 0], [1, 1]]), torch.tensor([1.0, 2.0]), (2, 3)
    yield torch.tensor([[1, 0], [0, 2]]), torch.tensor([4.0, 3.0]), (2, 3)
    yield torch.tensor([[1, 0, 1], [2, 0, 2]]), torch.tensor([1, 5, 2]), (2, 3)
    yield torch.tensor([[0, 1, 0], [1, 0, 1]]), torch.tensor([2.0, 3.0, -2.0]), (2, 2)  # a sum of 0 is stored
    yield torch.zeros(2, 0, dtype=torch.int64), torch.tensor([]), (3, 3)
    yield torch.tensor([[399, 2, 399], [499, 7, 499]]), torch.tensor([1.0, 2.0, 3.0]), (400, 500)
    yield torch.tensor([[0, 0, 1], [2, 1, 0]]), torch.tensor([NAN, 1.0, INF]), (2, 3)
    yield torch.tensor([[0, 0, 0], [0, 0, 0]]), torch.tensor([1.0, 1.0, 1.0], dtype=torch.float64), (1, 1)
    for _ in range(12):
        m, n, k = rng.integer(1, 4), rng.integer(1, 4), rng.integer(1, 8)
        places = torch.stack([rng.integers(k, low=0, high=m - 1), rng.integers(k, low=0, high=n - 1)])
        yield places, rng.integers(k, dtype=rng.choice([torch.float32, torch.int64])), (m, n)


@coalesced_square.wrong(
    "M26",
    "You squared each value and then added: 1² + 2² is 5, but the tensor holds 1 + 2 = 3 at that place, and 3² is 9. "
    "Duplicates do no harm to sums, and to everything else they do: add first.",
    sample="wrong_duplicates",
)
def _(indices, values, shape):
    places, at = indices.unique(dim=1, return_inverse=True)
    return places, values.new_zeros(places.shape[1]).index_add(0, at, values * values)


@coalesced_square.wrong(
    "X-6.4-1",
    "The entries are squared as they stand: a place that comes twice still comes twice, and the order is still that of "
    "the input. Each place once, row by row.",
)
def _(indices, values, shape):
    return indices, values * values


@coalesced_square.wrong(
    "M11",
    "Of two values for one place only one has arrived: sums[at] = values writes one over the other. index_add adds "
    "them.",
)
def _(indices, values, shape):
    places, at = indices.unique(dim=1, return_inverse=True)
    sums = values.new_zeros(places.shape[1])
    sums[at] = values
    return places, sums * sums


@coalesced_square.wrong(
    "M24",
    "A place whose values add up to 0 is gone. Zero is a number like others: the entry stays, with a 0 in it.",
)
def _(indices, values, shape):
    import torch

    places, at = indices.unique(dim=1, return_inverse=True)
    sums = values.new_zeros(places.shape[1]).index_add(0, at, values)
    return places[:, sums != 0], torch.square(sums[sums != 0])


@coalesced_square.wrong(
    "M25",
    "The numbers are right, but a dense tensor of the full shape stood in between. The memory has to follow the number "
    "of entries.",
)
def _(indices, values, shape):
    places = indices.unique(dim=1)
    dense = values.new_zeros(shape).index_put(tuple(indices), values, accumulate=True)
    sums = dense[tuple(places)]
    return places, sums * sums


@coalesced_square.wrong("X-6.4-2", "The places are sorted by column. Row by row is asked for, as a text is read.")
def _(indices, values, shape):
    places, at = indices.flip(0).unique(dim=1, return_inverse=True)
    sums = values.new_zeros(places.shape[1]).index_add(0, at, values)
    return places.flip(0), sums * sums


@coalesced_square.wrong("X-6.4-3", "These are the sums. The square of each is asked for.")
def _(indices, values, shape):
    places, at = indices.unique(dim=1, return_inverse=True)
    return places, values.new_zeros(places.shape[1]).index_add(0, at, values)


@coalesced_square.wrong(
    "X-6.4-4", "This calls torch's own coalesce. The task is to do what it does: find equal places, add their values."
)
def _(indices, values, shape):
    import torch

    s = torch.sparse_coo_tensor(indices, values, shape).coalesce()
    return s.indices(), s.values() * s.values()


@coalesced_square.wrong(
    "X-6.4-5",
    "The numbers are right, but Python takes the entries one by one. unique with return_inverse and index_add do it at "
    "once.",
)
def _(indices, values, shape):
    import torch

    sums = {}
    for place, value in zip(indices.t().tolist(), values, strict=True):
        sums[tuple(place)] = sums.get(tuple(place), 0) + value
    places = sorted(sums)
    if not places:
        return indices, values
    return torch.tensor(places).t(), torch.stack([sums[p] for p in places]) ** 2


@coalesced_square.wrong(
    "X-6.4-6",
    "All sums are still 0. index_add gives a new tensor and leaves the one that it is called on as it was: keep what it "
    "gives, or call index_add_, which writes in place.",
)
def _(indices, values, shape):
    places, at = indices.unique(dim=1, return_inverse=True)
    sums = values.new_zeros(places.shape[1])
    sums.index_add(0, at, values)
    return places, sums * sums


@coalesced_square.right
def _(indices, values, shape):
    import torch

    flat, at = (indices[0] * shape[1] + indices[1]).unique(return_inverse=True)
    sums = torch.zeros(len(flat), dtype=values.dtype, device=values.device).scatter_add_(0, at, values)
    return torch.stack([flat // shape[1], flat % shape[1]]), sums.square()


@coalesced_square.right
def _(indices, values, shape):
    import torch

    flat = indices[0] * shape[1] + indices[1]
    order = flat.argsort(stable=True)
    flat, values = flat[order], values[order]
    new = torch.ones_like(flat, dtype=torch.bool)
    new[1:] = flat[1:] != flat[:-1]
    sums = values.new_zeros(int(new.sum())).index_add(0, new.cumsum(0) - 1, values)
    return indices[:, order][:, new], sums**2


# ---- 6.5 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.5",
    points=3,
    minutes=10,
    stars=2,
    concepts=["S-03", "S-04"],
    needs=["coo_parts", "csr_parts"],
    visible=6,
    hints=[
        "Count the numbers that each layout stores, and multiply by the bytes of one: how many values, how many indices?",
        "dtype.itemsize is the bytes of one element. COO stores two int64 indices for each entry, 8 bytes each, whatever "
        "index_dtype is. CSR stores one column index for each entry and rows + 1 borders. For the densities, set the "
        "bytes of the layout equal to those of the dense tensor, put nnz = density * cells, and solve for the density.",
        "v, i = dtype.itemsize, index_dtype.itemsize; coo = nnz * (v + 2 * ___); csr = nnz * (v + ___) + (rows + ___) * "
        "i; the break-even of COO is v / (v + 16), that of CSR max(0.0, (dense - (rows + 1) * i) / ((v + i) * cells)).",
    ],
)
def layout_bytes(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    cells, v, i = rows * columns, dtype.itemsize, index_dtype.itemsize
    dense = cells * v
    return {
        "dense": dense,
        "coo": nnz * (v + 2 * 8),
        "csr": nnz * (v + i) + (rows + 1) * i,
        "coo_break_even": v / (v + 16),
        "csr_break_even": max(0.0, (dense - (rows + 1) * i) / ((v + i) * cells)),
    }


@layout_bytes.cases
def _(rng):
    yield (2, 3), 3, torch.float32, torch.int64
    yield (100, 100), 500, torch.float32, torch.int32
    yield (4, 5), 0, torch.float64, torch.int64
    yield (1, 1), 1, torch.float32, torch.int64  # the borders alone are larger than the dense tensor
    yield (3, 1000), 2, torch.int8, torch.int32
    yield (1000, 3), 3000, torch.float64, torch.int32
    for _ in range(30):
        rows, columns = rng.integer(1, 300), rng.integer(1, 300)
        dtype = rng.choice([torch.float16, torch.float32, torch.float64, torch.int64, torch.bool])
        yield (rows, columns), rng.integer(0, rows * columns), dtype, rng.choice([torch.int32, torch.int64])


@layout_bytes.wrong(
    "M25",
    "The indices are missing: only the values were counted. A COO entry of float32 has 4 bytes of value and 16 of "
    "indices, which is why sparse is not always smaller.",
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v = dtype.itemsize
    dense = rows * columns * v
    return {"dense": dense, "coo": nnz * v, "csr": nnz * v, "coo_break_even": 1.0, "csr_break_even": 1.0}


@layout_bytes.wrong(
    "X-6.5-1",
    "COO has the small indices of index_dtype here. torch turns the indices of a COO tensor into int64, always; only "
    "CSR keeps int32.",
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    cells = rows * columns
    dense, csr = cells * v, nnz * (v + i) + (rows + 1) * i
    below = max(0.0, (dense - (rows + 1) * i) / ((v + i) * cells))
    return {
        "dense": dense,
        "coo": nnz * (v + 2 * i),
        "csr": csr,
        "coo_break_even": v / (v + 2 * i),
        "csr_break_even": below,
    }


@layout_bytes.wrong("X-6.5-2", "A COO entry of a matrix has two indices, its row and its column. You counted one.")
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    cells = rows * columns
    dense, csr = cells * v, nnz * (v + i) + (rows + 1) * i
    below = max(0.0, (dense - (rows + 1) * i) / ((v + i) * cells))
    return {"dense": dense, "coo": nnz * (v + 8), "csr": csr, "coo_break_even": v / (v + 8), "csr_break_even": below}


@layout_bytes.wrong(
    "X-6.5-3", "CSR has no row index for each entry: only the column of each, and rows + 1 borders for all together."
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    dense, csr = rows * columns * v, nnz * (v + 2 * i)
    return {
        "dense": dense,
        "coo": nnz * (v + 16),
        "csr": csr,
        "coo_break_even": v / (v + 16),
        "csr_break_even": v / (v + 2 * i),
    }


@layout_bytes.wrong(
    "X-6.5-4", "crow has rows + 1 numbers: a start for each row, and one end. One of them is missing in your count."
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    cells = rows * columns
    dense, csr = cells * v, nnz * (v + i) + rows * i
    below = max(0.0, (dense - rows * i) / ((v + i) * cells))
    return {"dense": dense, "coo": nnz * (v + 16), "csr": csr, "coo_break_even": v / (v + 16), "csr_break_even": below}


@layout_bytes.wrong(
    "X-6.5-5",
    "A density below 0 says nothing. Where the borders alone are larger than the dense tensor, CSR never pays: 0.0.",
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    cells = rows * columns
    dense, csr = cells * v, nnz * (v + i) + (rows + 1) * i
    below = (dense - (rows + 1) * i) / ((v + i) * cells)
    return {"dense": dense, "coo": nnz * (v + 16), "csr": csr, "coo_break_even": v / (v + 16), "csr_break_even": below}


@layout_bytes.wrong(
    "X-6.5-6",
    "The break-even is given as a number of entries. A density is a share: entries, divided by cells.",
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    cells = rows * columns
    dense, csr = cells * v, nnz * (v + i) + (rows + 1) * i
    below = max(0.0, (dense - (rows + 1) * i) / (v + i))
    return {
        "dense": dense,
        "coo": nnz * (v + 16),
        "csr": csr,
        "coo_break_even": dense / (v + 16),
        "csr_break_even": below,
    }


@layout_bytes.wrong(
    "X-6.5-7",
    "The break-even of CSR leaves out the borders. They cost the same however few entries there are: set dense equal to "
    "all that CSR stores, and solve for the density.",
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    dense, csr = rows * columns * v, nnz * (v + i) + (rows + 1) * i
    return {
        "dense": dense,
        "coo": nnz * (v + 16),
        "csr": csr,
        "coo_break_even": v / (v + 16),
        "csr_break_even": v / (v + i),
    }


@layout_bytes.wrong(
    "X-6.5-8",
    "The indices of CSR have 8 bytes here, whatever index_dtype is. It is COO that always has int64; those of CSR have "
    "index_dtype.itemsize bytes.",
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, cells = dtype.itemsize, rows * columns
    dense, csr = cells * v, nnz * (v + 8) + (rows + 1) * 8
    below = max(0.0, (dense - (rows + 1) * 8) / ((v + 8) * cells))
    return {"dense": dense, "coo": nnz * (v + 16), "csr": csr, "coo_break_even": v / (v + 16), "csr_break_even": below}


@layout_bytes.wrong(
    "X-6.5-9",
    "This is the density of the matrix at hand. The break-even does not depend on nnz: it is the density at which the bytes "
    "of both layouts would be equal.",
)
def _(shape, nnz, dtype, index_dtype):
    rows, columns = shape
    v, i = dtype.itemsize, index_dtype.itemsize
    dense, csr, density = rows * columns * v, nnz * (v + i) + (rows + 1) * i, nnz / (rows * columns)
    return {"dense": dense, "coo": nnz * (v + 16), "csr": csr, "coo_break_even": density, "csr_break_even": density}


@layout_bytes.right
def _(shape, nnz, dtype, index_dtype):
    import torch

    rows, columns = shape
    value = torch.empty(0, dtype=dtype).element_size()
    index = torch.empty(0, dtype=index_dtype).element_size()
    borders = index * (rows + 1)
    dense = rows * columns * value
    pays = (dense - borders) / (rows * columns) / (value + index)
    return {
        "dense": dense,
        "coo": value * nnz + 16 * nnz,
        "csr": value * nnz + index * nnz + borders,
        "coo_break_even": dense / (rows * columns * (value + 16)),
        "csr_break_even": pays if pays > 0 else 0.0,
    }


@layout_bytes.right
def _(shape, nnz, dtype, index_dtype):
    from math import prod

    result = {"dense": prod(shape) * dtype.itemsize}
    fixed = {"coo": 0, "csr": (shape[0] + 1) * index_dtype.itemsize}
    each = {"coo": dtype.itemsize + 16, "csr": dtype.itemsize + index_dtype.itemsize}
    for name in ("coo", "csr"):
        result[name] = fixed[name] + nnz * each[name]
    for name in ("coo", "csr"):
        result[f"{name}_break_even"] = max(0.0, (result["dense"] - fixed[name]) / each[name] / prod(shape))
    return result


# ---- 6.6 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.6",
    points=4,
    minutes=12,
    stars=2,
    concepts=["S-06", "S-10"],
    needs=["coalesced_square"],
    properties=[never_calls("to_dense"), copy_budget(ROOM)],
    visible=9,
    hints=[
        "What is not stored is zero, and all of it becomes f(0). When may it stay unstored? And what has to be done "
        "first where a place may be stored twice?",
        "Ask f for its value at one zero, of the dtype of s. For COO call s.coalesce() first. Then build a sparse tensor "
        "from the old indices and f(s.values()), with torch.sparse_coo_tensor or torch.sparse_csr_tensor, by s.layout.",
        "s = s.coalesce() if s.layout == torch.sparse_coo else s; if f(s.values().new_zeros(1)) != ___: raise "
        "ValueError(...); then torch.sparse_coo_tensor(s.indices(), f(___), s.shape), or for CSR "
        "torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), f(___), s.shape).",
    ],
)
def on_entries(f, s):
    if s.layout == torch.sparse_coo:
        s = s.coalesce()
    values = s.values()
    if not (f(values.new_zeros(1)) == 0).all():
        raise ValueError("f(0) is not 0, so the result would have to be stored in every cell")
    if s.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(s.indices(), f(values), s.shape)
    return torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), f(values), s.shape)


@on_entries.call
def _(on_entries, f, s):
    import torch

    functions = {"x * 2": lambda x: x * 2, "x + 1": lambda x: x + 1, "1 - cos(x)": lambda x: 1 - torch.cos(x)}
    return on_entries(functions[f] if f in functions else getattr(torch, f), s)


KEEP, BREAK = ("x * 2", "sqrt", "relu", "sin", "square", "neg", "1 - cos(x)"), ("exp", "cos", "x + 1", "sigmoid", "log")


@on_entries.cases
def _(rng):
    def small():
        return coo([[0, 1, 1], [2, 0, 2]], [3.0, -4.0, 5.0], (2, 3), True)

    yield "x * 2", small()
    yield "exp", small()
    yield "sqrt", csr([0, 1, 3], [2, 0, 2], [9.0, 4.0, 1.0], (2, 3))
    yield "square", coo([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 4.0], (2, 3))  # not coalesced: (1 + 2)²
    yield "relu", small()  # a result of 0 stays stored
    yield "x + 1", csr([0, 0, 1], [0], [5.0], (2, 2))
    yield "log", small()
    yield "square", csr([0, 1, 2], [0, 1], [3.0, -2.0], (2, 2))  # torch itself refuses this one
    yield "sin", wide(rng)
    yield "cos", wide(rng)
    yield "1 - cos(x)", coo([[0, 1]], [1.0, 2.0], (4,), True)
    yield "x * 2", coo(torch.zeros(2, 0), torch.tensor([]), (3, 3), True)
    yield "x * 2", csr([0, 2], [0, 1], torch.tensor([3, -1]), (1, 2))
    yield "exp", coo(torch.zeros(2, 0), torch.tensor([]), (3, 3), True)  # nothing is stored, and still no
    yield "reciprocal", small()
    yield "isnan", coo([[0, 2]], [NAN, 1.0], (3,), True)
    for _ in range(12):
        dense = scattered(rng, rng.integer(1, 4), rng.integer(1, 4))
        yield rng.choice(KEEP + BREAK), rng.choice([as_coo, as_csr])(dense)


@on_entries.wrong(
    "M24",
    "exp(0) is 1, so all cells that are not stored would have to become 1, and yours still count as 0. Not stored means "
    "zero, and f has to keep zero: ask it, and refuse otherwise.",
)
def _(f, s):
    import torch

    if s.layout == torch.sparse_coo:
        s = s.coalesce()
        return torch.sparse_coo_tensor(s.indices(), f(s.values()), s.shape)
    return torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), f(s.values()), s.shape)


@on_entries.wrong(
    "M26",
    "A COO tensor may store one place twice, and then holds the sum there. f of each part is not f of the sum: "
    "coalesce() first.",
)
def _(f, s):
    import torch

    if not (f(torch.zeros(1, dtype=s.dtype)) == 0).all():
        raise ValueError
    if s.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(s._indices(), f(s._values()), s.shape)
    return torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), f(s.values()), s.shape)


@on_entries.wrong(
    "M25",
    "This makes s dense, applies f to every cell, and searches for zeros afterwards. It costs what a dense tensor costs, "
    "and entries that f turned into 0 are lost. Apply f to the stored values.",
)
def _(f, s):
    import torch

    if not (f(torch.zeros(1, dtype=s.dtype)) == 0).all():
        raise ValueError
    result = f(s.to_dense())
    return result.to_sparse_coo() if s.layout == torch.sparse_coo else result.to_sparse_csr()


@on_entries.wrong(
    "X-6.6-1",
    "The result is always COO. It has to have the layout of s: a CSR tensor is built with torch.sparse_csr_tensor.",
)
def _(f, s):
    import torch

    s = (s if s.layout == torch.sparse_coo else s.to_sparse_coo()).coalesce()
    if not (f(torch.zeros(1, dtype=s.dtype)) == 0).all():
        raise ValueError
    return torch.sparse_coo_tensor(s.indices(), f(s.values()), s.shape)


@on_entries.wrong(
    "X-6.6-2",
    "You left the decision to torch: it refuses by its own error, and refuses things that would be all right, such as "
    "the square of a CSR tensor. Apply f to the values, and raise the ValueError yourself.",
)
def _(f, s):
    return f(s.coalesce() if s.is_sparse else s)


@on_entries.wrong(
    "X-6.6-3",
    "Entries that f turned into 0 were thrown away. Which places are stored must not depend on the numbers there: the "
    "indices stay as they are.",
)
def _(f, s):
    import torch

    if not (f(torch.zeros(1, dtype=s.dtype)) == 0).all():
        raise ValueError
    c = s.coalesce() if s.layout == torch.sparse_coo else s.to_sparse_coo()
    values = f(c.values())
    kept = torch.sparse_coo_tensor(c.indices()[:, values != 0], values[values != 0], c.shape)
    return kept if s.layout == torch.sparse_coo else kept.to_sparse_csr()


@on_entries.wrong("X-6.6-4", "Nothing was raised. A function that does not keep zero has to end in a ValueError.")
def _(f, s):
    import torch

    s = s.coalesce() if s.layout == torch.sparse_coo else s
    if not (f(torch.zeros(1, dtype=s.dtype)) == 0).all():
        return None
    if s.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(s.indices(), f(s.values()), s.shape)
    return torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), f(s.values()), s.shape)


@on_entries.wrong(
    "X-6.6-5",
    "You looked at f of the stored values. Whether zero is kept, only f(0) tells: relu has results of 0, and exp has "
    "none.",
)
def _(f, s):
    import torch

    s = s.coalesce() if s.layout == torch.sparse_coo else s
    values = f(s.values())
    if bool((values == 0).any()):
        raise ValueError
    if s.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(s.indices(), values, s.shape)
    return torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), values, s.shape)


@on_entries.wrong(
    "X-6.6-6",
    "s itself has changed: values() shares memory with s, and you wrote into it. Build a new tensor from f(values).",
)
def _(f, s):
    import torch

    s = s.coalesce() if s.layout == torch.sparse_coo else s
    if not (f(torch.zeros(1, dtype=s.dtype)) == 0).all():
        raise ValueError
    s.values().copy_(f(s.values()))
    return s


@on_entries.wrong(
    "X-6.6-7",
    "f takes a tensor, and was given a Python number. Ask it for its value at one zero that is a tensor: "
    "torch.zeros(1, dtype=s.dtype).",
)
def _(f, s):
    import torch

    if f(0) != 0:
        raise ValueError
    s = s.coalesce() if s.layout == torch.sparse_coo else s
    if s.layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(s.indices(), f(s.values()), s.shape)
    return torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), f(s.values()), s.shape)


@on_entries.right
def _(f, s):
    import torch

    is_coo = s.layout == torch.sparse_coo
    s = s.coalesce() if is_coo else s
    at_zero = f(torch.zeros((), dtype=s.dtype, device=s.device))
    if not bool(at_zero == 0):
        raise ValueError("f does not keep zero")
    make = torch.sparse_coo_tensor if is_coo else torch.sparse_csr_tensor
    indices = (s.indices(),) if is_coo else (s.crow_indices(), s.col_indices())
    return make(*indices, f(s.values()), size=s.shape)


@on_entries.right
def _(f, s):
    import torch

    c = s.coalesce() if s.layout == torch.sparse_coo else s
    with_zero = f(torch.cat([c.values(), c.values().new_zeros(1)]))
    if with_zero[-1].item() != 0:
        raise ValueError("f does not keep zero")
    if c.layout == torch.sparse_csr:
        return torch.sparse_csr_tensor(c.crow_indices(), c.col_indices(), with_zero[:-1], c.shape)
    return torch.sparse_coo_tensor(c.indices(), with_zero[:-1], c.shape, is_coalesced=True)


# ---- 6.7 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.7",
    points=5,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["S-04"],
    needs=["row_sums"],
    properties=[op_budget(200), copy_budget(ROOM), no_loops],  # a loop over 64 rows takes a thousand
    tolerance=(1e-4, 1e-5),
    visible=7,
    hints=[
        "The product of a row with x is a sum over the entries of that row only. Which number of x meets which entry?",
        "x[col] brings each entry the number of x it meets; times values, and then the row sums of exercise 6.3: "
        "repeat_interleave for the rows and index_add. Gradients come by themselves if you stay with such operations. "
        "Make new tensors on the device of values.",
        "rows = torch.repeat_interleave(torch.arange(len(crow) - 1, device=crow.device), crow.diff(), "
        "output_size=len(col)); return values.new_zeros(___).index_add(0, rows, values * x[___]).",
    ],
)
def csr_times(crow, col, values, x):
    rows = torch.arange(len(crow) - 1, device=crow.device)
    rows = torch.repeat_interleave(rows, crow.diff(), output_size=len(col))
    return values.new_zeros(len(crow) - 1).index_add(0, rows, values * x[col])


@csr_times.call
def _(csr_times, crow, col, values, x):
    import torch

    values, x = values.detach().requires_grad_(), x.detach().requires_grad_()
    product = csr_times(crow, col, values, x)
    if not isinstance(product, torch.Tensor) or not product.requires_grad:
        return {"product": product, "gradient of values": None, "gradient of x": None}
    weights = torch.arange(1, product.numel() + 1, dtype=product.dtype, device=product.device).view(product.shape)
    to_values, to_x = torch.autograd.grad((product * weights).sum(), (values, x), allow_unused=True)
    return {"product": product.detach(), "gradient of values": to_values, "gradient of x": to_x}


@csr_times.cases
def _(rng):
    def parts(c, index=torch.int64):
        return c.crow_indices().to(index), c.col_indices().to(index), c.values()

    yield *parts(csr([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3))), torch.tensor([1.0, 2.0, 3.0])
    yield *parts(csr([0, 1, 1, 3, 3], [1, 0, 2], [2.0, -1.0, 0.5], (4, 3))), torch.tensor([1.0, -2.0, 4.0])
    yield *parts(csr([0, 1, 2], [0, 2], [3.0, 4.0], (2, 3))), torch.tensor([1.0, NAN, 2.0])  # no entry reads the NaN
    yield *parts(wide(rng, 64, 1000)), rng.normal(1000)
    yield *parts(csr([0, 1, 3], [1, 0, 2], [1.0, 2.0, 3.0], (2, 3))), torch.tensor([1.0, INF, 2.0])
    yield *parts(csr([0, 0, 0], [], torch.tensor([]), (2, 2))), torch.tensor([1e30, INF])
    yield *parts(csr([0, 2, 3], [0, 1, 1], torch.tensor([1.0, 0.0, 2.0]).double(), (2, 2))), rng.normal(2).double()
    yield *parts(csr([0, 1, 3], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3)), torch.int32), torch.tensor([1.0, 2.0, 3.0])
    yield *parts(as_csr(torch.eye(3))), torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])[:, 0]
    for _ in range(10):
        rows, columns = rng.integer(1, 5), rng.integer(1, 5)
        yield *parts(as_csr(scattered(rng, rows, columns))), rng.normal(columns)
    yield *parts(wide(rng, 48, 1500, 3)), rng.normal(1500)


@csr_times.wrong(
    "M25",
    "You filled a dense matrix and multiplied that. It takes the memory of all cells, and a NaN of x that no entry "
    "reads comes through, because 0 times NaN is NaN.",
)
def _(crow, col, values, x):
    import torch

    rows = torch.repeat_interleave(torch.arange(len(crow) - 1), crow.diff())
    dense = values.new_zeros(len(crow) - 1, len(x)).index_put((rows, col.long()), values)
    return dense @ x


@csr_times.wrong(
    "X-6.7-1",
    "The numbers are right, and the gradients too, but it takes far more memory than entries, rows and columns need. A CSR "
    "tensor does that on the way back, by a dense matrix of the full shape: in torch's product, and as soon as `values` goes "
    "into one. Gather, multiply, add.",
)
def _(crow, col, values, x):
    import torch

    return torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, len(x))) @ x


@csr_times.wrong("M14", "Each entry met the number of x that belongs to its row. It is its column that counts: x[col].")
def _(crow, col, values, x):
    import torch

    rows = torch.repeat_interleave(torch.arange(len(crow) - 1), crow.diff())
    return values.new_zeros(len(crow) - 1).index_add(0, rows, values * x[rows % len(x)])


@csr_times.wrong(
    "M11",
    "Of several entries of a row only one has arrived: out[rows] = ... writes one over the other. index_add adds them.",
)
def _(crow, col, values, x):
    import torch

    rows = torch.repeat_interleave(torch.arange(len(crow) - 1), crow.diff())
    return values.new_zeros(len(crow) - 1).index_put((rows,), values * x[col])


@csr_times.wrong(
    "X-6.7-2",
    "The product is right, but no gradient reaches the values: detach(), .data, tolist() or torch.tensor(...) cut the "
    "connection. Stay with operations on values itself.",
)
def _(crow, col, values, x):
    import torch

    rows = torch.repeat_interleave(torch.arange(len(crow) - 1), crow.diff())
    return values.new_zeros(len(crow) - 1).index_add(0, rows, values.detach() * x[col])


@csr_times.wrong(
    "X-6.7-3",
    "The sums were taken as differences of a running sum: an infinity in one row then spoils every row after it.",
)
def _(crow, col, values, x):
    import torch

    total = torch.cat([values.new_zeros(1), (values * x[col]).cumsum(0)])
    return total[crow].diff()


@csr_times.wrong(
    "X-6.7-4", "The sums of the entries alone: x has no part in them. Multiply each entry with the x of its column."
)
def _(crow, col, values, x):
    import torch

    rows = torch.repeat_interleave(torch.arange(len(crow) - 1), crow.diff())
    return values.new_zeros(len(crow) - 1).index_add(0, rows, values + 0 * x[col].nan_to_num(0, 0, 0))


@csr_times.wrong(
    "X-6.7-5",
    "This is the product with the transposed matrix: sums go to columns and x is read by rows. Exchange the two.",
)
def _(crow, col, values, x):
    import torch

    rows = torch.repeat_interleave(torch.arange(len(crow) - 1), crow.diff())
    return values.new_zeros(len(x)).index_add(0, col, values * x[rows % len(x)])


@csr_times.wrong(
    "X-6.7-6",
    "The rows are taken one by one in Python. repeat_interleave gives every entry its row, and one index_add adds them "
    "all.",
)
def _(crow, col, values, x):
    import torch

    sums = []
    for r in range(len(crow) - 1):
        own = slice(int(crow[r]), int(crow[r + 1]))
        sums.append((values[own] * x[col[own]]).sum())
    return torch.stack(sums)


@csr_times.right
def _(crow, col, values, x):
    import torch

    entry = torch.arange(len(values), device=crow.device, dtype=crow.dtype)
    rows = torch.bucketize(entry, crow, right=True) - 1
    out = torch.zeros(crow.shape[0] - 1, dtype=values.dtype, device=values.device)
    return out.scatter_add(0, rows, values * x[col])


@csr_times.right
def _(crow, col, values, x):
    import torch

    rows = torch.repeat_interleave(crow.diff())
    products = torch.index_select(x, 0, col) * values
    return products.new_zeros(crow.numel() - 1).index_put((rows,), products, accumulate=True)


# ---- 6.8 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.8",
    points=3,
    minutes=8,
    stars=2,
    concepts=["S-01", "S-05", "S-09"],
    needs=["coo_parts"],
    visible=6,
    hints=[
        "A MaskedTensor needs data and mask, of the same layout and shape. Both are COO tensors here: which places do "
        "they store?",
        "torch.sparse_coo_tensor(indices, values, shape) makes one, and from bool values it makes a mask. The same "
        "indices serve for both, so that a False is stored as well as a True.",
        "data = torch.sparse_coo_tensor(indices, ___, shape); mask = torch.sparse_coo_tensor(indices, ___, shape); "
        "return masked_tensor(data, mask).",
    ],
)
def coo_masked(indices, values, specified, shape):
    data = torch.sparse_coo_tensor(indices, values, shape)
    return masked_tensor(data, torch.sparse_coo_tensor(indices, specified, shape))


@coo_masked.cases
def _(rng):
    def case(indices, values, specified, shape):
        return torch.tensor(indices), torch.as_tensor(values), torch.tensor(specified, dtype=torch.bool), shape

    yield case([[0, 1, 1], [2, 0, 2]], [3.0, 0.0, 5.0], [True, True, True], (2, 3))  # a zero that is specified
    yield case([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], [True, False, True], (2, 3))
    yield case([[0, 2, 3]], [0.0, NAN, 0.0], [True, False, False], (4,))
    yield case([[0, 1]], [INF, 1e30], [False, False], (3,))
    yield case([[0, 0], [0, 1]], [7, 0], [True, True], (2, 2))
    yield torch.zeros(2, 0, dtype=torch.int64), torch.tensor([]), torch.tensor([], dtype=torch.bool), (2, 3)
    yield case([[1, 0], [0, 1]], [0.0, 2.0], [False, True], (2, 2))  # not in the order of rows
    yield case([[0, 1], [1, 0], [0, 1]], [1.0, 0.0], [True, True], (2, 2, 2))
    for _ in range(12):
        mask = rng.mask(rng.integer(1, 4), rng.integer(1, 4), density=0.6)
        places = mask.nonzero().t()
        specified = rng.mask(places.shape[1], density=0.6)
        values = rng.integers(places.shape[1], low=0, high=3).to(torch.float32)
        poison = rng.choice([NAN, INF, 1e30])
        yield places, torch.where(specified, values, poison), specified, tuple(mask.shape)


@coo_masked.wrong(
    "M24",
    "The mask was read off the values: a zero counts as missing, and whatever else lies there as specified. Zero is a "
    "value like others; whether a place is specified, only `specified` says.",
)
def _(indices, values, specified, shape):
    import torch

    from maskedtensor_ref import masked_tensor

    data = torch.sparse_coo_tensor(indices, values, shape)
    return masked_tensor(data, torch.sparse_coo_tensor(indices, values != 0, shape))


@coo_masked.wrong(
    "M23", "The mask is turned round: in a MaskedTensor True means specified. Hand `specified` over as it is."
)
def _(indices, values, specified, shape):
    import torch

    from maskedtensor_ref import masked_tensor

    data = torch.sparse_coo_tensor(indices, values, shape)
    return masked_tensor(data, torch.sparse_coo_tensor(indices, ~specified, shape))


@coo_masked.wrong(
    "X-6.8-1",
    "The mask stores only the places that are True. It prints the same, but data and mask are to store the same places: "
    "a False is stored, too.",
)
def _(indices, values, specified, shape):
    import torch

    from maskedtensor_ref import masked_tensor

    kept = indices[:, specified]
    data = torch.sparse_coo_tensor(indices, values, shape)
    return masked_tensor(data, torch.sparse_coo_tensor(kept, torch.ones(kept.shape[1], dtype=torch.bool), shape))


@coo_masked.wrong(
    "X-6.8-2", "Data and mask were made dense, so the result is strided. COO data and a COO mask are asked for."
)
def _(indices, values, specified, shape):
    import torch

    from maskedtensor_ref import masked_tensor

    data = torch.zeros(shape, dtype=values.dtype).index_put(tuple(indices), values)
    mask = torch.zeros(shape, dtype=torch.bool).index_put(tuple(indices), specified)
    return masked_tensor(data, mask)


@coo_masked.wrong(
    "M22",
    "A plain sparse tensor came, with what is missing left out: then missing reads as zero. A MaskedTensor keeps the "
    "two apart: masked_tensor(data, mask).",
)
def _(indices, values, specified, shape):
    import torch

    return torch.sparse_coo_tensor(indices[:, specified], values[specified], shape)


@coo_masked.wrong(
    "X-6.8-3",
    "Everything that is stored counts as specified. Stored and specified are two things: `specified` holds a bool for "
    "each entry.",
)
def _(indices, values, specified, shape):
    import torch

    from maskedtensor_ref import masked_tensor

    data = torch.sparse_coo_tensor(indices, values, shape)
    return masked_tensor(data, torch.sparse_coo_tensor(indices, torch.ones_like(specified), shape))


@coo_masked.right
def _(indices, values, specified, shape):
    import torch

    from maskedtensor_ref import MaskedTensor

    data = torch.sparse_coo_tensor(indices, values, size=shape).coalesce()
    mask = torch.sparse_coo_tensor(indices, specified, size=shape).coalesce()
    return MaskedTensor(data, mask)


@coo_masked.right
def _(indices, values, specified, shape):
    import torch
    from torch.masked import masked_tensor

    mask = torch.sparse_coo_tensor(indices, specified, shape).coalesce()
    return masked_tensor(torch.sparse_coo_tensor(indices, values, shape).coalesce(), mask)


# ---- 6.9 ------------------------------------------------------------------------------------------------------------


@exercise(
    "6.9",
    points=5,
    minutes=15,
    stars=3,
    homework=True,
    concepts=["S-09", "S-11"],
    needs=["coo_masked", "on_entries"],
    properties=[never_calls("to_dense"), copy_budget(ROOM)],
    visible=6,
    hints=[
        "Which places are stored does not depend on the numbers there. The indices of s say it; the mask takes them over "
        "and has a True for each.",
        "Coalesce a COO tensor first. Then the mask has the indices of s and torch.ones_like(s.values(), "
        "dtype=torch.bool) as values, in the layout of s, as in exercise 6.6.",
        "if s.layout == torch.sparse_coo: s = s.coalesce(); yes = torch.ones_like(s.values(), dtype=torch.bool); mask = "
        "torch.sparse_coo_tensor(s.indices(), ___, s.shape), or for CSR torch.sparse_csr_tensor(s.crow_indices(), ___, "
        "___, s.shape); return masked_tensor(s, mask).",
    ],
)
def by_structure(s):
    if s.layout == torch.sparse_coo:
        s = s.coalesce()
    yes = torch.ones_like(s.values(), dtype=torch.bool)
    if s.layout == torch.sparse_coo:
        return masked_tensor(s, torch.sparse_coo_tensor(s.indices(), yes, s.shape))
    return masked_tensor(s, torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), yes, s.shape))


@by_structure.cases
def _(rng):
    yield coo([[0, 1]], [0.0, 2.0], (3,), True)
    yield csr([0, 1, 3], [2, 0, 2], [3.0, 0.0, 5.0], (2, 3))
    yield coo([[0, 0, 1], [1, 1, 0]], [1.0, -1.0, 4.0], (2, 3))  # not coalesced, and a sum of 0
    yield coo([[0, 1, 1], [2, 0, 2]], [NAN, INF, 1e30], (2, 3), True)
    yield wide(rng)
    yield coo([[3, 8], [7, 399]], [0, 6], (9, 9000), True)
    yield csr([0, 0, 0], [], torch.tensor([]), (2, 2))
    yield coo(torch.zeros(1, 0), torch.tensor([]), (4,), True)
    yield csr([0, 2], [0, 1], [NAN, 0.0], (1, 2))
    for _ in range(10):
        dense = scattered(rng, rng.integer(1, 4), rng.integer(1, 4), density=0.6)
        s = rng.choice([as_coo, as_csr])(dense)
        s.values().mul_(rng.mask(s.values().shape[0], density=0.6))  # some of them zero, and still stored
        yield s


@by_structure.wrong(
    "M24",
    "The mask was made by comparing with zero: an entry that holds a 0 is lost, though somebody stored it on purpose. "
    "Which places are stored, the indices say.",
)
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    s = s.coalesce() if s.layout == torch.sparse_coo else s
    mask = s.to_dense() != 0
    return masked_tensor(s, mask.to_sparse_coo() if s.layout == torch.sparse_coo else mask.to_sparse_csr())


@by_structure.wrong(
    "X-6.9-1",
    "The mask stores every place of s, but says False where the value is 0. Stored means specified here, whatever the "
    "number is.",
)
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    if s.layout == torch.sparse_coo:
        s = s.coalesce()
        return masked_tensor(s, torch.sparse_coo_tensor(s.indices(), s.values() != 0, s.shape))
    return masked_tensor(s, torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), s.values() != 0, s.shape))


@by_structure.wrong(
    "X-6.9-2",
    "The mask asks whether the values are finite. NaN and infinity are stored values too; this mask is about places, not "
    "about numbers.",
)
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    s = s.coalesce() if s.layout == torch.sparse_coo else s
    yes = torch.isfinite(s.values())
    if s.layout == torch.sparse_coo:
        return masked_tensor(s, torch.sparse_coo_tensor(s.indices(), yes, s.shape))
    return masked_tensor(s, torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), yes, s.shape))


@by_structure.wrong(
    "X-6.9-3", "The result is strided. Data and mask keep the layout of s, and the memory follows its entries."
)
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    c = s.coalesce() if s.layout == torch.sparse_coo else s.to_sparse_coo().coalesce()
    mask = torch.zeros(c.shape, dtype=torch.bool).index_put(tuple(c.indices()), torch.tensor(True))
    return masked_tensor(s.to_dense(), mask)


@by_structure.wrong("X-6.9-4", "The result is always COO. A CSR tensor gets a CSR mask: the layout stays that of s.")
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    s = s.coalesce() if s.layout == torch.sparse_coo else s.to_sparse_coo().coalesce()
    yes = torch.ones_like(s.values(), dtype=torch.bool)
    return masked_tensor(s, torch.sparse_coo_tensor(s.indices(), yes, s.shape))


@by_structure.wrong(
    "M25",
    "The mask is right, but it was made through a dense tensor of the full shape. The indices of s are enough.",
)
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    s = s.coalesce() if s.layout == torch.sparse_coo else s
    rows = s.to_sparse_coo().indices()
    mask = torch.zeros(s.shape, dtype=torch.bool).index_put(tuple(rows), torch.tensor(True))
    return masked_tensor(s, mask.to_sparse_coo() if s.layout == torch.sparse_coo else mask.to_sparse_csr())


@by_structure.wrong(
    "M26",
    "A place that is stored twice is specified once. Without coalesce() the parts of one place are taken for values of "
    "their own, and only one of them survives.",
)
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    if s.layout == torch.sparse_coo:
        places, at = s._indices().unique(dim=1, return_inverse=True)
        values = s._values().new_zeros(places.shape[1])
        values[at] = s._values()
        yes = torch.ones_like(values, dtype=torch.bool)
        data = torch.sparse_coo_tensor(places, values, s.shape)
        return masked_tensor(data, torch.sparse_coo_tensor(places, yes, s.shape))
    yes = torch.ones_like(s.values(), dtype=torch.bool)
    return masked_tensor(s, torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), yes, s.shape))


@by_structure.wrong(
    "X-6.9-5",
    "bool() asks each number whether it is 0: an entry that holds a 0 gets a False. Stored means specified here, so the "
    "mask needs a True for every entry, whatever stands there.",
)
def _(s):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(s, s.bool())


@by_structure.wrong(
    "X-6.9-6",
    "Torch has no ones_like for a COO tensor. Take ones like the values of s, and build the mask from them and the indices "
    "of s.",
)
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    s = s.coalesce() if s.layout == torch.sparse_coo else s
    return masked_tensor(s, torch.ones_like(s, dtype=torch.bool))


@by_structure.wrong(
    "X-6.9-7",
    "Torch does not compare a COO tensor with a number. It would be the wrong question, too: which places are stored, the "
    "indices say, and an entry may hold a 0.",
)
def _(s):
    from maskedtensor_ref import masked_tensor

    return masked_tensor(s, s != 0)


@by_structure.right
def _(s):
    import torch

    from maskedtensor_ref import MaskedTensor

    if s.layout == torch.sparse_csr:
        yes = torch.full(s.values().shape, True, device=s.device)
        return MaskedTensor(s, torch.sparse_csr_tensor(s.crow_indices(), s.col_indices(), yes, size=s.shape))
    s = s.coalesce()
    yes = s.values().new_ones(s.values().shape, dtype=torch.bool)
    return MaskedTensor(s, torch.sparse_coo_tensor(s.indices(), yes, size=s.shape, is_coalesced=True))


@by_structure.right
def _(s):
    import torch

    from maskedtensor_ref import masked_tensor

    c = s.coalesce() if s.layout == torch.sparse_coo else s.to_sparse_coo()
    yes = c.values().new_ones(c.values().shape[0]).bool()
    mask = torch.sparse_coo_tensor(c.indices(), yes, c.shape, is_coalesced=True)
    return masked_tensor(
        c if s.layout == torch.sparse_coo else s, mask if s.layout == torch.sparse_coo else mask.to_sparse_csr()
    )


# ---- 6.10 -----------------------------------------------------------------------------------------------------------


@exercise(
    "6.10",
    points=3,
    minutes=10,
    stars=2,
    concepts=["S-02", "S-10", "S-11"],
    needs=["coo_masked"],
    visible=6,
    hints=[
        "A layout says how elements are kept, not which there are. A MaskedTensor can change its own layout, data and "
        "mask together, so that nothing has to be read off the numbers.",
        "m.to_dense(), m.to_sparse_coo() and m.to_sparse_csr() give a MaskedTensor again. Which of them, the argument "
        "says: torch.strided, torch.sparse_coo or torch.sparse_csr.",
        "if layout == torch.sparse_coo: return m.___(); if layout == torch.sparse_csr: return m.___(); return m.___().",
    ],
)
def in_layout(m, layout):
    if layout == torch.sparse_coo:
        return m.to_sparse_coo()
    return m.to_sparse_csr() if layout == torch.sparse_csr else m.to_dense()


@in_layout.call
def _(in_layout, m, layout):
    import torch

    there = in_layout(m, layout)
    if not hasattr(there, "get_mask"):
        return {"elements": there, "layout": None, "stored": None, "and back": None}
    back = in_layout(there, m.layout)
    stored = there.numel() if there.layout == torch.strided else int(there.get_mask()._nnz())
    return {"elements": there.to_dense(), "layout": there.layout, "stored": stored, "and back": back}


@in_layout.cases
def _(rng):
    layouts = torch.strided, torch.sparse_coo, torch.sparse_csr

    def masked(data, mask):
        return masked_tensor(torch.as_tensor(data), torch.as_tensor(mask))

    def sparse(dense, mask, layout):
        """The places of the mask and nothing else, in COO or CSR."""
        places, shape = mask.nonzero().t(), tuple(mask.shape)
        values, yes = dense[mask], torch.ones(places.shape[1], dtype=torch.bool)
        if layout == torch.sparse_coo:
            return masked_tensor(coo(places, values, shape, True), coo(places, yes, shape, True))
        crow = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(1).cumsum(0)])
        return masked_tensor(csr(crow, places[1], values, shape), csr(crow, places[1], yes, shape))

    small, some = torch.tensor([[0.0, 2.0, 9.0], [4.0, 0.0, 5.0]]), torch.tensor([[1, 1, 0], [0, 0, 1]]).bool()
    yield masked(small, some), torch.sparse_coo
    yield masked([[NAN, 2.0], [0.0, INF]], [[False, True], [True, False]]), torch.sparse_csr
    yield sparse(small, some, torch.sparse_coo), torch.strided
    yield sparse(small, some, torch.sparse_csr), torch.sparse_coo
    yield masked([[NAN, 1e30], [3.0, 7.0]], [[True, False], [False, True]]), torch.sparse_coo
    yield sparse(small.double(), some, torch.sparse_coo), torch.sparse_csr
    yield masked([[1e30, NAN]], [[False, False]]), torch.sparse_csr
    yield masked([[3, 0], [0, 8]], [[True, True], [False, True]]), torch.strided
    yield masked(torch.zeros(0, 2), torch.zeros(0, 2, dtype=torch.bool)), torch.sparse_coo
    for _ in range(12):
        shape = rng.integer(1, 4), rng.integer(1, 4)
        dense, mask = rng.integers(*shape, low=0, high=2).float(), rng.mask(*shape, density=0.6)
        dense = torch.where(mask, dense, rng.choice([NAN, INF, 1e30]))
        start = rng.choice(layouts)
        yield masked(dense, mask) if start == torch.strided else sparse(dense, mask, start), rng.choice(layouts)


@in_layout.wrong(
    "M24",
    "A zero that is specified has become missing: you filled with 0 and kept what is not 0. What is missing, the mask "
    "says, never the number.",
)
def _(m, layout):
    import torch

    from maskedtensor_ref import masked_tensor

    data = m.to_tensor(0)
    mask = data != 0
    if layout == torch.strided:
        return masked_tensor(data, mask)
    if layout == torch.sparse_coo:
        return masked_tensor(data.to_sparse_coo(), mask.to_sparse_coo())
    return masked_tensor(data.to_sparse_csr(), mask.to_sparse_csr())


@in_layout.wrong(
    "M22",
    "You read what lies under the mask: get_data() may hold anything there, and your new mask takes it for values. "
    "Convert the MaskedTensor as a whole.",
)
def _(m, layout):
    import torch

    from maskedtensor_ref import masked_tensor

    data = m.get_data().to_dense()
    mask = (data != 0) | m.get_mask().to_dense()
    m = masked_tensor(data, mask)
    if layout == torch.strided:
        return m
    return m.to_sparse_coo() if layout == torch.sparse_coo else m.to_sparse_csr()


@in_layout.wrong(
    "X-6.10-1",
    "The mask is gone: a plain tensor came back. A MaskedTensor has to_dense, to_sparse_coo and to_sparse_csr itself.",
)
def _(m, layout):
    import torch

    data = m.to_tensor(0)
    if layout == torch.strided:
        return data
    return data.to_sparse_coo() if layout == torch.sparse_coo else data.to_sparse_csr()


@in_layout.wrong("X-6.10-2", "The layout has not changed. It is to be the one that was asked for.")
def _(m, layout):
    return m


@in_layout.wrong(
    "X-6.10-3",
    "Every cell is stored, with a False in the mask where nothing is specified. That prints the same and saves nothing: "
    "a sparse result stores what is specified only.",
)
def _(m, layout):
    import torch

    from maskedtensor_ref import masked_tensor

    if layout == torch.strided:
        return m.to_dense()
    data, mask = m.to_tensor(0), m.to_dense().get_mask()
    places = torch.ones_like(mask).nonzero().t()
    data = torch.sparse_coo_tensor(places, data.flatten(), data.shape)
    mask = torch.sparse_coo_tensor(places, mask.flatten(), data.shape)
    if layout == torch.sparse_coo:
        return masked_tensor(data, mask)
    return masked_tensor(data.to_sparse_csr(), mask.to_sparse_csr())


@in_layout.wrong("X-6.10-4", "COO and CSR are exchanged: to_sparse_coo() belongs to torch.sparse_coo.")
def _(m, layout):
    import torch

    if layout == torch.strided:
        return m.to_dense()
    return m.to_sparse_csr() if layout == torch.sparse_coo else m.to_sparse_coo()


@in_layout.wrong(
    "X-6.10-5",
    "NaN was used to mark what is missing, and a NaN that is specified went missing, too (integers cannot hold one at "
    "all). A mask is a mask, and NaN is a value.",
)
def _(m, layout):
    import torch

    from maskedtensor_ref import masked_tensor

    data = m.to_tensor(float("nan"))
    m = masked_tensor(data, ~data.isnan())
    if layout == torch.strided:
        return m
    return m.to_sparse_coo() if layout == torch.sparse_coo else m.to_sparse_csr()


@in_layout.wrong("M23", "Specified and missing have changed places: in a MaskedTensor True means specified.")
def _(m, layout):
    import torch

    from maskedtensor_ref import masked_tensor

    m = masked_tensor(m.to_tensor(0), ~m.to_dense().get_mask())
    if layout == torch.strided:
        return m
    return m.to_sparse_coo() if layout == torch.sparse_coo else m.to_sparse_csr()


@in_layout.right
def _(m, layout):
    import torch

    convert = {"torch.strided": "to_dense", "torch.sparse_coo": "to_sparse_coo", "torch.sparse_csr": "to_sparse_csr"}
    return getattr(m, convert[str(torch.empty(0).layout if layout is None else layout)])()


@in_layout.right
def _(m, layout):
    import torch

    from maskedtensor_ref import masked_tensor

    data, mask = m.to_tensor(0), m.to_dense().get_mask()
    if layout == torch.strided:
        return masked_tensor(data, mask)
    if layout == torch.sparse_coo:
        return masked_tensor(data.sparse_mask(mask.to_sparse_coo()), mask.to_sparse_coo())
    return masked_tensor(data.sparse_mask(mask.to_sparse_csr()), mask.to_sparse_csr())


# ---- 6.11 -----------------------------------------------------------------------------------------------------------


@exercise(
    "6.11",
    points=4,
    minutes=15,
    stars=3,
    homework=True,
    concepts=["A-09"],
    needs=["layout_bytes"],
    properties=[no_loops],
    forbidden=SPARSE_MAKERS,
    visible=7,
    hints=[
        "Cut the matrix into tiles of block × block. A tile is stored whole as soon as one number in it is not zero. How "
        "many such tiles are there?",
        "x.reshape(rows // block, block, columns // block, block) has the rows of a tile in dimension 1 and its columns "
        "in dimension 3; (... != 0).any(3).any(1) says of each tile whether it is stored. BSR stores block² values and "
        "one index for each tile, and one border more than there are rows of tiles.",
        "tiles = (x != 0).reshape(rows // block, block, columns // block, block); blocks = int(tiles.any(___).any(___)"
        ".sum()); fill = nnz / (blocks * block**2), or 1.0 without blocks; csr = nnz * (v + 8) + (rows + 1) * 8; bsr = "
        "blocks * (block**2 * v + ___) + (rows // block + 1) * 8.",
    ],
)
def block_report(x, block):
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError(f"{rows} × {columns} cannot be cut into tiles of {block} × {block}")
    kept, v = x != 0, x.element_size()
    blocks = int(kept.reshape(rows // block, block, columns // block, block).any(3).any(1).sum())
    nnz = int(kept.sum())
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * (block * block * v + 8) + (rows // block + 1) * 8
    fill = nnz / (blocks * block * block) if blocks else 1.0
    return {"blocks": blocks, "fill": fill, "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


def tiled(rng, rows, columns, block, tiles, density, dtype=torch.float32):
    """A matrix whose numbers stand in some of its tiles, each filled to about this density."""
    used = rng.mask(rows, columns, density=tiles).repeat_interleave(block, 0).repeat_interleave(block, 1)
    kept = used & rng.mask(rows * block, columns * block, density=density)
    return torch.where(kept, rng.integers(*kept.shape, low=1), 0).to(dtype)


@block_report.cases
def _(rng):
    yield torch.tensor([[1.0, 2.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]]), 2
    yield torch.tensor([[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 5]]), 2
    yield torch.zeros(4, 2), 2
    yield torch.ones(3, 4), 2
    yield torch.tensor([[0.0, 1.0], [2.0, 0.0], [-1.0, 0.0]]), 1
    yield tiled(rng, 3, 2, 2, 0.5, 1.0).t(), 2
    yield torch.tensor([[NAN, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), 3
    yield torch.ones(4, 6), 4
    yield torch.ones(8, 8, dtype=torch.float64), 4
    for _ in range(30):
        block = rng.integer(1, 4)
        dtype = rng.choice([torch.float16, torch.float32, torch.float64])
        yield tiled(rng, rng.integer(1, 4), rng.integer(1, 4), block, 0.5, rng.choice([0.3, 0.9, 1.0]), dtype), block


@block_report.wrong(
    "M25",
    "Your BSR stores only the values that are not zero. That is what it does not do: a tile with one number in it is "
    "stored whole, its zeros too.",
)
def _(x, block):
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError
    kept, v = x != 0, x.element_size()
    blocks = int(kept.reshape(rows // block, block, columns // block, block).any(3).any(1).sum())
    nnz = int(kept.sum())
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = nnz * v + blocks * 8 + (rows // block + 1) * 8
    fill = nnz / (blocks * block * block) if blocks else 1.0
    return {"blocks": blocks, "fill": fill, "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


@block_report.wrong(
    "X-6.11-1",
    "The tiles are no tiles: a reshape that ends in (block, block) cuts the memory into runs. A row of the matrix runs "
    "through several tiles, so the dimensions are (tile row, row in it, tile column, column in it).",
)
def _(x, block):
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError
    kept, v = x != 0, x.element_size()
    blocks = int(kept.reshape(rows // block, columns // block, block, block).any(3).any(2).sum())
    nnz = int(kept.sum())
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * (block * block * v + 8) + (rows // block + 1) * 8
    fill = nnz / (blocks * block * block) if blocks else 1.0
    return {"blocks": blocks, "fill": fill, "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


@block_report.wrong(
    "X-6.11-2",
    "The fill is the density of the whole matrix. What counts is how full the stored tiles are: entries, divided by the "
    "cells of the tiles that are stored.",
)
def _(x, block):
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError
    kept, v = x != 0, x.element_size()
    blocks = int(kept.reshape(rows // block, block, columns // block, block).any(3).any(1).sum())
    nnz = int(kept.sum())
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * (block * block * v + 8) + (rows // block + 1) * 8
    return {"blocks": blocks, "fill": nnz / x.numel(), "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


@block_report.wrong("X-6.11-3", "All tiles are counted. Those in which everything is zero are not stored.")
def _(x, block):
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError
    v, nnz = x.element_size(), int((x != 0).sum())
    blocks = (rows // block) * (columns // block)
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * (block * block * v + 8) + (rows // block + 1) * 8
    return {"blocks": blocks, "fill": nnz / (blocks * block**2), "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


@block_report.wrong(
    "X-6.11-4", "BSR has one border more than there are rows of *tiles*, not rows of the matrix: rows // block + 1."
)
def _(x, block):
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError
    kept, v = x != 0, x.element_size()
    blocks = int(kept.reshape(rows // block, block, columns // block, block).any(3).any(1).sum())
    nnz = int(kept.sum())
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * (block * block * v + 8) + (rows + 1) * 8
    fill = nnz / (blocks * block * block) if blocks else 1.0
    return {"blocks": blocks, "fill": fill, "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


@block_report.wrong(
    "X-6.11-5",
    "BSR stores one column index for each tile, not for each number in it. That is what it saves, and why it may pay.",
)
def _(x, block):
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError
    kept, v = x != 0, x.element_size()
    blocks = int(kept.reshape(rows // block, block, columns // block, block).any(3).any(1).sum())
    nnz = int(kept.sum())
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * block * block * (v + 8) + (rows // block + 1) * 8
    fill = nnz / (blocks * block * block) if blocks else 1.0
    return {"blocks": blocks, "fill": fill, "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


@block_report.wrong(
    "X-6.11-6",
    "A matrix that cannot be cut into whole tiles has to end in a ValueError. Yours leaves rows or columns over.",
)
def _(x, block):
    rows, columns = x.shape
    kept, v = x != 0, x.element_size()
    nnz = int(kept.sum())
    high, low = rows // block * block, columns // block * block
    tiles = kept[:high, :low].reshape(rows // block, block, columns // block, block)
    blocks = int(tiles.any(3).any(1).sum())
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * (block * block * v + 8) + (rows // block + 1) * 8
    fill = nnz / (blocks * block * block) if blocks else 1.0
    return {"blocks": blocks, "fill": fill, "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


@block_report.wrong(
    "X-6.11-7",
    "Without a stored tile nothing is wasted: the fill is then 1.0 by agreement, and dividing by 0 is avoided.",
)
def _(x, block):
    rows, columns = x.shape
    if rows % block or columns % block:
        raise ValueError
    kept, v = x != 0, x.element_size()
    blocks = int(kept.reshape(rows // block, block, columns // block, block).any(3).any(1).sum())
    nnz = int(kept.sum())
    csr = nnz * (v + 8) + (rows + 1) * 8
    bsr = blocks * (block * block * v + 8) + (rows // block + 1) * 8
    return {"blocks": blocks, "fill": nnz / (blocks * block**2), "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


@block_report.right
def _(x, block):
    rows, columns = x.shape
    if rows % block != 0 or columns % block != 0:
        raise ValueError("the tiles do not fit")
    stored = (x != 0).unfold(0, block, block).unfold(1, block, block).flatten(2).any(2)
    nnz, blocks = (x != 0).sum().item(), stored.sum().item()
    bytes_of_csr = nnz * (x.element_size() + 8) + 8 * rows + 8
    bytes_of_bsr = blocks * block**2 * x.element_size() + 8 * blocks + 8 * (rows // block) + 8
    return {
        "blocks": blocks,
        "fill": nnz / (blocks * block**2) if blocks else 1.0,
        "csr": bytes_of_csr,
        "bsr": bytes_of_bsr,
        "bsr_pays": bytes_of_bsr < bytes_of_csr,
    }


@block_report.right
def _(x, block):
    import torch

    if x.shape[0] % block or x.shape[1] % block:
        raise ValueError("the tiles do not fit")
    row, column = torch.nonzero(x, as_tuple=True)
    tiles = torch.stack([row // block, column // block]).unique(dim=1).shape[1]
    nnz, v = len(row), x.dtype.itemsize
    csr, bsr = 8 * (len(x) + 1) + nnz * (8 + v), 8 * (len(x) // block + 1) + tiles * (8 + block**2 * v)
    fill = 1.0 if tiles == 0 else nnz / tiles / block**2
    return {"blocks": tiles, "fill": fill, "csr": csr, "bsr": bsr, "bsr_pays": bsr < csr}


# ---- predictions ----------------------------------------------------------------------------------------------------

PREDICTIONS = (
    prediction(
        "R1",
        "`x = torch.zeros(1000, 1000)`. How many bytes does its storage take?",
        {
            "a": (
                "none worth mentioning, for everything in it is 0",
                "A strided tensor keeps a place for every element.",
            ),
            "b": ("1 000 000", "That is the number of elements. Each float32 takes 4 bytes."),
            "c": ("4 000 000", "Right: a million float32 of 4 bytes each, whatever their values are."),
        },
        "c",
    ),
    prediction(
        "R2",
        "`out = torch.zeros(3)`, then `out[torch.tensor([1, 1])] += 1`. What is `out[1]`?",
        {
            "a": (
                "1",
                "Right: an index that comes twice is written twice, and the second write replaces the first. "
                "index_add adds up.",
            ),
            "b": (
                "2",
                "It reads like that. But += reads, adds and writes back, and the second write replaces the first.",
            ),
            "c": ("an error, because 1 comes twice", "Duplicate indices are allowed; they just do not add up."),
        },
        "a",
    ),
    prediction(
        "R3",
        "In a MaskedTensor, what lies under a False of the mask?",
        {
            "a": ("0", "Zero is a value. What lies there means nothing, and may be any number."),
            "b": ("NaN", "It may be. It may be anything else, too: nothing may depend on it."),
            "c": (
                "anything: it means nothing",
                "Right: True means specified, and what lies under False is never read.",
            ),
        },
        "c",
    ),
    prediction(
        "P1",
        "A COO tensor stores the values 1 and 2 at the same place. What is the sum of its squares?",
        {
            "a": ("5", "That is 1² + 2²: the squares of the parts. But the tensor holds 3 at that place."),
            "b": ("9", "Right: duplicates add up, so the place holds 3, and 3² is 9."),
            "c": (
                "4, the square of the value stored last",
                "No value replaces another: the values of one place are added.",
            ),
        },
        "b",
    ),
    prediction(
        "P2",
        "A matrix of float32 is stored as COO. How full may it be at most, so that COO takes less memory than dense?",
        {
            "a": (
                "nearly full: every zero that is left out saves something",
                "Each entry takes two indices, too: 16 bytes more.",
            ),
            "b": ("half full", "Each entry takes 20 bytes instead of 4, five times as much."),
            "c": ("up to one fifth", "Right: an entry takes 4 + 8 + 8 = 20 bytes, a cell of the dense matrix 4."),
        },
        "c",
    ),
    prediction(
        "P3",
        "`a = torch.tensor([0., 2.]).to_sparse()`, and `b = torch.sparse_coo_tensor([[0, 1]], [0., 2.], (2,))`. How "
        "many entries does each store?",
        {
            "a": (
                "a stores 1, b stores 2",
                "Right: a conversion looks at the numbers and leaves zeros out; a constructor stores what it is given.",
            ),
            "b": (
                "both store 1",
                "So it would be if zeros were never stored. A constructor does not look at the values.",
            ),
            "c": ("both store 2", "to_sparse() leaves out what is zero: that is its purpose."),
        },
        "a",
    ),
    prediction(
        "P4",
        "Two MaskedTensors in COO print alike. One stores 2 entries, the other 3, of which one is False in its mask. "
        "What does `torch.masked` make of their sum?",
        {
            "a": (
                "the sum, for they print alike",
                "So it should be, and so it is in maskedtensor_ref. Not in torch.masked.",
            ),
            "b": (
                "an error about sizes 2 and 3",
                "Right: torch.masked compares the stored entries one by one, and there are not equally many.",
            ),
            "c": ("the sum, with the entry that is False lost", "It does not get so far: it compares the masks first."),
        },
        "b",
    ),
    prediction(
        "P5",
        "`c` is a CSR tensor, `m` a MaskedTensor in CSR layout. What are `c.is_sparse` and `m.is_sparse`?",
        {
            "a": ("True and True", "That would be reasonable. But a tensor's is_sparse asks for COO only."),
            "b": ("False and False", "A MaskedTensor answers for both sparse layouts."),
            "c": (
                "False and True",
                "Right: is_sparse of a tensor means COO, that of a MaskedTensor means COO or CSR. Ask .layout instead.",
            ),
        },
        "c",
    ),
    prediction(
        "P6",
        "`m` is a sparse MaskedTensor of `torch.masked`. Which of `m.sum()` and `m.sum(dim=1)` work?",
        {
            "a": ("both", "In maskedtensor_ref both do. torch.masked has no sparse reduction along a dimension."),
            "b": (
                "`m.sum()` only",
                "Right: the values alone give the whole sum. Along a dimension torch.masked gives up.",
            ),
            "c": ("neither", "The sum of everything needs the values only, and works."),
        },
        "b",
    ),
)
