"""Writing: in-place operations and assignment change values, and never which elements are specified."""

import torch

from .pair import Pair, select
from .storage import same_mask

CURE = "torch.where(condition, a, b) makes a tensor that specifies other elements"


def in_place(rule, base):
    """The rule of an in-place operation: the out-of-place one, then a write.

    Args:
        rule: the rule of base. base: the out-of-place function.
    """

    def written(func, x, *args, **kwargs):
        return write(func, x, rule(base, x, *args, **kwargs))

    return written


def write(func, x, out):
    """Write the specified elements of a result into x; what is unspecified keeps its bits.

    Args:
        x: a Pair, whose mask the result must have, or a plain tensor, of which only the specified elements change.
    Returns:
        x itself.
    Raises:
        ValueError: the result would change which elements of x are specified.
        RuntimeError: the result's shape or dtype does not fit into x.
    """
    name = getattr(func, "__name__", str(func))
    if not isinstance(out, Pair):
        raise NotImplementedError(f"{name} on a MaskedTensor has no in-place form: use the form without underscore")
    if out.shape != x.shape:
        raise RuntimeError(
            f"{name}: the result has shape {tuple(out.shape)}, which does not fit into the shape "
            f"{tuple(x.shape)} of the tensor to be written"
        )
    target = x.data if isinstance(x, Pair) else x
    if not torch.can_cast(out.data.dtype, target.dtype):
        raise RuntimeError(
            f"{name}: result type {out.data.dtype} can't be cast to the desired output type {target.dtype}: "
            "use the form without underscore"
        )
    if not isinstance(x, Pair):
        return _write_plain(x, out)
    if x.places is not None and not (out.places is not None and x.places.same(out.places)):
        raise ValueError(
            f"{name} would change where elements are stored, which makes a new tensor: use the form without underscore"
        )
    out = out.dense() if x.places is None else out
    if not same_mask(x.mask, out.mask):
        raise ValueError(f"{name} would change which elements are specified, and masks are immutable: {CURE}")
    target.copy_(select(x.mask, out.data.to(target.dtype), target))
    return x


def _write_plain(x, out):
    index = out.places.index if out.places is not None else ()
    out = out if index else out.dense()
    data = out.data.to(x.dtype)
    if index:
        x.index_put_(index, select(out.mask, data, x[index]))
    else:
        x.copy_(select(out.mask, data, x))
    return x


def assign(func, x, index, value):
    """x[index] = value; for a plain x, only what value specifies is written."""
    if isinstance(index, Pair) or (isinstance(index, tuple) and any(isinstance(i, Pair) for i in index)):
        raise TypeError(
            "assignment got a MaskedTensor as index, where a plain tensor is expected: "
            "say what the missing entries mean with .to_tensor(value)"
        )
    if not isinstance(x, Pair):
        old = x[index]
        value = _fitting(value, old.shape)
        x[index] = select(value.mask, value.data.to(x.dtype), old)
        return None
    if x.places is not None:
        raise NotImplementedError(f"assignment to a MaskedTensor in layout {x.places.layout}: call to_dense() first")
    if isinstance(value, Pair):
        value = _fitting(value, x.mask[index].shape)
    _check_same(x.mask[index], value, "assignment")
    if isinstance(value, Pair):
        old = x.data[index]
        value = select(x.mask[index], value.data.to(old.dtype), old)
    x.data[index] = value
    return None


def _fitting(value, shape):
    """A value in the shape it is assigned to; as torch has it, further dimensions of size 1 may lead.

    Raises:
        RuntimeError: it does not fit.
    """
    value = value.dense()
    extra = value.data.dim() - len(shape)
    if extra > 0 and all(n == 1 for n in value.data.shape[:extra]):
        value = Pair(value.data.reshape(value.data.shape[extra:]), value.mask.reshape(value.mask.shape[extra:]))
    try:
        return Pair(value.data.expand(shape), value.mask.expand(shape))
    except RuntimeError as e:
        raise RuntimeError(
            f"assignment: a value of shape {tuple(value.data.shape)} does not fit into shape {tuple(shape)}"
        ) from e


def copy(func, x, source, non_blocking=False):
    """x.copy_(source); for a plain x, only what source specifies is written."""
    if not isinstance(x, Pair):
        source = (
            source.dense()
            if source.shape == x.shape
            else Pair(source.dense().data.expand(x.shape), source.dense().mask.expand(x.shape))
        )
        return _write_plain(x, Pair(source.data.to(x.device), source.mask.to(x.device)))
    if isinstance(source, Pair) and x.places is not None and x.places.same(source.places):
        _check_same(x.mask, source, "copy_")
        return write(func, x, Pair(source.data.to(x.data.dtype), x.mask, x.places))
    if x.places is not None:
        raise NotImplementedError("copy_ into a sparse MaskedTensor from other places: call to_dense() first")
    source = source.dense() if isinstance(source, Pair) else source
    _check_same(x.mask, source, "copy_")
    source = source.data if isinstance(source, Pair) else source
    return write(func, x, Pair(source.to(x.data).expand(x.shape), x.mask))


def _check_same(mask, value, what):
    if mask.is_meta:
        return
    if isinstance(value, Pair):
        new = value.dense().mask.to(mask.device)
        try:
            same = torch.equal(mask, new.expand(mask.shape))
        except RuntimeError as e:
            raise RuntimeError(
                f"{what}: a value of shape {tuple(new.shape)} does not fit into shape {tuple(mask.shape)}"
            ) from e
    else:
        same = bool(mask.all())
    if not same:
        raise ValueError(f"{what} would change which elements are specified, and masks are immutable: {CURE}")


def fill(func, x, *value):
    """fill_ and zero_: a number into every specified element."""
    number = value[0] if value else 0
    if isinstance(number, Pair):
        if not bool(number.mask.all()):
            return write(func, x, Pair(number.data.expand(x.shape), number.mask.expand(x.shape)))
        number = number.data
    if not isinstance(x, Pair):
        return x.fill_(number)
    filled = x.data.detach().clone().fill_(number)
    return write(func, x, Pair(filled, x.mask, x.places))


def filled_with(func, x, value):
    """torch.fill: a new tensor with a number in every specified element."""
    if not isinstance(x, Pair) or isinstance(value, Pair):
        raise TypeError("fill takes a MaskedTensor and a plain number: torch.where combines two tensors")
    return Pair(func(x.data, value), x.mask, x.places)


def drawn(func, tensor, *args, **kwargs):
    """normal_, uniform_ and their kin: random numbers into every element, of which the specified ones count."""
    func(tensor.data, *args, **kwargs)
    return tensor


def like(func, x, *args, **kwargs):
    """zeros_like, full_like, rand_like and their kin: new values under the same mask and in the same places."""
    if isinstance(kwargs.get("layout"), torch.layout) and kwargs["layout"] != (
        x.places.layout if x.places else torch.strided
    ):
        x = x.dense()
        if kwargs["layout"] != torch.strided:
            raise NotImplementedError(f"{func.__name__} into layout {kwargs['layout']}: convert the result")
    kwargs.pop("layout", None)
    data = func(x.data, *args, **kwargs)
    if data.device != x.mask.device:
        x = x.dense()
        data = func(x.data, *args, **kwargs)
        return Pair(data, x.mask.to(data.device))
    return Pair(data, x.mask, x.places)


def new(func, x, *args, **kwargs):
    """new_zeros, new_tensor and their kin: a plain tensor with the dtype and device of x."""
    return func(x.data, *args, **kwargs)
