"""Two masked operands and what three policies make of them: strict, intersection, union."""

from math import prod

import torch

from lecture_pictures.broadcast import OPERATIONS
from lecture_pictures.cells import USED, Look, Panel, draw_panels, legend
from lecture_pictures.masks import HIDDEN, MOST, mask_of
from lecture_pictures.notation import DrawingError, drawable, labels_of, place, place_of, rows, tuple_of
from lecture_pictures.svg import ORANGE, Drawing

READS_AS = {"+": 0, "-": 0, "*": 1, "/": 1}  # what a missing operand reads as in a union
APART = Look(ORANGE, weight=2.5, dashed=True)
GONE = "--"  # as a MaskedTensor prints it


def policy_grid(a, mask_a, b, mask_b, operation="+", names=("a", "b")):
    """Two masked operands, and their result under each policy; for strict, where masks differ, the places.

    Args:
        a, b: strided tensors that broadcast to at most 64 elements in at most 3 dimensions; never changed.
        mask_a, mask_b: bool, of the shape of a and of b; True where they count.
        operation: "+", "-", "*" or "/".
    Raises:
        DrawingError: a mask is not a bool tensor of its operand's shape, or something cannot be drawn.
    """
    if operation not in READS_AS:
        raise DrawingError(f"operation is {operation!r}, expected one of {', '.join(READS_AS)}")
    a, b = (drawable(t, name, MOST, ndim=3) for t, name in zip((a, b), names, strict=True))
    masks = mask_of(mask_a, a, names[0]), mask_of(mask_b, b, names[1])
    shape = _common(a, b, names)
    missing, act = READS_AS[operation], OPERATIONS[operation]
    m, k = (mask.expand(shape) for mask in masks)
    filled = [torch.where(mask, t, missing) for mask, t in zip(masks, (a, b), strict=True)]
    both = _panel("intersection", act(a, b), m & k, "where both count")
    either = _panel("union", act(*filled), m | k, f"missing reads as {missing}")
    strict = _panel("strict", act(a, b), m, "the masks agree")
    if (m != k).any():
        strict = _refused(m != k, shape)
    panels = [_panel(name, t, mask) for name, t, mask in zip(names, (a, b), masks, strict=True)]
    title = f"Policies: {names[0]} {operation} {names[1]}"
    drawing = Drawing()
    drawing.words(0, 0, title, 15, "start", bold=True)
    y = draw_panels(drawing, draw_panels(drawing, 24, panels) + 20, [strict, both, either])
    looks = {look for panel in (*panels, strict, both, either) for look in panel.looks.values()}
    meanings = ((USED, "counts"), (HIDDEN, "masked"), (APART, "the masks differ"))
    legend(drawing, 0, y + 18, [pair for pair in meanings if pair[0] in looks])
    words = [title]
    for panel in (*panels, strict, both, either):
        words += rows(": ".join((panel.caption, *panel.notes)), panel.labels, panel.shape)
    return drawing.picture(title, "\n".join(words))


def _common(a, b, names):
    """The shape that both operands broadcast to."""
    shapes = " and ".join(f"{name} {tuple_of(t.shape)}" for name, t in zip(names, (a, b), strict=True))
    try:
        shape = tuple(torch.broadcast_shapes(a.shape, b.shape))
    except RuntimeError:
        raise DrawingError(f"{shapes}: the shapes do not fit") from None
    if prod(shape) > MOST:
        raise DrawingError(f"{shapes} make {prod(shape)} elements, at most {MOST} are drawn: take smaller ones")
    return shape


def _panel(caption, t, mask, *notes):
    labels = labels_of(t)
    counts = dict(zip(labels, mask.flatten().tolist(), strict=True))
    looks = {i: USED if counts[i] else HIDDEN for i in labels}
    return Panel(caption, {i: v if counts[i] else GONE for i, v in labels.items()}, tuple(t.shape), looks, notes)


def _refused(apart, shape):
    """Where the masks differ, in the place of a result."""
    signs = {place_of(i, shape): "≠" if v else "=" for i, v in enumerate(apart.flatten().tolist())}
    first = next(i for i, sign in signs.items() if sign == "≠")
    looks = {i: APART for i, sign in signs.items() if sign == "≠"}
    return Panel("strict", signs, shape, looks, (f"refused, first at {place(first)}",))
