"""A tensor drawn as a grid of cells, and what the looks of a cell mean."""

from dataclasses import dataclass
from itertools import product

from lecture_pictures.notation import place
from lecture_pictures.svg import BLUE, HATCH, INK, ORANGE, PAPER, PURPLE, QUIET, SKY, WIDE, YELLOW, words_width

HEIGHT = 28  # px of a cell


@dataclass(frozen=True)
class Look:
    """How a cell is painted. No two looks differ in colour alone: border, dashes, hatch or sign differ too."""

    fill: str = PAPER
    line: str = INK
    weight: float = 1.0
    dashed: bool = False
    hatch: str = ""
    star: bool = False


PLAIN = Look()
USED = Look(SKY, weight=2.5)
SKIPPED = Look(hatch=HATCH, line=QUIET)
OUTSIDE = Look(line=QUIET, dashed=True)
GHOST = Look(SKY, dashed=True, hatch="#8ccdf2")
CHANGED = Look(YELLOW, weight=2.5, star=True)
COPIED = Look(ORANGE, weight=2.5, dashed=True)
SECOND = Look(ORANGE, weight=1.5)
GHOST_SECOND = Look(ORANGE, weight=1.5, dashed=True, hatch="#f4cf80")
RESULT = Look(PURPLE, weight=1.0)


def paint(drawing, x, y, width, label, look, height=HEIGHT, size=13):
    """One cell with its upper left corner at (x, y)."""
    drawing.box(x, y, width, height, look.fill, look.line, look.weight, look.dashed)
    if look.hatch:
        drawing.hatch(x, y, width, height, look.hatch)
    drawing.words(x + width / 2, y + height / 2, label, size, mono=True)
    if look.star:
        drawing.star(x + width - 2, y + 1)


def legend(drawing, x, y, entries, wide=WIDE):
    """A row (or rows) of sample cells with what they mean. entries: (look, words) pairs."""
    at = x
    for look, words in entries:
        width = 22 + 8 + words_width(words, 12) + 18
        if at > x and at + width > x + wide:
            at, y = x, y + 24
        drawing.box(at, y - 8, 22, 16, look.fill, look.line, look.weight, look.dashed)
        if look.hatch:
            drawing.hatch(at, y - 8, 22, 16, look.hatch)
        if look.star:
            drawing.star(at + 21, y - 7, 6)
        drawing.words(at + 30, y, words, 12, "start")
        at += width
    return y + 14


@dataclass(frozen=True)
class Grid:
    """Where the cells of a tensor lie: one row for 1-d, blocks side by side for 3-d.

    Attributes:
        corners: index → (x, y) of the upper left corner, relative to the grid's own.
        headers: (x, y, words) of the row and column numbers.
    """

    corners: dict
    headers: list
    cell: float
    width: float
    height: float


def grid(shape, cell):
    """The layout of a tensor of up to three dimensions, with cells `cell` px wide.

    A matrix is one tile, three dimensions are a tile for each first index. Tiles stand side by side, on a new line
    where there is no room; a tile that is itself too wide is cut into several, as torch prints it.
    """
    shape = tuple(shape)
    blocks, rows, cols = (1, 1, 1, *shape)[-3:]
    left = 22 if len(shape) >= 2 else 0
    top = (16 if shape else 0) + (18 if len(shape) == 3 else 0)
    corners, headers = {}, []
    if 0 in shape:
        return Grid(corners, headers, cell, max(cell, 60), HEIGHT)
    fitting = max(1, int((WIDE - left) // cell))
    x, y, width = 0, 0, 0
    for b, first in product(range(blocks), range(0, cols, fitting)):
        columns = range(first, min(first + fitting, cols))
        tile = left + len(columns) * cell
        if x and x + tile > WIDE:
            x, y = 0, y + top + rows * HEIGHT + 14
        for r, c in product(range(rows), columns):
            corners[(b, r, c)[3 - len(shape) :]] = (x + left + (c - first) * cell, y + top + r * HEIGHT)
        headers += _numbers(len(shape), x + left, y + top, cell, rows, columns, b)
        width = max(width, x + tile)
        x += tile + 18
    return Grid(corners, headers, cell, width, y + top + rows * HEIGHT)


def _numbers(ndim, x, y, cell, rows, columns, block):
    """The headers of a tile whose cells begin at (x, y)."""
    headers = [(x + (k + 0.5) * cell, y - 8, str(c)) for k, c in enumerate(columns) if ndim]
    headers += [(x - 11, y + (r + 0.5) * HEIGHT, str(r)) for r in range(rows) if ndim >= 2]
    return [*headers, (x + len(columns) * cell / 2, y - 25, place((block, ":", ":")))] if ndim == 3 else headers


def cell_width(labels, least=34):
    """Pixels that fit every label."""
    return max([least, *(words_width(label, 13, mono=True) + 12 for label in labels)])


def draw_grid(drawing, x, y, layout, labels, looks):
    """The grid with its upper left corner at (x, y).

    Args:
        labels: index → what stands in the cell.
        looks: index → Look; a cell that is missing is PLAIN.
    """
    for hx, hy, words in layout.headers:
        drawing.words(x + hx, y + hy, words, 11, colour=QUIET, mono=True)
    if not layout.corners:
        drawing.box(x, y, layout.width, HEIGHT, line=QUIET, dashed=True)
        drawing.words(x + layout.width / 2, y + HEIGHT / 2, "empty", 12, colour=QUIET)
    order = sorted(layout.corners, key=lambda i: looks.get(i, PLAIN).weight)  # thick borders over thin ones
    for index in order:
        dx, dy = layout.corners[index]
        paint(drawing, x + dx, y + dy, layout.cell, labels[index], looks.get(index, PLAIN))


@dataclass(frozen=True)
class Panel:
    """A tensor with a caption: what draw_grid takes, and lines of words between the two."""

    caption: str
    labels: dict
    shape: tuple
    looks: dict
    notes: tuple = ()


def draw_panels(drawing, y, panels, gap=34):
    """The panels side by side from y down, on a new line where one does not fit; returns where they end."""
    x, bottom = 0, y
    for panel in panels:
        layout = grid(panel.shape, cell_width(panel.labels.values(), 30))
        headings = words_width(panel.caption, 13, bold=True), *(words_width(note, 12) for note in panel.notes)
        width = max(layout.width, *headings)
        if x and x + width > WIDE:
            x, y = 0, bottom + 20
        drawing.words(x, y + 8, panel.caption, 13, "start", bold=True)
        for k, note in enumerate(panel.notes):
            drawing.words(x, y + 26 + 17 * k, note, 12, "start")
        top = y + 22 + 17 * len(panel.notes)
        draw_grid(drawing, x, top, layout, panel.labels, panel.looks)
        bottom = max(bottom, top + layout.height)
        x += width + gap
    return bottom


def draw_badge(drawing, x, y, words, filled):
    """A verdict in a frame: filled with a solid border, or blank with a dashed one; returns its right edge."""
    width = words_width(words, 13, bold=True) + 16
    drawing.box(x, y, width, 25, BLUE if filled else PAPER, INK, 2, dashed=not filled, round=4)
    drawing.words(x + width / 2, y + 12.5, words, 13, colour=PAPER if filled else INK, bold=True)
    return x + width
