"""The exercises of lecture 09, build your own MaskedTensor: references, cases, wrong and right answers, predictions.

All but two of the milestones are functions of plain pairs (data, mask), so that each can be asked without the others; the
class MiniMask of the notebook packs and unpacks.
"""

import functools
import math

import torch

from autograder.exercises import exercise, prediction, written
from autograder.properties import (
    copy_budget,
    device_agnostic,
    never_calls,
    no_loops,
    op_budget,
    same_requires_grad,
    same_sharing,
)

WITHOUT = ("maskedtensor_ref",)  # what is to be built is not to be imported

READY_MADE = ["MaskedTensor", "masked_tensor", "as_masked_tensor", "maskedtensor_ref"]
TOL = (1e-5, 1e-6)  # two orders of the same float32 operations differ by less
NAN, INF = float("nan"), float("inf")
POISON = (NAN, INF, -INF, 1e30)  # what may stand where nothing is specified


def bools(*values):
    """A bool tensor of 0 and 1."""
    return torch.tensor(values) == 1


def hidden(data, mask, poison=NAN):
    """The data with `poison` wherever mask is False."""
    return torch.where(mask, data, torch.full((), poison, dtype=data.dtype))


def drawn(rng, *shape, dtype=torch.float32, density=0.6):
    """Random data with poison under a random mask: (data, mask)."""
    mask = rng.mask(*shape, density=density)
    if dtype.is_floating_point:
        return hidden(rng.normal(*shape, dtype=dtype), mask, rng.choice(POISON)), mask
    return hidden(rng.integers(*shape, low=-6, high=6, dtype=dtype), mask, rng.choice([0, 77])), mask


def told(result, *case):
    """Facts about a pair (values, mask): which are specified, and the values there; what lies under the mask is nobody's."""
    import torch

    pair = isinstance(result, (list, tuple)) and len(result) == 2
    pair = pair and all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in result)
    facts = {"a pair of tensors": pair or result, "which are specified": False, "the values there": False}
    if not pair:
        return facts
    values, mask = result
    fits = mask.dtype == torch.bool and values.shape == mask.shape
    there = torch.where(mask, values, torch.zeros((), dtype=values.dtype)) if fits else values
    return facts | {"which are specified": mask, "the values there": there}


# ---- 9.0 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.0",
    points=1,
    minutes=3,
    stars=1,
    concepts=["O-03", "O-04"],
    properties=[same_sharing],
    forbidden=READY_MADE,
    visible=8,
    hints=[
        "Three questions, in this order: are both tensors? Is the mask made of truth values? Have both one shape?",
        "isinstance(data, torch.Tensor); mask.dtype == torch.bool; data.shape == mask.shape. The wrong kind of thing is a "
        "TypeError, the right kind with the wrong size a ValueError.",
        "if not isinstance(data, torch.Tensor) or not ___: raise TypeError(...); if mask.dtype != ___: raise TypeError(...); "
        "if data.shape != mask.shape: raise ___(...); return data, mask",
    ],
)
def checked(data, mask):
    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor):
        raise TypeError(f"data and mask must be tensors, got {type(data).__name__} and {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(f"the mask must be torch.bool, got {mask.dtype}: compare to make one, as in x > 0")
    if data.shape != mask.shape:
        raise ValueError(f"data has shape {tuple(data.shape)}, the mask {tuple(mask.shape)}: they must agree")
    return data, mask


@checked.cases
def _(rng):
    yield torch.tensor([1.0, NAN]), bools(1, 0)
    yield torch.tensor([1.0, 2.0]), torch.tensor([1, 0])
    yield torch.tensor([1.0, 2.0]), bools(1)
    yield torch.tensor([1.0, 2.0]), [True, False]
    yield torch.ones(2, 3), torch.ones(3, 2) == 1
    yield torch.ones(2, 3), bools(1, 0, 1)
    yield 3.0, torch.tensor(True)
    yield torch.tensor([1.0]), torch.tensor([1], dtype=torch.uint8)
    yield torch.tensor([1, 2]), torch.tensor([1.0, 0.0])
    yield torch.tensor(5), torch.tensor(False)
    yield torch.ones(0, 2), torch.ones(0, 2) == 1
    yield torch.ones(4), torch.ones(2, 2) == 1
    yield torch.ones(2, 1), torch.ones(2) == 1
    yield rng.matrix(3, 2).t(), rng.mask(2, 3)
    yield rng.normal(2, 2, dtype=torch.float64), rng.mask(2, 2)
    for _ in range(6):
        shape = [rng.integer(1, 3) for _ in range(rng.integer(1, 3))]
        yield rng.normal(*shape), rng.mask(*rng.choice([shape, shape, [*shape, 2], [*shape[:-1], shape[-1] + 1]]))


@checked.wrong(
    "M10",
    "A mask of zeros and ones was let through. As an index, or under ~, integers do something else than truth values: "
    "demand torch.bool.",
)
def _(data, mask):
    import torch

    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor):
        raise TypeError("tensors are needed")
    if data.shape != mask.shape:
        raise ValueError("the shapes differ")
    return data, mask


@checked.wrong(
    "X-9.0-1",
    "The mask is turned into truth values in silence. A mask that is not bool is most often another tensor by mistake; a "
    "TypeError finds that at once.",
)
def _(data, mask):
    import torch

    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor):
        raise TypeError("tensors are needed")
    if data.shape != mask.shape:
        raise ValueError("the shapes differ")
    return data, mask.bool()


@checked.wrong(
    "X-9.0-2",
    "An assert raises AssertionError, and none at all under python -O. For what a caller did wrong raise TypeError or "
    "ValueError, with a sentence that helps.",
)
def _(data, mask):
    import torch

    assert isinstance(data, torch.Tensor) and isinstance(mask, torch.Tensor)
    assert mask.dtype == torch.bool
    assert data.shape == mask.shape
    return data, mask


@checked.wrong(
    "X-9.0-3",
    "A mask of another shape was let through, for it can be broadcast. Then m.mask[i] and m.data[i] speak of different "
    "elements: demand equal shapes, and let the caller expand.",
)
def _(data, mask):
    import torch

    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise TypeError("tensors are needed, and the mask must be bool")
    try:
        mask = mask.expand_as(data)
    except RuntimeError as error:
        raise ValueError("the shapes differ") from error
    return data, mask


@checked.wrong(
    "X-9.0-4",
    "Copies came back. A container shares what it is given, as every tensor view does: return data and mask themselves.",
)
def _(data, mask):
    import torch

    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise TypeError("tensors are needed, and the mask must be bool")
    if data.shape != mask.shape:
        raise ValueError("the shapes differ")
    return data.clone(), mask.clone()


@checked.wrong(
    "X-9.0-5",
    "Everything is a ValueError here. The wrong kind of thing (a list, a mask of ints) is a TypeError; a right kind with "
    "a wrong size is a ValueError.",
)
def _(data, mask):
    import torch

    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise ValueError("tensors are needed, and the mask must be bool")
    if data.shape != mask.shape:
        raise ValueError("the shapes differ")
    return data, mask


@checked.wrong(
    "X-9.0-6",
    "Only the number of elements is compared. (2, 3) and (3, 2) have six each and do not fit: compare the shapes.",
)
def _(data, mask):
    import torch

    if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
        raise TypeError("tensors are needed, and the mask must be bool")
    if data.numel() != mask.numel():
        raise ValueError("the shapes differ")
    return data, mask


@checked.right
def _(data, mask):
    import torch

    for given in (data, mask):
        if not torch.is_tensor(given):
            raise TypeError(f"expected a tensor, got {given!r}")
    if mask.dtype is not torch.bool:
        raise TypeError(f"expected a bool mask, got {mask.dtype}")
    if tuple(data.shape) != tuple(mask.shape):
        raise ValueError(f"expected a mask of shape {tuple(data.shape)}, got {tuple(mask.shape)}")
    return (data, mask)


@checked.right
def _(data, mask):
    import torch

    match data, mask:
        case torch.Tensor(), torch.Tensor(dtype=torch.bool):
            if data.size() == mask.size():
                return data, mask
            raise ValueError("data and mask must have one shape")
    raise TypeError("a tensor and a bool tensor are needed")


# ---- 9.1 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.1",
    points=3,
    minutes=10,
    stars=2,
    concepts=["O-03", "O-04"],
    needs=["checked"],
    properties=[same_sharing, same_requires_grad],
    forbidden=READY_MADE,
    visible=8,
    hints=[
        "Keep the two tensors; everything else is asked of them. For the text, walk through data and mask side by side: a "
        "list becomes brackets, a number becomes its text or --.",
        "self.data, self.mask = checked(data, mask); shape and dtype are properties that ask self.data; to_tensor is one "
        "torch.where. data.tolist() and mask.tolist() are nested lists of one form: a function that calls itself for lists "
        "writes them.",
        "def text(value, counts): if isinstance(value, list): return '[' + ', '.join(text(v, c) for v, c in zip(value, "
        "counts)) + ']'; return f'{value:g}' if ___ else '--'",
    ],
)
class MiniMask:
    def __init__(self, data, mask):
        if not isinstance(data, torch.Tensor) or not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
            raise TypeError("data must be a tensor, mask a tensor of torch.bool")
        if data.shape != mask.shape:
            raise ValueError(f"data has shape {tuple(data.shape)}, the mask {tuple(mask.shape)}: they must agree")
        self.data, self.mask = data, mask

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)

    def to_tensor(self, fill):
        return torch.where(self.mask, self.data, fill)

    def __repr__(self):
        def text(value, counts):
            if isinstance(value, list):
                return "[" + ", ".join(text(*pair) for pair in zip(value, counts, strict=True)) + "]"
            return f"{value:g}" if counts else "--"

        return f"MiniMask({text(self.data.tolist(), self.mask.tolist())})"


@MiniMask.call
def _(MiniMask, data, mask, fill):
    m = MiniMask(data, mask)
    return m.data, m.mask, m.shape, m.dtype, m.to_tensor(fill), repr(m)


@MiniMask.cases
def _(rng):
    yield torch.tensor([1.5, NAN, 3.0]), bools(1, 0, 1), 0.0
    yield torch.tensor([[1, 2], [3, 4]]), torch.tensor([[True, False], [False, True]]), -1
    yield torch.tensor([1.0, 2.0]), bools(1), 0.0
    yield torch.tensor([1.0, 2.0]), torch.tensor([1, 0]), 0.0
    yield torch.tensor([4.54e-05, INF, -2.0], requires_grad=True), bools(1, 0, 1), 7.0
    yield torch.tensor(2.5, dtype=torch.float64), torch.tensor(True), 0.0
    yield torch.tensor([NAN, NAN]), bools(0, 1), 0.0
    yield torch.tensor(1e30), torch.tensor(False), -1.0
    yield torch.zeros(0), torch.zeros(0) == 1, 0.0
    yield torch.zeros(2, 0), torch.zeros(2, 0) == 1, 0.0
    yield [1.0], torch.tensor([True]), 0.0
    yield rng.normal(3, 2).t(), rng.mask(2, 3), 0.5
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32):
        for dims in (1, 2, 3):
            yield *drawn(rng, *[rng.integer(1, 3) for _ in range(dims)], dtype=dtype), rng.integer(-3, 3)


@MiniMask.wrong(
    "M22",
    "The fill was computed with products. NaN times 0 is NaN, so what lies under the mask comes through: choose with "
    "torch.where.",
)
class Multiplies:
    def __init__(self, data, mask):
        if not hasattr(data, "shape") or str(mask.dtype) != "torch.bool":
            raise TypeError("a tensor and a bool tensor are needed")
        if data.shape != mask.shape:
            raise ValueError("the shapes differ")
        self.data, self.mask = data, mask
        self.shape, self.dtype = data.shape, data.dtype

    def to_tensor(self, fill):
        return self.data * self.mask + fill * ~self.mask

    def __repr__(self):
        def text(value, counts):
            if isinstance(value, list):
                return "[" + ", ".join(text(v, c) for v, c in zip(value, counts, strict=True)) + "]"
            return f"{value:g}" if counts else "--"

        return f"MiniMask({text(self.data.tolist(), self.mask.tolist())})"


@MiniMask.wrong(
    "M23",
    "The mask is read the wrong way round, as NumPy reads it. In MaskedTensor, and here, True means that the element is "
    "there.",
)
class Inverted:
    def __init__(self, data, mask):
        if not hasattr(data, "shape") or str(mask.dtype) != "torch.bool":
            raise TypeError("a tensor and a bool tensor are needed")
        if data.shape != mask.shape:
            raise ValueError("the shapes differ")
        self.data, self.mask = data, mask
        self.shape, self.dtype = data.shape, data.dtype

    def to_tensor(self, fill):
        import torch

        return torch.where(self.mask, fill, self.data)

    def __repr__(self):
        def text(value, counts):
            if isinstance(value, list):
                return "[" + ", ".join(text(v, c) for v, c in zip(value, counts, strict=True)) + "]"
            return "--" if counts else f"{value:g}"

        return f"MiniMask({text(self.data.tolist(), self.mask.tolist())})"


@MiniMask.wrong(
    "X-9.1-1",
    "The container keeps copies. Then a write into the caller's tensor is not seen here, and the other way round: keep "
    "data and mask themselves.",
)
class Copies:
    def __init__(self, data, mask):
        if not hasattr(data, "shape") or str(mask.dtype) != "torch.bool":
            raise TypeError("a tensor and a bool tensor are needed")
        if data.shape != mask.shape:
            raise ValueError("the shapes differ")
        self.data, self.mask = data.clone(), mask.clone()
        self.shape, self.dtype = data.shape, data.dtype

    def to_tensor(self, fill):
        import torch

        return torch.where(self.mask, self.data, fill)

    def __repr__(self):
        def text(value, counts):
            if isinstance(value, list):
                return "[" + ", ".join(text(v, c) for v, c in zip(value, counts, strict=True)) + "]"
            return f"{value:g}" if counts else "--"

        return f"MiniMask({text(self.data.tolist(), self.mask.tolist())})"


@MiniMask.wrong(
    "X-9.1-2",
    "The constructor takes whatever comes. A mask of another shape, or of ints, is found out much later then, far from "
    "where it was given: call checked first.",
)
class Unchecked:
    def __init__(self, data, mask):
        self.data, self.mask = data, mask
        self.shape, self.dtype = getattr(data, "shape", None), getattr(data, "dtype", None)

    def to_tensor(self, fill):
        import torch

        return torch.where(self.mask.bool(), self.data, fill)

    def __repr__(self):
        import torch

        def text(value, counts):
            if isinstance(value, list):
                return "[" + ", ".join(text(v, c) for v, c in zip(value, counts, strict=True)) + "]"
            return f"{value:g}" if counts else "--"

        data, mask = torch.broadcast_tensors(self.data, self.mask)
        return f"MiniMask({text(data.tolist(), mask.tolist())})"


@MiniMask.wrong(
    "X-9.1-3",
    "to_tensor wrote the fill into data itself: masked_fill_ and data[~mask] = fill change the tensor of the caller. Make "
    "a new one.",
)
class Overwrites:
    def __init__(self, data, mask):
        if not hasattr(data, "shape") or str(mask.dtype) != "torch.bool":
            raise TypeError("a tensor and a bool tensor are needed")
        if data.shape != mask.shape:
            raise ValueError("the shapes differ")
        self.data, self.mask = data, mask
        self.shape, self.dtype = data.shape, data.dtype

    def to_tensor(self, fill):
        self.data.detach()[~self.mask] = fill
        return self.data + 0

    def __repr__(self):
        def text(value, counts):
            if isinstance(value, list):
                return "[" + ", ".join(text(v, c) for v, c in zip(value, counts, strict=True)) + "]"
            return f"{value:g}" if counts else "--"

        return f"MiniMask({text(self.data.tolist(), self.mask.tolist())})"


@MiniMask.wrong(
    "X-9.1-4",
    "The text shows what lies under the mask. It is unspecified: whoever reads a number there will believe it. Write --.",
)
class ShowsAll:
    def __init__(self, data, mask):
        if not hasattr(data, "shape") or str(mask.dtype) != "torch.bool":
            raise TypeError("a tensor and a bool tensor are needed")
        if data.shape != mask.shape:
            raise ValueError("the shapes differ")
        self.data, self.mask = data, mask
        self.shape, self.dtype = data.shape, data.dtype

    def to_tensor(self, fill):
        import torch

        return torch.where(self.mask, self.data, fill)

    def __repr__(self):
        def text(value):
            return "[" + ", ".join(map(text, value)) + "]" if isinstance(value, list) else f"{value:g}"

        return f"MiniMask({text(self.data.tolist())})"


@MiniMask.wrong(
    "X-9.1-5",
    "Four digits after the point make 4.54e-05 a zero. f'{value:g}' writes six digits that count, wherever the point is.",
)
class Rounds:
    def __init__(self, data, mask):
        if not hasattr(data, "shape") or str(mask.dtype) != "torch.bool":
            raise TypeError("a tensor and a bool tensor are needed")
        if data.shape != mask.shape:
            raise ValueError("the shapes differ")
        self.data, self.mask = data, mask
        self.shape, self.dtype = data.shape, data.dtype

    def to_tensor(self, fill):
        import torch

        return torch.where(self.mask, self.data, fill)

    def __repr__(self):
        def text(value, counts):
            if isinstance(value, list):
                return "[" + ", ".join(text(v, c) for v, c in zip(value, counts, strict=True)) + "]"
            return f"{value:.4f}" if counts else "--"

        return f"MiniMask({text(self.data.tolist(), self.mask.tolist())})"


@MiniMask.wrong(
    "X-9.1-6",
    "The history was cut: data was detached, so no gradient will ever flow through this container. Keep data as it came.",
)
class Detaches:
    def __init__(self, data, mask):
        if not hasattr(data, "shape") or str(mask.dtype) != "torch.bool":
            raise TypeError("a tensor and a bool tensor are needed")
        if data.shape != mask.shape:
            raise ValueError("the shapes differ")
        self.data, self.mask = data.detach(), mask
        self.shape, self.dtype = data.shape, data.dtype

    def to_tensor(self, fill):
        import torch

        return torch.where(self.mask, self.data, fill)

    def __repr__(self):
        def text(value, counts):
            if isinstance(value, list):
                return "[" + ", ".join(text(v, c) for v, c in zip(value, counts, strict=True)) + "]"
            return f"{value:g}" if counts else "--"

        return f"MiniMask({text(self.data.tolist(), self.mask.tolist())})"


@MiniMask.right
class Nested:
    def __init__(self, data, mask):
        import torch

        if not torch.is_tensor(data) or not torch.is_tensor(mask) or mask.dtype is not torch.bool:
            raise TypeError("a tensor and a bool tensor are needed")
        if data.size() != mask.size():
            raise ValueError("the shapes differ")
        self.data, self.mask = data, mask

    @property
    def shape(self):
        return self.data.size()

    @property
    def dtype(self):
        return self.data.dtype

    def to_tensor(self, fill):
        return self.data.masked_fill(~self.mask, fill)

    def __repr__(self):
        def texts(value, counts):
            if isinstance(value, list):
                return list(map(texts, value, counts))
            return format(value, "g") if counts else "--"

        nested = str(texts(self.data.tolist(), self.mask.tolist()))
        return "MiniMask(" + nested.replace("'", "") + ")"


@MiniMask.right
class ByReplacing:
    def __init__(self, data, mask):
        import torch

        if not (isinstance(data, torch.Tensor) and isinstance(mask, torch.Tensor) and mask.dtype == torch.bool):
            raise TypeError("a tensor and a bool tensor are needed")
        if data.shape != mask.shape:
            raise ValueError("the shapes differ")
        self.data, self.mask = data, mask
        self.shape, self.dtype = data.shape, data.dtype

    def to_tensor(self, fill):
        import torch

        return torch.where(~self.mask, torch.as_tensor(fill, dtype=self.dtype), self.data)

    def __repr__(self):
        return f"MiniMask({self._text(self.data, self.mask)})"

    @classmethod
    def _text(cls, data, mask):
        if data.dim() == 0:
            return f"{data.item():g}" if mask else "--"
        return "[" + ", ".join(cls._text(*pair) for pair in zip(data, mask, strict=True)) + "]"


# ---- 9.2 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.2",
    points=2,
    minutes=10,
    stars=2,
    concepts=["S-06", "V-07"],
    properties=[same_sharing, device_agnostic, no_loops, op_budget(6)],
    forbidden=READY_MADE,
    visible=7,
    tolerance=TOL,
    hints=[
        "An elementwise function never mixes elements. So the values are torch's, and the mask stays as it is; which dtype "
        "comes out, torch knows best.",
        "getattr(torch, name) is the function. The result shall own its mask: mask.clone(), for a later write into the "
        "result must not change the input.",
        "return getattr(torch, ___)(data), mask.___()",
    ],
)
def unary(name, data, mask):
    return getattr(torch, name)(data), mask.clone()


unary.facts(told)


@unary.cases
def _(rng):
    yield "sqrt", torch.tensor([4.0, NAN, 9.0]), bools(1, 0, 1)
    yield "sqrt", torch.tensor([4, -7, 9]), bools(1, 0, 1)
    yield "abs", torch.tensor([-2, 5, -3]), bools(1, 1, 0)
    yield "log", torch.tensor([-1.0, 1.0, 0.0]), bools(1, 1, 1)
    yield "isnan", torch.tensor([NAN, NAN, 1.0]), bools(1, 0, 1)
    yield (
        "neg",
        torch.tensor([[1.0, INF], [1e30, -2.0]], dtype=torch.float64),
        torch.tensor([[True, False], [False, True]]),
    )
    yield "relu", torch.tensor([-3.0, 3.0]), bools(0, 0)
    yield "exp", torch.tensor(0.0), torch.tensor(True)
    yield "signbit", torch.zeros(0, 2), torch.zeros(0, 2) == 1
    yield "reciprocal", torch.tensor([0, 2]), bools(0, 1)
    yield "logical_not", bools(1, 0), bools(1, 0)
    yield "round", rng.normal(3, 4).t(), rng.mask(4, 3)
    for name in ("sin", "tanh", "square", "sign", "exp", "isinf", "floor", "sqrt", "sigmoid", "abs"):
        for dtype in (torch.float32, torch.float64, torch.int64):
            shape = [rng.integer(1, 4) for _ in range(rng.integer(1, 3))]
            yield name, *drawn(rng, *shape, dtype=dtype)


@unary.wrong(
    "X-9.2-1",
    "The result was squeezed into the dtype of data. The root of an integer is no integer, and isnan answers with truth "
    "values: keep the dtype that torch chose.",
)
def _(name, data, mask):
    import torch

    return getattr(torch, name)(data).to(data.dtype), mask.clone()


@unary.wrong(
    "X-9.2-2",
    "Everything became float here, also what torch leaves as it is: abs of integers are integers. Do not convert first.",
)
def _(name, data, mask):
    import torch

    return getattr(torch, name)(data.double()), mask.clone()


@unary.wrong(
    "M24",
    "A specified NaN was declared missing. log(-1) has no value, and the user should see that; missing is only what the "
    "mask says.",
)
def _(name, data, mask):
    import torch

    result = getattr(torch, name)(data)
    return result, mask & ~torch.isnan(result)


@unary.wrong(
    "X-9.2-3",
    "The result shares the mask of its input. As soon as elements can be written, a write into the result changes which "
    "elements of the input are there: give it a mask of its own.",
)
def _(name, data, mask):
    import torch

    return getattr(torch, name)(data), mask


@unary.wrong(
    "X-9.2-4",
    "The input was written to. The caller still needs it: make a new tensor of the result.",
)
def _(name, data, mask):
    import torch

    result = getattr(torch, name)(data)
    data[mask] = result[mask].to(data.dtype)
    return result, mask.clone()


@unary.wrong(
    "M23",
    "The mask was turned round: what was missing is now said to be there. An elementwise function leaves the mask as it is.",
)
def _(name, data, mask):
    import torch

    return getattr(torch, name)(data), ~mask


@unary.wrong(
    "X-9.2-5",
    "Only the elements that are there came back, in one row. The result keeps the shape, or nobody knows which element is "
    "which.",
)
def _(name, data, mask):
    import torch

    return getattr(torch, name)(data[mask]), mask[mask]


@unary.wrong(
    "X-9.2-6",
    "Only the values came back. A rule returns both halves, the values and the mask: without the mask nobody knows what is "
    "there.",
)
def _(name, data, mask):
    import torch

    return getattr(torch, name)(data)


@unary.right
def _(name, data, mask):
    import torch

    safe = torch.where(mask, data, torch.ones((), dtype=data.dtype, device=data.device))
    return getattr(torch, name)(safe), mask & mask


@unary.right
def _(name, data, mask):
    import torch

    function = vars(torch)[name]
    values = function(data)
    return values, torch.empty_like(mask).copy_(mask)


# ---- 9.3 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.3",
    points=4,
    minutes=20,
    stars=3,
    concepts=["S-07", "V-02", "V-03", "V-04"],
    properties=[same_sharing, device_agnostic, no_loops, op_budget(14)],
    forbidden=READY_MADE,
    visible=10,
    tolerance=TOL,
    hints=[
        "Settle the mask first: broadcast the two masks, then each policy says what becomes of them. Then give the function "
        "only operands that cannot hurt.",
        'torch.broadcast_tensors(a_mask, b_mask); torch.equal, &, |. Under "match" and "intersection" put a 1 into both '
        'operands wherever the result is missing (integers refuse to divide by 0); under "union" put the identity of the '
        "operation, 0 for add and 1 for mul, wherever that operand is missing.",
        'left, right = torch.broadcast_tensors(a_mask, b_mask); if policy == "union": fill = {"add": 0, "mul": ___}[name]; '
        "return function(torch.where(a_mask, a, fill), torch.where(___, b, fill)), left ___ right; ...; both = left & right; "
        "return function(torch.where(both, a, 1), torch.where(both, b, 1)), both",
    ],
)
def binary(name, a, a_mask, b, b_mask, policy):
    if policy not in ("match", "intersection", "union"):
        raise ValueError(f"unknown policy {policy!r}: expected match, intersection or union")
    function = getattr(torch, name)
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        identities = {"add": 0, "mul": 1}
        if name not in identities:
            raise ValueError(f"{name} has no identity that a missing operand could stand for")
        a, b = torch.where(a_mask, a, identities[name]), torch.where(b_mask, b, identities[name])
        return function(a, b), left | right
    if policy == "match" and not torch.equal(left, right):
        raise ValueError("the masks differ: choose a policy, or fill what is missing with to_tensor")
    both = left & right
    return function(torch.where(both, a, 1), torch.where(both, b, 1)), both


@binary.facts
def _(result, *case):
    import torch

    pair = isinstance(result, (list, tuple)) and len(result) == 2
    if not pair or not all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in result):
        return result
    values, mask = result
    fits = mask.dtype == torch.bool and values.shape == mask.shape
    return torch.where(mask, values, torch.zeros((), dtype=values.dtype)) if fits else values, mask


@binary.cases
def _(rng):
    one, two = torch.tensor([1.0, 2.0, NAN, 4.0]), torch.tensor([10.0, NAN, 30.0, NAN])
    yield "add", one, bools(1, 1, 0, 1), two, bools(1, 0, 1, 0), "intersection"
    yield "add", one, bools(1, 1, 0, 1), two, bools(1, 0, 1, 0), "union"
    yield "add", one, bools(1, 1, 0, 1), two, bools(1, 0, 1, 0), "match"
    yield "add", one, bools(1, 0, 0, 0), two, bools(1, 0, 0, 0), "match"
    yield "remainder", torch.tensor([7, 8]), bools(1, 0), torch.tensor([4, 0]), bools(1, 0), "match"
    yield (
        "mul",
        torch.tensor([[2.0], [3.0]]),
        torch.tensor([[True], [False]]),
        torch.tensor([5.0, NAN]),
        bools(1, 0),
        "union",
    )
    yield "add", torch.ones(2, 1), torch.ones(2, 1) == 1, torch.ones(3), torch.ones(3) == 1, "match"
    yield "sub", torch.tensor([1.0]), bools(1), torch.tensor([2.0]), bools(0), "union"
    yield "div", torch.tensor([1, 2]), bools(1, 1), torch.tensor([2, 0]), bools(1, 1), "intersection"
    yield "add", torch.tensor([1.0]), bools(1), torch.tensor([2.0]), bools(1), "numpy"
    yield "lt", torch.tensor([1, 5]), bools(1, 1), torch.tensor([2.5, 2.5]), bools(1, 0), "intersection"
    yield "mul", torch.tensor([0.0, INF]), bools(1, 1), torch.tensor([NAN, 0.0]), bools(0, 1), "union"
    yield (
        "floor_divide",
        torch.tensor([[7], [9]]),
        torch.tensor([[True], [False]]),
        torch.tensor([0, 2]),
        bools(0, 1),
        "intersection",
    )
    yield "add", torch.tensor(2.0), torch.tensor(False), torch.ones(2, 2), torch.ones(2, 2) == 0, "union"
    yield "maximum", torch.zeros(0), torch.zeros(0) == 1, torch.zeros(1), torch.zeros(1) == 1, "intersection"
    yield "add", torch.ones(2), bools(1, 1), torch.ones(3), bools(1, 1, 1), "intersection"
    for name, policies in (
        ("add", ["match", "intersection", "union"]),
        ("mul", ["match", "intersection", "union"]),
        ("sub", ["match", "intersection"]),
        ("maximum", ["intersection"]),
        ("div", ["intersection"]),
        ("remainder", ["intersection"]),
    ):
        for policy in policies:
            for dtype in (torch.float32, torch.int64):
                rows, columns = rng.integer(1, 3), rng.integer(1, 4)
                a, a_mask = drawn(rng, rows, rng.choice([1, columns]), dtype=dtype)
                b, b_mask = drawn(rng, columns, dtype=rng.choice([dtype, torch.float64]))
                if name == "remainder":
                    b = torch.where(b_mask & (b == 0), 3, b)
                yield name, a, a_mask, b, b_mask, policy
        mask = rng.mask(2, 3)
        yield name, rng.normal(2, 3), mask, rng.normal(2, 3), mask.clone(), "match"


@binary.wrong(
    "M30",
    'Policy or not, the result is specified where both operands are. Under "union" one of them is enough, and the other '
    "counts as the identity of the operation.",
)
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    if policy not in ("match", "intersection", "union") or (policy == "union" and name not in ("add", "mul")):
        raise ValueError("cannot be done")
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "match" and not torch.equal(left, right):
        raise ValueError("the masks differ")
    both = left & right
    return getattr(torch, name)(torch.where(both, a, 1), torch.where(both, b, 1)), both


@binary.wrong(
    "X-9.3-1",
    "A missing operand counts as 0, for every operation. In a sum that changes nothing, a product it wipes out: the "
    "identity of mul is 1.",
)
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    if policy not in ("match", "intersection", "union") or (policy == "union" and name not in ("add", "mul")):
        raise ValueError("cannot be done")
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        return getattr(torch, name)(torch.where(a_mask, a, 0), torch.where(b_mask, b, 0)), left | right
    if policy == "match" and not torch.equal(left, right):
        raise ValueError("the masks differ")
    both = left & right
    return getattr(torch, name)(torch.where(both, a, 1), torch.where(both, b, 1)), both


@binary.wrong(
    "X-9.3-2",
    "The masks are compared before they are broadcast, so two masks of different shape never match, not even all-True "
    "ones. Broadcast first.",
)
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    if policy not in ("match", "intersection", "union") or (policy == "union" and name not in ("add", "mul")):
        raise ValueError("cannot be done")
    if policy == "match" and not torch.equal(a_mask, b_mask):
        raise ValueError("the masks differ")
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        fill = {"add": 0, "mul": 1}[name]
        return getattr(torch, name)(torch.where(a_mask, a, fill), torch.where(b_mask, b, fill)), left | right
    both = left & right
    return getattr(torch, name)(torch.where(both, a, 1), torch.where(both, b, 1)), both


@binary.wrong(
    "M22",
    "The function got what lies under the masks. Among floats that goes unseen; an integer 0 there ends in a division by "
    "zero. Put something harmless in first.",
)
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    if policy not in ("match", "intersection", "union") or (policy == "union" and name not in ("add", "mul")):
        raise ValueError("cannot be done")
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        fill = {"add": 0, "mul": 1}[name]
        return getattr(torch, name)(torch.where(a_mask, a, fill), torch.where(b_mask, b, fill)), left | right
    if policy == "match" and not torch.equal(left, right):
        raise ValueError("the masks differ")
    return getattr(torch, name)(a, b), left & right


@binary.wrong(
    "X-9.3-3",
    'Different masks were let through under "match". That policy exists to make you decide: raise a ValueError.',
)
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    if policy not in ("match", "intersection", "union") or (policy == "union" and name not in ("add", "mul")):
        raise ValueError("cannot be done")
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        fill = {"add": 0, "mul": 1}[name]
        return getattr(torch, name)(torch.where(a_mask, a, fill), torch.where(b_mask, b, fill)), left | right
    both = left & right
    return getattr(torch, name)(torch.where(both, a, 1), torch.where(both, b, 1)), both


@binary.wrong(
    "X-9.3-4",
    'Under "union" both are added as they lie there, junk included. Fill each operand with the identity where it is '
    "missing, before you compute.",
)
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    if policy not in ("match", "intersection", "union") or (policy == "union" and name not in ("add", "mul")):
        raise ValueError("cannot be done")
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        return getattr(torch, name)(a, b), left | right
    if policy == "match" and not torch.equal(left, right):
        raise ValueError("the masks differ")
    both = left & right
    return getattr(torch, name)(torch.where(both, a, 1), torch.where(both, b, 1)), both


@binary.wrong(
    "X-9.3-5",
    '"union" was allowed for an operation without an identity. What is 1 - missing: 1, or -missing? Refuse what has no '
    "clear answer, with a ValueError.",
)
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    if policy not in ("match", "intersection", "union"):
        raise ValueError("cannot be done")
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        fill = {"mul": 1}.get(name, 0)
        return getattr(torch, name)(torch.where(a_mask, a, fill), torch.where(b_mask, b, fill)), left | right
    if policy == "match" and not torch.equal(left, right):
        raise ValueError("the masks differ")
    both = left & right
    return getattr(torch, name)(torch.where(both, a, 1), torch.where(both, b, 1)), both


@binary.wrong(
    "X-9.3-6",
    "The mask has not been broadcast: it has another shape than the values, so it no longer says which elements are there.",
)
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    if policy not in ("match", "intersection", "union") or (policy == "union" and name not in ("add", "mul")):
        raise ValueError("cannot be done")
    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "union":
        fill = {"add": 0, "mul": 1}[name]
        return getattr(torch, name)(torch.where(a_mask, a, fill), torch.where(b_mask, b, fill)), a_mask.clone()
    if policy == "match" and not torch.equal(left, right):
        raise ValueError("the masks differ")
    both = left & right
    return getattr(torch, name)(torch.where(both, a, 1), torch.where(both, b, 1)), a_mask.clone()


@binary.right
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    left, right = torch.broadcast_tensors(a_mask, b_mask)
    if policy == "match" and bool((left != right).any()):
        raise ValueError("the masks differ")
    if policy == "match" or policy == "intersection":
        mask = torch.logical_and(left, right)
        a, b = torch.broadcast_tensors(a, b)
        return getattr(torch, name)(a.masked_fill(~mask, 1), b.masked_fill(~mask, 1)), mask
    if policy == "union" and name in ("add", "mul"):
        fill = int(name == "mul")
        mask = torch.logical_or(left, right)
        return getattr(torch, name)(a.masked_fill(~a_mask, fill), b.masked_fill(~b_mask, fill)), mask
    raise ValueError("no such policy, or none for this operation")


@binary.right
def _(name, a, a_mask, b, b_mask, policy):
    import torch

    fills = {"add": 0, "mul": 1}
    combine = {"match": torch.logical_and, "intersection": torch.logical_and, "union": torch.logical_or}
    if policy not in combine or (policy == "union" and name not in fills):
        raise ValueError(f"{policy} of {name} is not defined")
    mask = combine[policy](a_mask, b_mask)
    if policy == "match" and (not torch.equal(mask, a_mask | b_mask)):
        raise ValueError("the masks differ")
    fill = fills[name] if policy == "union" else 1
    a_there, b_there = (a_mask, b_mask) if policy == "union" else (mask, mask)
    return getattr(torch, name)(torch.where(a_there, a, fill), torch.where(b_there, b, fill)), mask


# ---- 9.4 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.4",
    points=4,
    minutes=20,
    stars=3,
    concepts=["S-08", "V-05", "O-19"],
    properties=[device_agnostic, op_budget(30)],
    forbidden=READY_MADE,
    visible=10,
    tolerance=TOL,
    hints=[
        "Each reduction has an identity: a number that can be thrown in without changing anything. Put it in place of what is "
        "missing, then reduce as usual. Apart from that, count.",
        "0 for sum and mean, 1 for prod, -inf for amax and inf for amin (of integers: torch.iinfo(dtype).min and .max). The "
        "mean divides by how many are there: mask.sum(dims, keepdim), at least 1. Defined is mask.any(dims, keepdim). dim "
        "may be None, a number or a tuple: make a tuple of it first. prod takes one dim at a time, so begin at the last.",
        "dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else dim; filled = "
        "torch.where(mask, data, ___); value = filled.sum(dims, keepdim) (mean: / mask.sum(dims, keepdim).clamp(min=___)); "
        "return value, mask.___(dims, keepdim)",
    ],
)
def reduction(name, data, mask, dim, keepdim):
    limits = torch.finfo(data.dtype) if data.is_floating_point() else torch.iinfo(data.dtype)
    least, most = (-math.inf, math.inf) if data.is_floating_point() else (limits.min, limits.max)
    fill = {"sum": 0, "mean": 0, "prod": 1, "amax": least, "amin": most}[name]
    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    filled, defined = torch.where(mask, data, fill), mask.any(dims, keepdim)
    if name == "mean":
        return filled.sum(dims, keepdim) / mask.sum(dims, keepdim).clamp(min=1), defined
    if name == "prod":
        for each in sorted((d % data.dim() for d in dims), reverse=True):
            filled = filled.prod(each, keepdim)
        return filled, defined
    return getattr(filled, name)(dims, keepdim), defined


reduction.facts(told)


@reduction.cases
def _(rng):
    grid, holes = torch.tensor([[-1.0, NAN, -3.0], [NAN, NAN, NAN]]), torch.tensor([[1, 0, 1], [0, 0, 0]]) == 1
    yield "amax", grid, holes, 1, False
    yield "mean", grid, holes, 1, True
    yield "sum", torch.tensor([[2, 5], [7, 3]]), torch.tensor([[True, False], [True, True]]), None, False
    yield "prod", torch.tensor([[2.0, 0.0], [3.0, INF]]), torch.tensor([[True, False], [True, False]]), (0, 1), False
    yield "amin", torch.tensor([[5, 0], [6, 0]]), torch.tensor([[True, False], [True, False]]), -1, True
    yield "mean", torch.tensor([[1.0, 2.0], [9.0, NAN]]), torch.tensor([[True, True], [True, False]]), (0, 1), False
    yield "sum", torch.tensor([1.0, NAN]), bools(1, 1), 0, False
    yield "amax", torch.tensor([[-INF, 1e30]]), torch.tensor([[True, False]]), 1, False
    yield "mean", torch.tensor([3, 4, 0]), bools(1, 1, 0), 0, False
    yield "sum", torch.tensor([[NAN, INF], [-1.0, 1.0]]), torch.tensor([[False, False], [True, True]]), None, True
    yield "amax", torch.tensor([0.0, NAN]), bools(1, 0), 0, False
    yield "prod", torch.tensor([[2, 3]]), torch.tensor([[False, False]]), (-1,), True
    yield "amax", torch.tensor([-9007199254740993, 0]), bools(1, 0), 0, False
    yield "sum", torch.zeros(0, 3), torch.zeros(0, 3) == 1, 0, False
    yield "prod", *drawn(rng, 2, 3, 2), (0, -1), False
    yield "sum", *drawn(rng, 6, 12), 1, False  # many elements: what walks over them takes many operations
    yield "mean", *drawn(rng, 4, 5, 3), (-1, 0), True
    for name in ("sum", "mean", "prod", "amax", "amin"):
        for dtype in (torch.float32, torch.float64, torch.int64, torch.int32):
            dims = rng.integer(1, 3)
            shape = [rng.integer(1, 4) for _ in range(dims)]
            dim = rng.choice([None, rng.integer(-dims, dims - 1), (rng.integer(0, dims - 1),), tuple(range(dims))])
            yield name, *drawn(rng, *shape, dtype=dtype, density=0.5), dim, rng.choice([True, False])


@reduction.wrong(
    "M24",
    "What is missing was taken for 0 in every reduction. Among negative numbers 0 wins every amax, and one 0 wipes out a "
    "product: each reduction has an identity of its own.",
)
def _(name, data, mask, dim, keepdim):
    import torch

    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    filled, defined = torch.where(mask, data, 0), mask.any(dims, keepdim)
    if name == "mean":
        return filled.sum(dims, keepdim) / mask.sum(dims, keepdim).clamp(min=1), defined
    if name == "prod":
        for each in sorted((d % data.dim() for d in dims), reverse=True):
            filled = filled.prod(each, keepdim)
        return filled, defined
    return getattr(filled, name)(dims, keepdim), defined


@reduction.wrong(
    "X-9.4-1",
    "The mean divides by all elements, missing ones included. Divide by how many are there: mask.sum over the same dims.",
)
def _(name, data, mask, dim, keepdim):
    import torch

    info = torch.finfo(data.dtype) if data.is_floating_point() else torch.iinfo(data.dtype)
    least, most = (float("-inf"), float("inf")) if data.is_floating_point() else (info.min, info.max)
    fill = {"sum": 0, "mean": 0, "prod": 1, "amax": least, "amin": most}[name]
    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    filled, defined = torch.where(mask, data, fill), mask.any(dims, keepdim)
    if name == "mean":
        return filled.sum(dims, keepdim) / torch.ones_like(mask).sum(dims, keepdim), defined
    if name == "prod":
        for each in sorted((d % data.dim() for d in dims), reverse=True):
            filled = filled.prod(each, keepdim)
        return filled, defined
    return getattr(filled, name)(dims, keepdim), defined


@reduction.wrong(
    "X-9.4-2",
    "A slice counts as defined only if all of it is there. One element is enough: the reduction is that of what is there.",
)
def _(name, data, mask, dim, keepdim):
    import torch

    info = torch.finfo(data.dtype) if data.is_floating_point() else torch.iinfo(data.dtype)
    least, most = (float("-inf"), float("inf")) if data.is_floating_point() else (info.min, info.max)
    fill = {"sum": 0, "mean": 0, "prod": 1, "amax": least, "amin": most}[name]
    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    filled, defined = torch.where(mask, data, fill), mask.all(dims, keepdim)
    if name == "mean":
        return filled.sum(dims, keepdim) / mask.sum(dims, keepdim).clamp(min=1), defined
    if name == "prod":
        for each in sorted((d % data.dim() for d in dims), reverse=True):
            filled = filled.prod(each, keepdim)
        return filled, defined
    return getattr(filled, name)(dims, keepdim), defined


@reduction.wrong(
    "X-9.4-3",
    "Whether a slice is defined was read off its value. A specified NaN or -inf is a value, and the sum of nothing is 0 "
    "without being one: ask the mask.",
)
def _(name, data, mask, dim, keepdim):
    import torch

    info = torch.finfo(data.dtype) if data.is_floating_point() else torch.iinfo(data.dtype)
    least, most = (float("-inf"), float("inf")) if data.is_floating_point() else (info.min, info.max)
    fill = {"sum": 0, "mean": 0, "prod": 1, "amax": least, "amin": most}[name]
    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    filled = torch.where(mask, data, fill)
    if name == "mean":
        value = filled.sum(dims, keepdim) / mask.sum(dims, keepdim)
    elif name == "prod":
        value = filled
        for each in sorted((d % data.dim() for d in dims), reverse=True):
            value = value.prod(each, keepdim)
    else:
        value = getattr(filled, name)(dims, keepdim)
    return value, (value == value) & (value != fill)


@reduction.wrong(
    "X-9.4-4",
    "The reduced dimension stays or goes as it likes: keepdim has to reach the value and the flag.",
    sample="wrong_rank",
)
def _(name, data, mask, dim, keepdim):
    import torch

    info = torch.finfo(data.dtype) if data.is_floating_point() else torch.iinfo(data.dtype)
    least, most = (float("-inf"), float("inf")) if data.is_floating_point() else (info.min, info.max)
    fill = {"sum": 0, "mean": 0, "prod": 1, "amax": least, "amin": most}[name]
    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    filled, defined = torch.where(mask, data, fill), mask.any(dims)
    if name == "mean":
        return filled.sum(dims) / mask.sum(dims).clamp(min=1), defined
    if name == "prod":
        for each in sorted((d % data.dim() for d in dims), reverse=True):
            filled = filled.prod(each)
        return filled, defined
    return getattr(filled, name)(dims), defined


@reduction.wrong(
    "X-9.4-5",
    "What is missing was made NaN, and the functions that ignore NaN were asked. Those ignore a specified NaN as well, and "
    "integers know no NaN: fill with the identity.",
)
def _(name, data, mask, dim, keepdim):
    import torch

    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    holes, defined = torch.where(mask, data, float("nan")), mask.any(dims, keepdim)
    if name in ("sum", "mean"):
        return getattr(torch, "nan" + name)(holes, dims, keepdim), defined
    filled = holes.nan_to_num({"prod": 1, "amax": float("-inf"), "amin": float("inf")}[name])
    if name == "prod":
        for each in sorted((d % data.dim() for d in dims), reverse=True):
            filled = filled.prod(each, keepdim)
        return filled, defined
    return getattr(filled, name)(dims, keepdim), defined


@reduction.wrong(
    "X-9.4-6",
    "The mean over several dimensions was taken one dimension after the other. A mean of means weighs each row alike, "
    "however many elements it has: sum and count over all dims, then divide.",
)
def _(name, data, mask, dim, keepdim):
    import torch

    info = torch.finfo(data.dtype) if data.is_floating_point() else torch.iinfo(data.dtype)
    least, most = (float("-inf"), float("inf")) if data.is_floating_point() else (info.min, info.max)
    fill = {"sum": 0, "mean": 0, "prod": 1, "amax": least, "amin": most}[name]
    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    for each in sorted((d % data.dim() for d in dims), reverse=True):
        filled, count = torch.where(mask, data, fill), mask.sum(each, keepdim)
        if name == "mean":
            data = filled.sum(each, keepdim) / count.clamp(min=1)
        else:
            data = getattr(filled, name)(each, keepdim=keepdim)
        mask = count > 0
    return data, mask


@reduction.wrong(
    "X-9.4-7",
    "Infinity among integers makes floats of them, and large integers lose digits. The identity of amax for an integer "
    "dtype is torch.iinfo(dtype).min.",
)
def _(name, data, mask, dim, keepdim):
    import torch

    fill = {"sum": 0, "mean": 0, "prod": 1, "amax": float("-inf"), "amin": float("inf")}[name]
    dims = tuple(range(data.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    filled, defined = torch.where(mask, data, fill), mask.any(dims, keepdim)
    if name == "mean":
        return filled.sum(dims, keepdim) / mask.sum(dims, keepdim).clamp(min=1), defined
    if name == "prod":
        for each in sorted((d % data.dim() for d in dims), reverse=True):
            filled = filled.prod(each, keepdim)
        return filled, defined
    return getattr(filled, name)(dims, keepdim), defined


@reduction.right
def _(name, data, mask, dim, keepdim):
    import torch

    over = list(range(data.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    real = data.is_floating_point()
    top = float("inf") if real else torch.iinfo(data.dtype).max
    bottom = float("-inf") if real else torch.iinfo(data.dtype).min
    there = mask.sum(over, keepdim=keepdim)
    if name in ("sum", "mean"):
        total = data.masked_fill(~mask, 0).sum(over, keepdim=keepdim)
        return (total if name == "sum" else total / there), there > 0
    if name == "amax":
        return data.masked_fill(~mask, bottom).amax(over, keepdim=keepdim), there > 0
    if name == "amin":
        return data.masked_fill(~mask, top).amin(over, keepdim=keepdim), there > 0
    rest = [d for d in range(data.ndim) if d not in [d % data.ndim for d in over]]
    moved = data.masked_fill(~mask, 1).permute(*rest, *[d % data.ndim for d in over])
    product = moved.reshape(*[data.shape[d] for d in rest], -1).prod(-1)
    return product.view(there.shape), there > 0


@reduction.right
def _(name, data, mask, dim, keepdim):
    import torch

    dims = sorted({d % data.dim() for d in (range(data.dim()) if dim is None else [dim] if type(dim) is int else dim)})
    count = mask.long()
    if data.is_floating_point():
        low, high = -float("inf"), float("inf")
    else:
        low, high = torch.iinfo(data.dtype).min, torch.iinfo(data.dtype).max
    neutral = {"amin": high, "amax": low, "prod": 1}.get(name, 0)
    values = torch.where(mask, data, torch.full((), neutral, dtype=data.dtype, device=data.device))
    for d in dims[::-1]:
        count = count.sum(d, keepdim=True)
        step = {"mean": "sum"}.get(name, name)
        values = getattr(values, step)(d, keepdim=True)
    if name == "mean":
        values = values / count.clamp(min=1)
    if not keepdim:
        for d in dims[::-1]:
            count, values = count.squeeze(d), values.squeeze(d)
    return values, count.bool()


# ---- 9.5 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.5",
    points=4,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["O-05", "L-17"],
    forbidden=READY_MADE,
    visible=9,
    hints=[
        "Reading: the same index into data and into mask, and a new object around both. If torch gives views, you have views "
        "of both, and a write into one reaches the whole. So writing is: write into data, write into mask.",
        "type(self)(self.data[index], self.mask[index]) keeps the class. In __setitem__ tell two cases apart: a value that is "
        "masked itself (isinstance(value, type(self))) brings its mask along; anything else is there: True.",
        "def __setitem__(self, index, value): if isinstance(value, type(self)): self.data[index] = ___; self.mask[index] = "
        "___; else: self.data[index] = value; self.mask[index] = ___",
    ],
)
class Indexing:
    def __getitem__(self, index):
        return type(self)(self.data[index], self.mask[index])

    def __setitem__(self, index, value):
        masked = isinstance(value, type(self))
        self.data[index] = value.data if masked else value
        self.mask[index] = value.mask if masked else True


@Indexing.call
def _(Indexing, data, mask, way, index, value, value_mask):
    if not isinstance(Indexing, type):
        return [Indexing()]

    class Pair(Indexing):
        def __init__(self, data, mask):
            self.data, self.mask = data, mask

    whole = Pair(data.clone(), mask.clone())
    data, mask = whole.data, whole.mask
    part = whole
    for step in way:
        part = part[step]
        if type(part) is not Pair:
            return [part]
    if type(part[index]) is not Pair:
        return [part[index]]
    part[index] = value if value_mask is None else Pair(value, value_mask)
    return [whole.data, whole.mask, data, mask, part.data, part.mask]


@Indexing.facts
def _(result, data, mask, way, index, value, value_mask):
    import torch

    tensors = isinstance(result, (list, tuple)) and len(result) in (1, 6)
    tensors = tensors and all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in result)
    six = tensors and len(result) == 6
    facts = {
        "m[i] is of the class of m": six or (result[0] if isinstance(result, (list, tuple)) and result else result)
    }
    names = ("m afterwards", "m's first tensors afterwards", "the part that was written to")
    if not six:
        return facts | dict.fromkeys(names, False)
    for name, values, there in zip(names, result[::2], result[1::2], strict=True):
        fits = there.dtype == torch.bool and there.shape == values.shape
        nothing = torch.zeros((), dtype=values.dtype)
        facts[name] = [there, torch.where(there, values, nothing) if fits else values]
    return facts


@Indexing.cases
def _(rng):
    grid = torch.tensor([[1.0, NAN, 3.0], [4.0, 5.0, NAN]])
    holes = torch.tensor([[1, 0, 1], [1, 1, 0]]) == 1
    yield grid, holes, [0], 1, 9.0, None
    yield grid, holes, [0], 0, torch.tensor(NAN), torch.tensor(False)
    yield grid, holes, [], (slice(None), 2), torch.tensor([7.0, NAN]), bools(1, 0)
    yield grid, holes, [[1, 0]], 0, 9.0, None  # a list copies, so m stays as it is
    yield torch.tensor([1, 2, 3, 4, 5]), bools(1, 1, 0, 0, 1), [slice(1, 4), slice(None, None, 2)], slice(None), 0, None
    yield grid, holes, [1], slice(1, 3), torch.tensor([8.0, 8.0]), None
    yield torch.tensor([1.0, 2.0, 3.0]), bools(1, 1, 1), [], bools(0, 1, 1), torch.tensor(NAN), torch.tensor(False)
    yield torch.tensor(2.0), torch.tensor(False), [], ..., 3.0, None
    yield grid, holes, [1], 2, torch.tensor(6.0), torch.tensor(True)
    yield (
        torch.arange(24.0).view(2, 3, 4),
        torch.arange(24).view(2, 3, 4) % 2 == 0,
        [..., 1, (0, slice(None))],
        1,
        -1.0,
        None,
    )
    yield torch.zeros(3), bools(0, 0, 0), [None], (0, torch.tensor([0, 2])), torch.tensor([1.0, NAN]), bools(1, 0)
    for _ in range(16):
        rows, columns = rng.integer(2, 4), rng.integer(2, 4)
        data, mask = drawn(rng, rows, columns, dtype=rng.choice([torch.float32, torch.int64]))
        row = rng.integer(0, rows - 1)
        way, index, width = rng.choice(
            [
                ([row], rng.integer(0, columns - 1), ()),
                ([row], slice(None), (columns,)),
                ([slice(0, 2)], (slice(None), -1), (2,)),
                ([], (torch.tensor([row, 0]), slice(None)), (2, columns)),
                ([[row]], (0, slice(None)), (columns,)),
                ([slice(None, None, 2), 0], slice(1, None), (columns - 1,)),
            ]
        )
        value, value_mask = drawn(rng, *width, dtype=data.dtype) if width else (rng.integer(1, 9), None)
        if isinstance(index, tuple) and isinstance(index[0], torch.Tensor) and row == 0:
            value, value_mask = value[0], value_mask[0]  # a place named twice gets one value
        yield data, mask, way, index, value, rng.choice([value_mask, value_mask, None])


@Indexing.wrong(
    "M29",
    "A part is a copy here, so what is written into m[0] never reaches m. That is the fault of torch.masked, too. Basic "
    "indexing gives views: hand on data[index] and mask[index] as they are.",
    sample="wrong_copy",
)
class CopiesParts:
    def __getitem__(self, index):
        return type(self)(self.data[index].clone(), self.mask[index].clone())

    def __setitem__(self, index, value):
        masked = isinstance(value, type(self))
        self.data[index] = value.data if masked else value
        self.mask[index] = value.mask if masked else True


@Indexing.wrong(
    "X-9.5-1",
    "The value was written, and the mask was left: an element that was missing still is, whatever stands there now. A plain "
    "value is there: set the mask to True.",
)
class DataOnly:
    def __getitem__(self, index):
        return type(self)(self.data[index], self.mask[index])

    def __setitem__(self, index, value):
        self.data[index] = value.data if isinstance(value, type(self)) else value


@Indexing.wrong(
    "X-9.5-2",
    "All of a masked value counts as there. It brings a mask along: what is missing in it is missing afterwards.",
)
class AllThere:
    def __getitem__(self, index):
        return type(self)(self.data[index], self.mask[index])

    def __setitem__(self, index, value):
        self.data[index] = value.data if isinstance(value, type(self)) else value
        self.mask[index] = True


@Indexing.wrong(
    "X-9.5-3",
    "self.data = ... gives this object another tensor, and the one that it shared with others is as before. Write into it: "
    "self.data[index] = ...",
)
class NewTensors:
    def __getitem__(self, index):
        return type(self)(self.data[index], self.mask[index])

    def __setitem__(self, index, value):
        masked = isinstance(value, type(self))
        self.data, self.mask = self.data.clone(), self.mask.clone()
        self.data[index] = value.data if masked else value
        self.mask[index] = value.mask if masked else True


@Indexing.wrong(
    "X-9.5-4",
    "An index gives a plain tensor, and the mask is forgotten on the way. A part of a masked tensor is masked: "
    "type(self)(data[index], mask[index]).",
)
class Plain:
    def __getitem__(self, index):
        return self.data[index]

    def __setitem__(self, index, value):
        masked = isinstance(value, type(self))
        self.data[index] = value.data if masked else value
        self.mask[index] = value.mask if masked else True


@Indexing.wrong(
    "X-9.5-5",
    "Elements that are missing cannot be written to. But filling a gap is what one most often wants: an assignment says "
    "what the element is, and that it is there.",
)
class OnlyThere:
    def __getitem__(self, index):
        return type(self)(self.data[index], self.mask[index])

    def __setitem__(self, index, value):
        if not self.mask[index].all():
            raise ValueError("nothing is there that could be changed")
        masked = isinstance(value, type(self))
        self.data[index] = value.data if masked else value
        self.mask[index] = value.mask if masked else True


@Indexing.wrong(
    "X-9.5-6",
    "A part has a mask of its own that m does not see: the value arrives, and m does not learn that it is there. Data and "
    "mask must both be views.",
)
class OwnMask:
    def __getitem__(self, index):
        return type(self)(self.data[index], self.mask[index].clone())

    def __setitem__(self, index, value):
        masked = isinstance(value, type(self))
        self.data[index] = value.data if masked else value
        self.mask[index] = value.mask if masked else True


@Indexing.wrong(
    "X-9.5-7",
    "m[index] can be read and not written: m[index] = value is a call of __setitem__(self, index, value). Define it, too.",
)
class ReadOnly:
    def __getitem__(self, index):
        return type(self)(self.data[index], self.mask[index])


@Indexing.right
class ByHalves:
    def __getitem__(self, index):
        data, mask = (half[index] for half in (self.data, self.mask))
        return self.__class__(data, mask)

    def __setitem__(self, index, value):
        if isinstance(value, type(self)):
            data, mask = value.data, value.mask
        else:
            data, mask = value, True
        for half, new in ((self.data, data), (self.mask, mask)):
            half[index] = new


@Indexing.right
class ThroughOperators:
    def __getitem__(self, index):
        import operator

        return type(self)(operator.getitem(self.data, index), operator.getitem(self.mask, index))

    def __setitem__(self, index, value):
        import torch

        new, there = getattr(value, "data", value), getattr(value, "mask", True)
        new = torch.as_tensor(new, dtype=self.data.dtype, device=self.data.device)
        self.data.__setitem__(index, new)
        self.mask.__setitem__(index, there)


# ---- 9.6 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.6",
    points=5,
    minutes=25,
    stars=4,
    homework=True,
    concepts=["O-07", "O-12", "O-13"],
    properties=[same_sharing, device_agnostic],
    forbidden=READY_MADE,
    visible=8,
    tolerance=TOL,
    hints=[
        "NaN times 0 is NaN, also in a backward pass: whatever the function did where the result is missing comes back. So it "
        "must not have been there with anything dangerous. Where is the result missing?",
        "One mask for all: torch.broadcast_tensors(*masks), then torch.stack(...).all(0). With it, put 1 into every operand by "
        "torch.where: its backward hands on exactly 0 where it chose the other side.",
        "both = torch.stack(torch.broadcast_tensors(*masks)).all(0); harmless = [torch.where(___, x, 1) for x in operands]; "
        "return getattr(torch, name)(*___), both",
    ],
)
def safe(name, operands, masks):
    both = functools.reduce(torch.logical_and, masks)
    harmless = [torch.where(both, x, 1) for x in operands]
    return getattr(torch, name)(*harmless), both & both


@safe.call
def _(safe, name, operands, masks):
    import torch

    leaves = [x.clone().requires_grad_() for x in operands]
    result = safe(name, leaves, masks)
    pair = isinstance(result, (list, tuple)) and len(result) == 2 and all(isinstance(t, torch.Tensor) for t in result)
    if not pair or result[1].dtype != torch.bool or result[0].shape != result[1].shape:
        return [result]
    values, mask = result
    loss = torch.where(mask, values, 0).sum()
    if loss.requires_grad:
        loss.backward()
    grads = [leaf.grad for leaf in leaves]
    torch.optim.SGD(leaves, lr=0.125).step()
    return [values.detach(), mask, grads, [leaf.detach() for leaf in leaves]]


@safe.facts
def _(result, name, operands, masks):
    import torch

    four = isinstance(result, (list, tuple)) and len(result) == 4
    facts = {"a pair of tensors of one shape": four or (result[0] if isinstance(result, list) and result else result)}
    names = ("which are specified", "the values there", "gradients of the operands", "operands after a step")
    if not four or not all(isinstance(t, torch.Tensor) for t in result[:2]):
        return facts | dict.fromkeys(names, False)
    values, mask, grads, stepped = result
    fits = mask.dtype == torch.bool and values.shape == mask.shape
    there = torch.where(mask, values, torch.zeros((), dtype=values.dtype)) if fits else values
    return facts | dict(zip(names, (mask, there, grads, stepped), strict=True))


@safe.cases
def _(rng):
    yield "sqrt", [torch.tensor([4.0, NAN, -1.0])], [bools(1, 0, 0)]
    yield "div", [torch.tensor([1.0, 1.0]), torch.tensor([2.0, 0.0])], [bools(1, 1), bools(1, 0)]
    yield "div", [torch.tensor([1.0, NAN]), torch.tensor([2.0, 0.0])], [bools(1, 0), bools(1, 1)]
    yield "sqrt", [torch.tensor([0.0, 1.0])], [bools(1, 1)]  # infinite, and truly so
    yield "log", [torch.tensor([INF, 0.5, 1e30])], [bools(0, 1, 0)]
    yield "mul", [torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, NAN])], [torch.tensor([[True], [True]]), bools(1, 0)]
    yield "addcdiv", [torch.tensor([1.0, NAN]), torch.ones(2), torch.tensor([2.0, 0.0])], [
        bools(1, 0), bools(1, 1), bools(1, 1)
    ]  # fmt: skip
    yield "atan2", [torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0])], [bools(0, 1), bools(1, 1)]
    yield "pow", [torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 3.0])], [bools(1, 1), bools(0, 1)]
    yield "reciprocal", [torch.tensor([0.0, 0.0])], [bools(0, 0)]
    yield "exp", [torch.tensor(1e30)], [torch.tensor(False)]
    yield "sqrt", [torch.zeros(0)], [torch.zeros(0) == 1]
    yield "log", [torch.tensor([-1.0, 2.0])], [bools(1, 1)]  # NaN, and truly so
    for name, count in (("rsqrt", 1), ("log", 1), ("tan", 1), ("div", 2), ("hypot", 2), ("pow", 2), ("addcdiv", 3)):
        for dtype in (torch.float32, torch.float64):
            for _ in range(2):
                rows, columns = rng.integer(1, 3), rng.integer(1, 3)
                pairs = [drawn(rng, rng.choice([1, rows]), columns, dtype=dtype) for _ in range(count)]
                operands = [torch.where(m & (x != 0), x.abs() + 0.5, x) if count < 3 else x for x, m in pairs]
                yield name, operands, [m for _, m in pairs]


@safe.wrong(
    "M21",
    "The values are right, the gradients are not. A mask on the result, or none, comes too late: the function has been at what "
    "lies under the mask, its derivative there is infinite or NaN, and 0 times that is NaN. Choose before you compute.",
)
def _(name, operands, masks):
    import functools

    import torch

    both = functools.reduce(torch.logical_and, masks)
    values = getattr(torch, name)(*operands)
    return torch.where(both, values, torch.zeros_like(values)) + 0, both.clone()


@safe.wrong(
    "X-9.6-1",
    "Each operand was made harmless by its own mask. Take 1 / 0 where only the numerator is missing: the result is missing, "
    "the divisor is there and is 0, and its gradient is NaN. Use the mask of the result for all of them.",
)
def _(name, operands, masks):
    import functools

    import torch

    both = functools.reduce(torch.logical_and, masks)
    harmless = [torch.where(mask, x, 1) for x, mask in zip(operands, masks, strict=True)]
    return getattr(torch, name)(*harmless), both.clone()


@safe.wrong(
    "M22",
    "The operands were multiplied by the mask. NaN times 0 is NaN, so nothing was made harmless: torch.where chooses.",
)
def _(name, operands, masks):
    import functools

    import torch

    both = functools.reduce(torch.logical_and, masks)
    return getattr(torch, name)(*[x * both + ~both for x in operands]), both.clone()


@safe.wrong(
    "X-9.6-2",
    "The gradients were cleaned by a hook that makes 0 of every NaN and infinity. A specified sqrt(0) has an infinite "
    "gradient, and whoever trains must see it: clean by the mask, not by the value.",
)
def _(name, operands, masks):
    import functools

    import torch

    for x in operands:
        x.register_hook(lambda g: torch.where(torch.isfinite(g), g, 0))
    return getattr(torch, name)(*operands), functools.reduce(torch.logical_and, masks).clone()


@safe.wrong(
    "M20",
    "No gradient arrives at all: the operands were detached, or the work was done under no_grad. None is not 0, and the "
    "optimiser skips such a parameter.",
)
def _(name, operands, masks):
    import functools

    import torch

    both = functools.reduce(torch.logical_and, masks)
    return getattr(torch, name)(*[torch.where(both, x.detach(), 1) for x in operands]), both.clone()


@safe.wrong(
    "X-9.6-3",
    "The result counts as there where any operand is. A function of something missing is missing: all have to be there.",
)
def _(name, operands, masks):
    import functools

    import torch

    some = functools.reduce(torch.logical_or, masks)
    return getattr(torch, name)(*[torch.where(some, x, 1) for x in operands]), some.clone()


@safe.wrong(
    "X-9.6-4",
    "NaN and infinity were swept out of the operands, by their value. What hurts need not be either: the root of -1, a division "
    "by 0. And a NaN that is there has to stay. Choose by the mask.",
)
def _(name, operands, masks):
    import functools

    import torch

    swept = [torch.nan_to_num(x, nan=1.0, posinf=1.0, neginf=1.0) for x in operands]
    return getattr(torch, name)(*swept), functools.reduce(torch.logical_and, masks).clone()


@safe.right
def _(name, operands, masks):
    import torch

    mask = torch.stack(torch.broadcast_tensors(*masks)).all(0)
    one = torch.ones((), dtype=operands[0].dtype, device=mask.device)
    first = torch.where(mask, operands[0], one)
    second = torch.where(mask, operands[1], one) if len(operands) > 1 else None
    third = torch.where(mask, operands[2], one) if len(operands) > 2 else None
    harmless = [each for each in (first, second, third) if each is not None]
    return getattr(torch, name)(*harmless), mask


@safe.right
def _(name, operands, masks):
    import torch

    mask = torch.stack(torch.broadcast_tensors(*masks)).all(0)
    wide = torch.stack(torch.broadcast_tensors(*operands, mask.to(operands[0].dtype))[:-1])
    wide = wide.masked_fill(~mask, 1)
    return getattr(torch, name)(*wide.unbind()), mask


# ---- 9.7 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.7",
    points=5,
    minutes=25,
    stars=4,
    homework=True,
    concepts=["O-16", "V-05"],
    properties=[same_sharing, device_agnostic, no_loops],
    forbidden=READY_MADE,
    visible=9,
    tolerance=(1e-4, 1e-5),
    hints=[
        "relu is elementwise. A product of matrices is a sum of products: what is missing is left out of the sum, 0. log_softmax "
        "is a softmax over those that are there: the others take no weight.",
        "For matmul, an element is there if some term has both factors: multiply the masks as numbers and ask > 0. For "
        "log_softmax fill with -inf, and nothing larger will do. A row of which nothing is there becomes NaN, under the mask.",
        "relu: torch.relu(torch.where(mask, x, 0)), mask; matmul: torch.where(mask, x, 0) @ torch.where(y_mask, y, 0), "
        "(mask.to(x.dtype) @ ___) > 0; log_softmax: "
        "torch.where(mask, x, ___).log_softmax(-1), mask",
    ],
)
def layer(name, x, mask, y, y_mask):
    if name == "relu":
        return torch.relu(torch.where(mask, x, 0)), mask.clone()
    if name == "matmul":
        terms = mask.to(x.dtype) @ y_mask.to(x.dtype)
        return torch.where(mask, x, 0) @ torch.where(y_mask, y, 0), terms > 0
    return torch.where(mask, x, -math.inf).log_softmax(-1), mask.clone()


@layer.call
def _(layer, name, x, mask, y, y_mask):
    import torch

    leaves = [t.clone().requires_grad_() for t in (x, y) if t is not None]
    result = layer(name, leaves[0], mask, leaves[-1] if len(leaves) > 1 else None, y_mask)
    pair = isinstance(result, (list, tuple)) and len(result) == 2 and all(isinstance(t, torch.Tensor) for t in result)
    if not pair or result[1].dtype != torch.bool or result[0].shape != result[1].shape:
        return [result]
    values, there = result
    loss = torch.where(there, values, 0).square().sum()
    if loss.requires_grad:
        loss.backward()
    return [values.detach(), there, [leaf.grad for leaf in leaves]]


@layer.facts
def _(result, name, x, mask, y, y_mask):
    import torch

    three = isinstance(result, (list, tuple)) and len(result) == 3
    facts = {"a pair of tensors of one shape": three or (result[0] if isinstance(result, list) and result else result)}
    names = ("which are specified", "the values there", "gradients")
    if not three or not all(isinstance(t, torch.Tensor) for t in result[:2]):
        return facts | dict.fromkeys(names, False)
    values, there, grads = result
    fits = there.dtype == torch.bool and values.shape == there.shape
    shown = torch.where(there, values, torch.zeros((), dtype=values.dtype)) if fits else values
    return facts | dict(zip(names, (there, shown, grads), strict=True))


@layer.cases
def _(rng):
    row = torch.tensor([[1.0, 2.0, NAN], [INF, NAN, 1e30]])
    there = torch.tensor([[1, 1, 0], [0, 0, 0]]) == 1
    yield "relu", torch.tensor([-2.0, 3.0, NAN]), bools(1, 1, 0), None, None
    yield "log_softmax", row, there, None, None
    yield "log_softmax", torch.tensor([[1000.0, -1000.0, NAN]]), torch.tensor([[True, True, False]]), None, None
    yield (
        "matmul",
        torch.tensor([[1.0, NAN], [3.0, 4.0]]),
        torch.tensor([[1, 0], [1, 1]]) == 1,
        torch.tensor([[2.0], [5.0]]),
        torch.ones(2, 1) == 1,
    )
    yield (
        "matmul",
        torch.tensor([[1.0, NAN]]),
        torch.tensor([[True, False]]),
        torch.tensor([[NAN, 1.0], [3.0, INF]]),
        torch.tensor([[False, True], [True, False]]),
    )
    yield "matmul", torch.tensor([[2.0, -2.0]]), torch.tensor([[True, True]]), torch.ones(2, 1), torch.ones(2, 1) == 1
    yield "log_softmax", torch.tensor([[-3e9, -3e9, 0.0]]), torch.tensor([[True, True, False]]), None, None
    yield "relu", torch.tensor([[0.0, -INF]]), torch.tensor([[True, False]]), None, None
    yield "log_softmax", torch.tensor([[5.0, NAN], [0.0, 0.0]]), torch.tensor([[1, 0], [1, 1]]) == 1, None, None
    yield "matmul", torch.zeros(0, 2), torch.zeros(0, 2) == 1, torch.ones(2, 3), torch.ones(2, 3) == 1
    for dtype in (torch.float32, torch.float64):
        for _ in range(4):
            n, k, m = rng.integer(1, 4), rng.integer(1, 5), rng.integer(1, 3)
            yield "matmul", *drawn(rng, n, k, dtype=dtype), *drawn(rng, k, m, dtype=dtype)
            yield "log_softmax", *drawn(rng, n, k, dtype=dtype), None, None
            yield "relu", *drawn(rng, n, k, dtype=dtype), None, None


@layer.wrong(
    "M24",
    "What is missing entered the log_softmax as 0, and exp(0) = 1 is a weight like any other. Fill with -inf, whose "
    "exponential is 0.",
)
def _(name, x, mask, y, y_mask):
    import torch

    if name == "relu":
        return torch.relu(torch.where(mask, x, 0)), mask.clone()
    if name == "matmul":
        return torch.where(mask, x, 0) @ torch.where(y_mask, y, 0), (mask.to(x.dtype) @ y_mask.to(x.dtype)) > 0
    return torch.where(mask, x, 0).log_softmax(-1), mask.clone()


@layer.wrong(
    "X-9.7-1",
    "The logarithm of the mask was added: minus infinity where nothing is there. But NaN plus that is NaN, infinity plus that "
    "too, and one of them spoils the whole row. Choose with torch.where.",
)
def _(name, x, mask, y, y_mask):
    import torch

    if name == "relu":
        return torch.relu(torch.where(mask, x, 0)), mask.clone()
    if name == "matmul":
        return torch.where(mask, x, 0) @ torch.where(y_mask, y, 0), (mask.to(x.dtype) @ y_mask.to(x.dtype)) > 0
    return (x + mask.to(x.dtype).log()).log_softmax(-1), mask.clone()


@layer.wrong(
    "X-9.7-2",
    "-1e9 is no minus infinity: where the specified scores are lower still, what is missing takes all the weight. Use -inf.",
)
def _(name, x, mask, y, y_mask):
    import torch

    if name == "relu":
        return torch.relu(torch.where(mask, x, 0)), mask.clone()
    if name == "matmul":
        return torch.where(mask, x, 0) @ torch.where(y_mask, y, 0), (mask.to(x.dtype) @ y_mask.to(x.dtype)) > 0
    return torch.where(mask, x, -1e9).log_softmax(-1), mask.clone()


@layer.wrong(
    "X-9.7-3",
    "An element of the product counts as there only if all its terms do. The sum leaves out what is missing, so one whole "
    "term is enough: > 0, not == k.",
)
def _(name, x, mask, y, y_mask):
    import torch

    if name == "relu":
        return torch.relu(torch.where(mask, x, 0)), mask.clone()
    if name == "matmul":
        every = (mask.to(x.dtype) @ y_mask.to(x.dtype)) == x.shape[-1]
        return torch.where(mask, x, 0) @ torch.where(y_mask, y, 0), every
    return torch.where(mask, x, float("-inf")).log_softmax(-1), mask.clone()


@layer.wrong(
    "X-9.7-4",
    "Whether an element of the product is there was read off its value. 2 - 2 = 0 is a sum like any other: multiply the "
    "masks instead.",
)
def _(name, x, mask, y, y_mask):
    import torch

    if name == "relu":
        return torch.relu(torch.where(mask, x, 0)), mask.clone()
    if name == "matmul":
        product = torch.where(mask, x, 0) @ torch.where(y_mask, y, 0)
        return product, product != 0
    return torch.where(mask, x, float("-inf")).log_softmax(-1), mask.clone()


@layer.wrong(
    "M22",
    "The factors were multiplied by their masks: NaN times 0 is NaN, and one of them spoils a whole row of the product. "
    "Choose with torch.where.",
)
def _(name, x, mask, y, y_mask):
    import torch

    if name == "relu":
        return torch.relu(torch.where(mask, x, 0)), mask.clone()
    if name == "matmul":
        return (x * mask) @ (y * y_mask), (mask.to(x.dtype) @ y_mask.to(x.dtype)) > 0
    return torch.where(mask, x, float("-inf")).log_softmax(-1), mask.clone()


@layer.wrong(
    "M14",
    "log_softmax runs along the first dimension here. Each row is one set of scores: the last dimension, -1, is the one that "
    "is summed over.",
)
def _(name, x, mask, y, y_mask):
    import torch

    if name == "relu":
        return torch.relu(torch.where(mask, x, 0)), mask.clone()
    if name == "matmul":
        return torch.where(mask, x, 0) @ torch.where(y_mask, y, 0), (mask.to(x.dtype) @ y_mask.to(x.dtype)) > 0
    return torch.where(mask, x, float("-inf")).log_softmax(0), mask.clone()


@layer.right
def _(name, x, mask, y, y_mask):
    import torch

    clean = x.masked_fill(~mask, 0)
    if name == "relu":
        return clean.clamp(min=0) * (clean > 0), mask & True
    if name == "matmul":
        terms = clean[:, :, None] * y.masked_fill(~y_mask, 0)[None]
        return terms.sum(1), (mask[:, :, None] & y_mask[None]).any(1)
    top = x.detach().masked_fill(~mask, float("-inf")).amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    weights = torch.where(mask, (torch.where(mask, x, top) - top).exp(), 0).sum(-1, keepdim=True)
    return clean - top - torch.where(mask.any(-1, keepdim=True), weights, 1).log(), mask & True


@layer.right
def _(name, x, mask, y, y_mask):
    import torch

    if name == "relu":
        return torch.where(mask & (x > 0), x, 0), torch.clone(mask)
    if name == "matmul":
        there = torch.einsum("nk,km->nm", mask.double(), y_mask.double()).bool()
        left, right = torch.where(mask, x, 0), torch.where(y_mask, y, 0)
        return torch.einsum("nk,km->nm", left, right), there
    empty = ~mask.any(-1, keepdim=True)
    scores = x.masked_fill(~mask, float("-inf")).masked_fill(empty, 0)
    return torch.log_softmax(scores, dim=-1).masked_fill(~mask, 0), torch.clone(mask)


# ---- 9.8 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.8",
    points=5,
    minutes=25,
    stars=4,
    homework=True,
    concepts=["O-03"],
    forbidden=READY_MADE,
    visible=9,
    hints=[
        "A registry is a dict from torch's functions to yours. implements fills it; dispatch looks it up, after it has asked "
        "whether all operands are ours, and says no in the right way when they are not or when there is no rule.",
        "implements(*functions) returns a decorator, and a decorator returns the rule. dispatch: a class in types that is no "
        "subclass of owner makes `return NotImplemented`, so that torch asks the other class; a function without a rule makes "
        "`raise NotImplementedError(...)` with its name.",
        "def label(rule): for function in functions: self.rules[function] = ___; return ___. And dispatch: if not "
        "all(issubclass(t, ___) for t in types): return ___; if func not in self.rules: raise ___(...); return "
        "self.rules[func](*args, **kwargs)",
    ],
)
class Registry:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(issubclass(t, owner) for t in types):
            return NotImplemented
        if func not in self.rules:
            raise NotImplementedError(f"{owner.__name__} has no rule for {torch.overrides.resolve_name(func) or func}")
        return self.rules[func](*args, **kwargs)


@Registry.call
def _(Registry, what, data, mask):
    import torch

    registry, other = Registry(), Registry()

    class Pair:
        def __init__(self, data, mask):
            self.data, self.mask = data, mask

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return registry.dispatch(cls, func, types, args, kwargs or {})

    class Child(Pair):
        pass

    class Stranger:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return Pair(data * 3, mask)

    @registry.implements(torch.abs, torch.absolute)
    def size(m):
        return Pair(torch.abs(m.data), m.mask)

    @registry.implements(torch.add)
    def plus(a, b, *, alpha=1):
        b, b_mask = (b.data, b.mask) if isinstance(b, Pair) else (b, torch.ones_like(a.mask))
        return Pair(torch.add(a.data, b, alpha=alpha), a.mask & b_mask)

    @registry.implements(torch.sum)
    def total(m, dim=None, keepdim=False):
        return Pair(torch.where(m.mask, m.data, 0).sum(dim, keepdim), m.mask.any(dim, keepdim))

    @other.implements(torch.abs, torch.neg)
    def wild(m):
        return Pair(m.data * 100, ~m.mask)

    m = Pair(data, mask)
    calls = {
        "torch.abs(m)": lambda: torch.abs(m),
        "torch.absolute(m)": lambda: torch.absolute(m),
        "torch.add(m, m, alpha=2)": lambda: torch.add(m, m, alpha=2),
        "torch.add(m, data)": lambda: torch.add(m, data),
        "torch.sum(m, 0, keepdim=True)": lambda: torch.sum(m, 0, keepdim=True),
        "torch.cumsum(m, 0)": lambda: torch.cumsum(m, 0),
        "torch.neg(m)": lambda: torch.neg(m),
        "torch.add(m, stranger)": lambda: torch.add(m, Stranger()),
        "torch.cumsum(child, 0)": lambda: torch.cumsum(Child(data, mask), 0),
        "torch.add(m, child)": lambda: torch.add(m, Child(data, mask)),
        "size(m)": lambda: size(m),
        "torch.abs(child)": lambda: torch.abs(Child(data, mask)),
    }
    result = calls[what]()
    return [result.data, result.mask] if isinstance(result, Pair) else [result]


Registry.facts(told)


@Registry.cases
def _(rng):
    data, mask = torch.tensor([1.0, -2.0, NAN]), bools(1, 1, 0)
    calls = (
        "torch.abs(m)",
        "torch.absolute(m)",
        "torch.add(m, m, alpha=2)",
        "torch.sum(m, 0, keepdim=True)",
        "torch.cumsum(m, 0)",
        "torch.add(m, stranger)",
        "torch.add(m, child)",
        "size(m)",
        "torch.neg(m)",
        "torch.add(m, data)",
        "torch.abs(child)",
        "torch.cumsum(child, 0)",
    )
    for what in calls:
        yield what, data, mask
    for what in calls:
        yield what, *drawn(rng, rng.integer(2, 4), rng.integer(1, 3))


@Registry.wrong(
    "M29",
    "A function without a rule was run on the plain data. What comes out has lost its mask and is made of whatever lies "
    "under it, and nobody was told. Refuse by name: raise NotImplementedError.",
)
class FallsThrough:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(issubclass(t, owner) for t in types):
            return NotImplemented
        if func not in self.rules:
            args = [arg.data if isinstance(arg, owner) else arg for arg in args]
            return func(*args, **kwargs)
        return self.rules[func](*args, **kwargs)


@Registry.wrong(
    "X-9.8-1",
    'NotImplemented and NotImplementedError are two things. The first, returned, means "not me, ask the other class"; if '
    "nobody is left, torch raises a TypeError of its own. For a function without a rule raise NotImplementedError.",
)
class ReturnsForUnknown:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if func not in self.rules or not all(issubclass(t, owner) for t in types):
            return NotImplemented
        return self.rules[func](*args, **kwargs)


@Registry.wrong(
    "X-9.8-2",
    "The registry answers for classes it does not know. If types holds a stranger, return NotImplemented: then torch asks the "
    "stranger, who may know both.",
)
class AnswersForAll:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if func not in self.rules:
            raise NotImplementedError(f"no rule for {func}")
        return self.rules[func](*args, **kwargs)


@Registry.wrong(
    "X-9.8-3",
    "All registries share one dict: it stands in the class body, which runs once. Make it in __init__, for each object.",
)
class SharesRules:
    rules = {}  # noqa: RUF012

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(issubclass(t, owner) for t in types):
            return NotImplemented
        if func not in self.rules:
            raise NotImplementedError(f"no rule for {func}")
        return self.rules[func](*args, **kwargs)


@Registry.wrong(
    "X-9.8-4",
    "Only the first of the functions got the rule. torch has many names for one thing (abs, absolute), so implements takes "
    "several: enter the rule under each.",
)
class FirstOnly:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules[functions[0]] = rule
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(issubclass(t, owner) for t in types):
            return NotImplemented
        if func not in self.rules:
            raise NotImplementedError(f"no rule for {func}")
        return self.rules[func](*args, **kwargs)


@Registry.wrong(
    "X-9.8-5",
    "The decorator returned nothing, so the name of the rule is now None. A decorator's result takes the place of the "
    "function: return the rule.",
)
class EatsRules:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(issubclass(t, owner) for t in types):
            return NotImplemented
        if func not in self.rules:
            raise NotImplementedError(f"no rule for {func}")
        return self.rules[func](*args, **kwargs)


@Registry.wrong(
    "X-9.8-6",
    "What was given by keyword got lost on the way: keepdim=True, alpha=2. Hand on **kwargs as well as *args.",
)
class DropsKeywords:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(issubclass(t, owner) for t in types):
            return NotImplemented
        if func not in self.rules:
            raise NotImplementedError(f"no rule for {func}")
        return self.rules[func](*args)


@Registry.wrong(
    "X-9.8-7",
    "Subclasses of owner are sent away, and so is their mixture with it. A child of MiniMask is a MiniMask: ask with "
    "issubclass, not with ==.",
)
class NoChildren:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(t == owner for t in types):
            return NotImplemented
        if func not in self.rules:
            raise NotImplementedError(f"no rule for {func}")
        return self.rules[func](*args, **kwargs)


@Registry.wrong(
    "X-9.8-8",
    "A KeyError came out of the dict. It tells a user of your class nothing: they wrote torch.neg(m), and know of no dict. Ask "
    "first whether there is a rule, and raise NotImplementedError with the name of the function.",
)
class RaisesKeyError:
    def __init__(self):
        self.rules = {}

    def implements(self, *functions):
        def label(rule):
            self.rules.update(dict.fromkeys(functions, rule))
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if not all(issubclass(t, owner) for t in types):
            return NotImplemented
        return self.rules[func](*args, **kwargs)


@Registry.right
class AsList:
    def __init__(self):
        self.entries = []

    def implements(self, *functions):
        def label(rule):
            self.entries += [(function, rule) for function in functions]
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        for each in types:
            if not issubclass(each, owner):
                return NotImplemented
        for function, rule in reversed(self.entries):
            if function is func:
                return rule(*args, **kwargs)
        raise NotImplementedError(f"no rule for {getattr(func, '__name__', func)}")


@Registry.right
class AsDict(dict):
    def implements(self, *functions):
        def label(rule):
            for function in functions:
                self[function] = rule
            return rule

        return label

    def dispatch(self, owner, func, types, args, kwargs):
        if any(not issubclass(each, owner) for each in types):
            return NotImplemented
        try:
            rule = self[func]
        except KeyError:
            raise NotImplementedError(f"{owner.__name__} cannot do {func.__name__}") from None
        return rule(*args, **kwargs)


# ---- 9.9 ------------------------------------------------------------------------------------------------------------


@exercise(
    "9.9",
    points=6,
    minutes=40,
    stars=5,
    homework=True,
    concepts=["S-03", "S-06", "S-07", "S-08"],
    properties=[never_calls("to_dense", "to_sparse"), copy_budget(4096)],
    forbidden=READY_MADE,
    visible=9,
    tolerance=TOL,
    hints=[
        "Three tasks, one idea: compute on the stored values alone. A place (i, j) becomes one number, i * columns + j: then "
        "places can be compared, and results of a row can be added up.",
        "a.coalesce(), then .indices() and .values(). For two operands: torch.isin(keys of a, keys of b) and the other way "
        "round choose the common places, in one order. For reductions: drop the row of the indices that belongs to dim, make "
        'keys of the others, and torch.zeros(n).scatter_reduce_(0, keys, values, "sum" or "amax", include_self=False); '
        "which keys occur says what is defined.",
        "keys = torch.zeros(places.shape[1], dtype=torch.int64, device=places.device); for row, n in zip(places, shape): keys "
        "= keys * ___ + row. Two operands: left, right = torch.isin(ka, kb), torch.isin(___, ___); torch.sparse_coo_tensor("
        "pa[:, left], function(va[left], vb[___]), a.shape). Defined: torch.zeros(n, dtype=torch.bool).index_fill_(0, keys, "
        "True).view(shape)",
    ],
)
def coo_rule(name, a, b, dim):
    def keys(places, shape):
        key = torch.zeros(places.shape[1], dtype=torch.int64, device=places.device)
        for row, n in zip(places, shape, strict=True):
            key = key * n + row
        return key

    a = a.coalesce()
    places, values = a.indices(), a.values()
    if dim is not None:
        rest = [d for d in range(a.dim()) if d != dim % a.dim()]
        shape = [a.shape[d] for d in rest]
        key = keys(places[rest], shape)
        value = torch.zeros(math.prod(shape), dtype=values.dtype, device=values.device)
        defined = torch.zeros(math.prod(shape), dtype=torch.bool, device=values.device).index_fill_(0, key, True)
        value.scatter_reduce_(0, key, values, name, include_self=False)
        return value.view(shape), defined.view(shape)
    function = getattr(torch, name)
    if b is None:
        return torch.sparse_coo_tensor(places, function(values), a.shape)
    b = b.coalesce()
    left, right = keys(places, a.shape), keys(b.indices(), b.shape)
    here, there = torch.isin(left, right), torch.isin(right, left)
    return torch.sparse_coo_tensor(places[:, here], function(values[here], b.values()[there]), a.shape)


@coo_rule.facts
def _(result, name, a, b, dim):
    import torch

    if dim is not None:
        pair = isinstance(result, (list, tuple)) and len(result) == 2
        pair = pair and all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in result)
        facts = {"a pair of dense tensors": pair or result, "which are specified": False, "the values there": False}
        if not pair:
            return facts
        values, mask = result
        fits = mask.dtype == torch.bool and values.shape == mask.shape
        there = torch.where(mask, values, torch.zeros((), dtype=values.dtype)) if fits else values
        return facts | {"which are specified": mask, "the values there": there}
    coo = isinstance(result, torch.Tensor) and result.layout == torch.sparse_coo
    facts = {"a COO tensor": coo or result, "its shape": None, "places, in order": None, "values there": None}
    if not coo or result.dim() != a.dim() or result.sparse_dim() != a.dim():
        return facts
    places, values = result._indices(), result._values()
    if places.shape[1] > 10_000:
        return facts
    order = sorted(range(places.shape[1]), key=lambda i: tuple(places[:, i].tolist()))
    shown = [list(result.shape), places[:, order], values[order]]
    return facts | dict(zip(("its shape", "places, in order", "values there"), shown, strict=True))


def coo(places, values, *shape):
    """A sparse COO tensor as it is written down: duplicates and zeros stay."""
    places = torch.as_tensor(places, dtype=torch.int64)
    return torch.sparse_coo_tensor(places, torch.as_tensor(values), shape, check_invariants=True)


@coo_rule.cases
def _(rng):
    a = coo([[0, 0, 1], [0, 2, 1]], [4.0, 0.0, 9.0], 2, 3).coalesce()
    b = coo([[0, 1, 1], [2, 1, 2]], [5.0, -1.0, 7.0], 2, 3).coalesce()
    twice = coo([[1, 0, 1], [0, 1, 0]], [3.0, -4.0, 6.0], 2, 2)
    wide = 2000  # dense it would take 16 MB
    yield "cos", a, None, None
    yield "add", a, b, None
    yield "sum", a, None, 1
    yield "amax", coo([[0, 1], [1, 1]], [-3.0, -2.0], 2, 3).coalesce(), None, 0
    yield "square", twice, None, None
    yield "mul", twice, coo([[1], [0]], [2.0], 2, 2).coalesce(), None
    yield "sum", twice, None, -1
    yield "add", *[coo([[7, 1999], [5, at]], [1.0, 2.0], wide, wide).coalesce() for at in (0, 1)], None
    yield "amax", coo([[0, 2, 0], [9, 1, 1500]], [1.0, NAN, -5.0], 3, wide), None, 1
    yield "div", coo([[2, 0, 5]], [1.0, 0.0, 6.0], 6), coo([[5, 0]], [4.0, 0.0], 6), None
    yield "sum", coo([[3, 3]], [1.0, -1.0], 4), None, 0
    yield "exp", coo([[], []], torch.zeros(0), 2, 2).to(torch.float64), None, None
    yield "mul", coo([[0], [1]], [2.0], 2, 2), coo([[1], [0]], [2.0], 2, 2), None
    yield "sum", coo([[0, 1], [1, 0], [1, 1]], [2.0, 3.0], 2, 2, 2), None, 1
    yield "neg", coo([[1, 0]], [5, 3], 2), None, None

    def entries(*shape):
        n = rng.integer(1, 8)
        rows = torch.stack([rng.integers(n, low=0, high=size - 1) for size in shape])
        made = coo(rows, rng.normal(n), *shape)
        if rng.choice([True, False]):
            return made
        made = made.coalesce()  # in memory that was made for the duplicates, too, with whatever lies there
        parts = made.indices().clone(), made.values().clone()
        return torch.sparse_coo_tensor(*parts, shape, is_coalesced=True, check_invariants=True)

    for _ in range(8):
        rows, columns = rng.integer(1, 4), rng.integer(1, 4)
        yield rng.choice(["exp", "sin", "square"]), entries(rows, columns), None, None
        yield rng.choice(["add", "mul", "maximum"]), entries(rows, columns), entries(rows, columns), None
        yield rng.choice(["sum", "amax"]), entries(rows, columns), None, rng.integer(-2, 1)


@coo_rule.wrong(
    "M26",
    "Places that are named twice were taken one by one. A COO tensor with duplicates stands for their sum, and the square of "
    "a sum is no sum of squares: coalesce first.",
    sample="wrong_duplicates",
)
def _(name, a, b, dim):
    import math

    import torch

    def keys(places, shape):
        key = torch.zeros(places.shape[1], dtype=torch.int64)
        for row, n in zip(places, shape, strict=True):
            key = key * n + row
        return key

    places, values = a._indices(), a._values()
    if dim is not None:
        rest = [d for d in range(a.dim()) if d != dim % a.dim()]
        shape = [a.shape[d] for d in rest]
        key = keys(places[rest], shape)
        value = torch.zeros(math.prod(shape), dtype=values.dtype)
        defined = torch.zeros(math.prod(shape), dtype=torch.bool).index_fill_(0, key, True)
        value.scatter_reduce_(0, key, values, name, include_self=False)
        return value.view(shape), defined.view(shape)
    if b is None:
        return torch.sparse_coo_tensor(places, getattr(torch, name)(values), a.shape)
    a, b = a.coalesce(), b.coalesce()
    left, right = keys(a.indices(), a.shape), keys(b.indices(), b.shape)
    here, there = torch.isin(left, right), torch.isin(right, left)
    values = getattr(torch, name)(a.values()[here], b.values()[there])
    return torch.sparse_coo_tensor(a.indices()[:, here], values, a.shape)


@coo_rule.wrong(
    "M24",
    "What is not stored counts as 0 here: torch's own add of two sparse tensors joins the places of both. Here not stored "
    "means not there, so only common places stay.",
)
def _(name, a, b, dim):
    import math

    import torch

    def keys(places, shape):
        key = torch.zeros(places.shape[1], dtype=torch.int64)
        for row, n in zip(places, shape, strict=True):
            key = key * n + row
        return key

    a = a.coalesce()
    places, values = a.indices(), a.values()
    if dim is not None:
        rest = [d for d in range(a.dim()) if d != dim % a.dim()]
        shape = [a.shape[d] for d in rest]
        key = keys(places[rest], shape)
        value = torch.zeros(math.prod(shape), dtype=values.dtype)
        defined = torch.zeros(math.prod(shape), dtype=torch.bool).index_fill_(0, key, True)
        value.scatter_reduce_(0, key, values, name, include_self=False)
        return value.view(shape), defined.view(shape)
    if b is None:
        return torch.sparse_coo_tensor(places, getattr(torch, name)(values), a.shape)
    if name in ("add", "mul"):
        return getattr(torch, name)(a, b.coalesce())
    b = b.coalesce()
    left, right = keys(places, a.shape), keys(b.indices(), b.shape)
    every = torch.cat([left, right]).unique()
    both = torch.zeros(2, len(every), dtype=values.dtype)
    both[0, torch.searchsorted(every, left)] = values
    both[1, torch.searchsorted(every, right)] = b.values()
    at = torch.stack([every // math.prod(a.shape[1:]), every % math.prod(a.shape[1:])][: a.dim()])
    return torch.sparse_coo_tensor(at, getattr(torch, name)(*both), a.shape)


@coo_rule.wrong(
    "X-9.9-1",
    "A stored zero was dropped. It is a value like any other, and its cosine is 1: whether an element is there is told by "
    "the places, never by the values.",
)
def _(name, a, b, dim):
    import math

    import torch

    def keys(places, shape):
        key = torch.zeros(places.shape[1], dtype=torch.int64)
        for row, n in zip(places, shape, strict=True):
            key = key * n + row
        return key

    def kept(t):
        t = t.coalesce()
        return t.indices()[:, t.values() != 0], t.values()[t.values() != 0]

    places, values = kept(a)
    if dim is not None:
        rest = [d for d in range(a.dim()) if d != dim % a.dim()]
        shape = [a.shape[d] for d in rest]
        key = keys(places[rest], shape)
        value = torch.zeros(math.prod(shape), dtype=values.dtype)
        defined = torch.zeros(math.prod(shape), dtype=torch.bool).index_fill_(0, key, True)
        value.scatter_reduce_(0, key, values, name, include_self=False)
        return value.view(shape), defined.view(shape)
    if b is None:
        return torch.sparse_coo_tensor(places, getattr(torch, name)(values), a.shape)
    b_places, b_values = kept(b)
    left, right = keys(places, a.shape), keys(b_places, b.shape)
    here, there = torch.isin(left, right), torch.isin(right, left)
    return torch.sparse_coo_tensor(places[:, here], getattr(torch, name)(values[here], b_values[there]), a.shape)


@coo_rule.wrong(
    "M25",
    "On the way everything was made dense. The right numbers, as long as they fit into memory; a table of three million by three "
    "million does not. Compute on the stored values.",
)
def _(name, a, b, dim):
    import torch

    def dense(t):
        t = t.coalesce()
        there = torch.sparse_coo_tensor(t.indices(), torch.ones_like(t.values(), dtype=torch.bool), t.shape)
        return t.to_dense(), there.to_dense()

    values, mask = dense(a)
    if dim is not None:
        low = 0 if name == "sum" else float("-inf")
        filled = torch.where(mask, values, low)
        return getattr(filled, name)(dim), mask.any(dim)
    if b is not None:
        other, other_mask = dense(b)
        values, mask = getattr(torch, name)(values, other), mask & other_mask
    else:
        values = getattr(torch, name)(values)
    return torch.sparse_coo_tensor(mask.nonzero().t(), values[mask], a.shape)


@coo_rule.wrong(
    "X-9.9-2",
    "The two lists of values were paired in the order in which they are stored, without a look at the places. Entries belong "
    "together if they stand at one place.",
)
def _(name, a, b, dim):
    import math

    import torch

    a = a.coalesce()
    places, values = a.indices(), a.values()
    if dim is not None:
        rest = [d for d in range(a.dim()) if d != dim % a.dim()]
        shape = [a.shape[d] for d in rest]
        key = torch.zeros(places.shape[1], dtype=torch.int64)
        for row, n in zip(places[rest], shape, strict=True):
            key = key * n + row
        value = torch.zeros(math.prod(shape), dtype=values.dtype)
        defined = torch.zeros(math.prod(shape), dtype=torch.bool).index_fill_(0, key, True)
        value.scatter_reduce_(0, key, values, name, include_self=False)
        return value.view(shape), defined.view(shape)
    if b is None:
        return torch.sparse_coo_tensor(places, getattr(torch, name)(values), a.shape)
    n = min(len(values), len(b.coalesce().values()))
    return torch.sparse_coo_tensor(places[:, :n], getattr(torch, name)(values[:n], b.coalesce().values()[:n]), a.shape)


@coo_rule.wrong(
    "X-9.9-3",
    "amax began at 0, so among negative numbers a 0 wins that nobody stored. scatter_reduce_ has include_self=False for that.",
)
def _(name, a, b, dim):
    import math

    import torch

    def keys(places, shape):
        key = torch.zeros(places.shape[1], dtype=torch.int64)
        for row, n in zip(places, shape, strict=True):
            key = key * n + row
        return key

    a = a.coalesce()
    places, values = a.indices(), a.values()
    if dim is not None:
        rest = [d for d in range(a.dim()) if d != dim % a.dim()]
        shape = [a.shape[d] for d in rest]
        key = keys(places[rest], shape)
        value = torch.zeros(math.prod(shape), dtype=values.dtype)
        defined = torch.zeros(math.prod(shape), dtype=torch.bool).index_fill_(0, key, True)
        value.scatter_reduce_(0, key, values, name)
        return value.view(shape), defined.view(shape)
    if b is None:
        return torch.sparse_coo_tensor(places, getattr(torch, name)(values), a.shape)
    b = b.coalesce()
    left, right = keys(places, a.shape), keys(b.indices(), b.shape)
    here, there = torch.isin(left, right), torch.isin(right, left)
    return torch.sparse_coo_tensor(places[:, here], getattr(torch, name)(values[here], b.values()[there]), a.shape)


@coo_rule.wrong(
    "X-9.9-4",
    "Everything counts as defined. A row without a stored entry has no sum, and no largest element either.",
)
def _(name, a, b, dim):
    import math

    import torch

    def keys(places, shape):
        key = torch.zeros(places.shape[1], dtype=torch.int64)
        for row, n in zip(places, shape, strict=True):
            key = key * n + row
        return key

    a = a.coalesce()
    places, values = a.indices(), a.values()
    if dim is not None:
        rest = [d for d in range(a.dim()) if d != dim % a.dim()]
        shape = [a.shape[d] for d in rest]
        value = torch.zeros(math.prod(shape), dtype=values.dtype)
        value.scatter_reduce_(0, keys(places[rest], shape), values, name, include_self=False)
        return value.view(shape), torch.ones(shape, dtype=torch.bool)
    if b is None:
        return torch.sparse_coo_tensor(places, getattr(torch, name)(values), a.shape)
    b = b.coalesce()
    left, right = keys(places, a.shape), keys(b.indices(), b.shape)
    here, there = torch.isin(left, right), torch.isin(right, left)
    return torch.sparse_coo_tensor(places[:, here], getattr(torch, name)(values[here], b.values()[there]), a.shape)


@coo_rule.right
def _(name, a, b, dim):
    import torch

    a = a.coalesce()
    at, values = a.indices(), a.values()
    if dim is None and b is None:
        return torch.sparse_coo_tensor(at, getattr(torch, name)(values), a.shape).coalesce()
    if dim is None:
        b = b.coalesce()
        both = torch.cat([at, b.indices()], 1)
        places, group, counts = both.unique(dim=1, return_inverse=True, return_counts=True)
        mine, theirs = group[: at.shape[1]], group[at.shape[1] :]
        first = torch.zeros(places.shape[1], dtype=values.dtype, device=values.device).index_copy(0, mine, values)
        second = torch.zeros(places.shape[1], dtype=values.dtype, device=values.device).index_copy(
            0, theirs, b.values()
        )
        common = counts == 2
        return torch.sparse_coo_tensor(places[:, common], getattr(torch, name)(first[common], second[common]), a.shape)
    dim = dim % a.dim()
    shape = a.shape[:dim] + a.shape[dim + 1 :]
    index = tuple(at[d] for d in range(a.dim()) if d != dim)
    if not index:
        value = getattr(values, name)(0) if len(values) else torch.zeros((), dtype=values.dtype, device=values.device)
        return value, torch.tensor(len(values) > 0, device=values.device)
    defined = torch.zeros(shape, dtype=torch.bool, device=values.device)
    defined[index] = True
    value = torch.zeros(shape, dtype=values.dtype, device=values.device)
    if name == "sum":
        return value.index_put_(index, values, accumulate=True), defined
    order = values.nan_to_num(nan=float("inf")).argsort(stable=True)
    for i in order.tolist():
        value[tuple(row[i] for row in index)] = values[i]
    return value, defined


@coo_rule.right
def _(name, a, b, dim):
    import math

    import torch

    def flat(places, shape):
        sizes = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        weights = torch.tensor(sizes, dtype=torch.int64, device=places.device)
        return (places * weights[:, None]).sum(0)

    a = a.coalesce()
    if dim is not None:
        kept = [d for d in range(a.dim()) if d != dim % a.dim()]
        shape = [a.shape[d] for d in kept]
        key, n = flat(a.indices()[kept], shape), math.prod(shape)
        start = torch.full((n,), 0 if name == "sum" else -math.inf, dtype=a.dtype, device=a.device)
        count = torch.zeros(n, dtype=torch.int64, device=a.device).index_add_(0, key, torch.ones_like(key))
        kind = {"sum": "sum", "amax": "amax"}[name]
        return start.scatter_reduce(0, key, a.values(), kind).view(shape), (count > 0).view(shape)
    if b is None:
        return torch.sparse_coo_tensor(a.indices(), getattr(torch, name)(a.values()), a.size(), is_coalesced=True)
    b = b.coalesce()
    left, right = flat(a.indices(), a.shape), flat(b.indices(), b.shape)
    spot = torch.searchsorted(right, left)
    found = torch.cat([right, right.new_full((1,), -1)])[spot] == left
    other = b.values()[spot[found]]
    return torch.sparse_coo_tensor(a.indices()[:, found], getattr(torch, name)(a.values()[found], other), a.shape)


# ---- 9.10 -----------------------------------------------------------------------------------------------------------


@exercise(
    "9.10",
    points=5,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["L-44", "O-01"],
    needs=["layer"],
    forbidden=READY_MADE,
    visible=5,
    tolerance=(1e-3, 1e-5),
    hints=[
        "The prediction of a row is the sum over the features that are there, plus the bias: a masked product of matrices. A "
        "row without any feature has no prediction, so it has no part in the loss.",
        'layer("matmul", x, mask, weight[:, None], all True) gives the sums and says which rows are there. '
        "torch.optim.SGD([weight, bias], lr=lr), with zero_grad before backward. with SummaryWriter(folder) as writer: "
        'writer.add_scalar("loss", loss.item(), step) closes by itself.',
        "for step in range(steps): optimiser.zero_grad(); sums, used = layer(...); error = (sums[:, 0] + bias - y)[used[:, "
        "0]]; loss = error.square().___(); loss.backward(); writer.add_scalar('loss', loss.item(), ___); optimiser.step()",
    ],
)
def fit(x, mask, y, steps, lr, folder):
    from torch.utils.tensorboard import SummaryWriter

    used = mask.any(1)
    features, targets = torch.where(mask, x, 0)[used], y[used]
    weight = torch.zeros(x.shape[1], device=x.device, requires_grad=True)
    bias = torch.zeros((), device=x.device, requires_grad=True)
    optimiser, losses = torch.optim.SGD([weight, bias], lr=lr), []
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            optimiser.zero_grad()
            loss = (features @ weight + bias - targets).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            writer.add_scalar("loss", losses[-1], step)
    missing = 100 * (~mask).sum().item() / mask.numel()
    report = f"{len(targets)} rows, {missing:.1f} % missing, loss {losses[0]:.6g} at first, {losses[-1]:.6g} at last"
    return weight.detach(), bias.detach(), report


@fit.call
def _(fit, x, mask, y, steps, lr):
    import pathlib
    import tempfile
    import threading

    def writing():
        return {thread for thread in threading.enumerate() if type(thread).__name__ == "_AsyncWriterThread"}

    with tempfile.TemporaryDirectory() as place:
        folder, runs, before = pathlib.Path(place), {}, writing()
        answer = fit(x, mask, y, steps, lr, folder)
        left_open = writing() - before
        for thread in left_open:  # it would go on writing into a folder that is gone
            thread.stop()
            thread.join()
        for path in [] if left_open else sorted(folder.rglob("*tfevents*"), key=lambda path: (len(path.name), path)):
            with path.open("rb") as file:
                runs.setdefault(path.parent.relative_to(folder).as_posix(), []).append(file.read(1 << 20))
        return {"the answer": answer, "writers left open": len(left_open), "runs": runs}


@fit.facts
def _(result, x, mask, y, steps, lr):
    import re

    import torch

    from autograder.events import runs

    answer = result["the answer"]
    triple = isinstance(answer, (list, tuple)) and len(answer) == 3
    triple = triple and all(isinstance(t, torch.Tensor) for t in answer[:2]) and isinstance(answer[2], str)
    weight, bias, report = answer if triple else (None, None, "")
    found = runs(result["runs"])
    logged = found.get(".") if isinstance(found.get("."), dict) else {"scalars": {}}
    losses = [value for _, value in logged["scalars"].get("loss", [])] or [float("nan")]
    numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?(?:e[-+]?\d{1,3})?", report[:2000])]
    near = lambda wanted, by: any(abs(n - wanted) <= by for n in numbers)
    rows, missing = int(mask.any(1).sum()), 100 * (~mask).sum().item() / mask.numel()
    return {
        "a triple (weight, bias, report)": triple or answer,
        "weight": weight,
        "bias": bias,
        "writers left open": result["writers left open"],
        "folders with runs": ", ".join(sorted(found)) or "none",
        "the scalars that were logged": logged["scalars"],
        "the report tells how many rows were used": near(rows, 0),
        "the report tells the missing percentage": near(missing, 0.06),
        "the report tells the first loss": near(losses[0], abs(losses[0]) * 0.01 + 1e-9),
        "the report tells the last loss": near(losses[-1], abs(losses[-1]) * 0.01 + 1e-9),
    }


@fit.cases
def _(rng):
    def data(rows, features, density=0.7, poison=NAN, empty=0):
        """Features with holes, of which the first `empty` rows are all hole, and targets that follow from them."""
        x, mask = rng.normal(rows, features), rng.mask(rows, features, density=density)
        mask[:empty] = False
        mask[-1, 0] = True
        y = torch.where(mask, x, 0) @ rng.normal(features) + 1.5 + rng.normal(rows) / 8
        return hidden(x, mask, poison), mask, y

    yield *data(4, 1, density=1.0), 3, 0.125
    yield *data(6, 2), 4, 0.125
    yield *data(7, 3, poison=1e30, empty=3), 5, 0.1
    yield *data(5, 2, density=0.5, poison=INF, empty=1), 1, 0.25
    yield *data(12, 3, density=0.5), 12, 0.1
    for poison in POISON:
        yield *data(rng.integer(5, 9), rng.integer(2, 4), 0.6, poison, rng.integer(0, 2)), rng.integer(2, 6), 0.1


@fit.wrong(
    "M22",
    "The features were multiplied by the mask, and NaN times 0 is NaN: weight and loss are NaN from the first step. Choose "
    "with torch.where, as your layer does.",
)
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    used = mask.any(1)
    features, targets = (x * mask)[used], y[used]
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser, losses = torch.optim.SGD([weight, bias], lr=lr), []
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            optimiser.zero_grad()
            loss = (features @ weight + bias - targets).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            writer.add_scalar("loss", losses[-1], step)
    missing = 100 * (~mask).sum().item() / mask.numel()
    report = f"{len(targets)} rows, {missing:.1f} % missing, loss {losses[0]:.6g}, then {losses[-1]:.6g}"
    return weight.detach(), bias.detach(), report


@fit.wrong(
    "X-9.10-1",
    "Rows of which nothing is known take part: their prediction is the bias alone, and pulls it to their targets. What is "
    "not specified has no part in a loss.",
)
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    features = torch.where(mask, x, 0)
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser, losses = torch.optim.SGD([weight, bias], lr=lr), []
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            optimiser.zero_grad()
            loss = (features @ weight + bias - y).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            writer.add_scalar("loss", losses[-1], step)
    missing = 100 * (~mask).sum().item() / mask.numel()
    report = f"{int(mask.any(1).sum())} rows, {missing:.1f} % missing, loss {losses[0]:.6g}, then {losses[-1]:.6g}"
    return weight.detach(), bias.detach(), report


@fit.wrong(
    "X-9.10-2",
    "Every row with a hole was thrown away. That is what masks are to spare you: a row with one feature missing still says "
    "something about the others.",
)
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    used = mask.all(1)
    features, targets = torch.where(mask, x, 0)[used], y[used]
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser, losses = torch.optim.SGD([weight, bias], lr=lr), []
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            optimiser.zero_grad()
            loss = (features @ weight + bias - targets).square().sum() / max(len(targets), 1)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            writer.add_scalar("loss", losses[-1], step)
    missing = 100 * (~mask).sum().item() / mask.numel()
    report = f"{len(targets)} rows, {missing:.1f} % missing, loss {losses[0]:.6g}, then {losses[-1]:.6g}"
    return weight.detach(), bias.detach(), report


@fit.wrong(
    "M18",
    "The gradients of all steps add up, for nothing sets them to zero. Call zero_grad() before each backward().",
)
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    used = mask.any(1)
    features, targets = torch.where(mask, x, 0)[used], y[used]
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser, losses = torch.optim.SGD([weight, bias], lr=lr), []
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            loss = (features @ weight + bias - targets).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            writer.add_scalar("loss", losses[-1], step)
    missing = 100 * (~mask).sum().item() / mask.numel()
    report = f"{len(targets)} rows, {missing:.1f} % missing, loss {losses[0]:.6g}, then {losses[-1]:.6g}"
    return weight.detach(), bias.detach(), report


@fit.wrong(
    "X-9.10-3",
    "The writer was left open, so nobody can be sure that the losses are in the file. with SummaryWriter(folder) as writer "
    "closes it, whatever happens.",
)
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    used = mask.any(1)
    features, targets = torch.where(mask, x, 0)[used], y[used]
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser, losses, writer = torch.optim.SGD([weight, bias], lr=lr), [], SummaryWriter(folder)
    for step in range(steps):
        optimiser.zero_grad()
        loss = (features @ weight + bias - targets).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        writer.add_scalar("loss", losses[-1], step)
    missing = 100 * (~mask).sum().item() / mask.numel()
    report = f"{len(targets)} rows, {missing:.1f} % missing, loss {losses[0]:.6g}, then {losses[-1]:.6g}"
    return weight.detach(), bias.detach(), report


@fit.wrong(
    "X-9.10-4",
    "The loss is a sum over the rows instead of their mean, so the steps grow with the number of rows.",
)
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    used = mask.any(1)
    features, targets = torch.where(mask, x, 0)[used], y[used]
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser, losses = torch.optim.SGD([weight, bias], lr=lr), []
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            optimiser.zero_grad()
            loss = (features @ weight + bias - targets).square().sum()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            writer.add_scalar("loss", losses[-1], step)
    missing = 100 * (~mask).sum().item() / mask.numel()
    report = f"{len(targets)} rows, {missing:.1f} % missing, loss {losses[0]:.6g}, then {losses[-1]:.6g}"
    return weight.detach(), bias.detach(), report


@fit.wrong(
    "X-9.10-5",
    "The training is right, the report is not: it has to name, as numbers, the rows that were used, the percentage of "
    "features that is missing, and the first and the last loss.",
)
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    used = mask.any(1)
    features, targets = torch.where(mask, x, 0)[used], y[used]
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser = torch.optim.SGD([weight, bias], lr=lr)
    with SummaryWriter(folder) as writer:
        for step in range(steps):
            optimiser.zero_grad()
            loss = (features @ weight + bias - targets).square().mean()
            loss.backward()
            optimiser.step()
            writer.add_scalar("loss", loss.item(), step)
    return weight.detach(), bias.detach(), "the loss fell"


@fit.wrong(
    "X-9.10-6",
    "The steps are counted from 1. The first loss is the one before any step, so it is logged at step 0.",
)
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    used = mask.any(1)
    features, targets = torch.where(mask, x, 0)[used], y[used]
    weight, bias = torch.zeros(x.shape[1], requires_grad=True), torch.zeros((), requires_grad=True)
    optimiser, losses = torch.optim.SGD([weight, bias], lr=lr), []
    with SummaryWriter(folder) as writer:
        for step in range(1, steps + 1):
            optimiser.zero_grad()
            loss = (features @ weight + bias - targets).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
            writer.add_scalar("loss", losses[-1], step)
    missing = 100 * (~mask).sum().item() / mask.numel()
    report = f"{len(targets)} rows, {missing:.1f} % missing, loss {losses[0]:.6g}, then {losses[-1]:.6g}"
    return weight.detach(), bias.detach(), report


@fit.right
def _(x, mask, y, steps, lr, folder):
    from torch.utils.tensorboard import SummaryWriter

    weight, bias = x.new_zeros(x.shape[1]), x.new_zeros(())
    filled, used = x.masked_fill(~mask, 0), mask.any(1).to(x.dtype)
    n, losses = used.sum(), []
    for _ in range(steps):
        error = (filled @ weight + bias - y) * used
        losses.append((error.square().sum() / n).item())
        weight = weight - lr * 2 * (error @ filled) / n
        bias = bias - lr * 2 * error.sum() / n
    writer = SummaryWriter(str(folder))
    for step, loss in enumerate(losses):
        writer.add_scalar("loss", loss, step)
    writer.close()
    share = 100 - 100 * mask.double().mean().item()
    report = (
        f"first loss {losses[0]:.4g}, last loss {losses[-1]:.4g}; {share:.1f} percent missing in {int(n)} rows used"
    )
    return weight, bias, report


@fit.right
def _(x, mask, y, steps, lr, folder):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    model = torch.nn.Linear(x.shape[1], 1, dtype=x.dtype, device=x.device)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    rows = mask.any(1).nonzero()[:, 0]
    clean = torch.where(mask, x, 0)[rows]
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    with SummaryWriter(log_dir=folder) as writer:
        for step in range(steps):
            loss = torch.nn.functional.mse_loss(model(clean)[:, 0], y[rows])
            writer.add_scalar("loss", loss.detach(), global_step=step)
            losses.append(float(loss.detach()))
            model.zero_grad()
            loss.backward()
            optimiser.step()
    missing = 100 * (mask.numel() - int(mask.sum())) / mask.numel()
    report = f"{len(rows)} rows, {missing:.2f} % missing, loss from {losses[0]:.5g} to {losses[-1]:.5g}"
    return model.weight.detach()[0], model.bias.detach()[0], report


# ---- 9.11 -----------------------------------------------------------------------------------------------------------

design_note = written(
    "9.11",
    "design_note",
    points=6,
    minutes=20,
    stars=3,
    homework=True,
    concepts=["V-08", "A-10"],
    needs=["binary", "Indexing", "safe"],
    model_answer=(
        "What it is. A MiniMask is data and a bool mask of one shape, True at the elements that exist. Of all others nothing is "
        "promised: neither result nor gradient may depend on them, which the poison tests hold. Decisions. "
        "(1) Policy: operands must have equal masks unless the caller chooses otherwise. Intersection is what NumPy does "
        "and is safe, but holes then spread in silence: with [1, --] + [--, 2] nothing is left, and a sum over it is "
        "undefined while the sums of the two are 1 and 2. Union keeps sum(a + b) = sum(a) + sum(b), but has a meaning only "
        "for operations with an identity. An error makes the author decide. (2) Masks can be written to, as data can, so "
        "m[0][1] = 5 fills a gap; the price is that no result may share the mask of its operand, a copy of one byte an "
        "element. Had masks been immutable, results could share them, and a gap could only be filled by building anew. "
        "(3) Gradients are plain tensors with 0 where nothing is there, so that every optimiser takes them; the price is "
        "that 0 and none are no longer told apart, and momentum or weight decay move those elements all the same. Operands "
        "are made harmless by the mask of the result before a function sees them. Limits. A specified infinity times a "
        "missing factor is 0 times infinity in matmul; there is no rule for cumsum, and an unknown function is refused by "
        "name. Evidence: 1 / 0 with the numerator missing has gradient 0 and not NaN. Next I would add softmax over any "
        "dim, because attention needs it."
    ),
    rubric=(
        "1 point: says what a MiniMask is and means, in two or three sentences that a newcomer can use (True, unspecified, "
        "poison). 3 points, one for each of three decisions (policy, writable or immutable masks, plain or masked "
        "gradients, storage): names what was chosen, an alternative, and what the choice costs, with an example or a "
        "measurement. 1 point: two limits that are true of the author's own class. 1 point: evidence, at least one test "
        "or number that can be run again, and what would come next. Half a point off for a wrong statement, once. More "
        "than one page: half a point off."
    ),
)

# ---- predictions ----------------------------------------------------------------------------------------------------

PREDICTIONS = (
    prediction(
        "R1",
        "In `MaskedTensor`, the mask is True where an element ... (lecture 05)",
        {
            "a": (
                "is hidden",
                "That is NumPy's convention, and that of key_padding_mask. Here True means: it is there.",
            ),
            "b": ("is there", "Right: True means specified, as in scaled_dot_product_attention."),
            "c": ("is not zero", "Zero and missing are two things: a specified 0 has True."),
        },
        "b",
    ),
    prediction(
        "R2",
        "`b = a[0]`, then `b[1] = 7`. What has happened to `a`, a plain tensor of shape (2, 3)? (lecture 02)",
        {
            "a": ("a[0, 1] is 7", "Right: a number in the index gives a view, and a write goes through it."),
            "b": ("nothing", "That would be so for a[[0]]: a list copies. A number gives a view."),
            "c": ("an error is raised", "Views may be written to; only a leaf that requires a gradient refuses."),
        },
        "a",
    ),
    prediction(
        "R3",
        "`y = torch.where(mask, torch.sqrt(x), 0)`, with x = -1 where mask is False. The gradient of x there? (lecture 05)",
        {
            "a": ("0", "The value is 0. The gradient is 0 times the derivative of sqrt at -1, and that is NaN."),
            "b": ("None", "x takes part in y, so it gets a gradient."),
            "c": ("NaN", "Right: masking the result does not clean the gradient. Choose before you compute."),
        },
        "c",
    ),
    prediction(
        "R4",
        "A COO tensor stores the entry 0.0 at place (1, 2). As masked data, that element is ... (lectures 06 and 07)",
        {
            "a": ("missing", "Missing is what is not stored. Zero, missing and not stored are three things."),
            "b": ("there, with the value 0", "Right: stored means specified, whatever the value."),
            "c": ("an error", "Explicit zeros are allowed, and useful."),
        },
        "b",
    ),
    prediction(
        "P1",
        "`b = a.sqrt()` hands the mask of `a` on without copying it. Then somebody fills a gap, `b.mask[1] = True`. What does "
        "`a` say about element 1?",
        {
            "a": ("It is there", "Right: one mask, two owners. a now shows whatever lies under its old hole."),
            "b": ("It is missing, as before", "It would be, with a mask of its own. Shared memory knows no owner."),
            "c": (
                "An error is raised",
                "Nobody is told. That is what makes sharing dangerous where things are written to.",
            ),
        },
        "a",
    ),
    prediction(
        "P2",
        "a = [1, --] and b = [--, 2]. Under which policy is sum(a + b) equal to sum(a) + sum(b)?",
        {
            "a": ("intersection", "a + b is [--, --] then, and its sum is not defined, while 1 + 2 is."),
            "b": ("union", "Right: missing counts as 0, so a + b is [1, 2] and its sum is 3."),
            "c": ("match", "It refuses to add the two, and rightly asks what you mean."),
        },
        "b",
    ),
    prediction(
        "P3",
        "x = [--], and d = [0] is there. y = x / d is missing. Each operand was filled with 1 where it itself is missing. "
        "What is the gradient of d?",
        {
            "a": ("0, for the result is missing", "It should be. But 1 / 0 was computed, and 0 times infinity is NaN."),
            "b": ("None", "d takes part in the computation, so it gets a gradient."),
            "c": ("NaN", "Right: d was not filled, since it is there. The mask of the result has to decide."),
        },
        "c",
    ),
    prediction(
        "P4",
        "`torch.sin(m)` for an object `m` of a class that is no tensor, and that has no `__torch_function__`. What comes?",
        {
            "a": ("a TypeError", "Right: torch wants a tensor. __torch_function__ is the door for everything else."),
            "b": ("the sine of m.data", "torch does not guess at attributes."),
            "c": ("m.sin() is called", "torch does not look for a method of that name."),
        },
        "a",
    ),
)
