"""Methods of Tensor for sparse tensors, and their printed form."""

from __future__ import annotations

from rushlight.core import tensor as core
from rushlight.core.layout import layout, sparse_coo, strided
from rushlight.core.printing import format_compressed, format_sparse
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.sparse.compressed import (
    LAYOUT_NAMES,
    ccol_indices,
    col_indices,
    crow_indices,
    row_indices,
    to_sparse_coo,
    to_sparse_csc,
    to_sparse_csr,
)
from rushlight.sparse.functions import coalesce, require_sparse, sparse_mask, to_dense, to_sparse
from rushlight.sparse.layout import compressed_parts, has_indices, is_compressed, is_sparse, parts
from rushlight.sparse.products import smm, sspaddmm

aten = namespaces.namespace("aten")
_dense_repr, _dense_numpy = core.Tensor.__repr__, core.Tensor.numpy


def is_coalesced(self: Tensor) -> bool:
    """Return whether each index appears once, in order."""
    require_sparse(self, "is_coalesced")
    return parts(self).coalesced


def _indices(self: Tensor) -> Tensor:
    require_sparse(self, "_indices")
    return parts(self).indices.detach()


def _values(self: Tensor) -> Tensor:
    require_sparse(self, "_values")
    return parts(self).values.detach()


def _nnz(self: Tensor) -> int:
    if is_compressed(self):
        return compressed_parts(self).plain.size(0)
    require_sparse(self, "_nnz")
    return parts(self).indices.size(1)


def indices(self: Tensor) -> Tensor:
    """Return the indices, (sparse dimensions, nnz), sharing memory; RuntimeError unless the tensor is coalesced."""
    _require_coalesced(self, "indices")
    return parts(self).indices.detach()


def values(self: Tensor) -> Tensor:
    """Return the values, (nnz, ...), a view that shares memory; RuntimeError unless the tensor is coalesced."""
    if not has_indices(self):
        raise RuntimeError(f"values expected sparse tensor layout but got {LAYOUT_NAMES[self.layout]}")
    if is_sparse(self):
        _require_coalesced(self, "values")
    return aten.values.default(self)


def _require_coalesced(self: Tensor, name: str) -> None:
    require_sparse(self, name)
    if not parts(self).coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions; 0 for a dense tensor."""
    if is_compressed(self):
        return 2
    return parts(self).indices.size(0) if is_sparse(self) else 0


def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions."""
    return self.dim() - sparse_dim(self)


def _layout_of(self: Tensor) -> layout:
    """Return `sparse_coo`, `sparse_csr`, `sparse_csc` or `strided`."""
    if is_compressed(self):
        return compressed_parts(self).layout
    return sparse_coo if is_sparse(self) else strided


def _is_sparse_csr(self: Tensor) -> bool:
    """Return whether the layout is sparse_csr."""
    return is_compressed(self) and compressed_parts(self).by_rows


def _repr(self: Tensor, *, tensor_contents: object = None) -> str:
    if not has_indices(self):
        return _dense_repr(self, tensor_contents=tensor_contents)
    node = self.grad_fn
    about = (self.dtype, tuple(self.shape), core.get_default_dtype())
    gradient = {"requires_grad": self.requires_grad, "grad_fn_name": None if node is None else node.name()}
    if is_sparse(self):
        own = parts(self)
        return format_sparse(own.indices._impl.array, own.values._impl.array, *about, **gradient)
    own = compressed_parts(self)
    arrays = (own.compressed._impl.array, own.plain._impl.array, own.values._impl.array)
    return format_compressed(*arrays, *about, layout=own.layout, **gradient)


def _numpy(self: Tensor, *, force: bool = False):
    if has_indices(self):
        raise TypeError(f"can't convert {LAYOUT_NAMES[self.layout]} layout tensor to numpy. Use Tensor.to_dense() first.")
    return _dense_numpy(self, force=force)


def install() -> None:
    """Attach the methods to Tensor."""
    for method in (
        is_coalesced, coalesce, _indices, _values, _nnz, indices, values, sparse_dim, dense_dim, to_dense, to_sparse,
        sparse_mask, to_sparse_coo, to_sparse_csr, to_sparse_csc, crow_indices, col_indices, ccol_indices, row_indices,
        smm, sspaddmm,
    ):  # fmt: skip
        setattr(Tensor, method.__name__, method)
    _numpy.__doc__ = _dense_numpy.__doc__
    Tensor.numpy, Tensor.__repr__ = _numpy, _repr
    Tensor.is_sparse = property(is_sparse, doc="Whether the layout is sparse_coo.")
    Tensor.is_sparse_csr = property(_is_sparse_csr, doc=_is_sparse_csr.__doc__)
    Tensor.layout = property(_layout_of, doc=_layout_of.__doc__)
