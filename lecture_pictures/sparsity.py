"""One matrix in three layouts, dense, COO and CSR, with what each of them stores and how many bytes that is."""

from dataclasses import dataclass

import torch

from lecture_pictures.cells import HEIGHT, USED, Look, Panel, cell_width, draw_panels, grid, legend, paint
from lecture_pictures.notation import DrawingError, count, dtype_of, labels_of, place, rows, tuple_of, written
from lecture_pictures.svg import INK, ORANGE, QUIET, SKY, WIDE, Drawing, words_width

MOST = 64  # cells of the matrix
INDEX_BYTES = 8  # int64, what torch uses
INDEX = Look(ORANGE, weight=1)
VALUE = Look(SKY, weight=2.5)
ABSENT = Look(line=QUIET, dashed=True)


@dataclass(frozen=True)
class Layout:
    """What a layout stores: arrays by name, each a list of rows of numbers as written."""

    name: str
    arrays: dict
    value_bytes: int
    index_bytes: int

    @property
    def bytes(self):
        return self.value_bytes + self.index_bytes


@dataclass(frozen=True)
class Stored:
    """A matrix and what of it is stored.

    Attributes:
        shape: (rows, columns). dense: the values with zeros filled in.
        entries: list of (row, column) in the order in which COO stores them, duplicates included.
    """

    shape: tuple
    dtype: str
    dense: torch.Tensor
    entries: list
    layouts: tuple

    @property
    def duplicates(self):
        return sorted({e for e in self.entries if self.entries.count(e) > 1})

    @property
    def explicit_zeros(self):
        return [e for e in dict.fromkeys(self.entries) if self.dense[e] == 0]


def stored(matrix, name="m"):
    """What the three layouts store of a matrix.

    A strided matrix is stored sparse where it is not zero; a sparse one keeps the entries that it has, zeros and
    duplicates included.

    Raises:
        DrawingError: not a matrix, too large, or in another layout.
    """
    _check(matrix, name)
    (row, column), values = _entries(matrix.detach())
    dense = values.new_zeros(matrix.shape).index_put((row, column), values, accumulate=True)
    unique = torch.stack((row, column), 1).unique(dim=0)  # sorted by row, then column: the order of CSR
    starts = torch.bincount(unique[:, 0], minlength=matrix.shape[0]).cumsum(0)
    starts = torch.cat([starts.new_zeros(1), starts])
    summed = dense[unique[:, 0], unique[:, 1]]
    size = dense.element_size()
    coo = {"row": _written(row), "column": _written(column), "value": _written(values)}
    csr = {"row starts": _written(starts), "column": _written(unique[:, 1]), "value": _written(summed)}
    layouts = (
        Layout("dense", {}, dense.numel() * size, 0),
        Layout("COO", coo, values.numel() * size, 2 * row.numel() * INDEX_BYTES),
        Layout("CSR", csr, summed.numel() * size, (starts.numel() + len(unique)) * INDEX_BYTES),
    )
    entries = list(zip(row.tolist(), column.tolist(), strict=True))
    return Stored(tuple(matrix.shape), dtype_of(matrix), dense, entries, layouts)


def _check(matrix, name):
    if not isinstance(matrix, torch.Tensor):
        raise DrawingError(f"{name} is a {type(matrix).__name__}, expected a torch.Tensor")
    if matrix.layout not in (torch.strided, torch.sparse_coo, torch.sparse_csr):
        raise DrawingError(f"{name} is {matrix.layout}, expected torch.strided, sparse_coo or sparse_csr")
    if matrix.dim() != 2 or (matrix.layout is torch.sparse_coo and matrix.sparse_dim() != 2):
        raise DrawingError(f"{name} is {tuple_of(matrix.shape)}, expected a matrix with single numbers as entries")
    if matrix.numel() > MOST or matrix.is_meta:
        raise DrawingError(f"{name} has {matrix.numel()} cells on {matrix.device}, expected at most {MOST} on the cpu")


def _entries(matrix):
    """((rows, columns), values) as they are stored; of a strided matrix where it is not zero.

    The parts are taken as they are and no sparse tensor is made: torch warns when the first one of a process is.
    """
    if matrix.layout is torch.sparse_coo:
        return tuple(matrix._indices()), matrix._values()  # indices() refuses what is not coalesced
    if matrix.layout is torch.sparse_csr:
        starts, columns = matrix.crow_indices().long(), matrix.col_indices().long()
        return (torch.arange(matrix.shape[0]).repeat_interleave(starts.diff()), columns), matrix.values()
    return matrix.nonzero(as_tuple=True), matrix[matrix != 0]


def _written(t):
    return [written(v) for v in t.tolist()]


def sparse_layouts(matrix, name="m"):
    """A matrix as dense, COO and CSR: the cells, the stored arrays, and a bar of bytes for each.

    Args:
        matrix: strided, sparse_coo or sparse_csr, at most 64 cells.
    Raises:
        DrawingError: see stored.
    """
    s = stored(matrix, name)
    entries = count(len(s.entries), "stored entry", "stored entries")
    title = f"{name}, {tuple_of(s.shape)}, {entries}: dense, COO and CSR"
    notes = _notes(s)
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    y = 18
    for words in notes:
        drawing.words(0, y + 8, words, 12.5, "start")
        y += 19
    labels = labels_of(s.dense)
    held = set(s.entries)
    looks = {i: USED if i in held else ABSENT for i in labels}
    y = _draw_side_by_side(drawing, y + 8, s, Panel("dense: every cell is stored", labels, s.shape, looks))
    y = _draw_bars(drawing, y + 24, s)
    legend(drawing, 0, y + 20, _key(s, held, labels))
    return drawing.picture(title, _words(title, notes, s, labels, held, name))


def _key(s, held, labels):
    entries = [(USED, "an entry (in COO and CSR: a value)")] if held else []
    entries += [(ABSENT, "no entry: COO and CSR leave it out")] if len(held) < len(labels) else []
    return [*entries, (INDEX, "an index")]


def _notes(s):
    lines = []
    if s.explicit_zeros:
        where = ", ".join(place(e) for e in s.explicit_zeros)
        lines.append(f"{where}: a stored zero; dense, it looks like a place that is not stored")
    if s.duplicates:
        where = ", ".join(place(e) for e in s.duplicates)
        lines.append(f"{where}: stored more than once, so COO is not coalesced; the values are added, CSR has the sum")
    return lines


def _draw_side_by_side(drawing, y, s, dense):
    """The dense cells, then the arrays of COO and CSR beside them, or below for want of room; returns the end."""
    bottom = draw_panels(drawing, y, [dense])
    x = grid(s.shape, cell_width(dense.labels.values(), 30)).width
    x = max(x, words_width(dense.caption, 13, bold=True)) + 30
    for layout in s.layouts[1:]:
        width = _arrays_width(layout)
        if x and x + width > WIDE:
            x, y = 0, bottom + 20
        bottom = max(bottom, _draw_arrays(drawing, x, y, layout))
        x += width + 30
    return bottom


def _measures(layout):
    """Width of the names of the arrays, of a cell, and how many cells fit a line."""
    gutter = max(words_width(name, 12) for name in layout.arrays) + 10
    cell = cell_width([v for values in layout.arrays.values() for v in values], 30)
    return gutter, cell, max(1, int((WIDE - gutter) // cell))


def _arrays_width(layout):
    gutter, cell, per_line = _measures(layout)
    longest = max(len(values) for values in layout.arrays.values())
    return max(gutter + cell * min(max(longest, 2), per_line), words_width(layout.name, 13, bold=True))


def _draw_arrays(drawing, x, y, layout):
    """The arrays of a layout as rows of cells under one another; returns where they end."""
    drawing.words(x, y + 8, layout.name, 13, "start", bold=True)
    y += 22
    gutter, cell, per_line = _measures(layout)
    longest = max(len(values) for values in layout.arrays.values())
    for start in range(0, max(longest, 1), per_line):
        for name, values in layout.arrays.items():
            if start and len(values) <= start:  # this array has ended on a line above
                continue
            drawing.words(x + gutter - 8, y + HEIGHT / 2, name, 12, "end")
            for k, value in enumerate(values[start : start + per_line]):
                paint(drawing, x + gutter + k * cell, y, cell, value, VALUE if name == "value" else INDEX)
            if not values:
                drawing.words(x + gutter, y + HEIGHT / 2, "(empty)", 12, "start", QUIET)
            y += HEIGHT + 3
        y += 6
    return y - 9


def _draw_bars(drawing, y, s):
    """Bytes of each layout to one scale: values solid, indices hatched; returns where they end."""
    drawing.words(0, y, f"bytes ({s.dtype} values, int64 indices)", 13, "start", bold=True)
    scale = 420 / max(1, *(layout.bytes for layout in s.layouts))
    for layout in s.layouts:
        y += 26
        drawing.words(44, y, layout.name, 12, "end")
        value, index = layout.value_bytes * scale, layout.index_bytes * scale
        if value:
            drawing.box(52, y - 9, value, 18, SKY, INK, 1)
        if index:
            drawing.box(52 + value, y - 9, index, 18, ORANGE, INK, 1)
            drawing.hatch(52 + value, y - 9, index, 18, "#7a5300")
        drawing.words(52 + value + index + 8, y, _bytes(layout), 12, "start")
    y += 26
    right = 52
    for fill, hatched, words in ((SKY, False, "values"), (ORANGE, True, "indices")):
        drawing.box(right, y - 8, 22, 16, fill, INK, 1)
        if hatched:
            drawing.hatch(right, y - 8, 22, 16, "#7a5300")
        right = drawing.words(right + 28, y, words, 12, "start") + 20
    return y + 10


def _bytes(layout):
    if not layout.arrays:
        return str(layout.bytes)
    return f"{layout.bytes} = {layout.value_bytes} + {layout.index_bytes}"


def _words(title, notes, s, labels, held, name):
    shown = {i: v if i in held else "." for i, v in labels.items()}
    lines = [title, *notes, "dense, . where COO and CSR have no entry:", *rows(name, shown, s.shape)]
    for layout in s.layouts[1:]:
        lines += [f"{layout.name} {array}: {' '.join(values) or '(empty)'}" for array, values in layout.arrays.items()]
    lines += [
        f"{layout.name}: {count(layout.bytes, 'byte')}"
        + (f", {layout.value_bytes} of values and {layout.index_bytes} of indices" if layout.arrays else "")
        for layout in s.layouts
    ]
    return "\n".join(lines)
