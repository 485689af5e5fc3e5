"""Where maskedtensor_ref and torch.masked of torch 2.13 differ, as data with reasons.

`python -m maskedtensor_ref.differences > docs/masked_differences.md` renders it; a test holds the two equal.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One difference: what is called, what each does, and why this package does otherwise."""

    subject: str
    call: str
    peer: str
    here: str
    reason: str


WRONG, CRASH, GRADIENT, ABSENT, CHOICE = ("Silent wrong results", "Crashes", "Gradients", "Absent there", "Choices")

DIFFERENCES = (
    Difference(
        WRONG,
        "m.sum(dim=(-1, -2))",
        "a wrong mask",
        "the sum, unspecified only where nothing is specified",
        "dimensions are normalised before the mask is reduced",
    ),
    Difference(
        WRONG,
        "mean, var, std of COO and CSR",
        "count masked values too",
        "count what is specified",
        "layout is not semantics",
    ),
    Difference(
        WRONG,
        "CSR argmax",
        "the position among the stored values",
        "the position in the full slice",
        "a position that depends on storage is of no use as an index",
    ),
    Difference(WRONG, "argmax, argmin", "float32, wrong from 2^24 on", "int64", "a position is an integer"),
    Difference(WRONG, "m.std(0, False)", "reads False as keepdim", "reads it as unbiased", "torch's own signature"),
    Difference(WRONG, "m[0] = 5; m[0].add_(5)", "do nothing", "change m", "views share memory with what they view"),
    Difference(WRONG, "a.copy_(b)", "ignores that the masks differ", "ValueError", "masks are immutable"),
    Difference(
        WRONG,
        "a leaf used masked and plain",
        "loses the plain part",
        "adds both",
        "where gradients meet, missing counts as zero",
    ),
    Difference(
        WRONG,
        "a < b",
        "drops the mask of b, while a <= b raises",
        "both demand equal masks",
        "one rule for every elementwise operation",
    ),
    Difference(
        WRONG,
        "keywords",
        "each is replaced by the last positional argument",
        "are passed on",
        "operands and options may be keywords",
    ),
    Difference(
        CRASH, "softmax over an empty dimension, share_memory_", "segmentation fault", "work", "no kernel is asked"
    ),
    Difference(
        CRASH,
        "where with a masked condition, m.where, backward of maximum, minimum, sinc",
        "recurse without end",
        "work",
        "autograd runs on the data, below the mask",
    ),
    Difference(
        CRASH,
        "unary operations of CSR whose last columns are empty",
        "lose the columns and raise",
        "work",
        "a result keeps the shape and places of its operand",
    ),
    Difference(CRASH, "repr of shape (0,)", "ValueError", "MaskedTensor([])", "an empty tensor is a tensor"),
    Difference(
        GRADIENT,
        "reductions of COO and CSR",
        "no gradient",
        "a gradient in the layout of the leaf",
        "gradients run through the stored values",
    ),
    Difference(GRADIENT, "tanh, sigmoid; to_dense", "no backward; raises", "work", "the same"),
    Difference(
        GRADIENT,
        "accumulation across masks",
        "raises",
        "adds; what any path specifies is specified",
        "a gradient that is missing on one path is not missing",
    ),
    Difference(
        GRADIENT,
        "SGD, Adagrad, clip_grad_norm_ on masked gradients",
        "raise",
        "step on and count what is specified",
        "plain.op_(masked) writes the specified elements only",
    ),
    Difference(
        GRADIENT,
        "Linear, Embedding, softmax ... in front of a masked loss",
        "raise",
        "train",
        "a backward formula without a mask rule reads the missing as zero",
    ),
    Difference(
        ABSENT,
        "matmul, max, min, any, median, quantile, logsumexp, norm, cumsum, sort, topk, gather, scatter, "
        "permute, flip, pad, unbind, masked_fill, relu, losses, layers ...",
        "TypeError",
        "work; maskedtensor_ref.table.OPS lists them",
        "one table of operations",
    ),
    Difference(
        ABSENT,
        "add(alpha=), var(unbiased=), div(rounding_mode=), 1 - m, 2 ** m, m @ x, reshape of a transposed m, "
        "cat with a plain tensor",
        "raise",
        "work",
        "torch's signatures",
    ),
    Difference(ABSENT, "bfloat16, uint8, complex", "TypeError", "work", "a mask does not depend on the dtype"),
    Difference(
        ABSENT,
        "numpy(), tolist(), pickling of sparse tensors, DataLoader workers",
        "raise or lose the mask",
        "a numpy.ma.MaskedArray; None for what is missing; work",
        "a mask is part of the value",
    ),
    Difference(
        CHOICE,
        "operands whose masks differ",
        "ValueError that asks for an issue",
        "ValueError that says where they differ; mask_policy chooses another rule",
        "an error should name its cure",
    ),
    Difference(
        CHOICE,
        "m / m.sum(), m - m.mean()",
        "ValueError: the shapes of the masks differ",
        "a specified 0-d operand counts as the number it is",
        "normalising is what reductions are for",
    ),
    Difference(
        CHOICE,
        "masks of different shape",
        "refused even where all are True",
        "compared after broadcasting",
        "PyTorch's documented rule",
    ),
    Difference(
        CHOICE,
        "a function without a rule",
        "a warning and TypeError",
        "NotImplementedError that names it",
        "nothing falls through to plain torch",
    ),
    Difference(CHOICE, "out=", "ignored or TypeError", "NotImplementedError", "a result brings its own mask"),
    Difference(
        CHOICE,
        "constructing",
        "warns every time",
        "warns only when a history is cut",
        "a library is silent on normal use",
    ),
    Difference(
        CHOICE,
        "an element of a plain tensor assigned where nothing was specified",
        "does nothing",
        "ValueError that names torch.where",
        "masks are immutable, so sharing them is sound",
    ),
    Difference(
        CHOICE,
        "values().sum() == 0 stored",
        "a stored zero may be dropped",
        "a stored zero is specified",
        "zero is a value, not a mark for missing",
    ),
)


def rendered():
    """The differences as Markdown, one table per kind."""
    lines = [
        "# Differences from torch.masked",
        "",
        "Written by `python -m maskedtensor_ref.differences`; the list with its reasons is data in "
        "`maskedtensor_ref/differences.py`. The peer is `torch.masked` of torch 2.13.",
        "",
    ]
    for kind in (WRONG, CRASH, GRADIENT, ABSENT, CHOICE):
        lines += [f"## {kind}", "", "| call | torch.masked | maskedtensor_ref | why |", "|---|---|---|---|"]
        lines += [f"| {d.call} | {d.peer} | {d.here} | {d.reason} |" for d in DIFFERENCES if d.subject == kind]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(rendered(), end="")
