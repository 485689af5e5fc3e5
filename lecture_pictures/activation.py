"""Functions of one number, drawn above their gradients, with the places marked where either is not a number."""

from dataclasses import dataclass
from math import floor, isfinite, isnan, log10

import torch

from lecture_pictures.notation import DrawingError, count, written
from lecture_pictures.svg import BLUE, GREEN, INK, PURPLE, QUIET, VERMILLION, Drawing, words_width

POINTS = 121
PLOT_WIDTH, PLOT_HEIGHT, LEFT = 600, 150, 56  # px
STYLES = ((BLUE, "", "dot"), (VERMILLION, "7 4", "square"), (GREEN, "2 3", "triangle"), (PURPLE, "9 3 2 3", "cross"))


@dataclass(frozen=True)
class Curve:
    """A function and its gradient at POINTS places, as autograd finds them.

    Attributes:
        x, value, gradient: lists of floats of equal length.
    """

    name: str
    x: list
    value: list
    gradient: list

    def faults(self, part):
        """The runs of places where the "value" or "gradient" is NaN or infinite: (what, first x, last x, how many)."""
        runs = []
        for x, v in zip(self.x, getattr(self, part), strict=True):
            what = None if isfinite(v) else "NaN" if isnan(v) else "infinite"
            if what and runs and runs[-1][0] == what and runs[-1][4] == x:
                runs[-1] = (what, runs[-1][1], x, runs[-1][3] + 1, self._next(x))
            elif what:
                runs.append((what, x, x, 1, self._next(x)))
        return [run[:4] for run in runs]

    def _next(self, x):
        k = self.x.index(x) + 1
        return self.x[k] if k < len(self.x) else None


def curve(function, name, low, high, dtype):
    """The function at POINTS equal steps from low to high.

    Raises:
        DrawingError: it is not elementwise, or has no gradient.
    """
    steps = [round(low + (high - low) * k / (POINTS - 1), 9) for k in range(POINTS)]
    x = torch.tensor(steps, dtype=dtype, requires_grad=True)
    y = function(x)
    if not isinstance(y, torch.Tensor) or y.shape != x.shape:
        got = f"shape {tuple(y.shape)}" if isinstance(y, torch.Tensor) else f"a {type(y).__name__}"
        raise DrawingError(f"{name} gives {got} for an input of shape {tuple(x.shape)}: it must work elementwise")
    if not y.requires_grad:
        raise DrawingError(f"{name} gives a result without gradient: build it from torch functions, without detach")
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return Curve(name, steps, y.detach().tolist(), gradient.tolist())


def activation(functions, low=-6.0, high=6.0, title=None, dtype=torch.float32):
    """The curves of up to four functions, and below them the curves of their gradients.

    Args:
        functions: name → function of a float tensor that works elementwise and can be differentiated.
        low, high: the ends of the x axis.
        dtype: in which everything is computed; what overflows depends on it.
    Raises:
        DrawingError: no function or more than four, low ≥ high, or a function that cannot be drawn.
    """
    if not 1 <= len(functions) <= len(STYLES):
        raise DrawingError(f"{count(len(functions), 'function')} given, expected 1 to {len(STYLES)}")
    if not (isfinite(low) and isfinite(high) and low < high):
        raise DrawingError(f"low is {low} and high is {high}, expected two finite numbers with low < high")
    curves = [curve(function, name, low, high, dtype) for name, function in functions.items()]
    title = title or f"{', '.join(functions)} and the gradient"
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    y = _draw_key(drawing, 24, curves)
    for part in ("value", "gradient"):
        y = _draw_plot(drawing, y + 26, curves, part, low, high)
    for words in _fault_sentences(curves):
        drawing.bolt(8, y + 16)
        drawing.words(22, y + 16, words, 12.5, "start")
        y += 20
    return drawing.picture(title, _words(title, curves))


def _draw_key(drawing, y, curves):
    """Which line style belongs to which function; returns where that ends."""
    x = 0
    for c, (colour, dashes, marker) in zip(curves, STYLES, strict=False):
        width = 54 + words_width(c.name, 13) + 20
        if x and x + width > LEFT + PLOT_WIDTH:
            x, y = 0, y + 22
        drawing.line((x, y), (x + 44, y), colour=colour, weight=2.2, dashes=dashes)
        _draw_marker(drawing, x + 22, y, marker, colour)
        drawing.words(x + 52, y, c.name, 13, "start")
        x += width
    return y + 8


def _draw_marker(drawing, x, y, marker, colour):
    if marker == "dot":
        drawing.dot(x, y, 4, colour)
    elif marker == "square":
        drawing.shape((x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4), fill=colour)
    elif marker == "triangle":
        drawing.shape((x, y - 5), (x + 5, y + 4), (x - 5, y + 4), fill=colour)
    else:
        drawing.line((x - 4, y - 4), (x + 4, y + 4), colour=colour, weight=2.2)
        drawing.line((x - 4, y + 4), (x + 4, y - 4), colour=colour, weight=2.2)


def _draw_plot(drawing, y, curves, part, low, high):
    """One pair of axes with a line for each function; returns where it ends."""
    ys = [v for c in curves for v in getattr(c, part) if isfinite(v)]
    bottom, top = _span(ys)

    def at(x, v):
        return LEFT + PLOT_WIDTH * (x - low) / (high - low), y + PLOT_HEIGHT * (top - v) / (top - bottom)

    drawing.words(0, y - 13, part, 13, "start", bold=True)
    drawing.line((LEFT, y), (LEFT, y + PLOT_HEIGHT), (LEFT + PLOT_WIDTH, y + PLOT_HEIGHT), weight=1)
    for v in _ticks(bottom, top, 4):
        drawing.line((LEFT, at(low, v)[1]), (LEFT + PLOT_WIDTH, at(low, v)[1]), colour="#d0d0d0", weight=1)
        drawing.words(LEFT - 6, at(low, v)[1], written(v), 11, "end", QUIET, mono=True)
    for x in _ticks(low, high, 6):
        drawing.line((at(x, 0)[0], y + PLOT_HEIGHT), (at(x, 0)[0], y + PLOT_HEIGHT + 4), weight=1)
        drawing.words(at(x, 0)[0], y + PLOT_HEIGHT + 12, written(x), 11, "middle", QUIET, mono=True)
    for k, (c, style) in enumerate(zip(curves, STYLES, strict=False)):
        _draw_curve(drawing, c, getattr(c, part), at, style, k)
        for _, first, last, _ in c.faults(part):
            left, right = max(at(first, bottom)[0], LEFT + 8), at(last, bottom)[0]
            height = y + PLOT_HEIGHT - 10 - 20 * k
            drawing.line((left, height), (right, height), colour=INK, weight=3, dashes="1 2")
            for x in (left, right) if right - left > 12 else ((left + right) / 2,):
                drawing.bolt(x, height, 18)
    return y + PLOT_HEIGHT + 20


def _draw_curve(drawing, c, values, at, style, k):
    """The finite pieces of a curve, with a few markers on it."""
    colour, dashes, marker = style
    piece = []
    for x, v in [*zip(c.x, values, strict=True), (None, float("nan"))]:
        if isfinite(v):
            piece.append(at(x, v))
            continue
        if len(piece) > 1:
            drawing.line(*piece, colour=colour, weight=2.2, dashes=dashes)
        piece = []
    for j in range(10 + 7 * k, len(values), 30):
        if isfinite(values[j]):
            _draw_marker(drawing, *at(c.x[j], values[j]), marker, colour)


def _span(values):
    """The ends of a y axis that shows all the values and zero."""
    bottom, top = min([0.0, *values]), max([0.0, *values])
    if top - bottom < 1e-12:
        return bottom - 1.0, top + 1.0
    margin = (top - bottom) * 0.06
    return bottom - margin, top + margin


def _ticks(low, high, about):
    """Round numbers between low and high."""
    raw = (high - low) / about
    power = 10 ** floor(log10(raw))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= raw * 0.999)
    k = -floor(-low / step)
    ticks = []
    while k * step <= high + step * 1e-9:
        ticks.append(round(k * step, 12) + 0.0)
        k += 1
    return ticks


def _fault_sentences(curves):
    for c in curves:
        for part in ("value", "gradient"):
            for what, first, last, n in c.faults(part):
                where = f"at x = {written(first)}" if n == 1 else f"from x = {written(first)} to {written(last)}"
                yield f"the {part} of {c.name} is {what} {where} ({count(n, 'point')})"


def _words(title, curves):
    lines = [title]
    for c in curves:
        lines += [c.name, f"{'x':>9} {'value':>9} {'gradient':>9}"]
        for j in range(0, POINTS, (POINTS - 1) // 8):
            lines.append(" ".join(f"{written(v):>9}" for v in (c.x[j], c.value[j], c.gradient[j])))
    faults = list(_fault_sentences(curves))
    return "\n".join([*lines, *(faults or ["every value and every gradient is finite"])])
