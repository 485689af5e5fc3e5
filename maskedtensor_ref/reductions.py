"""Reductions: the operation on the specified elements of each slice; a slice with none is unspecified."""

import math

import torch
from torch import Tensor

from .elementwise import elementwise, operands
from .pair import MANY, Pair, any_of, count, highest, lowest, select
from .sorts import chosen, first_of_extreme, middle, most_frequent, quantiles
from .whole import on_whole

NAMES = {"axis": "dim", "keepdims": "keepdim", "dims": "dim"}


def reduction(identity, complete=None):
    """The rule of a reduction for which a missing element reads as the identity.

    Args:
        identity: a number, or a function from dtype to a number.
        complete: func(data, dim, keepdim, **options) for the kernels that take one dimension at a time.
    Full reductions of sparse tensors run on the stored values; along a dimension they densify.
    """

    def rule(func, x, *args, **kwargs):
        dims, keepdim, options = _dims_first(x, args, kwargs)
        x, dims = _readable(x, dims, keepdim)
        data = x.filled(identity)
        return Pair(_apply(func, data, dims, keepdim, options, complete), any_of(x.mask, dims, keepdim))

    return rule


def _dims_first(x, args, kwargs, names=("dim", "keepdim")):
    """dim, keepdim and the remaining options of a call, whichever way they were spelled."""
    kwargs = {NAMES.get(k, k): v for k, v in kwargs.items()}
    if args and isinstance(args[0], torch.dtype):  # never positional in torch, but harmless
        kwargs["dtype"], args = args[0], args[1:]
    if len(args) > 1 and all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        args = (args,)  # x.sum(0, 1)
    kwargs |= dict(zip(names, args, strict=False))
    dim, keepdim = kwargs.pop("dim", None), kwargs.pop("keepdim", False)
    return over(x, dim), bool(keepdim), kwargs


def over(x, dim):
    """The dimensions a call reduces, as a sorted tuple of non-negative numbers; None and () mean all.

    Raises:
        IndexError: a dimension that x does not have. RuntimeError: a dimension given twice.
    """
    n = len(x.shape)
    if dim is None or (isinstance(dim, (tuple, list)) and len(dim) == 0):
        return tuple(range(n))
    dims = []
    for d in dim if isinstance(dim, (tuple, list, torch.Size)) else (dim,):
        if isinstance(d, str):
            raise NotImplementedError("MaskedTensor has no named dimensions: give their numbers")
        if not -max(n, 1) <= d < max(n, 1):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(n, 1)}, {max(n, 1) - 1}], but got {d})"
            )
        if n:
            dims.append(d % n)
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"dim {dim} names a dimension twice: each may be reduced once")
    return tuple(sorted(dims))


def _readable(x, dims, keepdim=False):
    """x strided, or its stored values when every dimension is reduced and none is kept."""
    if x.places is None:
        return x, dims
    if len(dims) == len(x.shape) and not keepdim:
        return _stored(x), tuple(range(x.data.dim()))
    return x.dense(), dims


def _stored(x):
    """The stored values of a sparse pair, strided; of a tensor that stores nothing, one element, unspecified."""
    if x.data.shape[0] > 0 or x.shape.numel() == 0:
        return Pair(x.data, x.mask)
    one = x.data.new_zeros(1, *x.data.shape[1:])
    return Pair(torch.cat([x.data, one]), torch.zeros_like(one, dtype=torch.bool))


def _flattened(x):
    """All elements that may be specified, in one dimension: those of a strided pair, the stored ones of a sparse one."""
    x = x if x.places is None else _stored(x)
    return Pair(x.data.reshape(-1), x.mask.reshape(-1))


def _apply(func, data, dims, keepdim, options, complete):
    if complete is not None:
        return complete(data, dims, keepdim, **options)
    if data.dim() == 0:
        return func(data, **options)
    return func(data, dims, keepdim, **options)


def prod_over(data, dims, keepdim, dtype=None):
    """torch.prod takes one dimension at a time."""
    if data.dim() == 0:
        return torch.prod(data, dtype=dtype)
    for d in reversed(dims):
        data = torch.prod(data, d, keepdim, dtype=dtype)
    return data


def count_nonzero_over(data, dims, keepdim):
    """torch.count_nonzero has no keepdim."""
    return (data != 0).sum(dims, keepdim) if data.dim() else (data != 0).long()


def logsumexp_over(data, dims, keepdim):
    """torch.logsumexp takes a dimension, which a 0-d tensor has by courtesy."""
    return torch.logsumexp(data, dims if data.dim() else 0, keepdim)


_logsumexp = reduction(-math.inf, logsumexp_over)


def logsumexp(func, x, *args, **kwargs):
    """The log of the sum of the exponentials of the specified elements; an integer is read as a float."""
    if not (x.data.is_floating_point() or x.data.is_complex()):
        x = Pair(x.data.to(torch.get_default_dtype()), x.mask, x.places)
    return _logsumexp(func, x, *args, **kwargs)


def centre(x, dims, keepdim, dtype=None):
    """The sum of the specified elements over how many they are: data, and how many."""
    n = count(x.mask, dims, keepdim)
    data = x.data if dtype is None else x.data.to(dtype)
    if not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError(
            f"mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {data.dtype}; give dtype=torch.float32"
        )
    total = select(x.mask, data, 0)
    if total.dim():
        total = total.sum(dims, keepdim, dtype=torch.float32 if data.dtype.itemsize == 2 else None)
    return (total / n.clamp(min=1)).to(data.dtype), n


def mean(func, x, *args, **kwargs):
    """The sum of the specified elements over how many they are."""
    dims, keepdim, options = _dims_first(x, args, kwargs)
    x, dims = _readable(x, dims, keepdim)
    data, n = centre(x, dims, keepdim, **options)
    return Pair(data, n > 0)


def spread(root=False, with_mean=False):
    """The rule of var, std, var_mean and std_mean."""

    def rule(func, x, *args, **kwargs):
        x, dims, keepdim, correction = _variance_options(x, args, kwargs)
        data, n, m = variance(x, dims, keepdim, correction)
        data = safe_sqrt(data) if root else data
        return (Pair(data, n > 0), Pair(m, n > 0)) if with_mean else Pair(data, n > 0)

    return rule


def _variance_options(x, args, kwargs):
    """The three overloads: (unbiased), (dim, unbiased, keepdim), (dim, correction=, keepdim=)."""
    kwargs = {NAMES.get(k, k): v for k, v in kwargs.items()}
    if args and isinstance(args[0], bool):
        kwargs["unbiased"], args = args[0], args[1:]
    kwargs |= dict(zip(("dim", "unbiased", "keepdim"), args, strict=False))
    unbiased, correction = kwargs.pop("unbiased", None), kwargs.pop("correction", None)
    if unbiased is not None and not isinstance(unbiased, bool):
        raise TypeError(f"unbiased is {unbiased!r}: give True or False, or correction= for another number")
    if correction is None:
        correction = 1 if unbiased in (None, True) else 0
    dims, keepdim = over(x, kwargs.pop("dim", None)), bool(kwargs.pop("keepdim", False))
    if kwargs:
        raise TypeError(
            f"var and std got an unexpected argument {next(iter(kwargs))!r}: they take dim, unbiased, "
            "keepdim and correction"
        )
    return *_readable(x, dims, keepdim), keepdim, correction


def variance(x, dims, keepdim, correction):
    """Mean squared distance, over n - correction, from the mean of the specified elements.

    Returns:
        variance, how many were specified, their mean.
    """
    if not (x.data.is_floating_point() or x.data.is_complex()):
        raise RuntimeError(f"std and var only support floating point and complex dtypes, got {x.data.dtype}")
    if dims and _small_and_whole(x):
        return _plain_variance(x, dims, keepdim, correction)
    m, n = centre(x, dims, True)
    distance = select(x.mask, x.data - m, 0)  # m is finite wherever n > 0 and the data is
    distance = distance.abs().square() if distance.is_complex() else distance.square()
    total = (
        distance.sum(dims, keepdim, dtype=torch.float32 if distance.dtype.itemsize == 2 else None) if dims else distance
    )
    if not keepdim and dims:
        n, m = n.view(total.shape), m.squeeze(dims)
    return (total / (n - correction).clamp(min=0)).to(distance.dtype), n, m


def _small_and_whole(x):
    """Whether torch's own kernel, in one pass, gives what variance does, and asking costs less than it spares.

    float16 and bfloat16 differ in how they round, and gradients where a slice has too few elements.
    """
    data, mask = x.data, x.mask
    return (
        0 < mask.numel() < MANY
        and type(mask) is Tensor  # a fake one has no values to ask
        and mask.is_cpu
        and data.dtype in (torch.float32, torch.float64)
        and not data.requires_grad
        and mask.all().item()
    )


def _plain_variance(x, dims, keepdim, correction):
    """variance where everything is specified; torch's kernel divides by n, for it warns where n - correction is 0."""
    data, _ = torch.var_mean(x.data, dims, correction=0, keepdim=keepdim)  # half the time of torch.var
    n = math.prod([x.data.shape[d] for d in dims])
    free = max(n - correction, 0)
    if free != n:
        data = data * (n / free if free else math.inf)  # 0 * inf is NaN, as 0 / 0 is
    return data, torch.full(data.shape, n), x.data.mean(dims, keepdim)  # var_mean's own may be NaN beside an infinity


def safe_sqrt(data):
    """The root, whose gradient at zero is 0, as torch's std has it."""
    if not (data.requires_grad and torch.is_grad_enabled()):
        return data.sqrt()
    zero = data == 0
    return data.masked_fill(zero, 1).sqrt().masked_fill(zero, 0)


def _nan_where_empty(out):
    """A slice of NaN only is specified, and NaN."""
    return out.filled(float("nan")) if out.data.is_floating_point() else out.data


def nansum(func, x, *args, **kwargs):
    """The sum of what is specified and not NaN; a slice of NaN only sums to zero."""
    dims, keepdim, options = _dims_first(x, args, kwargs)
    x, dims = _readable(x, dims, keepdim)
    data = Pair(x.data, x.mask & ~x.data.isnan()).filled(0)
    return Pair(_apply(torch.sum, data, dims, keepdim, options, None), any_of(x.mask, dims, keepdim))


def nanmean(func, x, *args, **kwargs):
    """The mean of what is specified and not NaN; a slice of NaN only has the mean NaN."""
    dims, keepdim, options = _dims_first(x, args, kwargs)
    x, dims = _readable(x, dims, keepdim)
    data, n = centre(Pair(x.data, x.mask & ~x.data.isnan()), dims, keepdim, **options)
    return Pair(select(n > 0, data, float("nan")), any_of(x.mask, dims, keepdim))


def extreme(largest):
    """The rule of max and min: of all elements, along one dimension with indices, or of two tensors."""
    from_dtype = lowest if largest else highest
    binary = torch.maximum if largest else torch.minimum
    of_two = elementwise(from_dtype)

    def rule(func, x, *args, **kwargs):
        second = args[0] if args else kwargs.get("other")
        if isinstance(second, (Pair, Tensor)):
            return of_two(binary, x, second)
        kwargs = {NAMES.get(k, k): v for k, v in kwargs.items()} | dict(zip(("dim", "keepdim"), args, strict=False))
        if "dim" not in kwargs:
            x, dims = _readable(x, over(x, None))
            return Pair(func(x.filled(from_dtype)), any_of(x.mask, dims))
        x, keepdim = x.dense(), bool(kwargs.get("keepdim", False))
        (dim,) = over(x, kwargs["dim"]) or (0,)
        index, found = first_of_extreme(x, dim, largest)
        return func_type(func)(chosen(x, index, found, dim, keepdim))

    return rule


def func_type(func):
    """The named tuple that a function returns for one dimension, such as torch.return_types.max."""
    return getattr(torch.return_types, func.__name__, tuple)


def position_of_extreme(largest):
    """The rule of argmax and argmin: int64 positions in the full slice, whatever the layout."""

    def rule(func, x, *args, **kwargs):
        dims, keepdim, _ = _dims_first(x, args, kwargs)
        dim = kwargs.get("dim", kwargs.get("axis", args[0] if args else None))
        n = len(x.shape)
        if dim is None and n > 0:
            index, found = first_of_extreme(_flattened(x), 0, largest)
            index = index if x.places is None else _position(x, index)
            shape = (1,) * n if keepdim else ()
            return Pair(index.reshape(shape), found.reshape(shape))
        x = x.dense()
        (d,) = dims or (0,)
        index, found = first_of_extreme(x, d, largest)
        return Pair(index, found) if keepdim or n == 0 else Pair(index.squeeze(d), found.squeeze(d))

    return rule


def _position(x, index):
    """The position in the flattened tensor of the element that stands at index among the flattened stored values."""
    if x.data.numel() == 0:
        return index
    size = x.data[0].numel()
    return x.places.ranks()[index // size] * size + index % size


def both_extremes(func, x, *, dim=None, keepdim=False):
    """aminmax: least and largest."""
    x, dims = _readable(x, over(x, dim), keepdim)
    mask = any_of(x.mask, dims, keepdim)
    low = torch.amin(x.filled(highest), dims, keepdim) if x.data.dim() else x.data
    high = torch.amax(x.filled(lowest), dims, keepdim) if x.data.dim() else x.data
    return torch.return_types.aminmax([Pair(low, mask), Pair(high, mask)])


def _ordered(pick):
    """The rule of a reduction that sorts and picks: median, mode."""

    def rule(func, x, *args, **kwargs):
        kwargs = {NAMES.get(k, k): v for k, v in kwargs.items()} | dict(zip(("dim", "keepdim"), args, strict=False))
        if "dim" not in kwargs and pick is not most_frequent:
            flat = _flattened(x)
            index, found = pick(flat, 0)
            value, _ = chosen(flat, index, found, 0, False)
            return value
        x = x.dense()
        (dim,) = over(x, kwargs.get("dim", -1)) or (0,)
        index, found = pick(x, dim)
        return func_type(func)(chosen(x, index, found, dim, bool(kwargs.get("keepdim", False))))

    return rule


median = _ordered(middle)
mode = _ordered(most_frequent)


def nanmedian(func, x, *args, **kwargs):
    """The median of what is specified and not NaN; a slice of NaN only has the median NaN."""
    x = x.dense() if args or kwargs else _flattened(x)
    present = Pair(x.data, x.mask & ~x.data.isnan()) if x.data.is_floating_point() else x
    out = median(func, present, *args, **kwargs)
    first = out[0] if isinstance(out, tuple) else out
    specified = _any_like(x, {"dim": kwargs.get("dim", args[0] if args else None)}, first.mask)
    if not isinstance(out, tuple):
        return Pair(_nan_where_empty(out), specified)
    return type(out)([Pair(_nan_where_empty(out[0]), specified), Pair(out[1].data, specified)])


def _any_like(x, options, like):
    dims = over(x, options.get("dim"))
    return any_of(x.dense().mask, dims, keepdim=like.dim() == len(x.shape) and like.dim() > 0).reshape(like.shape)


def quantile(ignoring_nan):
    """The rule of quantile and nanquantile, with every interpolation."""

    def rule(func, x, q, dim=None, keepdim=False, *, interpolation="linear"):
        if x.data.dtype not in (torch.float32, torch.float64):
            raise RuntimeError(f"quantile() input tensor must be either float or double dtype, got {x.data.dtype}")
        asked = q.mask if isinstance(q, Pair) else None
        q = q.filled(0) if isinstance(q, Pair) else torch.as_tensor(q, dtype=x.data.dtype, device=x.data.device)
        n, all_dims = len(x.shape), dim is None
        x = _flattened(x) if all_dims else x.dense()
        (d,) = over(x, 0 if all_dims else dim) or (0,)
        specified = any_of(x.mask, (d,), True) if x.data.dim() else x.mask.reshape(1)
        if x.data.dim() == 0:
            x = Pair(x.data.reshape(1), x.mask.reshape(1))
        present = Pair(x.data, x.mask & ~x.data.isnan()) if ignoring_nan else x
        data = quantiles(present, q.reshape(-1), d, interpolation)  # (number of q, ..., 1, ...)
        if all_dims and keepdim:
            data, specified = data.reshape(-1, *(1,) * n), specified.reshape((1,) * n)
        elif not keepdim or n == 0:
            data, specified = data.squeeze(d + 1), specified.squeeze(d)
        mask = specified.expand(data.shape)
        if asked is not None:
            mask = mask & asked.reshape(-1, *(1,) * (mask.dim() - 1))
        return Pair(data, mask) if q.dim() else Pair(data[0], mask[0])

    return rule


def vector_norm(func, x, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The p-norm of the specified elements; a missing one reads as 0, as infinity where p is negative."""
    x, dims = _readable(x, over(x, dim), keepdim)
    data = x.data if dtype is None else x.data.to(dtype)
    filled = select(x.mask, data, float("inf") if ord < 0 and not data.is_complex() else 0)
    if filled.dim() == 0:
        dims = None
    return Pair(torch.linalg.vector_norm(filled, ord, dims, keepdim), any_of(x.mask, dims or (), keepdim))


def norm(func, x, p="fro", dim=None, keepdim=False, dtype=None, **kwargs):
    """torch.norm and linalg.norm: vector norms, or the matrix norms of matrix_norm."""
    ord = kwargs.get("ord", p)
    matrix = (isinstance(dim, (tuple, list)) and len(dim) == 2) or (
        dim is None and len(x.shape) == 2 and func is torch.linalg.norm
    )
    if ord is None or ord == "fro" or (isinstance(ord, (int, float)) and not (matrix and func is torch.linalg.norm)):
        return vector_norm(func, x, 2 if ord in (None, "fro") else ord, dim, keepdim, dtype=dtype)
    return matrix_norm(func, x, ord, tuple(dim) if dim is not None else (-2, -1), keepdim, dtype=dtype)


def matrix_norm(func, x, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """fro, 1, -1, inf, -inf over the specified elements; nuc, 2 and -2 need the whole matrix."""
    if ord == "fro":
        return vector_norm(func, x, 2, dim, keepdim, dtype=dtype)
    if ord in (1, -1, math.inf, -math.inf):
        n = len(x.shape)
        row, column = (d % n for d in dim)
        inner, outer = (row, column) if abs(ord) == 1 else (column, row)
        sums = vector_norm(func, x, 1, inner, True, dtype=dtype)
        ends = (torch.amax, lowest) if ord > 0 else (torch.amin, highest)
        out = Pair(ends[0](sums.filled(ends[1]), outer, True), any_of(sums.mask, (outer,), True))
        return out if keepdim else Pair(out.data.squeeze((row, column)), out.mask.squeeze((row, column)))
    return on_whole(
        lambda data: torch.linalg.matrix_norm(data, ord, dim, keepdim, dtype=dtype), x, dim, keepdim=keepdim
    )


def has_true(rule):
    """The rule of _is_any_true and _is_all_true: what any or all says of the specified elements, which is specified."""

    def asked(func, x):
        if x.data.dtype != torch.bool:
            raise ValueError(f"{func.__name__}: expected a boolean tensor, got {x.data.dtype}")
        out = rule(torch.any if "any" in func.__name__ else torch.all, x)
        return Pair(out.data, torch.ones_like(out.mask))

    return asked


def trace(func, x):
    """The sum of the specified elements of the diagonal."""
    x = x.dense()
    diagonal = Pair(x.data.diagonal(), x.mask.diagonal())
    return Pair(diagonal.filled(0).sum(), any_of(diagonal.mask, (0,)))


def sum_to_size(func, x, *size):
    """The sum over the dimensions that expand would have made."""
    x = x.dense()
    return Pair(x.filled(0).sum_to_size(*size), x.mask.to(torch.int64).sum_to_size(*size) > 0)


def between(func, *args, **kwargs):
    """dist and pairwise_distance: the norm of the difference where both operands specify it."""
    args = [*args, *(kwargs.pop(k) for k in ("x1", "x2", "other") if k in kwargs)]
    a, b, p = (*args, 2)[:3]
    p = kwargs.pop("p", p)
    difference = elementwise(0)(torch.sub, a, b)
    if func is torch.nn.functional.pairwise_distance:
        eps, keepdim = kwargs.pop("eps", 1e-6), kwargs.pop("keepdim", False)
        difference = Pair(difference.data + eps, difference.mask)
        return vector_norm(func, difference, p, -1, keepdim)
    return vector_norm(func, difference, p)


def equal(func, x, other, *args, **kwargs):
    """torch.equal and allclose: the same elements specified, with the same values; a bool."""
    pairs = operands((x, other), {})
    if len(pairs) < 2:
        plain = x if isinstance(other, Pair) else other
        one = pairs[0].dense()
        pairs = [one, Pair(plain, torch.ones_like(one.mask).expand(one.mask.shape))]
    a, b = pairs
    if a.places is None or not a.places.same(b.places):
        a, b = a.dense(), b.dense()
    if (a.data.shape != b.data.shape and func.__name__ == "equal") or not _masks_equal(a.mask, b.mask):
        return False
    mask = a.mask
    return func(Pair(a.data, mask).filled(1), Pair(b.data, mask).filled(1), *args, **kwargs)


def _masks_equal(a, b):
    try:
        a, b = torch.broadcast_tensors(a, b)
    except RuntimeError:
        return False
    return torch.equal(a, b)
