"""The broadcast expander: how shapes are lined up and stretched with stride 0."""

from dataclasses import dataclass
from itertools import product
from math import prod

import torch

from lecture_pictures.cells import GHOST, GHOST_SECOND, RESULT, SECOND, USED, Panel, draw_panels, legend
from lecture_pictures.notation import DrawingError, count, drawable, dtype_of, labels_of, rows, tuple_of
from lecture_pictures.svg import INK, ORANGE, PAPER, SKY, Drawing, words_width

MOST = 64  # elements of the result that are drawn
OPERATIONS = {"+": torch.add, "-": torch.sub, "*": torch.mul, "/": torch.true_divide}


@dataclass(frozen=True)
class Dimension:
    """One column of the alignment: a dimension counted from the right.

    Attributes:
        number: -1, -2, ...
        sizes: of the two tensors; None where a tensor has no such dimension.
        size: of the result; None if the sizes do not fit.
    """

    number: int
    sizes: tuple
    size: int | None

    def said(self):
        shown = " and ".join("none" if n is None else str(n) for n in self.sizes)
        if self.size is None:
            return f"dim {self.number}: {shown}: they differ and neither is 1"
        if self.sizes[0] == self.sizes[1]:
            return f"dim {self.number}: {shown}: equal, stays {self.size}"
        if None in self.sizes:
            return f"dim {self.number}: {shown}: the missing one is added, {self.size} long"
        return f"dim {self.number}: {shown}: the 1 is stretched to {self.size}"


def aligned(first, second):
    """The dimensions of two shapes, lined up at the right; leftmost first."""
    width = max(len(first), len(second))
    rows = [(None,) * (width - len(shape)) + tuple(shape) for shape in (first, second)]
    return [Dimension(k - width, pair, _joined(pair)) for k, pair in enumerate(zip(*rows, strict=True))]


def _joined(pair):
    sizes = {n for n in pair if n is not None}
    if len(sizes) == 1:
        return sizes.pop()
    return max(sizes - {1}) if 1 in sizes else None


def broadcast(a, b, operation="+", names=("a", "b")):
    """Two tensors, each stretched to the common shape, and the result; or why their shapes do not fit.

    Args:
        a, b: strided tensors; the common shape has at most 64 elements in at most 3 dimensions.
        operation: "+", "-", "*" or "/".
    Raises:
        DrawingError: a tensor cannot be drawn, the result is too large, or the operation is another.
    """
    if operation not in OPERATIONS:
        raise DrawingError(f"operation is {operation!r}, expected one of {', '.join(OPERATIONS)}")
    a, b = drawable(a, names[0], MOST, ndim=3), drawable(b, names[1], MOST, ndim=3)
    columns = aligned(a.shape, b.shape)
    shape = tuple(c.size for c in columns)
    title = f"Broadcast: {names[0]} {tuple_of(a.shape)} {operation} {names[1]} {tuple_of(b.shape)}"
    fits = None not in shape
    title += f" → {tuple_of(shape)}" if fits else ": the shapes do not fit"
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    y = _draw_alignment(drawing, 22, columns, names)
    words = [title, *(column.said() for column in columns)]
    if fits:
        words += _draw_stretching(drawing, y + 14, a, b, shape, operation, names)
    return drawing.picture(title, "\n".join(words))


def _draw_alignment(drawing, y, columns, names):
    """The shapes as a table, right-aligned, with the rule that each column follows; returns where it ends."""
    if not columns:
        drawing.words(0, y + 8, "no dimension: both are single numbers", 12.5, "start")
        return y + 20
    label = max(words_width(n, 13, bold=True) for n in (*names, "result")) + 14
    for k, column in enumerate(columns):
        x = label + 44 * k
        drawing.words(x + 20, y + 7, f"dim {column.number}", 11)
        for row, size in enumerate((*column.sizes, column.size)):
            _draw_size(drawing, x, y + 16 + row * 28, size, column, row)
    for row, name in enumerate((*names, "result")):
        drawing.words(0, y + 29 + row * 28, name, 13, "start", bold=True)
    x = label + 44 * len(columns) + 16
    for k, column in enumerate(columns):
        drawing.words(x, y + 27 + 20 * k, column.said(), 12.5, "start")
    return y + 16 + 3 * 28


def _draw_size(drawing, x, y, size, column, row):
    missing, clash = size is None and row < 2, size is None and row == 2
    stretched = row < 2 and column.size is not None and size != column.size
    fill = {0: SKY, 1: ORANGE, 2: PAPER}[row] if not missing and not clash else PAPER
    drawing.box(x, y, 40, 24, fill, INK, 2.5 if row == 2 else 1, dashed=stretched or missing)
    words = "none" if missing else "error" if clash else str(size)
    drawing.words(x + 20, y + 12, words, 12 if missing or clash else 13, mono=True, bold=row == 2)


def _draw_stretching(drawing, y, a, b, shape, operation, names):
    """Both tensors over the common shape, and the result; returns the words for it."""
    size = prod(shape)
    if size > MOST or len(shape) > 3:
        raise DrawingError(f"the result has shape {tuple_of(shape)}, at most {MOST} elements in 3 dimensions are drawn")
    stretched = [t.expand(shape) for t in (a, b)]
    try:
        result = OPERATIONS[operation](a, b)
    except RuntimeError as refused:
        raise DrawingError(f"{dtype_of(a)} {operation} {dtype_of(b)}: {str(refused).splitlines()[0]}") from refused
    panels, words = [], []
    for t, wide, name, looks in zip((a, b), stretched, names, ((USED, GHOST), (SECOND, GHOST_SECOND)), strict=True):
        own = _own_places(t.shape, shape)
        held = t.numel() if size else 0
        caption = f"{name}.expand{tuple_of(shape)}"
        note = f"strides {tuple_of(t.stride())} → {tuple_of(wide.stride())}"
        labels = labels_of(wide)
        panels.append(Panel(caption, labels, shape, {i: looks[0] if i in own else looks[1] for i in labels}, (note,)))
        words.append(f"{name}: {note}; {count(held, 'element')} held, {count(size, 'place')} filled")
        words += rows(name, labels, shape, {i: "()" for i in labels if i not in own})
    labels = labels_of(result)
    caption = f"{names[0]} {operation} {names[1]}"
    panels.append(Panel(caption, labels, shape, dict.fromkeys(labels, RESULT), ("fresh memory",)))
    words += [f"result: fresh memory, {count(size, 'element')}", *rows("result", labels, shape)]
    y = draw_panels(drawing, y, panels)
    if size:
        legend(drawing, 0, y + 18, _key(panels, names))
    return words


def _key(panels, names):
    """What the looks that occur mean."""
    meanings = zip((USED, GHOST, SECOND, GHOST_SECOND), (names[0], names[0], names[1], names[1]), strict=True)
    occurring = {look for panel in panels for look in panel.looks.values()}
    return [
        (look, f"{name} again (stride 0)" if look.dashed else f"stored in {name}")
        for look, name in meanings
        if look in occurring
    ]


def _own_places(shape, common):
    """The places of the common shape where an element is stored, not repeated: 0 along every stretched dimension."""
    lead = len(common) - len(shape)
    full = (1,) * lead + tuple(shape)
    return {i for i in product(*map(range, common)) if all(k < n for k, n in zip(i, full, strict=True))}
