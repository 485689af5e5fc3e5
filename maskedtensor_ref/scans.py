"""Scans: running operations along a dimension, in which unspecified elements keep their place and are skipped."""

import torch

from .pair import Pair, highest, lowest


def scan(identity):
    """The rule of a scan for which a missing element reads as the identity."""

    def rule(func, x, *args, **kwargs):
        x = x.dense()
        fill = identity(x.data.dtype) if callable(identity) else identity
        return Pair(func(x.filled(fill), *args, **kwargs), x.mask)

    return rule


def running_extreme(largest):
    """The rule of cummax and cummin: values, and int64 positions in the full slice."""

    def rule(func, x, dim):
        x = x.dense()
        values, index = func(x.filled(lowest if largest else highest), dim)
        return getattr(torch.return_types, func.__name__)([Pair(values, x.mask), Pair(index, x.mask)])

    return rule
