"""How a MaskedTensor reads as text, as Python numbers and as a NumPy masked array."""

import math
import sys

import torch

from .pair import Pair

THRESHOLD, EDGE, WIDTH = 1000, 3, 80  # torch's defaults: elements shown in full, at each edge else, characters a line


def text(p, grad_fn=None, requires_grad=False):
    """MaskedTensor([1.0000, --]) with dtype, layout and grad_fn where they are not the usual ones.

    The number format is chosen from the specified elements that are shown, so that 4.54e-05 is not read as 0.0000.
    """
    layout = "" if p.places is None else f", layout={p.places.layout}, nnz={p.data.shape[0]}"
    size, data = tuple(p.shape), p.data.detach()
    if data.is_meta:
        body = f"..., device='meta', size={size}"
    else:
        summarise = p.shape.numel() > THRESHOLD
        p = Pair(data, p.mask, p.places)
        cells = _cells(_edges(p) if summarise else p.dense())
        width = max(map(len, cells), default=0)
        cells = iter([c.rjust(width) for c in cells])
        body = _block(size, cells, len("MaskedTensor("), summarise)
    if 0 in size and len(size) != 1:
        body += f", size={size}"
    usual = (torch.get_default_dtype(), torch.int64, torch.bool)
    dtype = "" if data.dtype in usual and (0 not in size or data.dtype == usual[0]) else f", dtype={data.dtype}"
    device = "" if data.device.type in ("cpu", "meta") else f", device='{data.device}'"
    grad = (
        f", grad_fn=<{type(grad_fn).__name__}>"
        if grad_fn is not None
        else ", requires_grad=True"
        if requires_grad
        else ""
    )
    return f"MaskedTensor({body}{dtype}{device}{layout}{grad})"


def _edges(p):
    """The elements that are printed of a large tensor, strided: both ends of every long dimension."""
    for d, n in enumerate(p.shape):
        if n > 2 * EDGE:
            p = p.picked(d, torch.tensor([*range(EDGE), *range(n - EDGE, n)], device=p.data.device))
    return p.dense()


def _cells(p):
    """One string per element; "--" where it is not specified."""
    known = p.data[p.mask]
    if known.is_complex():
        part = _float_format(torch.view_as_real(known.to(torch.complex128)).reshape(-1))
        write = lambda v: part(v.real) + part(v.imag).rjust(1 + len(part(abs(v.imag))), "+") + "j"
    elif known.is_floating_point():
        write = _float_format(known.double())
    else:
        write = str
    return [
        write(v) if m else "--" for v, m in zip(p.data.reshape(-1).tolist(), p.mask.reshape(-1).tolist(), strict=True)
    ]


def _float_format(known):
    """How floats are written, of which these are shown."""
    finite = known[known.isfinite()].abs()
    if bool((finite == finite.trunc()).all()) and bool((finite < 1e8).all()):
        form = "{:.0f}.".format
    else:
        largest, least = float(finite.max()), float(finite[finite > 0].min())
        form = ("{:.4e}" if largest / least > 1e3 or largest > 1e8 or least < 1e-4 else "{:.4f}").format
    return lambda v: form(v) if math.isfinite(v) else str(v)


def _block(shape, cells, indent, summarise):
    if not shape:
        return next(cells)
    n = shape[0]
    cut = summarise and n > 2 * EDGE
    items = [_block(shape[1:], cells, indent + 1, summarise) for _ in range(2 * EDGE if cut else n)]
    if cut:
        items.insert(EDGE, "...")
    if len(shape) > 1:
        return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(items) + "]"
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 2 > WIDTH - indent:
            lines.append(line)
            line = ""
        line += (", " if line else "") + item
    lines.append(line)
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def numbers(p):
    """Nested lists with None where nothing is specified; a number or None for a 0-d tensor."""
    p = p.dense()

    def nest(data, mask):
        if isinstance(mask, list):
            return [nest(d, m) for d, m in zip(data, mask, strict=True)]
        return data if mask else None

    return nest(p.data.tolist(), p.mask.tolist())


def number(p):
    """The one element of a tensor as a Python number.

    Raises:
        ValueError: it is unspecified. RuntimeError: there is not exactly one.
    """
    p = p.dense()
    value = p.data.item()
    if not bool(p.mask.reshape(())):
        raise ValueError("the element is unspecified, so it has no value: to_tensor(value) says what to use instead")
    return value


def array(p):
    """A numpy.ma.MaskedArray, whose mask is the inverse: NumPy's True means missing."""
    p = p.dense()
    data = p.data.numpy()  # torch has imported NumPy by then
    return sys.modules["numpy"].ma.MaskedArray(data, mask=~p.mask.numpy())
