"""The stride explorer: any size, stride and offset laid over one storage, kept inside it."""

from dataclasses import dataclass, replace

import torch

from lecture_pictures.notation import DrawingError, count, tuple_of
from lecture_pictures.picture import stacked
from lecture_pictures.ruler import reach, ruler_of

MOST_CELLS = 48
LARGEST_SIZE = 8  # of a dimension with stride 0, which could be repeated for ever


@dataclass(frozen=True)
class Strided:
    """A way to read a storage: element i, j, ... lies in cell offset + i·stride[0] + j·stride[1] + ..."""

    size: tuple
    stride: tuple
    offset: int = 0

    def __post_init__(self):
        if len(self.size) != len(self.stride):
            raise DrawingError(
                f"size {self.size} and stride {self.stride} have {len(self.size)} and {len(self.stride)} numbers: "
                "they must have one for each dimension"
            )

    @property
    def last_cell(self):
        """The furthest cell that is read; None if nothing is."""
        if 0 in self.size:
            return None
        return self.offset + sum((n - 1) * s for n, s in zip(self.size, self.stride, strict=True))


def limits(cells, view):
    """How far each number of a legal view can be raised while the others stay.

    Args:
        cells: of the storage, > 0.
        view: a Strided that stays inside.
    Returns:
        A Strided of the largest legal values: each of them, put into `view` alone, stays inside the storage.
    """
    room = cells - 1 - view.last_cell
    pairs = list(zip(view.size, view.stride, strict=True))
    sizes = [n + room // s if s else max(LARGEST_SIZE, n) for n, s in pairs]
    strides = [s + room // (n - 1) if n > 1 else max(cells - 1, s) for n, s in pairs]
    return Strided(tuple(sizes), tuple(strides), view.offset + room)


def clipped(cells, view):
    """A legal view near this one, with sizes of at least 1: the offset is brought inside, then each size in turn."""
    size, stride = [max(n, 1) for n in view.size], [max(s, 0) for s in view.stride]
    legal = Strided((1,) * len(size), tuple(min(s, cells - 1) for s in stride), min(max(view.offset, 0), cells - 1))
    for d, n in enumerate(size):
        most = limits(cells, legal).size[d]
        legal = replace(legal, size=(*legal.size[:d], min(n, most), *legal.size[d + 1 :]))
    return legal


def stride_view(size, stride, offset=0, cells=12, name="v"):
    """What `torch.arange(cells).as_strided(size, stride, offset)` reads, on the memory ruler.

    Raises:
        DrawingError: a number is negative, the lengths differ, or the view would read outside the storage.
    """
    view = Strided(tuple(size), tuple(stride), offset)
    _check(view, cells)
    t = torch.arange(cells).as_strided(view.size, view.stride, offset)
    call = f"{name} = torch.arange({cells}).as_strided({tuple_of(size)}, {tuple_of(stride)}, {offset})"
    title = f"Stride explorer: size {tuple_of(size)}, stride {tuple_of(stride)}, offset {offset}"
    return ruler_of(reach(t, name), name, title, call)


def _check(view, cells):
    if not 1 <= cells <= MOST_CELLS:
        raise DrawingError(f"cells is {cells}, expected 1 to {MOST_CELLS}")
    if min((*view.size, *view.stride, view.offset)) < 0:
        raise DrawingError(
            f"size {view.size}, stride {view.stride}, offset {view.offset}: torch allows no negative number here"
        )
    if view.last_cell is not None and view.last_cell >= cells:
        raise DrawingError(
            f"size {view.size}, stride {view.stride}, offset {view.offset} would read cell {view.last_cell}, "
            f"the storage has {count(cells, 'cell')}, 0 to {cells - 1}: lower a number"
        )
    if view.last_cell is None and view.offset > cells:
        raise DrawingError(f"offset {view.offset} lies outside the storage of {count(cells, 'cell')}: lower it")


def stride_states():
    """Four views of twelve cells that show what the sliders show: rows, columns, steps and repetition."""
    return stacked(
        "Stride explorer: four views of one storage",
        [
            stride_view((3, 4), (4, 1), name="rows"),
            stride_view((4, 3), (1, 4), name="columns"),
            stride_view((2, 2), (8, 2), 1, name="steps"),
            stride_view((3, 4), (0, 1), 4, name="repeated"),
        ],
    )
