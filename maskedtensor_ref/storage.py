"""How Pairs are compared, frozen and moved between layouts, devices and dtypes."""

import torch
from torch.utils.weak import WeakIdKeyDictionary

from .layouts import Places, stored
from .pair import Pair, equal_masks

_frozen = WeakIdKeyDictionary()  # a mask -> its version, and our copy of it (None: it is ours)


def freeze(mask):
    """A private copy of a user's mask; the same copy while the mask stays as it is, so that tensors share it.

    Sharing makes comparing masks free, and it is sound because nothing here ever writes to a mask.
    """
    version, copy = _frozen.get(mask, (None, None))
    if version == _version(mask):
        if copy is None:
            return mask
        if mask.is_meta or equal_masks(copy, mask):
            return copy
    copy = _copied(mask)
    _frozen[mask] = _version(mask), copy
    return own(copy)


def _version(mask):
    """What torch counts writes with; an inference tensor has no such counter."""
    return 0 if mask.is_inference() else mask._version


def _copied(mask):
    """A copy without history, and no inference tensor: a mask that is first seen there may be used in training."""
    copy = mask.detach().clone()
    if copy.is_inference():
        with torch.inference_mode(False):
            copy = copy.clone()
    return copy


def freeze_sparse(mask):
    """The values and Places of a user's sparse mask, copied, and the same copies while the mask stays as it is."""
    version, copy = _frozen.get(mask, (None, None))
    kept, places = Places.of(mask)
    if version == _version(mask) and copy is not None:
        known, at = copy
        if at.same(places) and (mask.is_meta or equal_masks(known, kept)):
            return copy
    copy = _copied(kept), places
    _frozen[mask] = _version(mask), copy
    return copy


def own(mask):
    """Remember a mask as one of ours, so that freezing it again gives the same object."""
    if mask not in _frozen:
        _frozen[mask] = _version(mask), None
    return mask


def same_mask(a, b):
    """Whether two strided masks are equal after broadcasting.

    Free for one object or one view of it; a meta mask is taken to be equal, for it has no values.
    """
    if a is b:
        return True
    if a.is_meta or b.is_meta:
        return True
    if a.shape == b.shape:
        if a.data_ptr() == b.data_ptr() and a.stride() == b.stride() and a.device == b.device:
            return True
        return equal_masks(a, b)
    return equal_masks(*torch.broadcast_tensors(a, b))


def relayout(p, layout, sparse_dim=None):
    """A Pair in another layout, differentiable; CSR that is not two-dimensional stays strided."""
    if layout == torch.strided:
        return p.dense()
    p = p.dense()
    if layout == torch.sparse_csr and p.data.dim() != 2:
        return p
    return Pair(*stored(p.data, p.mask, layout, sparse_dim))


def to_layout(layout):
    """The rule that stores the same elements another way."""

    def rule(func, x, *args, **kwargs):
        if layout == torch.strided:
            dtype = args[0] if args else kwargs.get("dtype")
            x = x.dense()
            return x if dtype is None else Pair(x.data.to(dtype), x.mask)
        if x.places is not None and x.places.layout == layout and not args and not kwargs:
            return x
        kind = kwargs.pop("layout", layout) or layout
        if args and isinstance(args[0], torch.layout):
            kind, args = args[0], args[1:]
        sparse_dim = args[0] if args else kwargs.get("sparse_dim", kwargs.get("sparseDims"))
        if kwargs.get("dense_dim"):
            sparse_dim = len(x.shape) - kwargs["dense_dim"]
        if kind not in (torch.sparse_coo, torch.sparse_csr, torch.strided):
            raise TypeError(f"layout {kind} is not supported: a MaskedTensor is strided, sparse COO or sparse CSR")
        x = x.dense()
        return Pair(*stored(x.data, x.mask, kind, sparse_dim)) if kind != torch.strided else x

    return rule


def on_data(func, x, *args, **kwargs):
    """What is asked of the tensor is answered by its data: shape, dtype, device, requires_grad and so on."""
    return func(x.tensor() if isinstance(x, Pair) else x, *map(_plain, args), **kwargs)


def on_values(func, x, *args, **kwargs):
    """What is asked of autograd is answered by the stored values, where autograd runs."""
    return func(x.data, *args, **kwargs)


def _plain(a):
    return a.tensor() if isinstance(a, Pair) else a


def keeping_mask(func, x, *args, **kwargs):
    """The same call on the data, under the same mask: clone, detach, to, cuda, half and so on."""
    if not isinstance(x, Pair):  # plain.to(masked), plain.type_as(masked)
        return func(x, *(a.data if isinstance(a, Pair) else a for a in args), **kwargs)
    args = [a.data if isinstance(a, Pair) else a for a in args]
    data = func(x.data, *args, **kwargs)
    if data is x.data:
        return x
    if not isinstance(data, torch.Tensor):  # m.type() without a type names it
        return data
    mask, places = x.mask, x.places
    if data.device != mask.device:
        mask, places = mask.to(data.device), _to(places, data.device)
    return Pair(data, mask, places)


def _to(places, device):
    if places is None:
        return None
    indices = places.indices
    moved = tuple(i.to(device) for i in indices) if isinstance(indices, tuple) else indices.to(device)
    return type(places)(places.layout, places.shape, moved)


def stored_values(func, x):
    """values() of a sparse tensor: its stored values as a strided MaskedTensor that shares memory with it."""
    _must_be_sparse(func, x)
    return Pair(x.data, x.mask)


def stored_indices(func, x):
    """indices(), crow_indices() and col_indices() of a sparse tensor: plain int64."""
    _must_be_sparse(func, x)
    return func(x.tensor().detach())


def coalesce(func, x):
    """A sparse MaskedTensor is always coalesced."""
    _must_be_sparse(func, x)
    return x


def _must_be_sparse(func, x):
    if x.places is None:
        raise RuntimeError(
            f"{func.__name__} expects a sparse layout, and this MaskedTensor is strided: use to_sparse_coo()"
        )


def sparse_mask(func, x, mask):
    """The elements of a plain tensor, or of x, at the places that a sparse MaskedTensor stores, under its mask."""
    if not isinstance(mask, Pair):
        x = x.dense()
        _, places = Places.of(mask)
        return Pair(places.gather(x.data), places.gather(x.mask), places)
    _must_be_sparse(func, mask)
    places = mask.places
    if not isinstance(x, Pair):
        return Pair(places.gather(x.to_dense()), mask.mask, places)
    x = x.dense()
    return Pair(places.gather(x.data), places.gather(x.mask) & mask.mask, places)


def sparse_coo_tensor(func, indices, values, size=None, *, is_coalesced=None, **options):
    """A COO MaskedTensor out of masked values; of several values for one place, those that are specified are added."""
    if isinstance(indices, Pair) or size is None:
        raise TypeError("sparse_coo_tensor of masked values needs plain indices and the size")
    flat = torch.zeros(indices.shape[1], dtype=torch.int64, device=indices.device)
    for row, n in zip(indices, size, strict=False):
        flat = flat * n + row
    if is_coalesced or flat.numel() < 2 or bool((flat.diff() > 0).all()):
        return Pair(values.data, values.mask, Places(torch.sparse_coo, size, indices))
    flat, where = flat.unique(return_inverse=True)
    rows = []
    for n in reversed(size[: indices.shape[0]]):
        rows.append(flat % n)
        flat = flat // n
    out = values.data.new_zeros(rows[0].shape[0], *values.data.shape[1:]).index_add(0, where, values.filled(0))
    terms = values.mask.new_zeros(out.shape, dtype=torch.int64).index_add(0, where, values.mask.to(torch.int64))
    return Pair(out, terms > 0, Places(torch.sparse_coo, size, torch.stack(rows[::-1])))


def contiguous(func, x, *args, **kwargs):
    """contiguous and is_contiguous, for a strided pair."""
    if x.places is not None:
        raise ValueError(
            "MaskedTensors with sparse data do not have is_contiguous, and contiguous neither: call to_dense() first"
        )
    out = func(x.data, *args, **kwargs)
    return Pair(out, x.mask.contiguous()) if isinstance(out, torch.Tensor) else out


def shared_memory(func, x, *args, **kwargs):
    """Move data and mask to shared memory or pin them, in place."""
    for t in (x.data, x.mask):
        func(t, *args, **kwargs)
    return x
