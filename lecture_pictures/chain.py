"""Forward and backward through the graph of sin(log(x² + 1)), one step at a time, with the values that are kept."""

from dataclasses import dataclass
from math import cos, isfinite, log, sin

from lecture_pictures.notation import DrawingError
from lecture_pictures.svg import BLUE, INK, ORANGE, PAPER, SKY, Drawing

LEFT, BOX, APART = 96, 92, 176  # px
STEPS = 7  # three forward, four backward


@dataclass(frozen=True)
class Operation:
    """One node of the graph.

    Attributes:
        made, taken: the names of its output and of its input.
        formula: of the output.
        slope: the derivative of the output with respect to the input, as written.
        forward, backward: functions of the input's value: the output, and the slope. The backward pass needs the input
            again, so the forward pass keeps it.
    """

    made: str
    taken: str
    formula: str
    forward: object
    slope: str
    backward: object


OPERATIONS = (
    Operation("g", "x", "x² + 1", lambda x: x * x + 1, "2·x", lambda x: 2 * x),
    Operation("h", "g", "log(g)", log, "1 / g", lambda g: 1 / g),
    Operation("k", "h", "sin(h)", sin, "cos(h)", cos),
)
NAMES = ("x", "g", "h", "k")


def values_at(x):
    """Name → value after the whole forward pass."""
    values = {"x": float(x)}
    for op in OPERATIONS:
        values[op.made] = op.forward(values[op.taken])
    return values


def gradients_at(x):
    """Name → dk/dname, and name → slope of the operation that takes it."""
    values, gradients, slopes = values_at(x), {"k": 1.0}, {}
    for op in reversed(OPERATIONS):
        slopes[op.taken] = op.backward(values[op.taken])
        gradients[op.taken] = gradients[op.made] * slopes[op.taken]
    return gradients, slopes


def chain_step(step, x=1.0):
    """The graph after `step` steps: 0 is the start, 1 to 3 go forward, 4 to 7 go backward.

    Args:
        x: the input, a finite number between -1e6 and 1e6.
    Raises:
        DrawingError: the step does not exist, or x is not such a number.
    """
    if step not in range(STEPS + 1):
        raise DrawingError(f"step is {step}, expected 0 to {STEPS}")
    if not (isinstance(x, (int, float)) and isfinite(x) and abs(x) <= 1e6):
        raise DrawingError(f"x is {x!r}, expected a number between -1e6 and 1e6")
    values, (gradients, slopes) = values_at(x), gradients_at(x)
    known = NAMES[: 1 + min(step, 3)]
    reached = NAMES[4 - max(step - 3, 0) :]
    title = f"sin(log(x² + 1)) at x = {_four(x)}, step {step} of {STEPS}"
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    said = _said(step, values, gradients, slopes)
    drawing.words(0, 24, said, 13, "start")
    drawing.words(0, 62, "forward →", 13, "start", bold=True)
    drawing.words(0, 176, "← backward", 13, "start", bold=True)
    for k, name in enumerate(NAMES):
        x = LEFT + APART * k
        _draw_value(drawing, x, name, values[name] if name in known else None, step == k and step < 4)
        _draw_gradient(drawing, x, name, gradients[name] if name in reached else None, step == 7 - k and step > 3)
    for k, op in enumerate(OPERATIONS):
        now = {k + 1: "forward", 7 - k: "backward"}.get(step, "")
        slope = slopes[op.taken] if op.taken in reached else None
        _draw_operation(drawing, LEFT + APART * k + BOX, op, now, slope, op.made in known)
    _draw_key(drawing, 232)
    return drawing.picture(title, _words(title, said, known, reached, values, gradients, slopes))


def _said(step, values, gradients, slopes):
    """What happens in the step, in one sentence."""
    if step == 0:
        return f"start: only x = {_four(values['x'])} is known"
    if step <= 3:
        op = OPERATIONS[step - 1]
        made, taken = f"{op.made} = {op.formula} = {_four(values[op.made])}", f"{op.taken} = {_four(values[op.taken])}"
        return f"forward: {made}; {taken} is kept for the way back"
    if step == 4:
        return "backward: the output moves with itself, dk/dk = 1"
    op = OPERATIONS[7 - step]
    chain = f"dk/d{op.taken} = dk/d{op.made} · {op.slope}"
    numbers = f"{_four(gradients[op.made])} · {_four(slopes[op.taken])} = {_four(gradients[op.taken])}"
    return f"backward: {chain} = {numbers}"


def _four(value):
    """Four digits after the point, without a negative zero."""
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.3e}"
    return f"{round(value, 4) + 0.0:.4f}"


def _draw_value(drawing, x, name, value, now):
    words = f"{name} = {'?' if value is None else _four(value)}"
    drawing.box(x, 46, BOX, 32, PAPER if value is None else SKY, INK, 3 if now else 1, value is None, round=6)
    drawing.words(x + BOX / 2, 62, words, 13 if len(words) <= 10 else 11, mono=True)


def _draw_gradient(drawing, x, name, gradient, now):
    drawing.words(x + BOX / 2, 150, f"dk/d{name}", 12, mono=True)
    drawing.box(x, 160, BOX, 32, PAPER if gradient is None else ORANGE, INK, 3 if now else 1, gradient is None)
    drawing.words(x + BOX / 2, 176, "?" if gradient is None else _four(gradient), 13, mono=True)


def _draw_operation(drawing, x, op, now, slope, kept):
    """The arrows between two values, forward above, backward below; now: the one of this step."""
    left, middle, right = x + 4, x + (APART - BOX) / 2, x + APART - BOX - 4
    for way, ends in (("forward", ((left, 62), (right, 62))), ("backward", ((right, 176), (left, 176)))):
        drawing.line(*ends, colour=BLUE if now == way else INK, weight=3 if now == way else 1.5, arrow=True)
    drawing.words(middle, 48, op.formula, 13, mono=True)
    if kept:
        drawing.words(middle, 98, f"keeps {op.taken}", 12)
        drawing.line((middle, 108), (middle, 164), dashes="3 3", weight=1, arrow=True)
    drawing.words(middle, 192, f"· {op.slope}", 13, mono=True)
    if slope is not None:
        drawing.words(middle, 208, f"= {_four(slope)}", 11, mono=True)


def _draw_key(drawing, y):
    drawing.box(0, y - 8, 22, 16, SKY, INK, 1, round=4)
    right = drawing.words(30, y, "value, round corners", 12, "start")
    drawing.box(right + 20, y - 8, 22, 16, ORANGE, INK, 1)
    right = drawing.words(right + 50, y, "gradient, square corners", 12, "start")
    drawing.box(right + 20, y - 8, 22, 16, PAPER, INK, 1, dashed=True)
    right = drawing.words(right + 50, y, "not known yet", 12, "start")
    drawing.box(right + 20, y - 8, 22, 16, PAPER, INK, 3)
    drawing.words(right + 50, y, "made in this step", 12, "start")


def _words(title, said, known, reached, values, gradients, slopes):
    lines = [title, said]
    for name in NAMES:
        value = f"{name} = {_four(values[name])}" if name in known else f"{name} not known yet"
        gradient = f"dk/d{name} = {_four(gradients[name])}" if name in reached else f"dk/d{name} not known yet"
        lines.append(f"{value}; {gradient}")
    for op in OPERATIONS:
        if op.made in known:
            slope = f", used as {op.slope} = {_four(slopes[op.taken])}" if op.taken in reached else ""
            lines.append(f"{op.made} = {op.formula} keeps {op.taken}{slope}")
    return "\n".join(lines)
