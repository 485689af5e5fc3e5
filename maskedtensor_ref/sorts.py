"""Sorts and what is built on them: the specified elements in order, the unspecified ones last."""

import torch

from .pair import Pair, any_of, count, highest, lowest, select


def order(x, dim, descending=False):
    """Positions that sort a strided pair along dim: specified first, in order; the others after them, as they stood.

    Returns:
        int64 indices of the shape of x.
    """
    index = torch.sort(x.filled(0), dim=dim, descending=descending, stable=True).indices
    if x.data.dim() == 0:
        return index
    behind = (~x.mask).gather(dim, index).to(torch.uint8)
    return index.gather(dim, torch.sort(behind, dim=dim, stable=True).indices)


def _at(x, index, dim):
    if x.data.dim() == 0:
        return x
    return Pair(x.data.gather(dim, index), x.mask.gather(dim, index))


def sort(func, x, *args, **kwargs):
    """sort: values and int64 positions in the full slice; unspecified elements go last, also when descending."""
    kwargs.pop("stable", None)  # it always is
    if args and isinstance(args[0], bool):
        args = args[1:]
    options = {"dim": -1, "descending": False} | dict(zip(("dim", "descending"), args, strict=False)) | kwargs
    x, dim = x.dense(), options["dim"]
    index = order(x, dim, options["descending"])
    values = _at(x, index, dim)
    return torch.return_types.sort([values, Pair(index, values.mask)])


def argsort(func, x, *args, **kwargs):
    """The positions that sort gives."""
    return sort(func, x, *args, **kwargs)[1]


def msort(func, x):
    """sort along the first dimension."""
    return sort(func, x, 0)[0]


def topk(func, x, k, dim=-1, largest=True, sorted=True):
    """The k largest of the specified elements; where there are fewer, the rest is unspecified."""
    x = x.dense()
    size = x.data.shape[dim] if x.data.dim() else 1
    if not 0 <= k <= size:
        raise RuntimeError(f"selected index k out of range: k is {k}, dimension {dim} has {size} elements")
    index = order(x, dim, largest)
    index = index.narrow(dim, 0, k) if x.data.dim() else index
    values = _at(x, index, dim)
    return torch.return_types.topk([values, Pair(index, values.mask)])


def kthvalue(func, x, k, dim=-1, keepdim=False):
    """The k-th smallest of the specified elements; unspecified where there are fewer than k."""
    x = x.dense()
    size = x.data.shape[dim] if x.data.dim() else 1
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}: k is {k}, size {size}")
    if x.data.dim() == 0:
        return torch.return_types.kthvalue([x, Pair(torch.zeros_like(x.data, dtype=torch.int64), x.mask)])
    index = order(x, dim).narrow(dim, k - 1, 1)
    found = x.mask.gather(dim, index)
    return torch.return_types.kthvalue(chosen(x, index, found, dim, keepdim))


def chosen(x, index, found, dim, keepdim):
    """The elements at index (of size 1 along dim), and the index, both under found."""
    value = _at(x, index, dim).data
    if not keepdim and x.data.dim():
        value, index, found = value.squeeze(dim), index.squeeze(dim), found.squeeze(dim)
    return Pair(value, found), Pair(index, found)


def first_of_extreme(x, dim, largest):
    """The position of the first specified element that is largest (or least), and whether there is one; dim is kept.

    What is missing reads as the identity, which may stand before a specified element as extreme (-inf): then every
    specified element is, and the first of them is the one.
    """
    fill, find, name = (lowest, torch.max, "argmax") if largest else (highest, torch.min, "argmin")
    if x.data.dim() == 0:
        return torch.zeros_like(x.data, dtype=torch.int64), x.mask
    if x.data.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    index = find(Pair(x.data.detach(), x.mask).filled(fill), dim, True).indices
    found, first = x.mask.max(dim, True)
    return torch.where(x.mask.gather(dim, index), index, first), found


def middle(x, dim):
    """The position of the lower median of the specified elements, NaN if one of them is; dim is kept."""
    if x.data.dim() == 0:
        return torch.zeros_like(x.data, dtype=torch.int64), x.mask
    n = count(x.mask, (dim,), True)
    index = order(Pair(x.data.detach(), x.mask), dim)
    position = (n - 1).clamp(min=0) // 2
    if x.data.is_floating_point():  # a specified NaN sorts last: it is the median
        nans = count(x.mask & x.data.isnan(), (dim,), True)
        position = torch.where(nans > 0, (n - nans).clamp(max=x.data.shape[dim] - 1), position)
    if x.data.shape[dim] == 0:
        raise IndexError(f"median(): Expected reduction dim {dim} to have non-zero size.")
    return index.gather(dim, position), n > 0


def most_frequent(x, dim):
    """The position of the last of the most frequent elements, the least of them where several are; dim is kept."""
    if x.data.dim() == 0:
        return torch.zeros_like(x.data, dtype=torch.int64), x.mask
    if x.data.shape[dim] == 0:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    x = Pair(x.data.detach().movedim(dim, -1), x.mask.movedim(dim, -1))
    index = order(x, -1)
    ordered = _at(x, index, -1)
    first = torch.ones_like(ordered.mask)  # of a run of equal elements
    first[..., 1:] = ordered.data[..., 1:] != ordered.data[..., :-1]
    here = torch.arange(index.shape[-1], device=index.device)
    length = here - torch.where(first, here, 0).cummax(-1).values + 1  # of the run, up to here
    last = select(ordered.mask, length, 0).max(-1, True).indices  # the first of the longest, and its last element
    return index.gather(-1, last).movedim(-1, dim), any_of(x.mask, (-1,), True).movedim(-1, dim)


def quantiles(x, q, dim, interpolation):
    """The q-th quantiles of the specified elements of each slice, (len(q), ..., 1, ...); NaN where one is NaN.

    Raises:
        ValueError: an interpolation that torch.quantile does not know.
    """
    known = "linear", "lower", "higher", "midpoint", "nearest"
    if interpolation not in known:
        raise ValueError(f"interpolation is {interpolation!r}: expected one of {', '.join(known)}")
    if bool(((q < 0) | (q > 1)).any()):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    n = count(x.mask, (dim,), True)
    ordered = _at(x, order(Pair(x.data.detach(), x.mask), dim), dim).filled(0)
    nan = any_of(x.mask & x.data.isnan(), (dim,), True) | (n == 0)
    rank = q.reshape(-1, *(1,) * n.dim()) * (n - 1).clamp(min=0).to(q.dtype)
    below = rank.round() if interpolation == "nearest" else rank.ceil() if interpolation == "higher" else rank.floor()
    above = rank.ceil() if interpolation in ("linear", "midpoint") else below
    ordered = ordered.expand(len(q), *ordered.shape)
    low, high = (ordered.gather(dim + 1, r.long()) for r in (below, above))
    weight = 0.5 if interpolation == "midpoint" else rank - below
    if interpolation in ("linear", "midpoint"):
        low = torch.lerp(low, high, torch.as_tensor(weight, dtype=low.dtype, device=low.device).expand(low.shape))
    return select(~nan.expand(low.shape), low, float("nan"))


def searchsorted(func, *args, **kwargs):
    """Where the specified values go in a plain sorted sequence: bucketize, searchsorted."""
    sequence = "sorted_sequence" if func.__name__ == "searchsorted" else "boundaries"
    named = [n for n in (sequence, "input") if n not in kwargs]
    kwargs |= zip(named if sequence == "sorted_sequence" else named[::-1], args, strict=True)
    if isinstance(kwargs[sequence], Pair) or isinstance(kwargs.get("sorter"), Pair):
        raise TypeError(
            "the sorted sequence is masked: searching needs every boundary; select the specified ones first"
        )
    values = kwargs["input"].dense()
    return Pair(func(**{**kwargs, "input": values.filled(0)}), values.mask)


def isin(func, elements, test_elements, **kwargs):
    """Whether each specified element is among the specified test elements."""
    if isinstance(test_elements, Pair):
        p = test_elements.dense()
        test_elements = p.data[p.mask]
    if not isinstance(elements, Pair):
        return func(elements, test_elements, **kwargs)
    e = elements.dense()
    return Pair(func(e.data, test_elements, **kwargs), e.mask)
