"""Products of a sparse and a dense matrix with sparse results, and their deprecated names."""

from __future__ import annotations

from rushlight.core.overrides import overridable
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.sparse.functions import coalesce, mm
from rushlight.sparse.layout import is_sparse, parts

aten = namespaces.namespace("aten")


def _require_coo(self: Tensor, name: str) -> None:
    if not is_sparse(self):
        raise RuntimeError(f"{name}: the first matrix must be of layout torch.sparse_coo, got {self.layout}")


@overridable
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one, dense."""
    return mm(input, mat2)


@overridable
def dsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense one, dense: as `mm`."""
    return mm(input, mat2)


@overridable
def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a COO matrix and a dense one, as a COO tensor of nonzero rows, each of which is dense."""
    _require_coo(mat1, "hspmm")
    source = coalesce(mat1)
    rows = parts(source).indices[0].unique()
    kept = mm(source, mat2)[rows]
    return aten._sparse_coo_tensor_unsafe(rows.unsqueeze(0), kept, [mat1.size(0), mat2.size(1)], is_coalesced=True)


@overridable
def hsmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the same as `hspmm`."""
    return hspmm(input, mat2)


@overridable
def smm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of a COO matrix and a dense one, as a COO matrix with all elements of nonzero rows."""
    rows = hspmm(input, mat2)
    indices, columns = parts(rows).indices[0], mat2.size(1)
    places = aten.arange.default(columns).repeat(indices.size(0))
    found = aten.stack([indices.repeat_interleave(columns), places], 0)
    return aten._sparse_coo_tensor_unsafe(found, aten.values(rows).reshape(-1), rows.shape, is_coalesced=True)


@overridable
def sspaddmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return `beta * input + alpha * (mat1 @ mat2)` of COO matrices `input` and `mat1`, as a COO matrix."""
    _require_coo(input, "sspaddmm")
    return input * beta + smm(mat1, mat2) * alpha
