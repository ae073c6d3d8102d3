"""What sparse tensors add to Tensor's methods, and how they print."""

from __future__ import annotations

from rushlight.core import tensor as core
from rushlight.core.layout import layout, sparse_coo, strided
from rushlight.core.printing import format_sparse
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.sparse.functions import coalesce, require_sparse, sparse_mask, to_dense, to_sparse
from rushlight.sparse.layout import is_sparse, parts

aten = namespaces.namespace("aten")
_dense_repr, _dense_numpy = core.Tensor.__repr__, core.Tensor.numpy


def is_coalesced(self: Tensor) -> bool:
    """Whether each index appears once, in order."""
    require_sparse(self, "is_coalesced")
    return parts(self).coalesced


def _indices(self: Tensor) -> Tensor:
    require_sparse(self, "_indices")
    return parts(self).indices.detach()


def _values(self: Tensor) -> Tensor:
    require_sparse(self, "_values")
    return parts(self).values.detach()


def _nnz(self: Tensor) -> int:
    require_sparse(self, "_nnz")
    return parts(self).indices.size(1)


def indices(self: Tensor) -> Tensor:
    """The indices, (sparse dimensions, nnz), sharing memory; RuntimeError unless the tensor is coalesced."""
    _require_coalesced(self, "indices")
    return parts(self).indices.detach()


def values(self: Tensor) -> Tensor:
    """The values, (nnz, ...), a view that shares memory; RuntimeError unless the tensor is coalesced."""
    _require_coalesced(self, "values")
    return aten.values.default(self)


def _require_coalesced(self: Tensor, name: str) -> None:
    require_sparse(self, name)
    if not parts(self).coalesced:
        raise RuntimeError(f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first")


def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions; 0 for a dense tensor."""
    return parts(self).indices.size(0) if is_sparse(self) else 0


def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions."""
    return self.dim() - sparse_dim(self)


def _layout(self: Tensor) -> layout:
    """`sparse_coo` or `strided`."""
    return sparse_coo if is_sparse(self) else strided


def _repr(self: Tensor, *, tensor_contents: object = None) -> str:
    if not is_sparse(self):
        return _dense_repr(self, tensor_contents=tensor_contents)
    own, node = parts(self), self.grad_fn
    return format_sparse(
        own.indices._impl.array, own.values._impl.array, self.dtype, tuple(self.shape), core.get_default_dtype(),
        requires_grad=self.requires_grad, grad_fn_name=None if node is None else node.name(),
    )  # fmt: skip


def _numpy(self: Tensor, *, force: bool = False):
    if is_sparse(self):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")
    return _dense_numpy(self, force=force)


def install() -> None:
    """Attach the methods to Tensor."""
    for method in (
        is_coalesced, coalesce, _indices, _values, _nnz, indices, values, sparse_dim, dense_dim, to_dense, to_sparse,
        sparse_mask,
    ):  # fmt: skip
        setattr(Tensor, method.__name__, method)
    _numpy.__doc__ = _dense_numpy.__doc__
    Tensor.numpy, Tensor.__repr__ = _numpy, _repr
    Tensor.is_sparse = property(is_sparse, doc="Whether the layout is sparse_coo.")
    Tensor.layout = property(_layout, doc=_layout.__doc__)
