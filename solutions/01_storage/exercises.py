"""Lecture 01, storage, strides, contiguity: where the numbers of a tensor lie, and what moving them costs."""

# ruff: noqa: B905, RUF007 - zip without strict is how students write it, and stopping early is one of the wrong answers

from math import prod

import torch
from torch.utils.benchmark import Timer

from autograder.exercises import exercise, prediction
from autograder.properties import device_agnostic, no_warnings, same_sharing, same_strides, small_storage

DTYPES = [torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64, torch.float64, torch.uint8]


def some_view(rng, dtype=torch.float32, most=5):
    """A random view: a small tensor of distinct numbers, then up to three slices, steps, transposes, expansions ..."""
    shape = [rng.integer(1, most) for _ in range(rng.integer(1, 3))]
    t = rng.permutation(prod(shape)).view(shape).to(dtype)
    for _ in range(rng.integer(0, 3)):
        how = rng.choice(["slice", "step", "transpose", "select", "expand", "one"])
        d = rng.integer(0, max(t.dim() - 1, 0))
        if how == "expand":
            t = t.unsqueeze(0).expand(rng.integer(2, 3), *t.shape)
        elif how == "one":
            t = t.unsqueeze(d)
        elif t.dim() == 0:
            continue
        elif how == "slice":
            t = t.narrow(d, (start := rng.integer(0, t.shape[d] - 1)), rng.integer(1, t.shape[d] - start))
        elif how == "step":
            t = t[(slice(None),) * d + (slice(rng.integer(0, min(1, t.shape[d] - 1)), None, 2),)]
        elif how == "transpose":
            t = t.transpose(d, -1)
        else:
            t = t.select(d, rng.integer(0, t.shape[d] - 1))
    return t


# ---- questions on lecture 00 and predictions -------------------------------------------------------------------------

retrieval_shape = prediction(
    "R1",
    "What is the shape of `torch.zeros(2, 3)`?",
    {
        "a": ("2 columns and 3 rows", "It is read the other way round: the first number counts the rows."),
        "b": ("2 rows and 3 columns", "Right: rows before columns."),
        "c": ("one row of six", "Two numbers make two dimensions. One row of six would be `torch.zeros(6)`."),
    },
    "b",
)

retrieval_name = prediction(
    "R2",
    "After `y = x`, how many tensors are there?",
    {
        "a": ("one, with two names", "Right: `=` copies nothing. In this lecture you see what else copies nothing."),
        "b": ("two that hold equal numbers", "`=` gives the same tensor a second name; no number is copied."),
    },
    "a",
)

retrieval_write = prediction(
    "R3",
    "Which of these leaves `x` as it is?",
    {
        "a": ("`x.add_(1)`", "The underscore at the end says that it writes into `x` itself."),
        "b": ("`x += 1`", "For tensors this is `add_` in other clothes: it writes into `x`."),
        "c": ("`x + 1`", "Right: it makes a new tensor."),
    },
    "c",
)


prediction_transpose = prediction(
    "P1",
    "`a` is a 1000×1000 tensor, and `a.t()` is its transpose: rows become columns. How many numbers does `a.t()` "
    "move in memory?",
    {
        "a": ("none", "Right: only sizes and strides are swapped, four numbers outside of the storage."),
        "b": (
            "about half a million, those above the diagonal",
            "That is how you would do it on paper. torch leaves the storage as it is and reads it in another order.",
        ),
        "c": ("a million, into a new tensor", "No new storage is made: `a.t()` looks at the one of `a`."),
    },
    "a",
)

prediction_contiguous = prediction(
    "P2",
    "`a` is a fresh 3×3 tensor and `row = a[:1]`, of shape (1, 3). "
    "Which of `a[1:3, 1:3]`, `a[1:3]`, `a.t()` and `row.t()` are contiguous?",
    {
        "a": (
            "only `a[1:3]`",
            "Nearly: `row.t()` is contiguous as well. It has shape (3, 1), and a dimension of size 1 is never stepped "
            "along, so its stride cannot matter.",
        ),
        "b": (
            "`a[1:3]` and `row.t()`",
            "Right: whole rows stay neighbours, and the dimension of size 1 in `row.t()` is never stepped along.",
        ),
        "c": (
            "`a[1:3, 1:3]` and `a[1:3]`",
            "The 2×2 corner prints like a neat block, but one element of `a` is skipped between its two rows.",
        ),
        "d": (
            "all but `a.t()`",
            "The corner `a[1:3, 1:3]` is not: its rows start 3 elements apart and are only 2 long.",
        ),
    },
    "b",
)

prediction_cpu = prediction(
    "P3",
    "`a` lives in CPU memory. After `b = a.cpu()` you write `a[1, 1] = 0`. What is `b[1, 1]`?",
    {
        "a": (
            "the old number: b is a copy",
            "`.cpu()` copies only when the data is elsewhere. `a` is on the CPU already, so nothing is copied at all.",
        ),
        "b": (
            "0: b is a itself",
            "Right. When there is nothing to do, `.cpu()` hands back the very same tensor, `b is a`.",
        ),
        "c": (
            "an error: a and b may not share memory",
            "Sharing is allowed and common. Nothing warns you, which is why it is worth knowing when it happens.",
        ),
    },
    "b",
)

prediction_view = prediction(
    "P4",
    "`b = a[1:3, 1:3]` of a 3×3 tensor `a`. Which of `b.view(4)` and `b.reshape(4)` works, and what does it give?",
    {
        "a": (
            "both: view and reshape are two names of one thing",
            "They differ just here. `view` may not copy, and the four cells 4, 5, 7, 8 are not evenly spaced.",
        ),
        "b": (
            "only reshape, and it gives a view of b",
            "No single stride leads from cell 4 to 5 to 7 to 8, so there is no such view.",
        ),
        "c": (
            "only reshape, and it gives a copy",
            "Right: four cells that are not evenly spaced cannot be one dimension, so `reshape` has to copy them.",
        ),
        "d": (
            "neither",
            "`reshape` never refuses as long as the number of elements agrees: when it has to, it copies.",
        ),
    },
    "c",
)

prediction_slice = prediction(
    "P5",
    "`x` holds a million float32 numbers. After `y = x[:2]` and `del x`, how many bytes does `y` keep in memory?",
    {
        "a": (
            "8: two elements of 4 bytes",
            "That is what `y` shows. What it keeps alive is the whole storage that it is a window on.",
        ),
        "b": (
            "4 000 000: the whole storage",
            "Right. A storage lives as long as any tensor looks at it, and no part of it is given back.",
        ),
        "c": (
            "none: the memory is gone with x",
            "`del x` removes a name. The storage stays as long as `y` needs it.",
        ),
    },
    "b",
)

prediction_adam = prediction(
    "P6",
    "The parameters of a model take 1 GB. How much do parameters, gradients and the state of Adam take together?",
    {
        "a": ("1 GB", "The gradients alone take as much again: one number for each parameter."),
        "b": ("2 GB", "That is parameters and gradients. Adam keeps two more numbers for each parameter."),
        "c": ("4 GB", "Right: parameter, gradient, and two running means that Adam keeps for each parameter."),
    },
    "c",
)

prediction_speed = prediction(
    "P7",
    "`c` is a contiguous 1000×1000 tensor and `nc = c.t()` is not contiguous. "
    "In which pair do the two times differ most?",
    {
        "a": (
            "`nc @ nc` and `c @ c`",
            "Hardly any difference: the matrix product reads transposed matrices as they are.",
        ),
        "b": (
            "`nc + 1` and `c + 1`",
            "Hardly any: every element is read and written once, in the order in which it lies, and the result keeps "
            "that order.",
        ),
        "c": (
            "`nc + c` and `c + c`",
            "A good guess, and a real cost: two layouts cannot both be read in order. One pair differs still more.",
        ),
        "d": (
            "`nc.reshape(-1)` and `c.reshape(-1)`",
            "Right: for `c` nothing moves at all, for `nc` a million elements are copied.",
        ),
    },
    "d",
)


# ---- 1.1 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.1",
    points=1,
    minutes=5,
    stars=1,
    visible=6,
    concepts=["L-03", "L-04", "L-07", "L-08", "L-09", "L-10"],
    properties=[no_warnings],
    hints=[
        "Every number asked for is a method call or a product of two. Which two are counted in bytes although torch "
        "gives you elements?",
        "Methods of the tensor: element_size, numel, storage_offset, stride, is_contiguous. The storage itself is "
        "`t.untyped_storage()`, and it knows its own `nbytes()`.",
        '`return {"element_size": t.element_size(), "numel": t.numel(), '
        '"storage_bytes": t.untyped_storage().nbytes(), ...}`. '
        "The offset in bytes is the offset in elements times the size of an element.",
    ],
)
def describe(t):
    return {
        "element_size": t.element_size(),
        "numel": t.numel(),
        "storage_bytes": t.untyped_storage().nbytes(),
        "offset": t.storage_offset(),
        "offset_bytes": t.storage_offset() * t.element_size(),
        "strides": t.stride(),
        "contiguous": t.is_contiguous(),
    }


@describe.cases
def _(rng):
    yield torch.arange(9).view(3, 3)[1:3, 1:3]
    yield torch.arange(3.0).expand(2, 3)
    yield (torch.arange(8) % 3 == 0)[2:5]
    yield torch.zeros(0, 3, dtype=torch.float16)
    yield torch.tensor(1 + 2j, dtype=torch.complex64)
    yield torch.arange(12, dtype=torch.float64).view(3, 4).t()
    yield torch.arange(48, dtype=torch.int32).view(2, 3, 2, 2, 2)[1:, :, :, :, 1]
    for _ in range(24):
        yield some_view(rng, rng.choice(DTYPES))


@describe.wrong(
    "M07",
    "You computed the bytes of the elements that the tensor shows. Its storage may be larger: a slice keeps all "
    "of the "
    "tensor that it was cut from. Ask the storage: `t.untyped_storage().nbytes()`.",
)
def _(t):
    return {
        "element_size": t.element_size(),
        "numel": t.numel(),
        "storage_bytes": t.numel() * t.element_size(),
        "offset": t.storage_offset(),
        "offset_bytes": t.storage_offset() * t.element_size(),
        "strides": t.stride(),
        "contiguous": t.is_contiguous(),
    }


@describe.wrong(
    "M06",
    "That is the number of elements in the storage. Bytes were asked for: `t.untyped_storage().nbytes()` counts "
    "bytes, "
    "whatever the dtype.",
)
def _(t):
    return {
        "element_size": t.element_size(),
        "numel": t.numel(),
        "storage_bytes": t.untyped_storage().nbytes() // t.element_size(),
        "offset": t.storage_offset(),
        "offset_bytes": t.storage_offset() * t.element_size(),
        "strides": t.stride(),
        "contiguous": t.is_contiguous(),
    }


@describe.wrong(
    "M02",
    "A last stride of 1 says only that neighbours within a row are neighbours in memory. Contiguous means that "
    "the next "
    "row begins right where this one ends, too. `t.is_contiguous()` looks at all dimensions.",
)
def _(t):
    return {
        "element_size": t.element_size(),
        "numel": t.numel(),
        "storage_bytes": t.untyped_storage().nbytes(),
        "offset": t.storage_offset(),
        "offset_bytes": t.storage_offset() * t.element_size(),
        "strides": t.stride(),
        "contiguous": t.dim() == 0 or t.stride(-1) == 1,
    }


@describe.wrong(
    "X-describe-1",
    "The difference of two addresses counts bytes. The offset was asked for in elements, too: `t.storage_offset()`.",
)
def _(t):
    step = t.storage_offset() * t.element_size()
    return {
        "element_size": t.element_size(),
        "numel": t.numel(),
        "storage_bytes": t.untyped_storage().nbytes(),
        "offset": step,
        "offset_bytes": step,
        "strides": t.stride(),
        "contiguous": t.is_contiguous(),
    }


@describe.wrong(
    "X-describe-2",
    "`storage_offset()` counts elements. For bytes, multiply by the size of one element.",
)
def _(t):
    return {
        "element_size": t.element_size(),
        "numel": t.numel(),
        "storage_bytes": t.untyped_storage().nbytes(),
        "offset": t.storage_offset(),
        "offset_bytes": t.storage_offset(),
        "strides": t.stride(),
        "contiguous": t.is_contiguous(),
    }


@describe.wrong(
    "X-describe-3",
    "These strides are in bytes, as NumPy counts them. torch counts strides in elements: `t.stride()` as it is.",
)
def _(t):
    return {
        "element_size": t.element_size(),
        "numel": t.numel(),
        "storage_bytes": t.untyped_storage().nbytes(),
        "offset": t.storage_offset(),
        "offset_bytes": t.storage_offset() * t.element_size(),
        "strides": tuple(step * t.element_size() for step in t.stride()),
        "contiguous": t.is_contiguous(),
    }


@describe.wrong(
    "X-describe-4",
    "The numbers are right, but `t.storage()` belongs to an old kind of storage and warns. "
    "Its successor is `t.untyped_storage()`, which counts bytes and nothing else.",
)
def _(t):
    return {
        "element_size": t.element_size(),
        "numel": t.numel(),
        "storage_bytes": t.storage().nbytes(),
        "offset": t.storage_offset(),
        "offset_bytes": t.storage_offset() * t.element_size(),
        "strides": t.stride(),
        "contiguous": t.is_contiguous(),
    }


@describe.right
def _(t):
    size, storage = t.dtype.itemsize, t.untyped_storage()
    answer = {
        "element_size": size,
        "numel": t.shape.numel(),
        "storage_bytes": len(storage),
        "offset": t.storage_offset(),
    }
    answer["offset_bytes"] = size * answer["offset"]
    return {**answer, "strides": list(t.stride()), "contiguous": t.contiguous() is t}


@describe.right
def _(t):
    storage = t.untyped_storage()
    step = t.data_ptr() - storage.data_ptr() if t.numel() else t.storage_offset() * t.element_size()
    return {
        "contiguous": t.is_contiguous(),
        "strides": tuple(t.stride(d) for d in range(t.dim())),
        "offset_bytes": step,
        "offset": step // t.element_size(),
        "storage_bytes": storage.size(),
        "numel": t.numel(),
        "element_size": t.element_size(),
    }


# ---- 1.2 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.2",
    points=2,
    minutes=10,
    stars=2,
    visible=7,
    concepts=["L-09", "L-14"],
    needs=["describe"],
    forbidden=["torch", "numpy", "np"],
    hints=[
        "Start in cell `offset`. Each step along dimension d moves you by stride[d] cells, and you take index[d] "
        "of them.",
        "`zip(index, stride)` pairs the steps with their lengths. It stops at the shorter of the two, so compare the "
        "lengths first; and no number of the index may be negative.",
        "Two `if ...: raise ...`, then `return offset + sum(i * s for i, s in zip(index, stride))`.",
    ],
)
def flat_index(index, stride, offset):
    if len(index) != len(stride):
        raise ValueError(f"the index has {len(index)} numbers, there are {len(stride)} strides: give one a dimension")
    if any(i < 0 for i in index):
        raise IndexError(f"{index} counts from the end, and without the size nobody knows where that is")
    return offset + sum(i * s for i, s in zip(index, stride, strict=True))


@flat_index.cases
def _(rng):
    yield (1, 1), (3, 1), 4
    yield (2, 3), (1, 4), 0
    yield (), (), 5
    yield (1, 2), (0, 1), 1
    yield (2,), (3, 1), 0
    yield (0, -1), (3, 1), 0
    yield (1, 0, 2), (12, 4, 2), 3
    yield (1, 2), (3,), 0
    for _ in range(24):
        t = some_view(rng)
        yield tuple(rng.integer(0, n - 1) for n in t.shape), t.stride(), t.storage_offset()


@flat_index.wrong(
    "X-flat_index-1",
    "The offset is missing: element [0, 0, ...] lies in cell `offset`, not in cell 0.",
)
def _(index, stride, offset):
    if len(index) != len(stride):
        raise ValueError
    if any(i < 0 for i in index):
        raise IndexError
    return sum(i * s for i, s in zip(index, stride))


@flat_index.wrong(
    "X-flat_index-2",
    "The strides are taken from the wrong end: the first stride belongs to the first number of the index.",
)
def _(index, stride, offset):
    if len(index) != len(stride):
        raise ValueError
    if any(i < 0 for i in index):
        raise IndexError
    return offset + sum(i * s for i, s in zip(index, reversed(stride)))


@flat_index.wrong(
    "X-flat_index-3",
    "An index with more or fewer numbers than there are strides has no cell. `zip` stops at the shorter one without a "
    "word, so compare the lengths first and raise ValueError.",
)
def _(index, stride, offset):
    if any(i < 0 for i in index):
        raise IndexError
    return offset + sum(i * s for i, s in zip(index, stride))


@flat_index.wrong(
    "X-flat_index-4",
    "A negative index counts from the end, and the size is not known here, so the cell cannot be computed. "
    "Raise IndexError.",
)
def _(index, stride, offset):
    if len(index) != len(stride):
        raise ValueError
    return offset + sum(i * s for i, s in zip(index, stride))


@flat_index.wrong(
    "M02",
    "You step by 1 along the last dimension. That is right only while the elements of a row are neighbours in memory; "
    "in a transposed tensor they are not. Use the last stride, too.",
)
def _(index, stride, offset):
    if len(index) != len(stride):
        raise ValueError
    if any(i < 0 for i in index):
        raise IndexError
    steps = (*stride[:-1], 1)
    return offset + sum(i * s for i, s in zip(index, steps))


@flat_index.wrong(
    "X-flat_index-5",
    "This counts bytes. Offset and strides are in elements, and so is the cell: leave the size of an element out.",
)
def _(index, stride, offset):
    if len(index) != len(stride):
        raise ValueError
    if any(i < 0 for i in index):
        raise IndexError
    return 4 * (offset + sum(i * s for i, s in zip(index, stride)))


@flat_index.wrong(
    "X-flat_index-6",
    "The result is right, but this exercise is about doing the sum yourself: plain Python, without torch.",
)
def _(index, stride, offset):
    import torch

    if len(index) != len(stride):
        raise ValueError
    if any(i < 0 for i in index):
        raise IndexError
    return offset + int((torch.tensor(index) * torch.tensor(stride)).sum())


@flat_index.wrong(
    "X-flat_index-7",
    "The sum is right. What is missing are the two inputs that have no cell: lengths that differ (ValueError), and a "
    "negative number in the index (IndexError). Look for them before you add up.",
)
def _(index, stride, offset):
    return offset + sum(i * s for i, s in zip(index, stride))


@flat_index.right
def _(index, stride, offset):
    if len(index) != len(stride):
        raise ValueError(f"{len(index)} numbers for {len(stride)} dimensions")
    cell = offset
    for d in range(len(index)):
        if index[d] < 0:
            raise IndexError(f"number {d} of the index is negative")
        cell += index[d] * stride[d]
    return cell


@flat_index.right
def _(index, stride, offset):
    from operator import mul

    if min(index, default=0) < 0 and len(index) == len(stride):
        raise IndexError(index)
    if len(index) != len(stride):
        raise ValueError((index, stride))
    return sum(map(mul, index, stride), start=offset)


# ---- 1.3 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.3",
    points=2,
    minutes=10,
    stars=2,
    visible=9,
    concepts=["L-13", "L-14"],
    needs=["flat_index"],
    forbidden=["torch", "numpy", "np"],
    hints=[
        "In a contiguous tensor you can say what each stride has to be, if you know the sizes to the right of it. "
        "Which dimensions do not care about their stride?",
        "Walk from the last dimension to the first and keep the stride you expect: it starts at 1 and is "
        "multiplied by "
        "each size that you pass. A dimension of size 1 is never stepped along; with a size 0 there is nothing "
        "to step to.",
        "With a 0 in `size` the answer is True. Else begin with `expected = 1` and go through the pairs of size and "
        "stride from the right: a size other than 1 whose stride is not the expected one makes it False; after each "
        "pair, multiply.",
    ],
)
def is_contiguous_from(size, stride):
    if 0 in size:
        return True
    expected = 1
    for n, s in zip(reversed(size), reversed(stride), strict=True):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


@is_contiguous_from.cases
def _(rng):
    yield (3, 4), (4, 1)
    yield (2, 2), (3, 1)
    yield (4, 3), (1, 4)
    yield (1, 3), (99, 1)
    yield (3, 1), (1, 7)
    yield (0, 3), (9, 2)
    yield (), ()
    yield (2, 3), (0, 1)
    yield (2, 3), (6, 2)
    yield (2, 0, 3), (1, 1, 1)
    for _ in range(28):
        t = some_view(rng)
        stride = list(t.stride())
        if stride and rng.integer(0, 2) == 0:
            stride = list(torch.empty(t.shape, device="meta").stride())
            d = rng.integer(0, len(stride) - 1)
            stride[d] = stride[d] if t.shape[d] > 1 else rng.integer(0, 9)
        yield tuple(t.shape), tuple(stride)


@is_contiguous_from.wrong(
    "M02",
    "A last stride of 1 is not enough: it says that each row is in one piece. Contiguous also needs every row to "
    "begin "
    "where the one before ends. Compare each stride with the product of the sizes to its right.",
)
def _(size, stride):
    return len(stride) == 0 or stride[-1] == 1


@is_contiguous_from.wrong(
    "X-is_contiguous_from-1",
    "You also demand a stride of the dimensions of size 1. They have a single index, 0, so nobody ever steps "
    "along them, "
    "and any stride will do.",
)
def _(size, stride):
    if 0 in size:
        return True
    expected = 1
    for n, s in zip(reversed(size), reversed(stride)):
        if s != expected:
            return False
        expected *= n
    return True


@is_contiguous_from.wrong(
    "X-is_contiguous_from-2",
    "With a size of 0 there is no element at all, so none is out of place: torch calls such a tensor contiguous, "
    "whatever its strides.",
)
def _(size, stride):
    expected = 1
    for n, s in zip(reversed(size), reversed(stride)):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


@is_contiguous_from.wrong(
    "X-is_contiguous_from-3",
    "Strides that fall from left to right put the elements in order, but leave room for gaps. "
    "Each stride has to be exactly the product of the sizes to its right.",
)
def _(size, stride):
    steps = [s for n, s in zip(size, stride) if n != 1]
    return 0 in size or (all(a > b for a, b in zip(steps, steps[1:])) and 0 not in steps)


@is_contiguous_from.wrong(
    "X-is_contiguous_from-4",
    "You checked that there is no gap between the first and the last cell. A transposed tensor has none either, and "
    "still its elements come in another order than the storage's. Order counts, too.",
)
def _(size, stride):
    from math import prod

    return 0 in size or 1 + sum((n - 1) * s for n, s in zip(size, stride)) == prod(size)


@is_contiguous_from.wrong(
    "X-is_contiguous_from-5",
    "This starts at the first dimension. In torch the *last* index moves fastest, so the last stride is the one that "
    "has to be 1: walk from the right.",
)
def _(size, stride):
    if 0 in size:
        return True
    expected = 1
    for n, s in zip(size, stride):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


@is_contiguous_from.wrong(
    "X-is_contiguous_from-6",
    "The result is right, but torch did the work. Do it from the two tuples in plain Python: that is the exercise.",
)
def _(size, stride):
    import torch

    return torch.empty_strided(size, stride, device="meta").is_contiguous()


@is_contiguous_from.wrong(
    "X-is_contiguous_from-7",
    "A last stride of 1 is not enough, since there may be a gap between one row and the next. "
    "And a tensor with a single number has no last stride at all: `size` and `stride` are empty then.",
)
def _(size, stride):
    return stride[-1] == 1


@is_contiguous_from.wrong(
    "X-is_contiguous_from-8",
    "These are the strides of a fresh tensor, and comparing with them is the idea. Two exceptions are missing: a "
    "dimension of size 1 may have any stride, and so may all of them when some size is 0.",
)
def _(size, stride):
    from math import prod

    return tuple(stride) == tuple(prod(size[d + 1 :]) for d in range(len(size)))


@is_contiguous_from.right
def _(size, stride):
    from math import prod

    if prod(size) == 0:
        return True
    return all(size[d] == 1 or stride[d] == prod(size[d + 1 :]) for d in range(len(size)))


@is_contiguous_from.right
def _(size, stride):
    from itertools import product

    cells = [sum(i * s for i, s in zip(index, stride)) for index in product(*map(range, size))]
    return cells == list(range(len(cells)))


# ---- 1.4 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.4",
    points=2,
    minutes=10,
    stars=2,
    visible=8,
    concepts=["L-03", "L-04", "L-05", "L-10", "L-12"],
    needs=["describe"],
    properties=[no_warnings],
    hints=[
        "A tensor and its slice begin at different addresses, and still live in the same storage. "
        "Whose address do you have to compare?",
        "`t.untyped_storage().data_ptr()` is where the storage begins. All storages without a single byte give "
        "the same "
        "answer, 0: what follows for them?",
        "`a, b = x.untyped_storage(), y.untyped_storage()`; the answer is "
        "`a.nbytes() > 0 and a.data_ptr() == ...`, and that is nearly all.",
    ],
)
def same_memory(x, y):
    a, b = x.untyped_storage(), y.untyped_storage()
    return a.nbytes() > 0 and a.data_ptr() == b.data_ptr()


@same_memory.call
def _(function, how, x):
    import torch

    names = {"x": x, "torch": torch}
    exec(how, names)
    return function(names["x"], names["y"])


PAIRS = [
    "y = x.cpu()",
    "y = x.clone()",
    "x, y = x[0], x[1]",
    "x, y = torch.empty(0), torch.empty(0)",
    "y = torch.from_numpy(x.numpy())",
    "y = x.detach()",
    "y = x[1:, 1:]",
    "y = x + 0",
    "y = x[:0]",
    "y = x.contiguous()",
    "y = x.t().contiguous()",
    "y = torch.from_numpy(x.numpy().copy())",
    "y = x.to(x.dtype)",
    "x, y = x[::2], x[1::2]",
    "y = x.view(-1)[3:]",
    "y = x.reshape(-1)",
    "y = x.t().reshape(-1)",
    "y = x.view(torch.uint8)",
    "x, y = x.clone(), x.clone()",
]


@same_memory.cases
def _(rng):
    for how in PAIRS:
        yield how, rng.matrix(2, 3)
    for _ in range(16):
        dtype = rng.choice([torch.float32, torch.int64, torch.float64])
        yield rng.choice(PAIRS), rng.matrix(rng.integer(2, 4), rng.integer(2, 4), dtype)


@same_memory.wrong(
    "M06",
    "`x.data_ptr()` is where the tensor's first element lies, offset included. Two rows of one matrix begin at "
    "different "
    "addresses in the same storage. Compare where the storages begin: `x.untyped_storage().data_ptr()`.",
)
def _(x, y):
    return x.data_ptr() == y.data_ptr()


@same_memory.wrong(
    "X-same_memory-1",
    "All storages without a byte report the address 0, so any two empty tensors look like one. They share nothing: "
    "ask for `nbytes() > 0` first.",
)
def _(x, y):
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


@same_memory.wrong(
    "X-same_memory-2",
    "You compare the storage objects. A tensor made from a NumPy array has a storage object of its own on the "
    "same bytes. "
    "Only the address, `data_ptr()`, tells.",
)
def _(x, y):
    return x.untyped_storage()._cdata == y.untyped_storage()._cdata


@same_memory.wrong(
    "M03",
    "Equal numbers are not the same memory: a clone is equal and lives elsewhere, and two rows differ and live "
    "together. "
    "Look at addresses, not at values.",
)
def _(x, y):
    return x.shape == y.shape and x.dtype == y.dtype and bool((x == y).all())


@same_memory.wrong(
    "X-same_memory-3",
    "`x is y` asks whether it is the same Python object. A view is another object on the same memory.",
)
def _(x, y):
    return x is y


@same_memory.wrong(
    "X-same_memory-4",
    "You ask whether the two have an element in common. Two rows of one matrix have none, and still share one "
    "storage. "
    "(Whether elements overlap is exercise 1.11.)",
)
def _(x, y):
    def cells(t):
        if t.numel() == 0:
            return range(0)
        last = sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
        return range(t.data_ptr(), t.data_ptr() + (last + 1) * t.element_size())

    a, b = cells(x), cells(y)
    return max(a.start, b.start) < min(a.stop, b.stop)


@same_memory.right
def _(x, y):
    start = x.untyped_storage().data_ptr()
    return start != 0 and start == y.untyped_storage().data_ptr()


@same_memory.right
def _(x, y):
    def home(t):
        storage = t.untyped_storage()
        return (storage.data_ptr(), storage.nbytes())

    return min(home(x)[1], home(y)[1]) > 0 and home(x) == home(y)


# ---- 1.5 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.5",
    points=3,
    minutes=20,
    stars=3,
    visible=5,
    concepts=["L-09", "L-11", "L-14", "L-22"],
    needs=["flat_index"],
    properties=[same_sharing, no_warnings],
    hints=[
        "Draw a 3×4 matrix with its cells numbered 0 to 11. For each view, write the cell numbers down in order: the "
        "first is the offset, the step from one to the next is the stride, how many there are is the size.",
        "In a fresh matrix one step to the right is 1 cell, one step down is `cols` cells, one step down and right "
        "`cols + 1`. A stride of 0 stays where it is. The blocks have four dimensions: which block down, which block "
        "across, row in the block, column in the block.",
        "last_column: `((rows,), (cols,), cols - 1)`. every_second_row: size `((rows + 1) // 2, cols)`. "
        "windows: strides `(1, 1)`. blocks: size `(rows // 2, cols // 2, 2, 2)`, and its third stride is one "
        "step down.",
    ],
)
def strided_views(rows, cols):
    return {
        "last_column": ((rows,), (cols,), cols - 1),
        "diagonal": ((min(rows, cols),), (cols + 1,), 0),
        "every_second_row": (((rows + 1) // 2, cols), (2 * cols, 1), 0),
        "first_row_repeated": ((rows, cols), (0, 1), 0),
        "windows": ((rows * cols - cols + 1, cols), (1, 1), 0),
        "blocks": ((rows // 2, cols // 2, 2, 2), (2 * cols, 2, cols, 1), 0),
    }


@strided_views.call
def _(function, x):
    rows, cols = x.shape
    answers = function(rows, cols)
    if not isinstance(answers, dict):
        return answers
    return {name: x.as_strided(*answer) for name, answer in answers.items()}


@strided_views.cases
def _(rng):
    yield torch.arange(12).view(3, 4)
    yield torch.arange(20).view(5, 4)
    yield torch.arange(4).view(2, 2)
    yield torch.arange(10).view(2, 5)
    yield torch.arange(9).view(3, 3)
    yield torch.arange(4).view(1, 4)
    yield torch.arange(3).view(3, 1)
    for _ in range(25):
        yield rng.matrix(rng.integer(1, 7), rng.integer(1, 7), rng.choice([torch.int64, torch.float32]))


@strided_views.wrong(
    "X-strided_views-1",
    "Your last column has two dimensions, (rows, 1). The column asked for is one-dimensional: one size, one stride.",
    sample="wrong_rank",
)
def _(rows, cols):
    return {
        "last_column": ((rows, 1), (cols, 1), cols - 1),
        "diagonal": ((min(rows, cols),), (cols + 1,), 0),
        "every_second_row": (((rows + 1) // 2, cols), (2 * cols, 1), 0),
        "first_row_repeated": ((rows, cols), (0, 1), 0),
        "windows": ((rows * cols - cols + 1, cols), (1, 1), 0),
        "blocks": ((rows // 2, cols // 2, 2, 2), (2 * cols, 2, cols, 1), 0),
    }


@strided_views.wrong(
    "X-strided_views-2",
    "Rows and columns are mixed up: the step from one row to the next is the *length* of a row, `cols`. "
    "On a square matrix nobody notices.",
)
def _(rows, cols):
    return {
        "last_column": ((rows,), (rows,), cols - 1),
        "diagonal": ((min(rows, cols),), (rows + 1,), 0),
        "every_second_row": (((rows + 1) // 2, cols), (2 * rows, 1), 0),
        "first_row_repeated": ((rows, cols), (0, 1), 0),
        "windows": ((rows * cols - cols + 1, cols), (1, 1), 0),
        "blocks": ((rows // 2, cols // 2, 2, 2), (2 * rows, 2, rows, 1), 0),
    }


@strided_views.wrong(
    "X-strided_views-3",
    "A step of `cols` goes straight down, so this is the first column. The diagonal goes down *and* right: one more.",
)
def _(rows, cols):
    return {
        "last_column": ((rows,), (cols,), cols - 1),
        "diagonal": ((min(rows, cols),), (cols,), 0),
        "every_second_row": (((rows + 1) // 2, cols), (2 * cols, 1), 0),
        "first_row_repeated": ((rows, cols), (0, 1), 0),
        "windows": ((rows * cols - cols + 1, cols), (1, 1), 0),
        "blocks": ((rows // 2, cols // 2, 2, 2), (2 * cols, 2, cols, 1), 0),
    }


@strided_views.wrong(
    "X-strided_views-4",
    "Of 3 rows, every second one is row 0 and row 2: two rows. `rows // 2` loses the last when the number is odd.",
)
def _(rows, cols):
    return {
        "last_column": ((rows,), (cols,), cols - 1),
        "diagonal": ((min(rows, cols),), (cols + 1,), 0),
        "every_second_row": ((rows // 2, cols), (2 * cols, 1), 0),
        "first_row_repeated": ((rows, cols), (0, 1), 0),
        "windows": ((rows * cols - cols + 1, cols), (1, 1), 0),
        "blocks": ((rows // 2, cols // 2, 2, 2), (2 * cols, 2, cols, 1), 0),
    }


@strided_views.wrong(
    "X-strided_views-5",
    "These windows lie end to end: they are the rows again. Each window begins *one* element after the one before, so "
    "they overlap, and there are more of them.",
)
def _(rows, cols):
    return {
        "last_column": ((rows,), (cols,), cols - 1),
        "diagonal": ((min(rows, cols),), (cols + 1,), 0),
        "every_second_row": (((rows + 1) // 2, cols), (2 * cols, 1), 0),
        "first_row_repeated": ((rows, cols), (0, 1), 0),
        "windows": ((rows, cols), (cols, 1), 0),
        "blocks": ((rows // 2, cols // 2, 2, 2), (2 * cols, 2, cols, 1), 0),
    }


@strided_views.wrong(
    "M02",
    "In your blocks the second row follows right after the first. A block looks compact when printed, but in "
    "memory its "
    "rows are a whole row of the matrix apart: `cols`.",
)
def _(rows, cols):
    return {
        "last_column": ((rows,), (cols,), cols - 1),
        "diagonal": ((min(rows, cols),), (cols + 1,), 0),
        "every_second_row": (((rows + 1) // 2, cols), (2 * cols, 1), 0),
        "first_row_repeated": ((rows, cols), (0, 1), 0),
        "windows": ((rows * cols - cols + 1, cols), (1, 1), 0),
        "blocks": ((rows // 2, cols // 2, 2, 2), (2 * cols, 2, 2, 1), 0),
    }


@strided_views.wrong(
    "X-strided_views-6",
    "Your last column begins one cell too late and leaves the storage at its end. Cells are counted from 0: "
    "the last one of the first row is `cols - 1`.",
)
def _(rows, cols):
    return {
        "last_column": ((rows,), (cols,), cols),
        "diagonal": ((min(rows, cols),), (cols + 1,), 0),
        "every_second_row": (((rows + 1) // 2, cols), (2 * cols, 1), 0),
        "first_row_repeated": ((rows, cols), (0, 1), 0),
        "windows": ((rows * cols - cols + 1, cols), (1, 1), 0),
        "blocks": ((rows // 2, cols // 2, 2, 2), (2 * cols, 2, cols, 1), 0),
    }


@strided_views.right
def _(rows, cols):
    import torch

    x = torch.empty(rows, cols)
    views = {
        "last_column": x[:, -1],
        "diagonal": x.diagonal(),
        "every_second_row": x[::2],
        "first_row_repeated": x[:1].expand(rows, cols),
        "windows": x.view(-1).unfold(0, cols, 1),
        "blocks": x.unfold(0, 2, 2).unfold(1, 2, 2) if min(rows, cols) > 1 else x.new_empty(rows // 2, cols // 2, 2, 2),
    }
    return {name: (view.size(), view.stride(), view.storage_offset()) for name, view in views.items()}


@strided_views.right
def _(rows, cols):
    down, right = cols, 1
    starts = (rows - 1) * down + right  # of windows: from cell 0 to the first cell of the last row
    return {
        "blocks": [[rows // 2, cols // 2, 2, 2], [2 * down, 2 * right, down, right], 0],
        "windows": [[starts, cols], [right, right], 0],
        "first_row_repeated": [[rows, cols], [0, right], 0],
        "every_second_row": [[len(range(0, rows, 2)), cols], [down + down, right], 0],
        "diagonal": [[rows if rows < cols else cols], [down + right], 0],
        "last_column": [[rows], [down], down - right],
    }


# ---- 1.6 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.6",
    points=2,
    minutes=10,
    stars=2,
    visible=6,
    concepts=["L-05", "L-13", "L-22"],
    needs=["is_contiguous_from"],
    properties=[same_sharing, same_strides, no_warnings, device_agnostic],
    hints=[
        "Two cases: when is there nothing to do, and what should come back then? What has to happen otherwise?",
        "Methods of the tensor: `is_contiguous`, `contiguous`, `clone`. Read what `clone` does with the strides, "
        "and what "
        "`contiguous` does when there is nothing to do.",
        "There is one method that does all of this. Its name is in the title of the lecture: `return x.…()`.",
    ],
)
def ensure_contiguous(x):
    return x.contiguous()


@ensure_contiguous.cases
def _(rng):
    yield torch.arange(6.0).view(2, 3)
    yield torch.arange(6).view(2, 3).t()
    yield torch.arange(9).view(3, 3)[1:3, 1:3]
    yield torch.arange(3, dtype=torch.int32).expand(2, 3)
    yield torch.arange(3.0).view(1, 3).t()
    yield torch.arange(8, dtype=torch.float64)[::2]
    yield torch.tensor(5)
    yield torch.zeros(0, 3).t()
    yield torch.ones(1).expand(3)
    for _ in range(22):
        yield some_view(rng, rng.choice(DTYPES))


@ensure_contiguous.wrong(
    "M08",
    "This copies even when the tensor is contiguous already. Nothing needs to move then: give `x` itself back. "
    "`contiguous()` does that; it copies only when it must.",
    sample="wrong_copy",
)
def _(x):
    import torch

    return x.clone(memory_format=torch.contiguous_format)


@ensure_contiguous.wrong(
    "M04",
    "`reshape` returns a view whenever it can, and to its own shape a tensor can always be viewed. So nothing "
    "moved, and "
    "the result is as scattered as before.",
)
def _(x):
    return x.reshape(x.shape)


@ensure_contiguous.wrong(
    "X-ensure_contiguous-1",
    "This hands every tensor back as it is. One that is not contiguous has to be copied into a fresh, contiguous one.",
)
def _(x):
    return x


@ensure_contiguous.wrong(
    "X-ensure_contiguous-2",
    "`clone()` copies, but it keeps the strides of a tensor without gaps: the clone of a transposed matrix is "
    "transposed, "
    "too. Use `contiguous()`, or `clone(memory_format=torch.contiguous_format)`.",
)
def _(x):
    return x if x.is_contiguous() else x.clone()


@ensure_contiguous.wrong(
    "X-ensure_contiguous-3",
    "This flattens the tensor. Its shape has to stay: only where the elements lie in memory may change.",
)
def _(x):
    return x.reshape(-1)


@ensure_contiguous.wrong(
    "M02",
    "You take a last stride of 1 for contiguous. In a block such as a[1:3, 1:3] the rows are in one piece, but "
    "there is "
    "a gap between them. `is_contiguous()` looks at all dimensions.",
)
def _(x):
    return x if x.dim() == 0 or x.stride(-1) == 1 else x.contiguous()


@ensure_contiguous.right
def _(x):
    import torch

    return x if x.is_contiguous() else x.clone(memory_format=torch.contiguous_format)


@ensure_contiguous.right
def _(x):
    import torch

    if x.is_contiguous():
        return x
    return torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)


# ---- 1.7 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.7",
    points=4,
    minutes=40,
    stars=4,
    homework=True,
    visible=10,
    concepts=["L-09", "L-14"],
    needs=["is_contiguous_from"],
    forbidden=["torch", "numpy", "np"],
    hints=[
        "Dimensions of size 1 do not matter: drop them. Which neighbours could be merged into one dimension because "
        "stepping past the end of the right one is the same as one step along the left one?",
        "Neighbours d and d+1 merge when `stride[d] == size[d + 1] * stride[d + 1]`. Merge all that can be "
        "merged; what "
        "is left are chunks. Inside a chunk the elements are evenly spaced, so it can be cut as you like; no new "
        "dimension may reach from one chunk into the next.",
        "After merging you have a list of chunk lengths. For each chunk multiply sizes of `new_shape`, from the "
        "left, until "
        "the product is no longer below the length. If it is not equal to it, the answer is False. "
        "First of all: the number of elements has to agree, and an empty tensor can be viewed as any empty shape.",
    ],
)
def can_view(size, stride, new_shape):
    if prod(size) != prod(new_shape):
        return False
    if 0 in size:
        return True
    chunks = []  # (length, stride) of runs of evenly spaced elements
    for n, s in zip(size, stride, strict=True):
        if n == 1:
            continue
        if chunks and chunks[-1][1] == n * s:
            chunks[-1] = (chunks[-1][0] * n, s)
        else:
            chunks.append((n, s))
    sizes = iter(new_shape)
    for length, _ in chunks:
        reached = 1
        while reached < length:
            reached *= next(sizes)
        if reached != length:
            return False
    return True


@can_view.cases
def _(rng):
    yield (3, 4), (4, 1), (12,)
    yield (4, 3), (1, 4), (12,)
    yield (2, 2), (3, 1), (4,)
    yield (2, 3, 4), (24, 4, 1), (2, 12)
    yield (2, 3, 4), (24, 4, 1), (6, 4)
    yield (6,), (2,), (2, 3)
    yield (2, 1, 3), (3, 99, 1), (6,)
    yield (0, 3), (9, 1), (5, 0)
    yield (3, 4), (4, 1), (3, 3)
    yield (4, 3), (1, 4), (2, 2, 3)
    yield (2, 3), (0, 0), (6,)
    yield (2, 3), (0, 1), (3, 2)
    yield (), (), (1, 1)
    yield (1, 1), (5, 7), ()
    yield (2, 3), (3, 1), (2, 1, 3)
    yield (4, 2), (2, 1), (2, 2, 2)
    for _ in range(30):
        t = some_view(rng)
        yield tuple(t.shape), t.stride(), _some_shape(rng, t.shape)


def _some_shape(rng, size):
    """A shape of the same number of elements: neighbours of `size` merged, or its number cut anew, with ones "
    "put in."""
    shape = [1]
    if rng.integer(0, 1):
        for n in size:
            shape = [*shape[:-1], shape[-1] * n] if rng.integer(0, 1) else [*shape, n]
    else:
        left = prod(size)
        for factor in (2, 3, 5, 2, 3):
            if left % factor == 0 and left > 0 and rng.integer(0, 1):
                shape, left = [*shape, factor], left // factor
        shape.append(left)
    return tuple(n for n in shape if n != 1 or rng.integer(0, 2) == 0)


@can_view.wrong(
    "M04",
    "The number of elements agrees, and that is enough for `reshape`, which may copy. `view` may not: the new "
    "shape has to "
    "be reachable with strides alone.",
)
def _(size, stride, new_shape):
    from math import prod

    return prod(size) == prod(new_shape)


@can_view.wrong(
    "X-can_view-1",
    "You allow a view of contiguous tensors only. Others can be viewed, too, as long as no new dimension runs "
    "across a gap: "
    "merging two neighbours that lie end to end, or cutting one dimension into two, always works.",
)
def _(size, stride, new_shape):
    from math import prod

    if prod(size) != prod(new_shape):
        return False
    expected = 1
    for n, s in zip(reversed(size), reversed(stride)):
        if n != 1 and s != expected and 0 not in size:
            return False
        expected *= n
    return True


@can_view.wrong(
    "X-can_view-2",
    "A dimension of size 1 has no second element to step to, so its stride must not stop you from merging its "
    "neighbours. "
    "Drop such dimensions before you compare strides.",
)
def _(size, stride, new_shape):
    from math import prod

    if prod(size) != prod(new_shape):
        return False
    if 0 in size:
        return True
    chunks = []
    for n, s in zip(size, stride):
        if chunks and chunks[-1][1] == n * s:
            chunks[-1] = (chunks[-1][0] * n, s)
        else:
            chunks.append((n, s))
    sizes = iter(new_shape)
    for length, _ in chunks:
        reached = 1
        while reached < length:
            reached *= next(sizes)
        if reached != length:
            return False
    return True


@can_view.wrong(
    "X-can_view-3",
    "Merging neighbours is half of it. A dimension can also be *cut*: 6 evenly spaced elements are 2 times 3 of them.",
)
def _(size, stride, new_shape):
    from math import prod

    if prod(size) != prod(new_shape):
        return False
    if 0 in size:
        return True
    old = [(n, s) for n, s in zip(size, stride) if n != 1]
    for wanted in (n for n in new_shape if n != 1):
        reached, step = 1, None
        while reached < wanted and old:
            n, s = old[0]
            if step is not None and step != n * s:
                return False
            reached, step = reached * n, s
            old.pop(0)
        if reached != wanted:
            return False
    return True


@can_view.wrong(
    "X-can_view-4",
    "Your test for merging uses the size of the left neighbour. What counts is the right one: one step to the "
    "left has to "
    "be as far as walking along the right one to its end, `stride[d] == size[d + 1] * stride[d + 1]`.",
)
def _(size, stride, new_shape):
    from math import prod

    if prod(size) != prod(new_shape):
        return False
    if 0 in size:
        return True
    chunks = []
    for n, s in zip(size, stride):
        if n == 1:
            continue
        if chunks and chunks[-1][1] == chunks[-1][2] * s:
            chunks[-1] = (chunks[-1][0] * n, s, n)
        else:
            chunks.append((n, s, n))
    sizes = iter(new_shape)
    for length, _, _ in chunks:
        reached = 1
        while reached < length:
            reached *= next(sizes)
        if reached != length:
            return False
    return True


@can_view.wrong(
    "X-can_view-5",
    "With no element there is nothing to place: torch views an empty tensor as any other empty shape.",
)
def _(size, stride, new_shape):
    from math import prod

    if prod(size) != prod(new_shape):
        return False
    if 0 in size:
        return tuple(size) == tuple(new_shape)
    chunks = []
    for n, s in zip(size, stride):
        if n == 1:
            continue
        if chunks and chunks[-1][1] == n * s:
            chunks[-1] = (chunks[-1][0] * n, s)
        else:
            chunks.append((n, s))
    sizes = iter(new_shape)
    for length, _ in chunks:
        reached = 1
        while reached < length:
            reached *= next(sizes)
        if reached != length:
            return False
    return True


@can_view.wrong(
    "M02",
    "A last stride of 1 says that rows are in one piece, not that one row follows the other without a gap. "
    "Compare neighbouring dimensions, all of them.",
)
def _(size, stride, new_shape):
    from math import prod

    return prod(size) == prod(new_shape) and (0 in size or len(size) == 0 or stride[-1] == 1)


@can_view.wrong(
    "X-can_view-6",
    "The result is right, but torch did the work. Find out from the three tuples, in plain Python.",
)
def _(size, stride, new_shape):
    import torch

    try:
        torch.empty_strided(size, stride, device="meta").view(new_shape)
    except RuntimeError:
        return False
    return True


@can_view.right
def _(size, stride, new_shape):
    from itertools import product
    from math import prod

    if prod(size) != prod(new_shape):
        return False
    cells = [sum(i * s for i, s in zip(index, stride)) for index in product(*map(range, size))]
    steps = [cells[prod(new_shape[d + 1 :])] if n > 1 else 0 for d, n in enumerate(new_shape)] if cells else []
    wanted = [sum(i * s for i, s in zip(index, steps)) for index in product(*map(range, new_shape))]
    return cells == wanted


@can_view.right
def _(size, stride, new_shape):
    def merged(dims):
        if len(dims) < 2:
            return [n for n, _ in dims]
        (n, s), (m, r), *rest = dims
        return merged([(n * m, r), *rest]) if s == m * r else [n, *merged(dims[1:])]

    def cut(chunks, sizes):
        if not chunks or not sizes:
            return not chunks and not sizes
        chunk, n = chunks[0], sizes[0]
        if chunk % n:
            return False
        return cut(chunks[1:] if chunk == n else [chunk // n, *chunks[1:]], sizes[1:])

    if 0 in size or 0 in new_shape:
        return 0 in size and 0 in new_shape
    return cut(merged([(n, s) for n, s in zip(size, stride) if n > 1]), [n for n in new_shape if n > 1])


# ---- 1.8 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.8",
    points=2,
    minutes=10,
    stars=2,
    visible=6,
    concepts=["L-03", "L-22"],
    needs=["describe"],
    properties=[same_sharing, small_storage, no_warnings, device_agnostic],
    hints=[
        "A slice is a window on the big storage. What do you have to do with the window, so that the rest can go?",
        "Copy the n elements, and nothing more. Mind the order: what is copied in `x.clone()[:n]`? And does "
        "`contiguous()` copy a slice that has no gaps?",
        "`return x[:n].…()` with the method that always copies.",
    ],
)
def slim(x, n):
    return x[:n].clone()


@slim.cases
def _(rng):
    yield torch.arange(1000.0), 2
    yield torch.arange(10), 10
    yield torch.arange(6, dtype=torch.int32), 4
    yield torch.arange(20, dtype=torch.float64)[::2], 3
    yield torch.arange(8) % 2 == 0, 3
    yield torch.arange(100, dtype=torch.float16)[40:], 1
    yield torch.tensor(3.0).expand(5), 2
    yield torch.arange(6, dtype=torch.int32), 0
    yield torch.zeros(0), 0
    for _ in range(25):
        length = rng.integer(1, 40)
        yield rng.permutation(3 * length).to(rng.choice(DTYPES))[:: rng.integer(1, 3)], rng.integer(0, length)


@slim.wrong(
    "M07",
    "This is a view: it shows n elements and keeps the whole storage alive. Copy the elements that you need.",
)
def _(x, n):
    return x[:n]


@slim.wrong(
    "M08",
    "`contiguous()` copies only when it must. A slice from the front has no gaps, so it came back as it was, a "
    "view on the "
    "whole storage. `clone()` always copies.",
)
def _(x, n):
    return x[:n].contiguous()


@slim.wrong(
    "X-slim-1",
    "The order is wrong: this copies everything and then looks at the first n, so the copy is as large as the "
    "original. "
    "Slice first, then copy.",
)
def _(x, n):
    return x.clone()[:n]


@slim.wrong(
    "X-slim-2",
    "On the way through a Python list the dtype is lost. Copy the slice itself, and it keeps its type.",
)
def _(x, n):
    import torch

    return torch.tensor(x[:n].tolist())


@slim.wrong(
    "X-slim-3",
    "Adding 0 makes a copy, but it is arithmetic: a tensor of bools becomes one of ints. To copy, say `clone()`.",
)
def _(x, n):
    return x[:n] + 0


@slim.wrong(
    "X-slim-4",
    "This is a NumPy array. The copy is as small as it should be, but a tensor was asked for: stay in torch and "
    "`clone()`.",
)
def _(x, n):
    return x[:n].numpy().copy()


@slim.right
def _(x, n):
    import torch

    return torch.empty(n, dtype=x.dtype, device=x.device).copy_(x[:n])


@slim.right
def _(x, n):
    import torch

    return torch.index_select(x, 0, torch.arange(n, device=x.device))


# ---- 1.9 -------------------------------------------------------------------------------------------------------------


@exercise(
    "1.9",
    points=2,
    minutes=10,
    stars=2,
    visible=8,
    concepts=["L-01", "L-02", "L-06", "L-08"],
    needs=["describe"],
    hints=[
        "Everything is a number of elements times the bytes of one element. How many numbers are there for each "
        "parameter: itself, its gradient, and what the optimiser keeps?",
        "`dtype.itemsize` is the size of an element. Tensors kept for each parameter: sgd 0, adagrad 1, adam 2. "
        "A MiB is 2**20 bytes, an MB is 10**6.",
        "Look the number of tensors that are kept up in a dict; raise ValueError for a name that is not in it, or a "
        "count below 0. Parameters and gradients take the bytes of all parameters once each, the state as often as the "
        "optimiser keeps a tensor. Add the batch; compare the sum with MiB times 2**20, GPU first.",
    ],
)
def memory_budget(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    kept = {"sgd": 0, "adagrad": 1, "adam": 2}
    if optimizer not in kept:
        raise ValueError(f"optimizer is {optimizer!r}, expected one of {', '.join(kept)}")
    if parameters < 0 or batch_elements < 0:
        raise ValueError(f"{parameters} parameters and a batch of {batch_elements}: neither can be below 0")
    size = parameters * dtype.itemsize
    budget = {
        "parameters": size,
        "gradients": size,
        "state": kept[optimizer] * size,
        "batch": batch_elements * dtype.itemsize,
    }
    total = sum(budget.values())
    place = "gpu" if total <= gpu_mib * 2**20 else "ram" if total <= ram_mib * 2**20 else "disk"
    return {**budget, "total": total, "place": place}


@memory_budget.cases
def _(rng):
    yield 1000, 500, torch.float32, "adam", 1, 4
    yield 1000, 0, torch.float64, "sgd", 1, 4
    yield 260_000, 0, torch.float16, "sgd", 1, 4
    yield 2**17, 0, torch.float32, "sgd", 1, 2
    yield 2**17, 2**18, torch.float32, "adagrad", 1, 2
    yield 10, 10, torch.float32, "lion", 1, 1
    yield -1, 10, torch.float32, "adam", 1, 1
    yield 500_000, 100_000, torch.bfloat16, "adam", 2, 4
    yield 0, 0, torch.float32, "sgd", 0, 0
    yield 10, -1, torch.float32, "adam", 1, 1
    for _ in range(26):
        dtype = rng.choice([torch.float32, torch.float16, torch.float64, torch.bfloat16])
        batch = rng.integer(0, 10**6)
        yield (
            rng.integer(0, 10**6),
            batch,
            dtype,
            rng.choice(["sgd", "adagrad", "adam"]),
            rng.integer(1, 8),
            rng.integer(8, 16),
        )


@memory_budget.wrong(
    "X-memory_budget-1",
    "The gradients are missing from the total. While it trains, every parameter has a gradient of the same size "
    "beside it.",
)
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    kept = {"sgd": 0, "adagrad": 1, "adam": 2}
    if optimizer not in kept or parameters < 0 or batch_elements < 0:
        raise ValueError
    size, batch = parameters * dtype.itemsize, batch_elements * dtype.itemsize
    state = kept[optimizer] * size
    total = size + state + batch
    place = "gpu" if total <= gpu_mib * 2**20 else "ram" if total <= ram_mib * 2**20 else "disk"
    return {"parameters": size, "gradients": size, "state": state, "batch": batch, "total": total, "place": place}


@memory_budget.wrong(
    "X-memory_budget-2",
    "You take 4 bytes for every element. That is float32; float64 takes 8, float16 and bfloat16 take 2. "
    "Ask the dtype: `dtype.itemsize`.",
)
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    kept = {"sgd": 0, "adagrad": 1, "adam": 2}
    if optimizer not in kept or parameters < 0 or batch_elements < 0:
        raise ValueError
    size, batch = parameters * 4, batch_elements * 4
    state = kept[optimizer] * size
    total = 2 * size + state + batch
    place = "gpu" if total <= gpu_mib * 2**20 else "ram" if total <= ram_mib * 2**20 else "disk"
    return {"parameters": size, "gradients": size, "state": state, "batch": batch, "total": total, "place": place}


@memory_budget.wrong(
    "X-memory_budget-3",
    "A MiB is 2**20 = 1 048 576 bytes; a million bytes is an MB. Close to the limit the five percent between "
    "them decide.",
)
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    kept = {"sgd": 0, "adagrad": 1, "adam": 2}
    if optimizer not in kept or parameters < 0 or batch_elements < 0:
        raise ValueError
    size, batch = parameters * dtype.itemsize, batch_elements * dtype.itemsize
    state = kept[optimizer] * size
    total = 2 * size + state + batch
    place = "gpu" if total <= gpu_mib * 10**6 else "ram" if total <= ram_mib * 10**6 else "disk"
    return {"parameters": size, "gradients": size, "state": state, "batch": batch, "total": total, "place": place}


@memory_budget.wrong(
    "X-memory_budget-4",
    "Adam keeps two tensors for each parameter, a running mean of the gradient and one of its square. You count one.",
)
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    kept = {"sgd": 0, "adagrad": 1, "adam": 1}
    if optimizer not in kept or parameters < 0 or batch_elements < 0:
        raise ValueError
    size, batch = parameters * dtype.itemsize, batch_elements * dtype.itemsize
    state = kept[optimizer] * size
    total = 2 * size + state + batch
    place = "gpu" if total <= gpu_mib * 2**20 else "ram" if total <= ram_mib * 2**20 else "disk"
    return {"parameters": size, "gradients": size, "state": state, "batch": batch, "total": total, "place": place}


@memory_budget.wrong(
    "X-memory_budget-5",
    "The batch takes memory as well: it has to be in the total.",
)
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    kept = {"sgd": 0, "adagrad": 1, "adam": 2}
    if optimizer not in kept or parameters < 0 or batch_elements < 0:
        raise ValueError
    size, batch = parameters * dtype.itemsize, batch_elements * dtype.itemsize
    state = kept[optimizer] * size
    total = 2 * size + state
    place = "gpu" if total <= gpu_mib * 2**20 else "ram" if total <= ram_mib * 2**20 else "disk"
    return {"parameters": size, "gradients": size, "state": state, "batch": batch, "total": total, "place": place}


@memory_budget.wrong(
    "X-memory_budget-6",
    "An optimiser that you do not know gets 0 bytes of state here, and the budget is too small without a word. "
    "Raise ValueError instead of guessing.",
)
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    if parameters < 0 or batch_elements < 0:
        raise ValueError
    size, batch = parameters * dtype.itemsize, batch_elements * dtype.itemsize
    state = {"adagrad": 1, "adam": 2}.get(optimizer, 0) * size
    total = 2 * size + state + batch
    place = "gpu" if total <= gpu_mib * 2**20 else "ram" if total <= ram_mib * 2**20 else "disk"
    return {"parameters": size, "gradients": size, "state": state, "batch": batch, "total": total, "place": place}


@memory_budget.wrong(
    "X-memory_budget-7",
    "A negative number of parameters or elements makes no sense, and here it makes the total smaller. Raise "
    "ValueError.",
)
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    kept = {"sgd": 0, "adagrad": 1, "adam": 2}
    if optimizer not in kept:
        raise ValueError
    size, batch = parameters * dtype.itemsize, batch_elements * dtype.itemsize
    state = kept[optimizer] * size
    total = 2 * size + state + batch
    place = "gpu" if total <= gpu_mib * 2**20 else "ram" if total <= ram_mib * 2**20 else "disk"
    return {"parameters": size, "gradients": size, "state": state, "batch": batch, "total": total, "place": place}


@memory_budget.wrong(
    "X-memory_budget-8",
    "The bytes are right. Two inputs are not legal, and should end in a ValueError that says why: an optimiser that "
    "you do not know (a KeyError from a dict is another exception), and a negative count.",
)
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    size, batch = parameters * dtype.itemsize, batch_elements * dtype.itemsize
    state = {"sgd": 0, "adagrad": 1, "adam": 2}[optimizer] * size
    total = 2 * size + state + batch
    place = "gpu" if total <= gpu_mib * 2**20 else "ram" if total <= ram_mib * 2**20 else "disk"
    return {"parameters": size, "gradients": size, "state": state, "batch": batch, "total": total, "place": place}


@memory_budget.right
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    import torch

    tensors = ["sgd", "adagrad", "adam"].index(optimizer)  # a ValueError for any other name
    if min(parameters, batch_elements) < 0:
        raise ValueError("below 0")
    one = torch.empty(0, dtype=dtype).element_size()
    answer = {"batch": one * batch_elements, "state": one * parameters * tensors}
    answer["parameters"] = answer["gradients"] = one * parameters
    answer["total"] = one * (batch_elements + (2 + tensors) * parameters)
    fits = [name for name, mib in (("gpu", gpu_mib), ("ram", ram_mib)) if answer["total"] <= mib << 20]
    return {**answer, "place": (fits or ["disk"])[0]}


@memory_budget.right
def _(parameters, batch_elements, dtype, optimizer, gpu_mib, ram_mib):
    match optimizer:
        case "sgd":
            state = 0
        case "adagrad":
            state = parameters
        case "adam":
            state = parameters * 2
        case _:
            raise ValueError(optimizer)
    if parameters < 0:
        raise ValueError(parameters)
    if batch_elements < 0:
        raise ValueError(batch_elements)
    counts = {"parameters": parameters, "gradients": parameters, "state": state, "batch": batch_elements}
    answer = {name: count * dtype.itemsize for name, count in counts.items()}
    answer["total"] = sum(answer.values())
    mib = answer["total"] / 1024 / 1024
    answer["place"] = "gpu" if mib <= gpu_mib else "ram" if mib <= ram_mib else "disk"
    return answer


# ---- 1.10 ------------------------------------------------------------------------------------------------------------


@exercise(
    "1.10",
    points=3,
    minutes=20,
    stars=3,
    visible=2,
    concepts=["L-15"],
    needs=[],
    hints=[
        "One run tells you about that run. What you want is many runs, a number of threads that you chose, and "
        "one number "
        "that a few slow runs cannot move.",
        "`from torch.utils.benchmark import Timer`; `Timer(stmt, globals=..., num_threads=...)` has a method "
        "`blocked_autorange(min_run_time=...)`, which warms up and gives a Measurement. That has `.median` and "
        "`.iqr`.",
        "For each statement: `m = Timer(statement, globals=values, num_threads=threads)"
        ".blocked_autorange(min_run_time=seconds)`, then "
        '`{"measurement": m, "median": m.median, "iqr": ...}`.',
    ],
)
def fair_timings(statements, values, threads, seconds):
    measured = [
        Timer(statement, globals=values, num_threads=threads).blocked_autorange(min_run_time=seconds)
        for statement in statements
    ]
    return [{"measurement": m, "median": m.median, "iqr": m.iqr} for m in measured]


@fair_timings.call
def _(function, statements, values, threads, seconds):
    from torch.utils import benchmark

    class Clock:
        """Stands in for timeit.Timer: it runs the statement, and tells a time that is the same on every machine."""

        def __init__(self, stmt="pass", setup="pass", timer=None, globals=None):
            self.names, self.blocks = dict(globals or {}), 0
            self.code, self.cost = compile(stmt, "<statement>", "exec"), 1e-3 * (5 + len(stmt))
            exec(setup, self.names)

        def timeit(self, number=1_000_000):
            if number == 0:
                return 0.0
            exec(self.code, self.names)
            self.blocks += 1
            slow = 20 if self.blocks == 1 else 3 if self.blocks % 7 == 0 else 1 + self.blocks % 3 / 100
            return number * self.cost * slow

    def sent(answer):
        m = answer.get("measurement") if isinstance(answer, dict) else None
        if not isinstance(m, benchmark.Measurement):
            return answer
        return answer | {"measurement": [m.task_spec.stmt, m.num_threads, m.number_per_run, m.raw_times]}

    usual, benchmark.Timer._timer_cls = benchmark.Timer._timer_cls, Clock
    try:
        answers = function(statements, values, threads, seconds)
    finally:
        benchmark.Timer._timer_cls = usual
    return [sent(answer) for answer in answers] if isinstance(answers, (list, tuple)) else answers


@fair_timings.facts
def _(answers, statements, values, threads, seconds):
    from torch.utils.benchmark import Measurement, TaskSpec

    facts = ("is a Measurement", "statement", "threads", "several times", "measured long enough", "median", "iqr")

    def measured(sent):
        """The Measurement that was sent; None where its times are none that the driver's clock can have told."""
        if not isinstance(sent, list) or len(sent) != 4:
            return None
        statement, threads, number, times = sent
        kinds = isinstance(statement, str) and type(threads) is int and type(number) is int and type(times) is list
        if not kinds or not 0 < number < 1 << 60 or not 0 < len(times) < 100_000:
            return None
        block = number * 1e-3 * (5 + len(statement))
        slow = lambda time: type(time) is float and any(abs(time / block - n) < 1e-6 for n in (1, 1.01, 1.02, 3, 20))
        return (
            Measurement(number, times, TaskSpec(statement, "pass", num_threads=threads))
            if all(map(slow, times))
            else None
        )

    def told(answer):
        if not isinstance(answer, dict):
            return answer
        m = measured(answer.get("measurement"))
        if m is None:
            return dict.fromkeys(facts, False)
        found = (m.task_spec.stmt, m.num_threads, len(m.raw_times) > 1, sum(m.raw_times) > 0.99 * seconds)
        return dict(
            zip(facts, (True, *found, said(answer, "median", m.median), said(answer, "iqr", m.iqr)), strict=True)
        )

    def said(answer, name, right):
        value = answer.get(name)
        near = isinstance(value, (int, float)) and abs(value - right) <= 1e-9  # seconds; one run takes 10 ms here
        return f"the {name}" if near else "another number"

    return [told(answer) for answer in answers] if isinstance(answers, (list, tuple)) else answers


@fair_timings.cases
def _(rng):
    yield ["x + 1", "x.t() + 1", "x + x.t()", "x.reshape(-1)"], {"x": rng.normal(3, 3)}, 1, 0.3
    yield ["a @ b", "a @ b.t()"], {"a": rng.normal(2, 2), "b": rng.normal(2, 2)}, 2, 0.05
    yield ["torch.exp(y)"], {"y": rng.normal(4)}, 2, 0.5
    yield [], {}, 1, 0.1
    for _ in range(4):
        statements = [rng.choice(["x * k", "x + x", "(x - k).abs()", "x.sum() / k"]) for _ in range(rng.integer(1, 3))]
        values = {"x": rng.normal(rng.integer(1, 4)), "k": rng.integer(2, 9)}
        yield statements, values, rng.integer(1, 3), rng.integer(1, 12) / 20


@fair_timings.wrong(
    "M05",
    "Each statement has a single time here, and a single time has no spread: it may have met a pause of the machine. "
    "`blocked_autorange` measures again and again, until `min_run_time` is over.",
)
def _(statements, values, threads, seconds):
    from torch.utils.benchmark import Timer

    measured = [Timer(s, globals=values, num_threads=threads).timeit(1_000_000) for s in statements]
    return [{"measurement": m, "median": m.median, "iqr": m.iqr} for m in measured]


@fair_timings.wrong(
    "X-fair_timings-1",
    "This takes the time by hand. A clock read around one call includes the warm-up and whatever else the "
    "machine did. "
    "Let `torch.utils.benchmark.Timer` measure, and return its Measurement.",
)
def _(statements, values, threads, seconds):
    import time

    import torch

    answers = []
    for statement in statements:
        start = time.perf_counter()
        exec(statement, {"torch": torch, **values})
        passed = time.perf_counter() - start
        answers.append({"measurement": passed, "median": passed, "iqr": 0.0})
    return answers


@fair_timings.wrong(
    "X-fair_timings-2",
    "The number of threads is left at its default, 1. Times with different numbers of threads cannot be compared, so "
    "say which one you use: `num_threads=threads`.",
)
def _(statements, values, threads, seconds):
    from torch.utils.benchmark import Timer

    measured = [Timer(s, globals=values).blocked_autorange(min_run_time=seconds) for s in statements]
    return [{"measurement": m, "median": m.median, "iqr": m.iqr} for m in measured]


@fair_timings.wrong(
    "X-fair_timings-3",
    "That is the mean. A few slow runs pull it up, and such runs always happen. The median, `.median`, does not move.",
)
def _(statements, values, threads, seconds):
    from torch.utils.benchmark import Timer

    measured = [
        Timer(s, globals=values, num_threads=threads).blocked_autorange(min_run_time=seconds) for s in statements
    ]
    return [{"measurement": m, "median": m.mean, "iqr": m.iqr} for m in measured]


@fair_timings.wrong(
    "X-fair_timings-4",
    "From the fastest to the slowest run is the whole range, and one bad run decides it. The interquartile "
    "range, `.iqr`, "
    "is how far apart the middle half lies.",
)
def _(statements, values, threads, seconds):
    from torch.utils.benchmark import Timer

    measured = [
        Timer(s, globals=values, num_threads=threads).blocked_autorange(min_run_time=seconds) for s in statements
    ]
    return [{"measurement": m, "median": m.median, "iqr": max(m.times) - min(m.times)} for m in measured]


@fair_timings.wrong(
    "X-fair_timings-5",
    "`seconds` is not used, so everything is measured for 0.2 seconds, the default. Pass it on: "
    "`min_run_time=seconds`.",
)
def _(statements, values, threads, seconds):
    from torch.utils.benchmark import Timer

    measured = [Timer(s, globals=values, num_threads=threads).blocked_autorange() for s in statements]
    return [{"measurement": m, "median": m.median, "iqr": m.iqr} for m in measured]


@fair_timings.wrong(
    "X-fair_timings-6",
    "The statement does not know its tensors. A Timer runs it in a space of its own: hand the names over with "
    "`globals=values`.",
)
def _(statements, values, threads, seconds):
    from torch.utils.benchmark import Timer

    measured = [Timer(s, num_threads=threads).blocked_autorange(min_run_time=seconds) for s in statements]
    return [{"measurement": m, "median": m.median, "iqr": m.iqr} for m in measured]


@fair_timings.right
def _(statements, values, threads, seconds):
    import torch.utils.benchmark as benchmark

    answers = []
    for statement in statements:
        timer = benchmark.Timer(stmt=statement, setup="pass", globals=values, num_threads=threads, label="layout")
        m = timer.adaptive_autorange(min_run_time=seconds)
        answers.append({"iqr": m.iqr, "median": m.median, "measurement": m})
    return answers


@fair_timings.right
def _(statements, values, threads, seconds):
    import torch
    from torch.utils.benchmark import Timer

    answers = []
    for statement in statements:
        m = Timer(statement, globals=dict(values), num_threads=threads).blocked_autorange(None, seconds)
        low, middle, high = torch.tensor(m.times, dtype=torch.float64).quantile(
            torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
        )
        answers.append({"measurement": m, "median": middle.item(), "iqr": high.item() - low.item()})
    return answers


# ---- 1.11 ------------------------------------------------------------------------------------------------------------


@exercise(
    "1.11",
    points=4,
    minutes=40,
    stars=4,
    homework=True,
    visible=9,
    concepts=["L-03", "L-12", "L-14"],
    needs=["flat_index", "same_memory"],
    properties=[no_warnings],
    hints=[
        "Write down the numbers of the cells that x reaches, and those that y reaches. When do the two lists "
        "matter at all?",
        "Exercise 1.2 gives you the cell of one index. All cells: start with the set {offset}; for each "
        "dimension replace "
        "every cell by the n cells that lie 0, 1, ... n - 1 steps further. Only within one storage can cells be "
        "compared.",
        "Different `untyped_storage().data_ptr()`: False. Else build the set of cells for x and for y with "
        "`cells = {cell + i * step for cell in cells for i in range(n)}` for each size n and stride step, and return "
        "whether the two sets have something in common.",
    ],
)
def overlaps(x, y):
    def cells(t):
        reached = {t.storage_offset()}
        for n, step in zip(t.shape, t.stride(), strict=True):
            reached = {cell + i * step for cell in reached for i in range(n)}
        return reached

    same_storage = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    return same_storage and not cells(x).isdisjoint(cells(y))


@overlaps.cases
def _(rng):
    a, m = torch.arange(10) % 3, (torch.arange(12) % 5).view(3, 4)  # equal numbers in different cells
    yield a[::2], a[1::2]
    yield a[1:4], a[3:6]
    yield m[0], m[1]
    yield m[:, 1], m[2]
    yield torch.arange(4), torch.arange(4)
    yield a[2:2], a
    yield m[:2, :2], m[:2, 2:]
    yield m.t()[1], m[1:, 2:]
    yield a[::4], a[2::3]
    yield a[5:6].expand(3), a[4:6]
    yield a[::3], a[1::3]
    yield m.diagonal(), m[:, 3]
    yield a[3], a[3:]
    for _ in range(28):
        whole = rng.permutation(24) % 7
        yield _some_strided(rng, whole), _some_strided(rng, whole if rng.integer(0, 5) else whole.clone())


def _some_strided(rng, whole):
    """A random one- or two-dimensional strided view of a tensor of 24 elements."""
    size, stride, left = [], [], 23
    offset = rng.integer(0, 8)
    left -= offset
    for _ in range(rng.integer(1, 2)):
        step = rng.integer(1, 5)
        n = rng.integer(1, min(4, left // step + 1))
        left -= (n - 1) * step
        size, stride = [*size, n], [*stride, step]
    return whole.as_strided(size, stride, offset)


@overlaps.wrong(
    "X-overlaps-1",
    "You ask whether the two live in one storage. So do the rows of a matrix, and they have no element in common. "
    "Compare the cells that each of them reaches.",
    sample="wrong_duplicates",
)
def _(x, y):
    return x.untyped_storage().nbytes() > 0 and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


@overlaps.wrong(
    "X-overlaps-2",
    "From the first to the last cell, the two ranges cross. But strided slices leave cells out: the even and the odd "
    "elements are interleaved and never meet. Compare the cells themselves.",
)
def _(x, y):
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr() or not x.numel() or not y.numel():
        return False

    def last(t):
        return t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))

    return max(x.storage_offset(), y.storage_offset()) <= min(last(x), last(y))


@overlaps.wrong(
    "M06",
    "This says True only where both begin with the same element, which is when their `data_ptr()` is equal. They can "
    "also meet further on.",
)
def _(x, y):
    return x.numel() > 0 and x.data_ptr() == y.data_ptr()


@overlaps.wrong(
    "M03",
    "You compare values. Equal numbers can lie in different cells, and one cell is the same memory whatever it holds.",
)
def _(x, y):
    import torch

    return bool(torch.isin(x.reshape(-1), y.reshape(-1)).any())


@overlaps.wrong(
    "X-overlaps-3",
    "Cell 3 of one storage is not cell 3 of another. Make sure first that both tensors live in the same storage.",
)
def _(x, y):
    def cells(t):
        reached = {t.storage_offset()}
        for n, step in zip(t.shape, t.stride()):
            reached = {cell + i * step for cell in reached for i in range(n)}
        return reached

    return not cells(x).isdisjoint(cells(y))


@overlaps.wrong(
    "X-overlaps-4",
    "The offset is missing: you let both tensors begin in cell 0. Begin with `storage_offset()`.",
)
def _(x, y):
    def cells(t):
        reached = {0}
        for n, step in zip(t.shape, t.stride()):
            reached = {cell + i * step for cell in reached for i in range(n)}
        return reached

    same_storage = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    return same_storage and not cells(x).isdisjoint(cells(y))


@overlaps.wrong(
    "M02",
    "You count `numel()` cells from the offset on, as if the elements were neighbours in memory. A column or a "
    "slice with "
    "a step reaches further and leaves cells out: use the strides.",
)
def _(x, y):
    def cells(t):
        return set(range(t.storage_offset(), t.storage_offset() + t.numel()))

    same_storage = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    return same_storage and not cells(x).isdisjoint(cells(y))


@overlaps.right
def _(x, y):
    import torch

    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return False
    marks = torch.zeros(x.untyped_storage().nbytes() // x.element_size(), dtype=torch.bool)
    marks.as_strided(x.shape, x.stride(), x.storage_offset()).fill_(True)
    return bool(marks.as_strided(y.shape, y.stride(), y.storage_offset()).any())


@overlaps.right
def _(x, y):
    from itertools import product

    def addresses(t):
        size = t.element_size()
        steps = [range(0, n * s * size or n, s * size or 1) if n else [] for n, s in zip(t.shape, t.stride())]
        steps = [[0] * len(r) if s == 0 else r for r, s in zip(steps, t.stride())]
        return {t.data_ptr() + sum(step) for step in product(*steps)}

    return bool(addresses(x) & addresses(y))
