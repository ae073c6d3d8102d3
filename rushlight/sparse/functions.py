"""Functions on sparse tensors: COO construction, coalescing, conversions to and from dense tensors, products and sums.

All are written with dense operators on indices and values, and so are differentiable; the gradient of a sparse tensor is
sparse, with its own indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rushlight.core.device import require_host
from rushlight.core.dtype import dtype, get_default_dtype, int64
from rushlight.core.layout import layout, sparse_coo, sparse_csr, strided
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.construct import NO_PINNED_MEMORY, as_tensor, tensor
from rushlight.ops.packet import namespaces
from rushlight.sparse.compressed import (
    LAYOUT_NAMES,
    coordinates,
    outer_indices,
    sparse_csr_tensor,
    to_compressed,
    to_sparse_coo,
)
from rushlight.sparse.layout import has_indices, is_sparse, parts

aten = namespaces.namespace("aten")


def _as_tensor(data: object) -> Tensor:
    return data if isinstance(data, Tensor) else tensor(data, device="cpu")


def _made(indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False) -> Tensor:
    return aten._sparse_coo_tensor_unsafe(indices, values, list(size), is_coalesced=coalesced)


def sparse_coo_tensor(
    indices: object = None,
    values: object = None,
    size: Sequence[int] | None = None,
    *,
    dtype: dtype | None = None,
    device: object = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Return a sparse tensor with `values` (nnz, ...) at `indices` (sparse dimensions, nnz); the smallest `size` that fits,
    unless it is given.

    With a size alone, a tensor of zeros. RuntimeError for parts that do not fit each other or the size.
    """
    if pin_memory:
        raise RuntimeError(NO_PINNED_MEMORY)
    require_host(device, "sparse")
    if values is None:
        return _zeros(indices if size is None else size, dtype, requires_grad)
    positions, elements = as_tensor(_as_tensor(indices)).to(int64), _as_tensor(values)
    elements = elements if dtype is None else elements.to(dtype)
    if positions.dim() == 1 and not positions.numel():
        positions = positions.reshape(0, elements.size(0) if elements.dim() else 1)
    _check_parts(positions, elements)
    wanted = _least_size(positions, elements) if size is None else tuple(size)
    _check_size(positions, elements, wanted)
    made = _made(positions, elements, wanted, bool(is_coalesced))
    if requires_grad:
        made = made.detach().requires_grad_()
    return made


def _zeros(size: object, kind: dtype | None, requires_grad: bool) -> Tensor:
    sizes = tuple(size)
    made = _made(aten.zeros([len(sizes), 0], dtype=int64), aten.zeros([0], dtype=kind or get_default_dtype()), sizes, True)
    return made.requires_grad_() if requires_grad else made


def _check_parts(indices: Tensor, values: Tensor) -> None:
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if not values.dim() or values.size(0) != indices.size(1):
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.size(1)}, nnz from values: "
            f"{values.size(0) if values.dim() else 1}"
        )


def _least_size(indices: Tensor, values: Tensor) -> tuple[int, ...]:
    lengths = (indices.amax(1) + 1).tolist() if indices.numel() else [0] * indices.size(0)
    return (*lengths, *values.shape[1:])


def _check_size(indices: Tensor, values: Tensor, size: tuple[int, ...]) -> None:
    count, dense = indices.size(0), values.dim() - 1
    if len(size) != count + dense:
        raise RuntimeError(f"number of dimensions must be sparse_dim ({count}) + dense_dim ({dense}), but got {len(size)}")
    if tuple(values.shape[1:]) != size[count:]:
        raise RuntimeError(f"values has incorrect size, expected {[values.size(0), *size[count:]]}, got {list(values.shape)}")
    if not indices.numel():
        return
    for dim, (low, high) in enumerate(zip(indices.amin(1).tolist(), indices.amax(1).tolist(), strict=True)):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {dim}")
        if high >= size[dim]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {high}")


def coalesce(self: Tensor) -> Tensor:
    """Return the same tensor with each index once, in lexicographic order; itself if it is coalesced."""
    require_sparse(self, "coalesce")
    own = parts(self)
    if own.coalesced:
        return self
    sizes = self.shape[: own.indices.size(0)]
    if not sizes:
        return _made(own.indices[:, :1], aten.values(self).sum(0, keepdim=True), self.shape, True)
    flat = np.ravel_multi_index(tuple(own.indices.numpy()), tuple(sizes))
    unique, inverse = np.unique(flat, return_inverse=True)
    values = aten.values(self)
    summed = aten.zeros([len(unique), *values.shape[1:]], dtype=values.dtype)
    summed = summed.index_add(0, tensor_from_array(inverse.reshape(-1).astype(np.int64)), values)
    indices = tensor_from_array(np.stack(np.unravel_index(unique, tuple(sizes))).astype(np.int64))
    return _made(indices, summed, self.shape, True)


def to_dense(self: Tensor, dtype: dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """This tensor as a dense one; itself if it is dense."""
    if not has_indices(self):
        return self if dtype is None else self.to(dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    indices, values = coordinates(self), aten.values(self)
    if not indices.size(0):
        return values.sum(0)
    whole = aten.zeros(self.shape, dtype=self.dtype)
    return aten.index_put(whole, list(indices.unbind(0)), values, True)


def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: object = None,
    blocksize: object = None,
    dense_dim: int | None = None,
) -> Tensor:
    """Return a sparse tensor of the nonzero elements; with `sparse_dim`, of the nonzero slices over the other dimensions.

    RuntimeError for an invalid number of sparse dimensions; NotImplementedError for blocks.
    """
    if layout not in (None, sparse_coo, strided):
        return to_compressed(self, layout, dense_dim)
    if has_indices(self):
        return to_sparse_coo(self)
    count = sparse_dim if sparse_dim is not None else self.dim() - (dense_dim or 0)
    if not 0 <= count <= self.dim() or (count == 0 and self.dim()):
        raise RuntimeError(f"sparse_dim argument must be in >0 and <={self.dim()}, but got {count}")
    if not count:
        return _made(aten.zeros([0, 1], dtype=int64), self.unsqueeze(0), (), True)
    taken = self.detach() != 0
    if count < self.dim():
        taken = taken.flatten(count).any(-1)
    indices = aten.nonzero(taken).t().contiguous()
    return _made(indices, aten.index.Tensor(self, list(indices.unbind(0))), self.shape, True)


def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """Return a sparse tensor with the indices of `mask` and this tensor's elements there."""
    require_sparse(mask, "sparse_mask")
    own = parts(mask)
    return _made(own.indices, aten.index.Tensor(to_dense(self), list(own.indices.unbind(0))), mask.shape, own.coalesced)


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Return the product of two matrices, of which the first is sparse; dense, except for two sparse ones.

    Args:
        mat1 (Tensor): (m, k).
        mat2 (Tensor): (k, n).
        reduce (str | None): "sum", "mean", "amax" or "amin": how the products of a row's elements are combined, for a CSR
            matrix and a strided one. Rows without elements are zero.

    Example:
        >>> torch.sparse.mm(torch.tensor([[1., 2.], [0., 3.]]).to_sparse_csr(), torch.tensor([[1.], [5.]]), "mean")
        tensor([[ 5.5000],
                [15.0000]])
    """
    if mat1.dim() != 2 or mat2.dim() != 2 or mat1.size(1) != mat2.size(0):
        raise RuntimeError(
            f"mm: Argument #2: Expected two matrices whose inner sizes agree, got shapes {list(mat1.shape)} and "
            f"{list(mat2.shape)}"
        )
    if reduce is not None:
        return _reduced_mm(mat1, mat2, reduce)
    if not has_indices(mat1):
        return mm(mat2.t(), mat1.t()).t() if has_indices(mat2) else aten.mm(mat1, mat2)
    if has_indices(mat2):
        kind = sparse_coo if is_sparse(mat1) or is_sparse(mat2) else sparse_csr
        return to_sparse(mm(mat1, to_dense(mat2)), layout=kind)
    rows, products = _row_products(mat1, mat2)
    return aten.zeros([mat1.size(0), mat2.size(1)], dtype=products.dtype).index_add(0, rows, products)


def _row_products(mat1: Tensor, mat2: Tensor) -> tuple[Tensor, Tensor]:
    """Return for each element of the sparse `mat1` its row, and its product with the matching row of `mat2`."""
    rows, columns = coordinates(mat1).unbind(0)
    return rows, aten.values(mat1).unsqueeze(1) * aten.index_select(mat2, 0, columns)


def _reduced_mm(mat1: Tensor, mat2: Tensor, reduce: str) -> Tensor:
    if mat1.layout is not sparse_csr or mat2.layout is not strided:
        raise RuntimeError(
            "sparse_mm_reduce: expected a matrix of layout SparseCsr and one of layout Strided, got "
            f"{LAYOUT_NAMES[mat1.layout]} and {LAYOUT_NAMES[mat2.layout]}"
        )
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"sparse_mm_reduce: reduce is to be sum, mean, amax or amin, got {reduce}")
    rows, products = _row_products(mat1, mat2)
    target = aten.zeros([mat1.size(0), mat2.size(1)], dtype=products.dtype)
    index = rows.unsqueeze(1).expand(products.shape)
    return target.scatter_reduce(0, index, products, reduce, include_self=False)


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """`beta * mat + alpha * (mat1 @ mat2)` with a sparse `mat1`."""
    return to_dense(mat) * beta + mm(mat1, mat2) * alpha


def sum(input: Tensor, dim: int | Sequence[int] | None = None, dtype: dtype | None = None) -> Tensor:  # noqa: A001
    """Return the sum over `dim`, sparse if sparse dimensions remain; over all elements for None."""
    source = input if dtype is None else input.to(dtype)
    values = aten.values(source)
    if dim is None:
        return values.sum()
    indices = parts(source).indices
    count = indices.size(0)
    dims = {axis % source.dim() for axis in ((dim,) if isinstance(dim, int) else dim)}
    dense = [axis - count + 1 for axis in dims if axis >= count]
    kept = [axis for axis in range(count) if axis not in dims]
    values = values.sum(dense) if dense else values
    if not kept:
        return values.sum(0)
    size = [length for axis, length in enumerate(source.shape) if axis not in dims]
    return coalesce(_made(indices[kept], values, size))


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Return the softmax along `dim` over the specified elements of a tensor that has only sparse dimensions."""
    source = coalesce(input if dtype is None else input.to(dtype))
    indices, values = parts(source).indices, aten.values(source)
    if values.dim() != 1:
        raise NotImplementedError(f"sparse.softmax needs a tensor without dense dimensions, got {values.dim() - 1} of them")
    others = [axis for axis in range(source.dim()) if axis != dim % source.dim()]
    sizes = [source.size(axis) for axis in others]
    groups = np.ravel_multi_index(tuple(indices[others].numpy()), sizes) if others else np.zeros(values.numel(), np.int64)
    group = tensor_from_array(np.ascontiguousarray(groups, dtype=np.int64))
    count = max(math.prod(sizes), 1)
    largest = aten.full([count], -math.inf, dtype=values.dtype).scatter_reduce(0, group, values.detach(), "amax")
    powers = (values - largest[group]).exp()
    total = aten.zeros([count], dtype=values.dtype).index_add(0, group, powers)
    return _made(indices, powers / total[group], source.shape, True)


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Return the logarithm of `softmax`, over the specified elements."""
    found = softmax(input, dim, dtype=dtype)
    return _made(parts(found).indices, aten.values(found).log(), found.shape, True)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: layout | None = None) -> Tensor:
    """Return a sparse matrix with the rows of `diagonals` along the diagonals that `offsets` names: 0 the main one, above it
    from 1.

    Element j of a row goes to column j. RuntimeError for offsets that are not distinct, or not one for each row.
    """
    rows, places = diagonals.reshape(-1, diagonals.size(-1)), offsets.reshape(-1).tolist()
    if len(places) != rows.size(0) or len(set(places)) != len(places):
        raise RuntimeError("Number of diagonals (first dim of diagonals) does not match the number of offsets, or they repeat")
    indices, values = [aten.zeros([2, 0], dtype=int64)], [rows[:0].reshape(-1)]
    for row, offset in zip(rows.unbind(0), places, strict=True):
        columns = aten.arange.start(max(offset, 0), max(min(shape[1], row.size(0), shape[0] + offset), offset, 0), dtype=int64)
        indices.append(aten.stack([columns - offset, columns], 0))
        values.append(row[columns])
    made = _made(aten.cat(indices, 1), aten.cat(values, 0), tuple(shape))
    return made if layout in (None, sparse_coo) else to_sparse(made, layout=layout)


def require_sparse(self: Tensor, name: str) -> None:
    """RuntimeError for a tensor of another layout than sparse_coo."""
    if not is_sparse(self):
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {LAYOUT_NAMES[self.layout]}")


def sampled_addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: complex = 1.0,
    alpha: complex = 1.0,  # noqa: A002
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)` where the CSR matrix `input` has elements, and nothing elsewhere.

    Args:
        input (Tensor): (m, n), CSR.
        mat1 (Tensor): (m, k), strided.
        mat2 (Tensor): (k, n), strided.
        beta (complex): the factor of `input`.
        alpha (complex): the factor of the products.

    Raises RuntimeError for other layouts and sizes. Of ATen: `sparse_sampled_addmm`.

    Example:
        >>> eye = torch.eye(2).to_sparse_csr()
        >>> torch.sparse.sampled_addmm(eye, torch.ones(2, 3), torch.ones(3, 2)).values()
        tensor([4., 4.])
    """
    if input.layout is not sparse_csr:
        raise RuntimeError(f"sampled_addmm: Expected self to be a CSR tensor, but got {input.layout}")
    for name, given in (("mat1", mat1), ("mat2", mat2)):
        if given.layout is not strided or given.dim() != 2:
            found = f"{given.layout} of {given.dim()} dimensions"
            raise RuntimeError(f"sampled_addmm: Expected {name} to be a strided matrix, but got {found}")
    if input.shape[-2] != mat1.shape[0]:
        raise RuntimeError("sampled_addmm: self.shape[-2] must match mat1.shape[-2]")
    if input.shape[-1] != mat2.shape[1]:
        raise RuntimeError("sampled_addmm: self.shape[-1] must match mat2.shape[-1]")
    if mat1.shape[1] != mat2.shape[0]:
        sizes = f"{list(mat1.shape)} and {list(mat2.shape)}"
        raise RuntimeError(f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({sizes})")
    crow, col = input.crow_indices(), input.col_indices()
    rows = outer_indices(crow)
    products = (mat1.index_select(0, rows) * mat2.t().index_select(0, col)).sum(-1)
    return sparse_csr_tensor(crow, col, products * alpha + input.values() * beta, tuple(input.shape))
