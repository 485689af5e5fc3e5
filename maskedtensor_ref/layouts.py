"""What a layout is: a strided block of values, and places that say where each value goes."""

import warnings

import torch
from torch import Tensor


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
        if self._index is None:
            if self.layout == torch.sparse_coo:
                self._index = tuple(self.indices.unbind(0))
            else:
                crow, col = self.indices
                rows = torch.arange(self.shape[0], device=crow.device)
                self._index = torch.repeat_interleave(rows, crow.diff().long(), output_size=col.shape[0]), col.long()
        return self._index

    def same(self, other):
        """Whether both say the same places, in the same layout; free when they are the same object."""
        if self is other:
            return True
        if other is None or self.layout != other.layout or self.shape != other.shape:
            return False
        if self.layout == torch.sparse_coo:
            return torch.equal(self.indices, other.indices)
        return all(map(torch.equal, self.indices, other.indices))

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
            return out + values.sum(0) if values.dtype != torch.bool else values.any(0)
        return out.index_put(self.index, values)

    def scatter_mask(self, mask):
        """scatter for a mask; the same object for the same mask, so that dense results share it."""
        if self._dense_mask is None or self._dense_mask[0] is not mask:
            self._dense_mask = mask, self.scatter(mask)
        return self._dense_mask[1]

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


def project(values, places, onto):
    """The values stored at `places`, restricted to the places `onto`, a subset of them; differentiable.

    Raises:
        ValueError: `onto` names a place where nothing is stored.
    """
    position = torch.full(places.shape[: len(places.index)], -1, dtype=torch.int64, device=values.device)
    if not places.index:
        return values[: onto.indices.shape[1]]
    position[places.index] = torch.arange(values.shape[0], device=values.device)
    found = position[onto.index]
    if bool((found < 0).any()):
        missing = tuple(int(i[(found < 0).nonzero()[0, 0]]) for i in onto.index)
        raise ValueError(
            f"mask stores an element at {missing} where data stores none: a mask in layout {onto.layout} "
            f"must have the indices of the data or a subset; data.sparse_mask(mask) makes them equal"
        )
    return values[found]


def is_sparse(t):
    """Whether a plain tensor has a sparse layout."""
    return isinstance(t, Tensor) and t.layout != torch.strided
