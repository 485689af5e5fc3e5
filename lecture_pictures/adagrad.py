"""One step of Adagrad with a sparse gradient: which rows it touches, and what happens to state and parameter."""

from dataclasses import dataclass

import torch

from lecture_pictures.cells import CHANGED, HEIGHT, Look, cell_width, legend, paint
from lecture_pictures.notation import DrawingError, count, drawable, labels_of, place, tuple_of, written
from lecture_pictures.svg import BLUE, ORANGE, QUIET, WIDE, Drawing, words_width

MOST_ROWS, MOST_COLUMNS = 12, 4
ROW = 34  # px from row to row
GIVEN = Look(ORANGE, weight=1.5)
ABSENT = Look(line=QUIET, dashed=True)


@dataclass(frozen=True)
class Step:
    """One step, all of shape (rows, columns).

    Attributes:
        given: where the gradient has an entry. grad: the gradient, 0 elsewhere.
        state, new_state: sums of squared gradients before and after.
        param, new_param: before and after.
        duplicates: whether an entry was given more than once (they were added first).
    """

    given: torch.Tensor
    grad: torch.Tensor
    state: torch.Tensor
    new_state: torch.Tensor
    param: torch.Tensor
    new_param: torch.Tensor
    duplicates: bool

    @property
    def touched(self):
        """The numbers of the rows with an entry."""
        return self.given.any(1).nonzero().flatten().tolist()


def adagrad_step(param, state, grad, lr=0.1, eps=1e-10):
    """state + grad², and param − lr · grad / (√state + eps), only where the gradient has an entry.

    Raises:
        DrawingError: shapes that do not agree, a gradient that is not sparse_coo, negative lr, eps or state.
    Source: Duchi, Hazan and Singer (2011); docs.pytorch.org/docs/stable/generated/torch.optim.Adagrad.html
    """
    most = MOST_ROWS * MOST_COLUMNS
    param, state = drawable(param, "param", most), drawable(state, "state", most)
    _check(param, state, grad, lr, eps)
    # indices() refuses a gradient that is not coalesced, and coalesce() would hide the duplicates
    places, values = tuple(grad.detach()._indices()), grad.detach()._values()
    dense = torch.zeros_like(param).index_put(places, values, accumulate=True)
    given = torch.zeros_like(param, dtype=torch.bool).index_put(places, torch.ones_like(values, dtype=torch.bool))
    several = torch.stack(places).unique(dim=1).shape[1] < values.shape[0]
    new_state = torch.where(given, state + dense * dense, state)
    new_param = torch.where(given, param - lr * dense / (new_state.sqrt() + eps), param)
    return Step(given, dense, state, new_state, param, new_param, several)


def _check(param, state, grad, lr, eps):
    if not isinstance(grad, torch.Tensor) or grad.layout is not torch.sparse_coo:
        got = grad.layout if isinstance(grad, torch.Tensor) else type(grad).__name__
        raise DrawingError(f"grad is {got}, expected torch.sparse_coo: what nn.Embedding(sparse=True) gives")
    if param.dim() != 2 or not param.is_floating_point():
        raise DrawingError(f"param is {tuple_of(param.shape)} of {param.dtype}, expected a matrix of floats")
    if not param.shape == state.shape == grad.shape:
        shapes = ", ".join(f"{n} {tuple_of(t.shape)}" for n, t in (("param", param), ("state", state), ("grad", grad)))
        raise DrawingError(f"{shapes}: they must agree")
    if param.shape[0] > MOST_ROWS or param.shape[1] > MOST_COLUMNS:
        raise DrawingError(f"param is {tuple_of(param.shape)}, at most ({MOST_ROWS}, {MOST_COLUMNS}) is drawn")
    if not param.dtype == state.dtype == grad.dtype:
        raise DrawingError(f"param is {param.dtype}, state {state.dtype}, grad {grad.dtype}: they must agree")
    if lr < 0 or eps < 0 or bool((state < 0).any()):
        raise DrawingError(f"lr is {lr}, eps is {eps}: these and every element of state must be 0 or more")


def adagrad_row_map(param, state, grad, lr=0.1, eps=1e-10):
    """The rows of a parameter: what gradient they get, their state and their value before and after one step.

    Args:
        param, state: (rows, columns) of floats, at most (12, 4); left as they are.
        grad: sparse_coo of the same shape, with single numbers or whole rows as entries.
        lr, eps: Adagrad's.
    Raises:
        DrawingError: see adagrad_step.
    """
    step = adagrad_step(param, state, grad, lr, eps)
    n = len(step.touched)
    title = f"Adagrad, one step: {n} of {count(param.shape[0], 'row')} touched"
    facts = ["state ← state + grad²; param ← param − lr · grad / (√state + eps)", f"lr = {lr:g}, eps = {eps:g}"]
    if step.duplicates:
        facts.append("an index was given more than once: its gradients were added before they were squared")
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    for k, words in enumerate(facts):
        drawing.words(0, 24 + 19 * k, words, 13 if k else 12.5, "start")
    y = _draw_rows(drawing, 24 + 19 * len(facts) + 10, step)
    absent = (ABSENT, "no gradient entry: left bitwise as it was")
    legend(drawing, 0, y + 16, [(GIVEN, "gradient entry"), (CHANGED, "written to"), absent])
    return drawing.picture(title, _words(title, facts, step))


def _columns(step):
    """The captions of the blocks, with their values and the look of an element that has a gradient."""
    return (
        ("grad", step.grad, GIVEN),
        ("state", step.state, ABSENT),
        ("new state", step.new_state, CHANGED),
        ("param", step.param, ABSENT),
        ("new param", step.new_param, CHANGED),
    )


def _draw_rows(drawing, y, step):
    """A line for each row of the parameter; the blocks that do not fit beside the others go below; returns the end."""
    rows, columns = step.grad.shape
    if not rows or not columns:
        drawing.words(0, y + 8, "the parameter has no element", 13, "start", QUIET)
        return y + 20
    x = _draw_row_names(drawing, y, step)
    for caption, values, look in _columns(step):
        labels = labels_of(values)
        cell = cell_width(labels.values(), 38)
        width = max(columns * cell, words_width(caption, 13, bold=True))
        if x + width > WIDE:
            y += 22 + rows * ROW + 16
            x = _draw_row_names(drawing, y, step)
        drawing.words(x, y + 8, caption, 13, "start", bold=True)
        for (r, c), label in labels.items():
            given = bool(step.given[r, c])
            absent = "" if look is GIVEN and not given else label
            paint(drawing, x + c * cell, y + 22 + r * ROW, cell, absent, look if given else ABSENT)
        x += width + 22
    return y + 22 + rows * ROW


def _draw_row_names(drawing, y, step):
    """The row numbers, with an arrow where a gradient came; returns where the blocks begin."""
    for r in range(step.grad.shape[0]):
        middle, touched = y + 22 + r * ROW + HEIGHT / 2, r in step.touched
        right = drawing.words(0, middle, f"row {r}", 12.5, "start", bold=touched)
        if touched:
            drawing.line((right + 4, middle), (right + 22, middle), colour=BLUE, weight=2, arrow=True)
    return 78


def _words(title, facts, step):
    lines = [title, *facts]
    for r in range(step.grad.shape[0]):
        if r not in step.touched:
            lines.append(f"row {r}: not touched")
        for c in range(step.grad.shape[1]):
            if step.given[r, c]:
                g, s, t, p, q = (written(v[r, c].item()) for _, v, _ in _columns(step))
                lines.append(f"{place((r, c))}: grad {g}, state {s} → {t}, param {p} → {q}")
    return "\n".join(lines)
