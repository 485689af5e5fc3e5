"""Operations that need every element of a slice (det, inverse, Fourier transform): specified where all of it is."""

import torch

from .pair import Pair, broadcast, select, whole


def complete(mask, dims):
    """Whether every element along dims is True; dims keep size 1."""
    for d in dims:
        mask = mask.all(d, True)
    return mask


def on_whole(f, x, dims, keepdim=True):
    """f of the data, in which a slice along dims that has a hole is first replaced by a harmless one.

    Args:
        f: from one tensor to a tensor or a tuple of tensors.
        keepdim: whether the results keep dims (of whatever size), else they have the other dimensions only.
    """
    x = x.dense()
    dims = tuple(d % x.data.dim() for d in dims) if x.data.dim() else ()
    full = complete(x.mask, dims)
    data = select(full.expand(x.mask.shape), x.data, 0)
    out = f(data)
    if not keepdim:
        full = full.squeeze(dims) if dims else full
    return _under(out, full)


def _under(out, full):
    if isinstance(out, torch.Tensor):
        return Pair(out, full.expand(out.shape))
    return type(out)([_under(o, full) for o in out])


def transform(dims):
    """The rule of a Fourier transform.

    Args:
        dims: the dimensions it transforms when the call names none; None means all, or the last len(s).
    """

    def rule(func, x, *args, **kwargs):
        options = dict(zip(("n" if dims == -1 else "s", "dim"), args, strict=False)) | kwargs
        over = options.get("dim", dims)
        if over is None:
            n = len(x.shape)
            over = range(n - len(options["s"]), n) if options.get("s") is not None else range(n)
        over = (over,) if isinstance(over, int) else tuple(over)
        return on_whole(lambda data: func(data, *args, **kwargs), x, over)

    return rule


def matrices(*ranks):
    """The rule of an operation on (batches of) matrices.

    Args:
        ranks: how many trailing dimensions each operand's matrix or vector has; the last holds for all further ones.
    A matrix with a hole is replaced by the identity, so that the kernel neither fails nor reads what is unspecified.
    """

    def rule(func, *args, **kwargs):
        seen = []

        def read(a, rank):
            if isinstance(a, (tuple, list)):
                return type(a)([read(b, rank) for b in a])
            if not isinstance(a, (Pair, torch.Tensor)):
                return a
            p = whole(a).dense()
            n = p.data.dim()
            full = complete(p.mask, range(n - min(rank, n), n))
            safe = p.data.new_zeros(p.data.shape[n - min(rank, n) :])
            if rank >= 2 and n >= 2:
                safe = torch.eye(*p.data.shape[-2:], dtype=p.data.dtype, device=p.data.device)
            seen.append(full.reshape(tuple(full.shape[: n - min(rank, n)])))
            if not isinstance(a, Pair):
                return a
            return select(full.expand(p.mask.shape), p.data, safe.expand(p.data.shape))

        args = [read(a, ranks[min(i, len(ranks) - 1)]) for i, a in enumerate(args)]
        kwargs = {k: read(v, ranks[-1]) for k, v in kwargs.items()}
        full = seen[0]
        for other in seen[1:]:
            full = full & other
        return _under_batches(func(*args, **kwargs), full)

    return rule


def _under_batches(out, full):
    if isinstance(out, torch.Tensor):
        lead = full.reshape((*full.shape, *(1,) * (out.dim() - full.dim())))
        return Pair(out, lead.expand(out.shape))
    if isinstance(out, (tuple, list)):
        return type(out)([_under_batches(o, full) for o in out])
    return out


def along(dim, name="dim"):
    """The rule of an operation on vectors along one dimension: linalg.cross, renorm, stft."""

    def rule(func, *args, **kwargs):
        pairs = [whole(a).dense() for a in args if isinstance(a, (Pair, torch.Tensor))]
        shape = broadcast(*(p.data.shape for p in pairs))
        d = kwargs.get(name, dim)
        d = shape.index(3) if d is None else d
        full = torch.ones((), dtype=torch.bool, device=pairs[0].mask.device)
        for p in pairs:
            full = full & complete(p.mask.expand(shape), (d,))

        def read(a):
            if not isinstance(a, Pair):
                return a
            a = a.dense()
            return select(complete(a.mask, (d,)).expand(a.mask.shape), a.data, 0)

        return _under(func(*map(read, args), **kwargs), full)

    return rule
