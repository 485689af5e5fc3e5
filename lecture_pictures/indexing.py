"""The index overlay: what an index takes out of a tensor, and whether the result is a view or a copy."""

from dataclasses import dataclass

import torch

from lecture_pictures.cells import CHANGED, COPIED, USED, Panel, draw_badge, draw_panels, legend
from lecture_pictures.notation import DrawingError, count, drawable, labels_of, place, place_of, rows, tuple_of, written
from lecture_pictures.svg import Drawing

MOST = 120  # elements drawn


@dataclass(frozen=True)
class Overlay:
    """What `a[index]` is.

    Attributes:
        result: the result, on a twin of the tensor.
        source: index into the result → index into the tensor that it came from.
        shares: whether the result lives in the tensor's storage; None if there is nothing to share.
        parts: each part of the index in words.
    """

    twin: torch.Tensor
    result: torch.Tensor
    source: dict
    shares: bool | None
    parts: tuple

    @property
    def badge(self):
        return {True: "VIEW", False: "COPY", None: "EMPTY"}[self.shares]

    @property
    def meaning(self):
        return {
            True: "shares the storage: writing to one shows in the other",
            False: "has a storage of its own: writing to one leaves the other alone",
            None: "has no element, so there is nothing to share",
        }[self.shares]


def twin_of(t):
    """A tensor with the same values and the same layout over a copy of the whole storage."""
    return t.new_empty(0).set_(t.untyped_storage().clone(), t.storage_offset(), t.shape, t.stride())


def overlay(a, index, name="a"):
    """What `a[index]` takes, found on a twin of `a`.

    Raises:
        DrawingError: `a` or the result cannot be drawn (at most 120 elements, three dimensions), or the index does not
            fit.
    """
    twin = twin_of(drawable(a, name, MOST, ndim=3))
    try:
        result = twin[index]
        numbers = torch.arange(twin.numel()).view(twin.shape)[index]
    except (IndexError, TypeError, ValueError, RuntimeError) as refused:
        said = str(refused).splitlines()[0]
        raise DrawingError(
            f"{name} of shape {tuple_of(a.shape)} does not take the index [{code_of(index)}]: {said}"
        ) from refused
    drawable(result, f"{name}[{code_of(index)}]", MOST, ndim=3)
    places = [place_of(k, twin.shape) for k in range(twin.numel())]
    source = {place_of(k, result.shape): places[n] for k, n in enumerate(numbers.flatten().tolist())}
    return Overlay(twin, result, source, shares_storage(twin, result), tuple(_kinds(index)))


def shares_storage(x, y):
    """Whether two tensors live in one storage; None if one of the storages is empty, and so has no address.

    A result without elements may still share: `a[2:2]` is a view.
    """
    if not x.untyped_storage().nbytes():
        return None
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


def code_of(index):
    """An index as it stands between the brackets.

    >>> code_of((slice(1, 3), [0, 2], None, ...)), code_of(torch.tensor([True, False])), code_of((2,))
    ('1:3, [0, 2], None, ...', 'tensor([True, False])', '2,')
    """
    if isinstance(index, tuple):
        return ", ".join(map(code_of, index)) + ("," if len(index) == 1 else "") if index else "()"
    if index is Ellipsis:
        return "..."
    if isinstance(index, slice):
        start, stop, step = ("" if v is None else str(int(v)) for v in (index.start, index.stop, index.step))
        return f"{start}:{stop}" + (f":{step}" if step else "")
    if isinstance(index, torch.Tensor):
        return (
            f"tensor({_nested(index.tolist())})" if index.numel() <= 6 else f"tensor of shape {tuple_of(index.shape)}"
        )
    if hasattr(index, "tolist"):
        return _nested(index.tolist())
    return _nested(index) if isinstance(index, (list, range)) else str(index)


def _nested(values):
    if isinstance(values, (list, range)):
        return "[" + ", ".join(map(_nested, values)) + "]"
    return str(values)


def _kinds(index):
    """Each part of an index, and what NumPy's rules call it."""
    for part in index if isinstance(index, tuple) else (index,):
        yield f"{code_of(part)} is {_kind(part)}"  # of a lone slice the code is a colon


def _kind(part):
    if part is None or part is Ellipsis:
        return "basic: adds a dimension of size 1" if part is None else "basic: all the dimensions not named"
    if isinstance(part, slice):
        return "basic: a slice, the dimension stays"
    if isinstance(part, bool):
        return "advanced: one bool, adds a dimension"
    if isinstance(part, int):
        return "basic: a number, the dimension goes"
    values = (
        part if isinstance(part, torch.Tensor) else torch.as_tensor(list(part) if isinstance(part, range) else part)
    )
    if values.dtype is torch.bool:
        return f"advanced: a mask, {count(int(values.sum()), 'True', 'Trues')}"
    return f"advanced: {count(values.numel(), 'number')} in a list"


def index_overlay(a, index, write=None, name="a", result="b"):
    """`a` with the elements that `a[index]` takes, the result, its view or copy badge, and what a write does.

    Args:
        a: strided, at most 120 elements in at most 3 dimensions; it is left as it is: all happens on a twin.
        index: anything that `a` can be indexed with.
        write: None, or a value that is written to the first element of the result, to see whether `a` changes.
        name, result: how the two are called.
    Raises:
        DrawingError: see overlay; or there is nothing to write to.
    """
    seen = overlay(a, index, name)
    before, taken = labels_of(seen.twin), labels_of(seen.result)
    code = f"{result} = {name}[{code_of(index)}]"
    lines = [f"shape {tuple_of(seen.twin.shape)} → {tuple_of(seen.result.shape)}", *seen.parts]
    drawing, title = Drawing(), f"Index overlay: {code}"
    drawing.words(0, 0, title, 15, "start", bold=True)
    look = USED if seen.shares else COPIED
    chosen = dict.fromkeys(seen.source.values(), look)
    panels = [
        Panel(name, before, seen.twin.shape, chosen),
        Panel(result, taken, seen.result.shape, dict.fromkeys(taken, look)),
    ]
    words = [title, *lines, f"{seen.badge}: {result} {seen.meaning}"]
    words += rows(name, before, seen.twin.shape, dict.fromkeys(chosen, "[]")) + rows(result, taken, seen.result.shape)
    words += [f"{result}{place(i)} comes from {name}{place(j)}" for i, j in list(seen.source.items())[:6]]
    words += [f"and so on for {len(taken) - 6} more"] if len(taken) > 6 else []
    if write is not None:
        panel, said = _written_through(seen, write, before, name, result)
        panels.append(panel)
        words.append(said)
    y = _draw_badge(drawing, 20, seen, lines, result)
    y = draw_panels(drawing, y + 12, panels)
    if write is not None:
        drawing.words(0, y + 18, said, 13, "start")
        y += 28
    entries = [(look, f"taken by the index, {'shared' if seen.shares else 'copied'}")] if chosen else []
    entries += [(CHANGED, "changed by the write")] if write is not None and seen.shares else []
    if entries:
        legend(drawing, 0, y + 14, entries)
    return drawing.picture(title, "\n".join(words))


def _written_through(seen, value, before, name, result):
    """The panel of the tensor after the first element of the result was overwritten, and a sentence about it."""
    if not seen.source:
        raise DrawingError(f"{result} has no element to write to: leave write out, or take another index")
    first = next(iter(seen.source))
    twin = seen.twin
    try:
        seen.result[first] = value
    except (TypeError, RuntimeError) as refused:
        raise DrawingError(f"write is {value!r}, expected a number that fits {twin.dtype}") from refused
    after = labels_of(twin)
    moved = [i for i in after if after[i] != before[i]]
    code = f"{result}{place(first)} = {written(seen.result[first].item())}"
    if moved:
        said = f"{code} changes {name} as well, at {', '.join(place(i) for i in moved)}"
    elif seen.shares:
        said = f"{code} reaches {name}{place(seen.source[first])}, which held that value already"
    else:
        said = f"{code} leaves {name} as it was"
    return Panel(f"{name} after {code}", after, twin.shape, dict.fromkeys(moved, CHANGED)), said


def _draw_badge(drawing, y, seen, lines, result):
    """The verdict, and how the index was read; returns where that ends."""
    right = draw_badge(drawing, 0, y, seen.badge, bool(seen.shares))
    drawing.words(right + 10, y + 13, f"{result} {seen.meaning}", 13, "start")
    y += 38
    for words in lines:
        drawing.words(0, y + 8, words, 12.5, "start")
        y += 18
    return y
