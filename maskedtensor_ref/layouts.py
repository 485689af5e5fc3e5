"""What a layout is: a strided block of values, and places that say where each value goes."""

import warnings

import torch


class Places:
    """Where the stored values of a sparse tensor sit, row-major and without duplicates.

    Attributes:
        layout: torch.sparse_coo or torch.sparse_csr.
        shape: torch.Size of the tensor.
        indices: COO: int64, (sparse dimensions, stored). CSR: (crow_indices, col_indices).
    """

    __slots__ = ("_dense_mask", "_index", "indices", "layout", "shape")

    def __init__(self, layout, shape, indices):
        self.layout, self.shape, self.indices = layout, torch.Size(shape), indices
        self._index = self._dense_mask = None

    @staticmethod
    def of(t):
        """The values of a sparse tensor, differentiable, and their places.

        Raises:
            TypeError: the layout is not COO or two-dimensional CSR.
        """
        if t.layout == torch.sparse_coo:
            t = t if t.is_coalesced() else t.coalesce()
            return t.values(), Places(t.layout, t.shape, t.indices())
        if t.layout == torch.sparse_csr and t.dim() == 2:
            return t.values(), Places(t.layout, t.shape, (t.crow_indices(), t.col_indices()))
        raise TypeError(
            f"layout {t.layout} with {t.dim()} dimensions is not supported: a MaskedTensor is strided, "
            f"sparse COO (also hybrid) or two-dimensional sparse CSR; call .to_dense() first"
        )

    @property
    def index(self):
        """One index tensor per sparse dimension, each (stored,)."""
        if self._index is not None:
            return self._index
        if self.layout == torch.sparse_coo:
            index = tuple(self.indices.unbind(0))
        else:
            crow, col = self.indices
            rows = torch.arange(self.shape[0], device=crow.device)
            index = torch.repeat_interleave(rows, crow.diff().long(), output_size=col.shape[0]), col.long()
        if not torch.is_inference_mode_enabled():  # what is made there cannot be saved for a backward elsewhere
            self._index = index
        return index

    def same(self, other):
        """Whether both say the same places, in the same layout; free when they are the same object."""
        if self is other:
            return True
        if other is None or self.layout != other.layout or self.shape != other.shape:
            return False
        if self.layout == torch.sparse_coo:
            return torch.equal(self.indices, other.indices)
        return all(torch.equal(a, b.to(a.dtype)) for a, b in zip(self.indices, other.indices, strict=True))

    def ranks(self):
        """How many elements stand before each stored one in a strided tensor: int64, (stored,)."""
        indices = self.indices if self.layout == torch.sparse_coo else self.indices[1]
        out = torch.zeros(indices.shape[-1], dtype=torch.int64, device=indices.device)
        for index, n in zip(self.index, self.shape, strict=False):
            out = out * n + index
        return out

    def picked(self, dim, positions):
        """What is stored at positions (int64, sorted, each once) along a sparse dimension.

        Returns:
            which of the stored values are there, bool (stored,); their Places, COO, in the smaller shape.
        """
        at = torch.searchsorted(positions, self.index[dim])
        kept = torch.isin(self.index[dim], positions)
        indices = torch.stack([*self.index[:dim], at, *self.index[dim + 1 :]])[:, kept]
        shape = (*self.shape[:dim], len(positions), *self.shape[dim + 1 :])
        return kept, Places(torch.sparse_coo, shape, indices)

    def tensor(self, values):
        """A sparse tensor that stores `values` here; differentiable."""
        if self.layout == torch.sparse_coo:
            return torch.sparse_coo_tensor(self.indices, values, self.shape, is_coalesced=True, check_invariants=False)
        with warnings.catch_warnings():  # "Sparse CSR tensor support is in beta state"
            warnings.simplefilter("ignore")
            return torch.sparse_csr_tensor(*self.indices, values, self.shape, check_invariants=False)

    def scatter(self, values):
        """A strided tensor with `values` here and zero elsewhere; differentiable."""
        out = torch.zeros(self.shape, dtype=values.dtype, device=values.device)
        if not self.index:  # a 0-d COO tensor stores one value or none
            return out + values.sum(0, dtype=values.dtype) if values.dtype != torch.bool else values.any(0)
        return out.index_put(self.index, values)

    def scatter_mask(self, mask):
        """scatter for a mask; the same object for the same mask, so that dense results share it."""
        known = self._dense_mask  # read once: another thread may ask for another mask
        if known is not None and known[0] is mask:
            return known[1]
        dense = self.scatter(mask)
        if not torch.is_inference_mode_enabled():
            self._dense_mask = mask, dense
        return dense

    def gather(self, dense):
        """The elements of a strided tensor at these places, (stored, dense dimensions); differentiable."""
        return dense[self.index] if self.index else dense.reshape(1).expand(self.indices.shape[1])


def stored(data, mask, layout, sparse_dim=None):
    """Strided data and mask in a sparse layout that stores exactly what mask specifies.

    Args:
        data, mask: strided, of one shape.
        layout: torch.sparse_coo or torch.sparse_csr.
        sparse_dim: leading dimensions that are sparse (COO only), all of them when None.
    Returns:
        values, mask of the values, Places.
    Raises:
        ValueError: the layout cannot hold the shape.
    """
    if layout == torch.sparse_csr and data.dim() != 2:
        raise ValueError(f"Only 2D tensors can be converted to the SparseCsr layout but got shape: {data.shape}")
    sparse_dim = data.dim() if sparse_dim is None else sparse_dim
    if not 0 <= sparse_dim <= data.dim():
        raise ValueError(f"sparse_dim is {sparse_dim}, the tensor has {data.dim()} dimensions: give 0 to {data.dim()}")
    occupied = mask.flatten(sparse_dim).any(-1) if sparse_dim < data.dim() else mask
    index = occupied.nonzero(as_tuple=True) if data.dim() else ()
    if not index:
        indices = torch.zeros((0, int(bool(occupied))), dtype=torch.int64, device=data.device)
        places = Places(layout, data.shape, indices)
        return places.gather(data), places.gather(mask), places
    if layout == torch.sparse_coo:
        indices = torch.stack(index)
    else:
        counts = occupied.sum(1)
        indices = torch.cat([counts.new_zeros(1), counts.cumsum(0)]), index[1]
    places = Places(layout, data.shape, indices)
    places._index = index
    return data[index], mask[index], places


NOT_THE_SAME = {
    torch.sparse_coo: "data and mask are both sparse COO tensors but do not have the same indices.",
    torch.sparse_csr: "data and mask are both sparse CSR tensors but do not share either crow or col indices.",
}


def project(values, places, onto):
    """The values stored at `places`, at the places `onto`; differentiable.

    Those are among the places, or the places are among them: then what is not stored is zero, as in any sparse tensor.

    Raises:
        ValueError: neither holds all of the other.
    """
    have, order = places.ranks().sort()
    wanted = onto.ranks()
    end = have.shape[0]
    at = torch.searchsorted(have, wanted)
    found = torch.cat([have, have.new_tensor([-1])])[at] == wanted
    if not bool(found.all()):
        if int(found.sum()) < end:
            missing = tuple(int(i[(~found).nonzero()[0, 0]]) for i in onto.index)
            raise ValueError(
                f"{NOT_THE_SAME[onto.layout]} The mask stores an element at {missing} where data stores none, and not "
                "every element that data stores: give it the indices of the data, some of them, or more; "
                "data.sparse_mask(mask) makes them equal"
            )
        values = torch.cat([values, values.new_zeros(1, *values.shape[1:])])
    return values[torch.where(found, torch.cat([order, order.new_tensor([end])])[at], end)]
