"""What counts and what is hidden, written in the conventions of different libraries."""

import torch

from lecture_pictures.cells import USED, Panel, draw_panels, legend
from lecture_pictures.masks import HIDDEN
from lecture_pictures.notation import DrawingError, drawable, labels_of, rows
from lecture_pictures.svg import Drawing

MOST = 12


def mask_conventions(counts):
    """One mask as MaskedTensor and attn_mask have it, as numpy.ma and key_padding_mask, and as an additive mask.

    Args:
        counts: bool, one dimension, at most 12 elements; True where an element counts.
    Raises:
        DrawingError: it is something else.
    """
    counts = drawable(counts, "counts", MOST)
    if counts.dtype is not torch.bool or counts.dim() != 1:
        raise DrawingError(f"counts is {counts.dtype} of {counts.dim()} dimensions, expected torch.bool of one")
    forms = {
        "MaskedTensor, attn_mask: True counts": counts,
        "numpy.ma, key_padding_mask: True hides": ~counts,
        "additive: 0 counts, -inf hides": torch.zeros(len(counts)).masked_fill(~counts, float("-inf")),
    }
    title = "One mask in five conventions"
    drawing, y, words = Drawing(), 22, [title]
    drawing.words(0, 0, title, 15, "start", bold=True)
    for caption, form in forms.items():
        labels = labels_of(form)
        looks = {i: USED if v else HIDDEN for i, v in zip(labels, counts.tolist(), strict=True)}
        y = draw_panels(drawing, y, [Panel(caption, labels, tuple(counts.shape), looks)]) + 18
        words += rows(caption, labels, counts.shape)
    legend(drawing, 0, y + 4, [(USED, "counts"), (HIDDEN, "hidden")])
    return drawing.picture(title, "\n".join(words))
