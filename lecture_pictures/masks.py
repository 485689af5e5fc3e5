"""The mask grid: what counts, what is hidden, and whether what is hidden reaches a result."""

from dataclasses import dataclass
from math import isfinite

import torch

from lecture_pictures.cells import USED, Look, Panel, draw_badge, draw_grid, draw_panels, grid, legend
from lecture_pictures.notation import DrawingError, count, drawable, dtype_of, labels_of, rows, tuple_of
from lecture_pictures.svg import INK, QUIET, Drawing

MOST = 64
HIDDEN = Look(line=QUIET, dashed=True)
RESULT = Look(weight=1.5)


@dataclass(frozen=True)
class Probe:
    """What a function made of masked data.

    Attributes:
        result: on the data as given. poisoned: with other values under the mask; None if it was not asked for.
    """

    result: torch.Tensor
    poisoned: torch.Tensor | None

    @property
    def leaks(self):
        """Whether what is hidden reached the result. NaN counts as equal to NaN."""
        if self.poisoned is None:
            return None
        return not torch.equal(*(torch.nan_to_num(t, 1.25, 2.5, -2.5) if t.is_floating_point() else t for t in self))

    def __iter__(self):
        return iter((self.result, self.poisoned))


def poisoned(data, mask):
    """The data with something conspicuous under the mask: NaN, or the largest number of an integer dtype."""
    if data.dtype is torch.bool:
        return torch.where(mask, data, ~data)
    worst = float("nan") if data.is_floating_point() or data.is_complex() else torch.iinfo(data.dtype).max
    return data.masked_fill(~mask, worst)


def mask_grid(data, mask, poison=False, function=None, name="x", called="f"):
    """Data under a mask: what counts with its value, what is hidden as a dot, NaN under the mask with a bolt.

    Args:
        data: strided, at most 64 elements in at most 3 dimensions; never changed.
        mask: bool, same shape; True where the data counts (the convention of MaskedTensor).
        poison: put NaN under the mask (in integer data the largest number) before drawing and calling.
        function: called with (data, mask); returns a tensor. With poison it is called on both, and the two results are
            compared: what is hidden must never matter.
        called: how the function is called in the picture.
    Raises:
        DrawingError: the mask is not a bool tensor of the same shape, or something cannot be drawn.
    """
    data, mask = drawable(data, name, MOST, ndim=3), mask_of(mask, data, name)
    shown = poisoned(data, mask) if poison else data
    labels = labels_of(shown)
    counts = {i: bool(v) for i, v in zip(labels, mask.flatten().tolist(), strict=True)}
    hidden_values = [(i, v) for i, v in zip(labels, shown.flatten().tolist(), strict=True) if not counts[i]]
    bad = {i for i, v in hidden_values if poison or not _finite(v)}
    counting = f"{count(sum(counts.values()), 'element')} of {len(counts)} count"
    title = f"Mask grid of {name}, {tuple_of(data.shape)}: {counting}{', poisoned' if poison else ''}"
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    words = [title]
    drawing.words(0, 30, f"{name} ({dtype_of(data)})", 13, "start", bold=True)
    hidden = {i: "" if not counts[i] else label for i, label in labels.items()}
    layout = grid(data.shape, max(40, max((len(v) for v in labels.values()), default=0) * 8 + 12))
    draw_grid(drawing, 0, 44, layout, hidden, {i: USED if counts[i] else HIDDEN for i in labels})
    for i, (dx, dy) in layout.corners.items():
        if not counts[i]:
            _draw_hidden(drawing, dx + layout.cell / 2, 44 + dy + 14, labels[i], i in bad)
    signs = {i: v if counts[i] else f"⚡{v}" if i in bad else "·" for i, v in labels.items()}
    words += [*rows(name, signs, data.shape), "· hidden by the mask" + (", ⚡ hidden and dangerous" if bad else "")]
    y = 44 + layout.height
    if function is not None:
        y, said = _draw_result(drawing, y + 22, _probe(function, data, mask, poison, called), called, name)
        words += said
    _draw_key(drawing, y + 22, counts, bad, labels)
    return drawing.picture(title, "\n".join(words))


def mask_of(mask, data, name):
    """The mask, if it is a bool tensor of the shape of data; else a DrawingError says what it is."""
    if not isinstance(mask, torch.Tensor) or mask.dtype is not torch.bool:
        got = mask.dtype if isinstance(mask, torch.Tensor) else type(mask).__name__
        raise DrawingError(f"the mask is {got}, expected torch.bool: compare to make one, as in lengths > 0")
    if mask.shape != data.shape:
        raise DrawingError(f"the mask is {tuple_of(mask.shape)}, {name} is {tuple_of(data.shape)}: they must agree")
    return drawable(mask, "mask", MOST, ndim=3)


def _finite(value):
    return isfinite(abs(value))


def _draw_hidden(drawing, x, y, label, bad):
    if not bad:
        drawing.dot(x, y, 4, INK)
        return
    drawing.bolt(x - 4 * min(len(label), 5), y, 16)
    drawing.words(x + 6, y, label[:5], 11, mono=True)


def _probe(function, data, mask, poison, called):
    """The function on copies, so that what it writes to is not the caller's."""
    try:
        result = function(data.clone(), mask.clone())
        other = function(poisoned(data, mask), mask.clone()) if poison else None
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as refused:
        raise DrawingError(f"{called} failed on the data: {type(refused).__name__}: {refused}") from refused
    said = f"the result of {called}"
    results = (t if t is None else drawable(torch.as_tensor(t), said, MOST, ndim=3) for t in (result, other))
    return Probe(*results)


def _draw_result(drawing, y, probe, called, name):
    """The result, and with poison the two results and the verdict; returns where they end, and the words."""
    panels = [_panel(f"{called}({name}, mask)", probe.result)]
    words = rows(f"{called}({name}, mask)", labels_of(probe.result), probe.result.shape)
    if probe.poisoned is not None:
        panels.append(_panel("the same, poisoned", probe.poisoned))
        words += rows("the same, poisoned", labels_of(probe.poisoned), probe.poisoned.shape)
    y = draw_panels(drawing, y, panels)
    if probe.leaks is None:
        return y, words
    badge = "LEAK" if probe.leaks else "NO LEAK"
    said = "what is hidden changes the result" if probe.leaks else "what is hidden does not matter"
    right = draw_badge(drawing, 0, y + 14, badge, not probe.leaks)
    drawing.words(right + 10, y + 26, said, 13, "start")
    return y + 40, [*words, f"{badge}: {said}"]


def _panel(caption, t):
    labels = labels_of(t)
    return Panel(caption, labels, tuple(t.shape), dict.fromkeys(labels, RESULT))


def _draw_key(drawing, y, counts, bad, labels):
    x = 0
    if any(counts.values()):
        legend(drawing, 0, y, [(USED, "counts")])
        x = 110
    if any(not c for i, c in counts.items() if i not in bad):
        legend(drawing, x, y, [(HIDDEN, "hidden")])
        drawing.dot(x + 11, y, 3, INK)
        x += 110
    if bad:
        legend(drawing, x, y, [(HIDDEN, f"hidden: {labels[min(bad)][:5]} under the mask")])
        drawing.bolt(x + 11, y, 14)
