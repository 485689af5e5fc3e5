"""The memory ruler: which cells of the storage a tensor reaches, in which steps, and whether that is contiguous."""

from dataclasses import dataclass
from itertools import groupby, pairwise, product

from lecture_pictures.cells import OUTSIDE, SKIPPED, USED, cell_width, draw_badge, draw_grid, grid, legend, paint
from lecture_pictures.notation import DrawingError, count, drawable, dtype_of, place, tuple_of, written
from lecture_pictures.svg import BLUE, QUIET, WIDE, Drawing, words_width

DRAWN_CELLS = 96  # of the storage; more are counted but not drawn
LANE = 20  # px between the arrows of two dimensions


@dataclass(frozen=True)
class Reach:
    """Where the elements of a tensor lie.

    Attributes:
        shape, stride, offset: of the tensor, in elements.
        itemsize: bytes of a cell.
        storage_bytes: bytes of the whole storage.
        values: what the drawn cells of the storage hold, as written; the storage has `cells` of them.
        address: index → cell number, in row-major order of the indices.
    """

    shape: tuple
    stride: tuple
    offset: int
    dtype: str
    itemsize: int
    storage_bytes: int
    values: list
    address: dict

    @property
    def cells(self):
        return self.storage_bytes // self.itemsize

    @property
    def contiguous(self):
        return self.gap is None

    @property
    def gap(self):
        """The first two neighbours, in row-major order, that do not lie side by side: their indices, or None."""
        order = list(self.address.items())
        pairs = pairwise(order)
        return next(((i, j) for (i, a), (j, b) in pairs if b != a + 1), None)

    def verdict(self):
        if not self.address:
            return "there is no element, so nothing is out of order"
        if len(self.address) == 1:
            return "a single element is always in order"
        if self.contiguous:
            return "read row by row, every element lies right after the one before"
        i, j = self.gap
        a, b = self.address[i], self.address[j]
        return f"after {place(i)} in cell {a} comes {place(j)} in cell {b}; contiguous would be cell {a + 1}"

    def role(self, cell):
        """What a cell is to the tensor: used, skipped (between used ones) or outside."""
        reached = self.address.values()
        if cell in set(reached):
            return "used"
        return "skipped" if reached and min(reached) < cell < max(reached) else "outside"


def reach(t, name="t"):
    """Where the elements of a strided tensor lie in its storage.

    Raises:
        DrawingError: see notation.drawable; or an element lies beyond the cells that are drawn.
    """
    t = drawable(t, name, most=DRAWN_CELLS)
    itemsize, held = t.element_size(), t.untyped_storage().nbytes()
    steps = [
        (index, sum(i * s for i, s in zip(index, t.stride(), strict=True))) for index in product(*map(range, t.shape))
    ]
    address = {index: t.storage_offset() + step for index, step in steps}
    if address and max(address.values()) >= DRAWN_CELLS:
        raise DrawingError(
            f"{name} reaches cell {max(address.values())} of its storage, the first {DRAWN_CELLS} are drawn: "
            "take a view nearer to the start, or a smaller storage"
        )
    cells = held // itemsize
    if cells > DRAWN_CELLS:
        cells = max(16, *address.values(), 0) + 4 if address else 16
    cells = min(cells, DRAWN_CELLS)
    values = [written(v) for v in t.as_strided((cells,), (1,), 0).tolist()] if cells else []
    return Reach(tuple(t.shape), t.stride(), t.storage_offset(), dtype_of(t), itemsize, held, values, address)


def memory_ruler(t, name="t", title=None):
    """The storage of a tensor as a row of numbered cells, with the tensor's elements, offset and strides marked.

    Args:
        t: any strided tensor whose elements lie in the first 96 cells of its storage.
        name: how the tensor is called in the picture.
    Raises:
        DrawingError: the tensor has no such storage, or reaches further.
    """
    r = reach(t, name)
    return ruler_of(
        r, name, title or f"Memory ruler of {name}: shape {tuple_of(r.shape)}, strides {tuple_of(r.stride)}"
    )


def ruler_of(r, name, title, call=None):
    """The picture of a Reach; `call` is a line of code that makes the tensor."""
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    y = 16
    if call:
        drawing.words(0, y + 8, call, 13, "start", BLUE, mono=True)
        y += 24
    y = _draw_facts(drawing, y + 4, r, name)
    y = _draw_storage(drawing, y + 14, r, name)
    _draw_key(drawing, y, r, name)
    return drawing.picture(title, _words(r, name, title, call))


def _facts(r, name):
    bytes_in = count(r.offset * r.itemsize, "byte")
    elements = count(len(r.address), "element")
    return [
        f"shape {tuple_of(r.shape)}, strides {tuple_of(r.stride)}, offset {r.offset} ({bytes_in} in)",
        f"{name}: {elements} × {r.itemsize} = {count(len(r.address) * r.itemsize, 'byte')} of {r.dtype}",
        f"storage: {count(r.cells, 'cell')} = {count(r.storage_bytes, 'byte')} kept in memory",
    ]


def _draw_facts(drawing, y, r, name):
    """The tensor as it prints, and beside it what is known of it; returns where they end."""
    x = bottom = 0
    if len(r.shape) <= 3:
        labels = {index: r.values[cell] for index, cell in r.address.items()}
        layout = grid(r.shape, cell_width(labels.values()))
        if layout.width <= WIDE - 360:
            draw_grid(drawing, 0, y, layout, labels, dict.fromkeys(labels, USED))
            x, bottom = layout.width + 26, y + layout.height
    lines = _facts(r, name)
    for k, words in enumerate(lines):
        drawing.words(x, y + 10 + 20 * k, words, 13, "start")
    y += 10 + 20 * len(lines)
    badge = "CONTIGUOUS" if r.contiguous else "NOT CONTIGUOUS"
    draw_badge(drawing, x, y - 4, badge, r.contiguous)
    y += 32
    for words in _lines(r.verdict(), (WIDE - x) / 6.6):
        drawing.words(x, y + 2, words, 12.5, "start")
        y += 18
    return max(y, bottom)


def _lines(words, most):
    """The words broken into lines of at most `most` characters."""
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) >= most and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _names(r):
    """Cell number → the index that reaches it, with ×n if several do."""
    reached = {}
    for index, cell in r.address.items():
        reached.setdefault(cell, []).append(index)
    return {cell: (place(each[0]), f"×{len(each)}" if len(each) > 1 else "") for cell, each in reached.items()}


def _draw_storage(drawing, y, r, name):
    """The ruler itself, broken into lines that fit; returns where it ends."""
    names = _names(r)
    steps = [d for d, size in enumerate(r.shape) if size > 1 and r.address]
    steps.sort(key=lambda d: (abs(r.stride[d]), -d))
    gutter = max([words_width(_step_name(r, d), 12) + 10 for d in steps], default=0)
    width = max(cell_width(r.values, 36), *(words_width(label, 11, mono=True) + 5 for label, _ in names.values()), 36)
    shown = len(r.values)
    if not shown:
        drawing.words(0, y + 8, "the storage is empty: it has no cell", 13, "start", QUIET)
        return y + 20
    per_line = _cells_per_line(r, int((WIDE - gutter - 40) // width))
    lines = -(-shown // per_line)
    home = next(iter(r.address.values()), None)
    several = any(more for _, more in names.values())
    for k in range(lines):
        first, last = k * per_line, min((k + 1) * per_line, shown)
        lanes = len(steps) if home is not None and first <= home < last else 0
        top = y + (lanes * LANE + 6 if lanes else 0) + 18 + (13 if several else 0)
        for cell in sorted(range(first, last), key=r.role):
            _draw_cell(drawing, gutter + (cell - first) * width, top, width, r, cell, names)
        if lanes:
            _draw_steps(drawing, gutter, top - 18 - (13 if several else 0), width, r, steps, (first, last))
        if first <= r.offset <= last and (r.offset < last or last == shown):
            _draw_offset(drawing, gutter + (r.offset - first) * width, top, width, r)
        y = top + 28 + 22
        if first <= r.offset <= last:
            y += 26
    hidden = r.cells - shown
    if hidden:
        drawing.words(gutter, y + 8, f"… and {hidden} more cells outside {name}", 13, "start")
        y += 24
    return y


def _cells_per_line(r, fitting):
    """Cells in a line of the ruler: all if they fit, else a multiple of the largest stride, so that rows line up."""
    if len(r.values) <= fitting:
        return len(r.values)
    strides = [s for s in r.stride if 1 < s <= fitting]
    return fitting - fitting % max(strides, default=1)


def _draw_cell(drawing, x, top, width, r, cell, names):
    role = r.role(cell)
    paint(drawing, x, top, width, r.values[cell], {"used": USED, "skipped": SKIPPED, "outside": OUTSIDE}[role])
    if cell in names:
        label, more = names[cell]
        drawing.words(x + width / 2, top - 9, label, 11, mono=True)
        if more:
            drawing.words(x + width / 2, top - 22, more, 11, mono=True, bold=True)
    drawing.words(x + width / 2, top + 28 + 10, cell, 11, colour=QUIET, mono=True)


def _step_name(r, d):
    return f"stride[{d}] = {r.stride[d]}" + (" (stays)" if r.stride[d] == 0 else "")


def _draw_steps(drawing, gutter, bottom, width, r, steps, line):
    """One arrow for each dimension, in a lane of its own: from the first element to the next along it."""
    first, last = line
    home = gutter + (r.offset - first + 0.5) * width
    for lane, d in enumerate(steps):
        y = bottom - 13 - lane * LANE
        drawing.words(gutter - 8, y, _step_name(r, d), 12, "end")
        start = home - 8 + 4 * lane
        target = r.offset + r.stride[d]
        if r.stride[d] == 0:
            drawing.line((start, bottom), (start, y), (start + 12, y), (start + 12, bottom), colour=BLUE, arrow=True)
        elif target < last:
            end = gutter + (target - first + 0.5) * width - 8 + 4 * lane
            drawing.line((start, bottom), (start, y), (end, y), (end, bottom), colour=BLUE, arrow=True)
        else:
            edge = gutter + (last - first) * width
            drawing.line((start, bottom), (start, y), (edge, y), colour=BLUE, arrow=True, dashes="4 3")
            drawing.words(edge + 4, y, f"to {target}", 11, "start", mono=True)


def _draw_offset(drawing, x, top, width, r):
    at = x + (width / 2 if r.offset < len(r.values) else 0)
    y = top + 28 + 20
    drawing.shape((at, y), (at - 6, y + 10), (at + 6, y + 10), fill=BLUE)
    words = f"offset {r.offset}" + ("" if r.address else ": no element here")
    drawing.words(max(at - 6, 0) if at < 60 else at + 12, y + (18 if at < 60 else 7), words, 12, "start")


def _draw_key(drawing, y, r, name):
    roles = {r.role(cell) for cell in range(len(r.values))}
    entries = [(USED, f"element of {name}")] if "used" in roles else []
    entries += [(SKIPPED, "skipped, kept all the same")] if "skipped" in roles else []
    entries += [(OUTSIDE, f"outside {name}")] if "outside" in roles else []
    if entries:
        y = legend(drawing, 0, y + 12, entries)
    if any(more for _, more in _names(r).values()):
        drawing.words(0, y + 8, "×n: n indices reach the cell; the first one is written", 12, "start")


def _words(r, name, title, call):
    """The whole picture in words."""
    lines = [title, *([call] if call else []), *_facts(r, name)]
    lines.append(f"contiguous: {'yes' if r.contiguous else 'no'}: {r.verdict()}")
    for d, size in enumerate(r.shape):
        if size > 1 and r.address:
            lines.append(
                f"stride[{d}] = {r.stride[d]}: from cell {r.offset} to cell {r.offset + r.stride[d]} for the next index"
            )
    reached = {}
    for index, cell in r.address.items():
        reached.setdefault(cell, []).append(place(index))
    for role, run in groupby(range(len(r.values)), lambda cell: cell if cell in reached else r.role(cell)):
        first, *_, last = [*(cells := list(run)), cells[-1]]
        holds = " ".join(r.values[cell] for cell in cells)
        what = f"{name}{f' and {name}'.join(reached[role])}" if role in reached else role
        lines.append(f"{f'cell {first}' if first == last else f'cells {first} to {last}'}: {what}: {holds}")
    if r.cells > len(r.values):
        lines.append(f"and {r.cells - len(r.values)} more cells that {name} does not reach")
    return "\n".join(lines)
