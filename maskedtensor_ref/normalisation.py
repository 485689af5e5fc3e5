"""Normalisations: over the specified elements of each slice, so that the others take no weight."""

import torch
import torch.nn.functional as F

from .elementwise import elementwise
from .pair import Pair, any_of, count, select, whole
from .reductions import centre, safe_sqrt, variance, vector_norm

mul, add = elementwise(1), elementwise(0)
INFINITY = float("inf")


def softmax_over(x, dim, dtype=None, of=torch.softmax, missing=-INFINITY):
    """softmax along dim; an unspecified element reads as -inf, which takes no weight."""
    data = x.data if dtype is None else x.data.to(dtype)
    if not data.is_floating_point():
        raise RuntimeError(f"softmax expects a floating dtype, got {data.dtype}: give dtype=torch.float32")
    return Pair(of(select(x.mask, data, missing), dim), x.mask)


def normalisation(of, missing=-INFINITY):
    """The rule of softmax, log_softmax and softmin; a slice with nothing specified stays unspecified."""

    def rule(func, x, dim=None, _stacklevel=3, dtype=None):
        if isinstance(_stacklevel, torch.dtype):  # torch.softmax(x, dim, dtype)
            dtype = _stacklevel
        if dim is None:
            dim = 0 if len(x.shape) in (0, 1, 3) else 1  # what torch.nn.functional does, without its warning
        if isinstance(_stacklevel, bool) and _stacklevel and x.data.dtype == torch.float16:
            dtype = torch.float32  # aten._softmax(x, dim, half_to_float)
        return softmax_over(x.dense(), dim, dtype, of, missing)

    return rule


def standardised(x, dims, eps):
    """(x - mean) / sqrt(variance + eps) over dims."""
    v, n, m = variance(x, dims, True, 0)
    return Pair((x.filled(0) - select(n > 0, m, 0)) * torch.rsqrt(select(n > 0, v, 0) + eps), x.mask)


def _affine(out, weight, bias, shape=None):
    for f, rule, p in ((torch.mul, mul, weight), (torch.add, add, bias)):
        if p is None:
            continue
        if shape is not None:
            p = Pair(p.data.reshape(shape), p.mask.reshape(shape)) if isinstance(p, Pair) else p.reshape(shape)
        out = rule(f, out, p)
    return out


def layer_norm(func, x, normalized_shape, weight=None, bias=None, eps=1e-5, *_):
    """Over the last dimensions."""
    x = whole(x).dense()
    n = x.data.dim()
    return _affine(standardised(x, tuple(range(n - len(normalized_shape), n)), eps), weight, bias)


def rms_norm(func, x, normalized_shape, weight=None, eps=None):
    """x over the root of its mean square, over the last dimensions."""
    x = whole(x).dense()
    n = x.data.dim()
    eps = torch.finfo(x.data.dtype).eps if eps is None else eps
    square, _ = centre(Pair(x.filled(0).square(), x.mask), tuple(range(n - len(normalized_shape), n)), True)
    return _affine(Pair(x.filled(0) * torch.rsqrt(square + eps), x.mask), weight, None)


def group_norm(func, x, num_groups, weight=None, bias=None, eps=1e-5, *_):
    """Over the channels of each group and what follows them."""
    x = whole(x).dense()
    shape = x.data.shape
    grouped = (shape[0], num_groups, shape[1] // num_groups, *shape[2:])
    x = Pair(x.data.reshape(grouped), x.mask.reshape(grouped))
    out = standardised(x, tuple(range(2, len(grouped))), eps)
    return _affine(Pair(out.data.reshape(shape), out.mask.reshape(shape)), weight, bias, _channels(shape))


def instance_norm(
    func,
    x,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
    *_,
):
    """Over the positions of each channel of each sample."""
    x = whole(x).dense()
    shape = x.data.shape
    if not use_input_stats:
        return _by_running(x, running_mean, running_var, weight, bias, eps)
    dims = tuple(range(2, len(shape)))
    if running_mean is not None:
        v, n, m = variance(x, dims, False, 1)
        _update(running_mean, running_var, m.mean(0), v.mean(0), (n > 1).all(0), momentum)
    return _affine(standardised(x, dims, eps), weight, bias, _channels(shape))


def batch_norm(
    func, x, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5, *_
):
    """Over everything but the channels; the running statistics are of what was specified."""
    x = whole(x).dense()
    if not training:
        return _by_running(x, running_mean, running_var, weight, bias, eps)
    dims = (0, *range(2, x.data.dim()))
    if running_mean is not None:
        v, n, m = variance(x, dims, False, 1)
        _update(running_mean, running_var, m, v, n > 1, momentum)
    return _affine(standardised(x, dims, eps), weight, bias, _channels(x.data.shape))


def _by_running(x, mean, var, weight, bias, eps):
    _check_plain(mean, var)
    shape = _channels(x.data.shape)
    out = Pair((x.filled(0) - mean.reshape(shape)) * torch.rsqrt(var.reshape(shape) + eps), x.mask)
    return _affine(out, weight, bias, shape)


def _update(mean, var, new_mean, new_var, known, momentum):
    _check_plain(mean, var)
    with torch.no_grad():
        mean.copy_(torch.where(known, torch.lerp(mean, new_mean.to(mean.dtype), momentum), mean))
        var.copy_(torch.where(known, torch.lerp(var, new_var.to(var.dtype), momentum), var))


def _check_plain(mean, var):
    if isinstance(mean, Pair) or isinstance(var, Pair):
        raise TypeError("the running statistics are masked: give plain tensors, one number per channel")


def _channels(shape):
    return 1, -1, *(1,) * (len(shape) - 2)


def normalize(func, x, p=2.0, dim=1, eps=1e-12, out=None):
    """x over the p-norm of its specified elements."""
    x = x.dense()
    size = vector_norm(func, x, p, dim, True)
    return Pair(x.filled(0) / select(size.mask, size.data, 1).clamp_min(eps), x.mask)


def local_response_norm(func, x, size, alpha=1e-4, beta=0.75, k=1.0):
    """x over a power of the mean square of its neighbouring channels, the missing ones counting as zero."""
    x = x.dense()
    data = x.filled(0)
    square = F.local_response_norm(data, size, alpha, beta, k)
    return Pair(square, x.mask)


def renorm(func, x, p, dim, maxnorm):
    """Slices whose p-norm of specified elements exceeds maxnorm are scaled down to it."""
    x = x.dense()
    return Pair(func(x.filled(0), p, dim, maxnorm), x.mask)


def correlated(correlation):
    """The rule of cov and corrcoef: over the observations (columns) where every variable is specified."""

    def rule(func, x, *, correction=1, fweights=None, aweights=None):
        x = x.dense()
        if fweights is not None or aweights is not None:
            raise NotImplementedError("cov with weights: mask the observations, and give no weights")
        data, mask = (x.data, x.mask) if x.data.dim() == 2 else (x.data.reshape(1, -1), x.mask.reshape(1, -1))
        if not (data.is_floating_point() or data.is_complex()):
            data = data.to(torch.get_default_dtype())
        complete = mask.all(0, True).expand(mask.shape)
        x = Pair(data, complete)
        n = count(complete[:1], (1,), True)
        m, _ = centre(x, (1,), True)
        d = select(complete, data - m, 0)
        c = d @ d.mH / (n - correction).clamp(min=0)
        if correlation:
            root = safe_sqrt(c.diagonal().real)
            c = c / root[:, None] / root[None, :]
        c = c.reshape(()) if data.shape[0] == 1 else c
        return Pair(c, any_of(complete[:1], ()).expand(c.shape))

    return rule
