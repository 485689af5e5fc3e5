"""Elementwise operations: an element is specified where every operand specifies it."""

from functools import reduce

import torch
from torch import Tensor

from . import policy
from .pair import Pair, broadcast, select
from .storage import relayout, same_mask


def elementwise(identity=None, always_filled=False):
    """The rule of an elementwise operation.

    Args:
        identity: what a missing operand reads as under mask_policy("union"): a number, or a function from dtype to
            one; None when the operation has none.
        always_filled: the kernel refuses values outside a domain, so it must never see what is unspecified.
    """

    def rule(func, *args, **kwargs):
        pairs = operands(args, kwargs)
        if not pairs:  # a step of another rule, on plain operands
            return func(*args, **kwargs)
        lead = pairs[0]
        mask, places, layout = lead.mask, lead.places, None
        shared = all(p.mask is mask and p.places is places for p in pairs)
        union = identity is not None and policy.current() == "union"
        if union or not shared or (places is not None and any(_is_content(a) for a in (*args, *kwargs.values()))):
            mask, places, layout, args, kwargs = meet(func, args, kwargs, identity if union else None)
        once = {id(a): read(a, mask, lead.data, always_filled) for a in args}  # x * x reads x once
        args = [once[id(a)] for a in args]
        if kwargs:
            kwargs = {k: read(v, mask, lead.data, always_filled) for k, v in kwargs.items()}
        return under(func(*args, **kwargs), mask, places, layout)

    return rule


def operands(args, kwargs):
    """The Pairs among the operands of a call."""
    pairs = [a for a in args if type(a) is Pair]
    return pairs + [v for v in kwargs.values() if type(v) is Pair] if kwargs else pairs


def read(a, mask, lead, always=False):
    """An operand as the kernel may see it: filled with 1 outside mask wherever that matters.

    What is unspecified in a float operand without gradient cannot reach a specified result, so it is not touched;
    an integer is filled for // and %, an operand with gradient because its derivative is computed everywhere.
    """
    if type(a) is Pair:
        a = a.data
    elif not isinstance(a, Tensor):
        return a
    if a.requires_grad and torch.is_grad_enabled():
        pass
    elif not always and (a.is_floating_point() or a.is_complex() or a.dtype == torch.bool or a.dim() == 0):
        return a
    if a.shape != mask.shape:
        if a.dim() == 0:  # expanded, it would promote as other tensors do
            a = a.to(torch.result_type(a, lead))
        shape = broadcast(a.shape, mask.shape)
        a, mask = a.expand(shape), mask.expand(shape)
    return select(mask, a, 1)


def under(out, mask, places=None, layout=None):
    """What a kernel returned, under a mask: a Pair, or a tuple of Pairs."""
    if isinstance(out, Tensor):
        if out.shape != mask.shape:
            mask = mask.expand(out.shape)
        out = Pair(out, mask, places)
        return out if layout is None else relayout(out, layout)
    if isinstance(out, (tuple, list)):
        return type(out)([under(o, mask, places, layout) for o in out])
    return out


def meet(func, args, kwargs, identity=None):
    """Operands with one mask and one place each: what mask_policy says, and what broadcasting needs.

    Returns:
        mask, places, layout to put the result in (None: leave it), args, kwargs
    """
    keys = list(kwargs)
    contents = [*args, *kwargs.values()]
    shape = broadcast(*(tuple(a.shape) for a in contents if isinstance(a, (Pair, Tensor))))
    contents = [_number(a, shape) for a in contents]
    pairs = [a for a in contents if type(a) is Pair]
    if not pairs:  # every operand was a 0-d tensor or counts as one
        pairs = [Pair(a, torch.ones((), dtype=torch.bool, device=a.device)) for a in contents if isinstance(a, Tensor)]
    lead, layout = pairs[0], None
    if (
        lead.places is not None
        and identity is None
        and shape == lead.shape
        and all(lead.places.same(p.places) for p in pairs)
    ):
        places = lead.places
        contents = [places.gather(a.to_dense().expand(shape)) if _is_content(a) else a for a in contents]
    else:
        places = None
        if all(p.places is not None for p in pairs):
            layout = lead.places.layout
        contents = [a.dense() if type(a) is Pair else a.to_dense() if _is_content(a) else a for a in contents]
    pairs = [a for a in contents if type(a) is Pair] or pairs
    n = len(args)
    if identity is None:
        mask = common_mask(func, pairs)
    else:
        named = dict(zip(keys, contents[n:], strict=True))
        plain = any(
            type(a) is not Pair for a in (*contents[:n][:2], *(named[k] for k in ("input", "other") if k in named))
        )
        contents = [a.filled(identity) if type(a) is Pair else a for a in contents]
        mask = reduce(torch.logical_or, [p.mask for p in pairs])
        mask = torch.ones_like(mask) if plain else mask
    return mask, places, layout, contents[:n], dict(zip(keys, contents[n:], strict=True))


def common_mask(func, pairs):
    """The mask of a result of strided operands.

    Raises:
        ValueError: the masks differ after broadcasting, and the policy does not say what to do about it.
    """
    mask = pairs[0].mask
    name = policy.current()
    for p in pairs[1:]:
        if name == "intersection":
            mask = mask if p.mask is mask else mask & p.mask
        elif same_mask(mask, p.mask):
            mask = mask if mask.dim() >= p.mask.dim() and mask.numel() >= p.mask.numel() else p.mask
        else:
            raise ValueError(_difference(func, mask, p.mask, name))
    return mask


def _difference(func, a, b, name):
    a, b = torch.broadcast_tensors(a, b)
    first = (a != b).nonzero()[0].tolist()
    here = tuple(first)
    cure = (
        'choose with mask_policy("intersection") or mask_policy("union")'
        if name == "match"
        else 'this operation has no identity, so mask_policy("union") cannot read what is missing: '
        'choose mask_policy("intersection")'
    )
    return (
        f"Input masks must match. Those of the operands of {getattr(func, '__name__', func)} first differ at {here}: "
        f"{bool(a[here])} and {bool(b[here])}. Either {cure}, or make one operand plain with .to_tensor(value)"
    )


def _is_content(a):
    return isinstance(a, Tensor) and a.dim() > 0


def _number(a, shape):
    """A specified 0-d operand of a larger operation counts as the number it is, so that m / m.sum() means something."""
    if (
        type(a) is Pair
        and a.data.dim() == 0
        and a.places is None
        and len(shape) > 0
        and (a.mask.is_meta or bool(a.mask))
    ):
        return a.data
    return a
