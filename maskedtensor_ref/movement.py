"""Movement: elements change place and are not read, so the mask makes the same move as the data."""

import torch
from torch import Tensor

from .pair import Pair, whole
from .storage import relayout


def movement(func, x, *args, **kwargs):
    """The same move on data and on mask; a strided result shares memory with x as torch's does."""
    _no_masked_options(func, args, kwargs)
    return _moved(func, x, args, kwargs, lambda mask: func(mask, *args, **kwargs))


def movement_with_zeros(func, x, *args, **kwargs):
    """A move that writes numbers too (tril, pad, diag_embed): the numbers are specified, so the holes make the move."""
    _no_masked_options(func, args, kwargs)
    kwargs_of_holes = {k: v for k, v in kwargs.items() if k != "value"}

    def move(mask):
        holes = (~mask).to(torch.float32)
        plain = [
            0 if i > 0 and isinstance(a, (int, float, complex)) and func.__name__ in PADS else a
            for i, a in enumerate(args)
        ]
        return func(holes, *plain, **kwargs_of_holes) == 0

    return _moved(func, x, args, kwargs, move)


PADS = "pad", "_pad", "constant_pad_nd"


def movement_of_floats(func, x, *args, **kwargs):
    """A move whose kernel takes floats only (pixel_shuffle, interpolate by copying): the mask moves as 0 and 1."""
    return _moved(func, x, args, kwargs, lambda mask: func(mask.to(torch.float32), *args, **kwargs) > 0)


def interpolation(func, x, *args, **kwargs):
    """A weighted mean of neighbours: specified where every neighbour that has weight is."""
    x = x.dense()
    holes = func((~x.mask).to(torch.float64), *args, **kwargs)
    return Pair(func(x.filled(0), *args, **kwargs), holes == 0)


def _moved(func, x, args, kwargs, move_mask):
    layout = None
    if x.places is not None:
        layout, x = x.places.layout, x.dense()
    return _zip(func(x.data, *args, **kwargs), move_mask(x.mask), layout)


def _zip(data, mask, layout=None):
    """Pairs out of what the same call returned for data and for masks."""
    if isinstance(data, Tensor):
        out = Pair(data, mask)
        return out if layout is None else relayout(out, layout)
    return type(data)([_zip(d, m, layout) for d, m in zip(data, mask, strict=True)])


def moved_like(func, x, other, *args, **kwargs):
    """view_as, expand_as, reshape_as: only the shape of the second operand is read."""
    shape = other.shape
    if not isinstance(x, Pair):
        return func(x, torch.empty(shape, device="meta") if isinstance(other, Pair) else other)
    like = torch.empty(shape, device="meta")
    return _moved(func, x, (like,), kwargs, lambda mask: func(_viewable(mask, x), like))


def movement_of_strides(func, x, *args, **kwargs):
    """view and unflatten: a mask that is laid out otherwise than the data is copied, so that it can make the move."""
    return _moved(func, x, args, kwargs, lambda mask: func(_viewable(mask, x), *args, **kwargs))


def _viewable(mask, x):
    return mask if mask.stride() == x.data.stride() else mask.contiguous()


def restrided(func, x, *args, **kwargs):
    """as_strided and its kin: the mask is laid out as the data first; memory that is not of x is unspecified."""
    _no_masked_options(func, args, kwargs)
    x = x.dense()
    return Pair(func(x.data, *args, **kwargs), func(_laid_out(x), *args, **kwargs))


def restrided_scatter(func, x, src, *args, **kwargs):
    """as_strided_scatter: the elements of src in the place of those that as_strided would give."""
    x, src = whole(x).dense(), whole(src).dense()
    mask = func(_laid_out(x), src.mask, *args, **kwargs)
    return Pair(func(x.data, src.data, *args, **kwargs), mask)


def _laid_out(x):
    """The mask with the strides and the offset of the data, in memory of its own, of the same length."""
    data = x.data
    where = data.shape, data.stride(), data.storage_offset()
    memory = torch.zeros(data.untyped_storage().nbytes() // data.itemsize, dtype=torch.bool, device=data.device)
    positions = torch.arange(memory.shape[0], device=data.device).as_strided(*where)
    memory[positions[x.mask]] = True
    return memory.as_strided(*where)


def one_hot(func, x, num_classes=-1):
    """A row per element: specified where the element is."""
    x = x.dense()
    out = func(x.filled(0), num_classes)
    return Pair(out, x.mask.unsqueeze(-1).expand(out.shape))


def complex_parts(func, x):
    """view_as_real: both parts of a specified number are specified."""
    x = x.dense()
    return Pair(func(x.data), x.mask.unsqueeze(-1).expand(*x.mask.shape, 2))


def complex_whole(func, x):
    """view_as_complex: a number is specified where both its parts are."""
    x = x.dense()
    return Pair(func(x.data), x.mask.all(-1))


def viewed(func, x, *args, **kwargs):
    """view: another shape, or another dtype of the same size."""
    wanted = args[0] if args else kwargs.get("dtype")
    if isinstance(wanted, torch.dtype):
        if wanted.itemsize != x.data.dtype.itemsize:
            raise NotImplementedError(
                f"view from {x.data.dtype} to {wanted} would split or join elements, and a mask "
                "has one entry per element: view as a dtype of the same size, or use .to(dtype)"
            )
        return Pair(x.data.view(wanted), x.mask, x.places)
    return movement_of_strides(func, x, *args, **kwargs)


def joining(func, tensors, *args, **kwargs):
    """cat, stack and their kin: the same join on the data and on the masks."""
    _no_masked_options(func, args, kwargs)
    layouts = {x.places.layout if isinstance(x, Pair) and x.places is not None else torch.strided for x in tensors}
    xs = [whole(x).dense() for x in tensors]
    data = func([x.data for x in xs], *args, **kwargs)
    return _zip(data, func([x.mask for x in xs], *args, **kwargs), layouts.pop() if len(layouts) == 1 else None)


def each(func, *xs, **kwargs):
    """broadcast_tensors, meshgrid, atleast_1d ...: several tensors, given one by one or as a list, move together."""
    if len(xs) == 1 and isinstance(xs[0], (tuple, list)):
        xs = [whole(x).dense() for x in xs[0]]
        return _zip(func([x.data for x in xs], **kwargs), func([x.mask for x in xs], **kwargs))
    xs = [whole(x).dense() for x in xs]
    return _zip(func(*(x.data for x in xs), **kwargs), func(*(x.mask for x in xs), **kwargs))


def blocks(func, *xs):
    """block_diag: the zeros between the blocks are specified."""
    xs = [whole(x).dense() for x in xs]
    return Pair(func(*(x.data for x in xs)), ~func(*(~x.mask for x in xs)))


def placing(position, *names):
    """The rule of operations that put one tensor's elements into another: scatter, index_copy, select_scatter ...

    Args:
        position: which argument, besides the first, carries elements. names: what it is called as a keyword.
            A number or a plain tensor there is specified everywhere.
    """

    def rule(func, *args, **kwargs):
        if kwargs.get("reduce") is not None:
            raise NotImplementedError(f"{func.__name__} of a MaskedTensor with reduce=: use scatter_reduce")
        _no_masked_options(func, [a for i, a in enumerate(args) if i not in (0, position)], {})

        def call(part):
            options = {k: part(v) if k in names else v for k, v in kwargs.items()}
            return func(*(part(a) if i in (0, position) else a for i, a in enumerate(args)), **options)

        data = call(lambda a: a.dense().data if isinstance(a, Pair) else a)
        return _zip(data, call(_mask_of))

    return rule


def placed_by_index(func, x, indices, values, accumulate=False):
    """index_put; accumulating, it is a reduction: specified where anything specified falls."""
    return _placed(func, x, (indices,), values, accumulate)


def placed_by_position(func, x, index, source, accumulate=False):
    """put: index_put into the flattened tensor."""
    return _placed(func, x, (index,), source, accumulate)


def _placed(func, x, where, values, accumulate):
    _no_masked_options(func, where, {})
    x, values = whole(x).dense(), whole(values).dense()
    if not accumulate:
        return Pair(func(x.data, *where, values.data), func(x.mask, *where, values.mask))
    terms = func(x.mask.to(torch.float32), *where, values.mask.to(torch.float32), accumulate=True)
    return Pair(func(x.filled(0), *where, values.filled(0), accumulate=True), terms > 0)


def _mask_of(a):
    if isinstance(a, Pair):
        return a.dense().mask
    return torch.ones_like(a, dtype=torch.bool) if isinstance(a, Tensor) else True


def embedding(func, index, weight, padding_idx=None, max_norm=None, *args, **kwargs):
    """Rows of a masked table; the indices must be plain."""
    if max_norm is not None:
        raise NotImplementedError("embedding with max_norm changes the weight in place: give max_norm=None")
    if isinstance(index, Pair):
        raise TypeError("the indices of embedding are masked: give plain int64 indices, and mask the rows afterwards")
    weight = weight.dense()
    return Pair(func(index, weight.data, padding_idx), torch.nn.functional.embedding(index, weight.mask.byte()).bool())


def masked_selected(func, x, mask):
    """The elements that a plain mask picks, in one dimension."""
    _no_masked_options(func, (mask,), {})
    x = x.dense()
    return Pair(func(x.data, mask), func(x.mask, mask))


def windows(func, x, *args, **kwargs):
    """Differences along a dimension: specified where every element that is subtracted is."""
    options = dict(zip(("n", "dim", "prepend", "append"), args, strict=False)) | kwargs
    n, dim = options.get("n", 1), options.get("dim", -1)
    if n == 0:
        return x
    parts = [options.get("prepend"), x, options.get("append")]
    parts = [whole(p).dense() for p in parts if p is not None]
    data, mask = torch.cat([p.data for p in parts], dim), torch.cat([p.mask for p in parts], dim)
    for _ in range(n):
        data, rest = torch.diff(Pair(data, mask).filled(0), dim=dim), max(mask.shape[dim] - 1, 0)
        mask = mask.narrow(dim, mask.shape[dim] - rest, rest) & mask.narrow(dim, 0, rest)
    return Pair(data, mask)


def _no_masked_options(func, args, kwargs):
    for a in (*args, *kwargs.values()):
        many = a if isinstance(a, (tuple, list)) else (a,)
        if any(isinstance(b, Pair) for b in many):
            raise TypeError(
                f"{func.__name__} got a MaskedTensor as an index or option, where a plain tensor is expected: "
                "say what the missing entries mean with .to_tensor(value)"
            )
