"""Layers of a network: pooling, gated units and losses, each from the rules of its parts."""

import inspect
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from .contraction import cosine_similarity
from .elementwise import elementwise, operands
from .normalisation import softmax_over
from .pair import Pair, any_of, count, lowest, select, whole
from .reductions import between, centre

pointwise = elementwise(always_filled=True)


def mean_pool(func, x, *args, **kwargs):
    """avg_pool and adaptive_avg_pool: the mean of the specified elements of each window.

    Padding counts as zeros when torch counts it; with divisor_override the sum is divided by it, as torch does.
    """
    x = x.dense()
    data = func(x.filled(0), *args, **kwargs)
    precise = torch.promote_types(data.dtype, torch.float32)
    share = 1 - func((~x.mask).to(precise), *args, **kwargs)  # of each window, what is specified
    some = func(x.mask.to(precise), *args, **kwargs) != 0
    overridden = kwargs.get("divisor_override") or (len(args) > 5 and args[5])
    return Pair(data if overridden else (data / select(some, share, 1)).to(data.dtype), some)


def max_pool(func, x, *args, **kwargs):
    """The largest specified element of each window, with int64 positions where they are asked for."""
    x = x.dense()
    out = func(x.filled(lowest), *args, **kwargs)
    some = func(x.mask.to(torch.float32), *args, **kwargs)
    if isinstance(out, Tensor):
        return Pair(out, some > 0)
    return type(out)([Pair(out[0], some[0] > 0), Pair(out[1], some[0] > 0)])


def power_pool(func, x, *args, **kwargs):
    """lp_pool: the p-norm of the specified elements of each window."""
    x = x.dense()
    some = func(x.mask.to(torch.float32), *args, **kwargs) > 0
    return Pair(func(x.filled(0), *args, **kwargs), some)


def glu(func, x, dim=-1):
    """One half times the sigmoid of the other: specified where both halves are."""
    x = x.dense()
    a, b = x.mask.chunk(2, dim)
    mask = a & b
    return Pair(func(select(torch.cat([mask, mask], dim), x.data, 1), dim), mask)


def prelu(func, x, weight):
    """relu with a learned slope per channel."""
    x = whole(x).dense()
    w = weight.filled(1) if isinstance(weight, Pair) else weight
    return Pair(func(x.filled(1), w), x.mask)


def drawn_elementwise(func, *args, **kwargs):
    """Random numbers shaped by the operands: bernoulli, poisson, normal."""
    return pointwise(func, *args, **kwargs)


@cache
def _signature(func):
    return inspect.signature(func)


def _arguments(func, args, kwargs):
    """The call's arguments by name, with the reduction taken out.

    Raises:
        NotImplementedError: the deprecated size_average or reduce is given.
    """
    bound = _signature(func).bind(*args, **kwargs)
    bound.apply_defaults()
    named = dict(bound.arguments)
    for old in ("size_average", "reduce"):
        if named.pop(old, None) is not None:
            raise NotImplementedError(
                f"{func.__name__} got the deprecated {old}: give reduction='mean', 'sum' or 'none'"
            )
    return named, named.pop("reduction", "mean")


def reduced(func, loss, reduction):
    """A loss per element, reduced over what is specified.

    Args:
        reduction: "none", "sum", "mean" or "batchmean".
    """
    dims = tuple(range(loss.data.dim()))
    some = any_of(loss.mask, dims)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return Pair(loss.filled(0).sum(), some)
    if reduction == "batchmean":
        rows = any_of(loss.mask.flatten(1), (1,)) if loss.data.dim() > 1 else loss.mask
        return Pair(loss.filled(0).sum() / count(rows, ()).clamp(min=1), some)
    if reduction == "mean":
        return Pair(centre(loss, dims, False)[0], some)
    raise ValueError(
        f"{reduction!r} is not a valid value for reduction of {func.__name__}: expected 'none', 'mean' or 'sum'"
    )


def loss(func, *args, **kwargs):
    """A loss that is elementwise, then reduced over the specified elements."""
    named, reduction = _arguments(func, args, kwargs)
    named = {k: v for k, v in named.items() if v is not None}
    return reduced(func, pointwise(func, **named, reduction="none"), reduction)


def nll_loss(func, *args, **kwargs):
    """Minus the log-probability of the target class: specified where that class is, and the target not ignored."""
    named, reduction = _arguments(func, args, kwargs)
    x, target, weight = whole(named["input"]).dense(), named["target"], named["weight"]
    return _picked(func, x, target, weight, named["ignore_index"], reduction)


def _picked(func, logp, target, weight, ignore_index, reduction, smoothing=0.0):
    """The loss of log-probabilities and class numbers; what is ignored is a specified zero that no mean counts."""
    known = target.dense().mask if isinstance(target, Pair) else None
    if known is not None:
        target = torch.where(known, target.dense().data, ignore_index)
    classes = 1 if logp.data.dim() > 1 else 0
    kept = target != ignore_index
    ignored = ~kept if known is None else ~kept & known
    index = torch.where(kept, target, 0)
    found = logp.mask.gather(classes, index.unsqueeze(classes)).squeeze(classes) & kept
    w = kept.to(logp.data.dtype) if weight is None else weight[index] * kept
    out = -select(found, logp.data.gather(classes, index.unsqueeze(classes)).squeeze(classes), 0) * w
    if smoothing:
        per_class = logp.filled(0)
        if weight is not None:
            per_class = per_class * weight.reshape(-1, *(1,) * (logp.data.dim() - 1 - classes))
        n = count(logp.mask, (classes,)).clamp(min=1)
        out = (1 - smoothing) * out - smoothing * select(kept, per_class.sum(classes) / n, 0)
    if reduction != "mean":
        return reduced(func, Pair(out, found | ignored), reduction)
    total = select(found, w, 0).sum()
    return Pair(select(found, out, 0).sum() / total, found.any() | ignored.all())


def cross_entropy(func, *args, **kwargs):
    """log_softmax over the specified classes, then nll_loss, or the product with class probabilities."""
    named, reduction = _arguments(func, args, kwargs)
    x, target, weight, smoothing = (
        whole(named["input"]).dense(),
        named["target"],
        named["weight"],
        named["label_smoothing"],
    )
    classes = 1 if x.data.dim() > 1 else 0
    logp = softmax_over(x, classes, of=torch.log_softmax)
    dtype = target.data.dtype if isinstance(target, Pair) else target.dtype
    if not dtype.is_floating_point:
        return _picked(func, logp, target, weight, named["ignore_index"], reduction, smoothing)
    t = whole(target).dense()
    data = t.data
    if smoothing:
        data = data * (1 - smoothing) + smoothing / x.data.shape[classes]
    mask = logp.mask & t.mask
    terms = -select(mask, logp.data, 0) * select(mask, data, 0)
    if weight is not None:
        terms = terms * weight.reshape(-1, *(1,) * (x.data.dim() - 1 - classes))
    return reduced(func, Pair(terms.sum(classes), any_of(mask, (classes,))), reduction)


def multilabel_soft_margin_loss(func, *args, **kwargs):
    """The mean over the specified classes of the two-class log loss, then the reduction."""
    named, reduction = _arguments(func, args, kwargs)

    def each(input, target):
        return -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))

    out = pointwise(each, named["input"], named["target"])
    if named["weight"] is not None:
        out = elementwise()(torch.mul, out, named["weight"])
    data, n = centre(out, (out.data.dim() - 1,), False)
    return reduced(func, Pair(data, n > 0), reduction)


def cosine_embedding_loss(func, *args, **kwargs):
    """1 - cos for a target of 1, cos - margin where positive for a target of -1."""
    named, reduction = _arguments(func, args, kwargs)
    a = named["input1"]
    cos = cosine_similarity(F.cosine_similarity, a, named["input2"], dim=len(a.shape) - 1, eps=0.0 or 1e-12)
    margin = named["margin"]

    def each(cos, target):
        return torch.where(target == 1, 1 - cos, torch.where(target == -1, (cos - margin).clamp(min=0), 0.0))

    return reduced(func, elementwise()(each, cos, named["target"]), reduction)


def triplet_margin_loss(func, *args, **kwargs):
    """How much nearer the negative is than the positive, plus the margin, where that is positive."""
    named, reduction = _arguments(func, args, kwargs)
    anchor, positive, negative = named["anchor"], named["positive"], named["negative"]

    def distance(a, b):
        if not operands((a, b), {}):
            return F.pairwise_distance(a, b, named["p"], named["eps"])
        return between(F.pairwise_distance, a, b, p=named["p"], eps=named["eps"])

    near, far = distance(anchor, positive), distance(anchor, negative)
    if named["swap"]:
        far = elementwise()(torch.minimum, far, distance(positive, negative))

    def each(near, far):
        return (near - far + named["margin"]).clamp(min=0)

    return reduced(func, elementwise()(each, near, far), reduction)
