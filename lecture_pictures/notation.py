"""How values, shapes and indices are written in a picture: short, and the same on every machine."""

import torch


class DrawingError(ValueError):
    """What was given cannot be drawn; the message says what can."""


def written(value):
    """One element, short: three significant digits or one place, T and F for bools, a point in every finite float.

    >>> [written(v) for v in (7, True, 0.1 + 0.2, 1.0, -0.0, float("nan"), 1234.5, 123456.0)]
    ['7', 'T', '0.3', '1.0', '-0.0', 'nan', '1234.5', '1.23e+05']
    """
    if isinstance(value, bool):
        return "T" if value else "F"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**7 else f"{value:.1e}"
    if isinstance(value, complex):
        return f"{value.real:.2g}{value.imag:+.2g}j"
    digits = f"{value:.1f}" if 1000 <= abs(value) < 99999 else f"{value:.3g}"
    return digits + ".0" if digits.lstrip("-").isdigit() else digits


def tuple_of(numbers):
    """A shape or a stride as Python writes it.

    >>> tuple_of(torch.Size([3])), tuple_of([2, 0]), tuple_of([])
    ('(3,)', '(2, 0)', '()')
    """
    return str(tuple(int(n) for n in numbers))


def place(index):
    """An index as it is written behind a tensor's name; a 0-d tensor has the one index [].

    >>> place((1, 0)), place(())
    ('[1,0]', '[]')
    """
    return "[" + ",".join(str(i) for i in index) + "]"


def count(n, thing, things=None):
    """
    >>> count(1, "byte"), count(0, "byte"), count(2, "index", "indices")
    ('1 byte', '0 bytes', '2 indices')
    """
    return f"{n} {thing if n == 1 else things or thing + 's'}"


def place_of(k, shape):
    """The index of the k-th element in row-major order.

    >>> place_of(5, (2, 3))
    (1, 2)
    """
    index = []
    for n in reversed(shape):
        k, i = divmod(k, n)
        index.append(i)
    return tuple(reversed(index))


def labels_of(t):
    """Index → element as written, in row-major order."""
    return {place_of(k, t.shape): written(v) for k, v in enumerate(t.flatten().tolist())}


def rows(name, labels, shape, marks=None):
    """A tensor of up to three dimensions in words, a row a line.

    Args:
        labels: index → what stands there, in row-major order.
        marks: index → two characters to put around it, "[]" or "()".

    >>> print("\\n".join(rows("a", {(0, 0): "1", (0, 1): "10"}, (1, 2), {(0, 1): "[]"})))
    a =   1  [10]
    """
    if not labels:
        return [f"{name} = (empty)"]
    marks, width, said = marks or {}, max(map(len, labels.values())), []
    cells = [(marks.get(i, "  ")[0], f"{v:>{width}}", marks.get(i, "  ")[1]) for i, v in labels.items()]
    per_row = shape[-1] if shape else 1
    per_block = per_row * shape[-2] if len(shape) > 1 else per_row
    for k in range(0, len(cells), per_row):
        block = f"{name}{place((k // per_block, ':', ':'))}" if len(shape) == 3 else name
        head = f"{block} = " if k % per_block == 0 else " " * (len(block) + 3)
        said.append((head + " ".join(map("".join, cells[k : k + per_row]))).rstrip())
    return said


def dtype_of(t):
    """
    >>> dtype_of(torch.zeros(1))
    'float32'
    """
    return str(t.dtype).removeprefix("torch.")


def drawable(t, name, most, ndim=None):
    """The tensor, detached, if a grid of its elements can be drawn.

    Args:
        most: elements that fit the picture.
        ndim: dimensions that fit the picture; None for any number.
    Raises:
        DrawingError: not a strided tensor with values, or too large.
    """
    if not isinstance(t, torch.Tensor):
        raise DrawingError(f"{name} is a {type(t).__name__}, expected a torch.Tensor: wrap it in torch.tensor(...)")
    if type(t) not in (torch.Tensor, torch.nn.Parameter):
        raise DrawingError(f"{name} is a {type(t).__name__}, expected a plain torch.Tensor: draw its data and its mask")
    if t.layout is not torch.strided:
        raise DrawingError(f"{name} is {t.layout}, expected torch.strided: sparse_layouts draws sparse tensors")
    if t.is_meta:
        raise DrawingError(f"{name} is on the meta device and has no values: make it on the cpu")
    if t.is_quantized or t.is_conj() or t.is_neg():
        raise DrawingError(
            f"{name} shows other values than it stores: call dequantize(), resolve_conj() or resolve_neg()"
        )
    if t.numel() > most:
        raise DrawingError(f"{name} has {t.numel()} elements, at most {most} are drawn: take a smaller tensor")
    if ndim is not None and t.dim() > ndim:
        raise DrawingError(f"{name} has {t.dim()} dimensions, at most {ndim} are drawn: index some away first")
    return t.detach()
