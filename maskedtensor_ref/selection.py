"""Selections: value and mask come together from the operand that the condition picks."""

import torch
from torch import Tensor

from .elementwise import under
from .gradients import Choose
from .pair import Pair, broadcast, highest, lowest, select, whole
from .storage import relayout


def where(func, *args, **kwargs):
    """torch.where(condition, a, b), a.where(condition, b); a masked condition masks the result where it is missing."""
    if len(args) + len(kwargs) == 1:
        return nonzero(torch.nonzero, *args, as_tuple=True, **kwargs)
    if func is Tensor.where:
        args = (*args[1:2], args[0], *args[2:])
    else:
        if "self" in kwargs:
            kwargs["input"] = kwargs.pop("self")
    condition, a, b = (*args, *(kwargs[k] for k in ("condition", "input", "other") if k in kwargs))
    layouts = {p.places.layout if p.places is not None else None for p in (condition, a, b) if isinstance(p, Pair)}
    c, a, b = (
        p.dense() if isinstance(p, Pair) else p.to_dense() if isinstance(p, Tensor) else p for p in (condition, a, b)
    )
    data = _pick(c.data, *_choices(c, a, b))
    of_a, of_b = _mask_of(a), _mask_of(b)
    mask = of_a if of_a is of_b else of_a & c.data | of_b & ~c.data
    if isinstance(c, Pair):
        mask = c.mask & mask
    out = under(data, mask)
    layout = layouts.pop() if len(layouts) == 1 else None
    return out if layout is None else relayout(out, layout)


def _pick(condition, a, b):
    """torch.where, by bits where that is quicker."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype == b.dtype and a.shape == b.shape == condition.shape:
        return select(condition, a, b)
    return torch.where(condition, a, b)


def _mask_of(p):
    return (
        p.mask
        if isinstance(p, Pair)
        else torch.ones((), dtype=torch.bool, device=p.device)
        if isinstance(p, Tensor)
        else True
    )


def _choices(c, a, b):
    """The data of the operands; a masked one that has gradients is told which of its elements were chosen."""
    data = [p.data if isinstance(p, Pair) else p for p in (a, b)]
    if not torch.is_grad_enabled() or not any(isinstance(p, Pair) and p.data.requires_grad for p in (a, b)):
        return data
    dtype = torch.result_type(*data)
    shape = broadcast(c.data.shape, *(d.shape for d in data if isinstance(d, Tensor)))
    chosen = (c.filled(False), c.filled(True)) if isinstance(c, Pair) else (c, c)  # one that is hidden chooses neither
    chosen = chosen[0].expand(shape), ~chosen[1].expand(shape)
    return [
        Choose.apply(d.to(dtype).expand(shape), c) if isinstance(p, Pair) and d.requires_grad else d
        for p, d, c in zip((a, b), data, chosen, strict=True)
    ]


def masked_fill(func, x, mask, value):
    """A number where the plain mask is True, which is then specified; a masked value brings its own mask."""
    mask, specified = (mask.dense().filled(False), mask.dense().mask) if isinstance(mask, Pair) else (mask, None)
    layout = x.places.layout if isinstance(x, Pair) and x.places is not None else None
    x = whole(x).dense()
    v = value.dense() if isinstance(value, Pair) else None
    data = x.data.masked_fill(mask, value if v is None else v.data)
    out = torch.where(mask, True if v is None else v.mask, x.mask)
    out = Pair(data, out if specified is None else out & specified)
    return out if layout is None else relayout(out, layout)


def nonzero(func, x, *args, **kwargs):
    """The positions of the specified elements that are not zero: plain int64, the same for every layout."""
    return func(x.dense().filled(0), *args, **kwargs)


def unique(func, x, *args, **kwargs):
    """The distinct specified elements, in one dimension; a plain tensor, for nothing in it is missing."""
    names = ("return_inverse", "return_counts", "dim")
    if "consecutive" not in func.__name__:
        names = ("sorted", *names)
    options = dict(zip(names, args, strict=False)) | kwargs
    if options.get("dim") is not None:
        raise NotImplementedError(f"{func.__name__} with dim compares whole slices: select complete slices first")
    x = x.dense()
    out = func(x.data[x.mask], **options)
    if options.get("return_inverse"):
        inverse = torch.zeros(x.mask.shape, dtype=torch.int64, device=x.mask.device)
        inverse[x.mask] = out[1]
        out = (out[0], Pair(inverse, x.mask), *out[2:])
    return out


def counted(func, x, *args, **kwargs):
    """histc and bincount of the specified elements: a plain tensor."""
    x = x.dense()
    weights = kwargs.get("weights", args[0] if func is torch.bincount and args else None)
    if weights is not None:
        raise NotImplementedError("bincount with weights: give the weights of the specified elements to torch.bincount")
    return func(x.data[x.mask], *args, **kwargs)


def gathered(identity):
    """The rule of index_add, scatter_add and scatter_reduce: a reduction of what falls on each element.

    Args:
        identity: from the call's arguments to what a missing contribution reads as (a number, or a function from
            dtype to one). A result is specified where any contribution is.
    """

    def rule(func, *args, **kwargs):
        fill = identity(args, kwargs)
        if isinstance(kwargs.get("index", args[2] if len(args) > 2 else None), Pair):
            raise TypeError(f"the index of {func.__name__} is masked: say where the missing go with .to_tensor(value)")

        def read(a):
            return a.dense().filled(fill) if isinstance(a, Pair) else a

        def seen(where, a):
            if isinstance(a, Pair):
                return a.dense().mask.to(torch.float32)
            if where in (0, 3, "source", "src"):  # x and what is added to it; the index stays
                return torch.ones_like(a, dtype=torch.float32)
            return "amax" if isinstance(a, str) else a  # whatever the reduction is, masks are gathered by their largest

        data = func(*map(read, args), **{k: read(v) for k, v in kwargs.items()})
        terms = func(*map(seen, range(len(args)), args), **{k: seen(k, v) for k, v in kwargs.items() if k != "alpha"})
        return Pair(data, terms > 0)

    return rule


def zero(args, kwargs):
    """What a missing contribution of a sum reads as."""
    return 0


def identity_of_reduce(args, kwargs):
    """What a missing contribution of scatter_reduce and index_reduce reads as."""
    how = next((a for a in (*args, *kwargs.values()) if isinstance(a, str)), "sum")
    if how == "mean":
        raise NotImplementedError("scatter_reduce and index_reduce of a MaskedTensor with 'mean': divide two sums")
    return {"sum": 0, "prod": 1, "amax": lowest, "amin": highest}[how]
