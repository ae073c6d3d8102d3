"""Compressed sparse tensors, CSR and CSC: construction, conversions to other layouts, and their parts.

In: index tensors and values. Out: tensors of layout sparse_csr or sparse_csc. Batches and blocks (BSR, BSC) are not supported.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rushlight.core.device import require_host
from rushlight.core.dtype import dtype, int32, int64
from rushlight.core.layout import layout, sparse_coo, sparse_csc, sparse_csr, strided
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.construct import NO_PINNED_MEMORY, tensor
from rushlight.ops.packet import namespaces
from rushlight.sparse.invariants import are_checked
from rushlight.sparse.layout import CompressedParts, compressed_parts, is_compressed, is_sparse, parts

aten = namespaces.namespace("aten")
LAYOUT_NAMES = {strided: "Strided", sparse_coo: "Sparse", sparse_csr: "SparseCsr", sparse_csc: "SparseCsc"}
"""The layouts' names in error messages."""


def made_compressed(compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int], kind: layout) -> Tensor:
    """Return a compressed tensor through which gradients flow to its values."""
    return aten._sparse_compressed_tensor_unsafe(compressed, plain, values, list(size), layout=kind)


def sparse_csr_tensor(
    crow_indices: object, col_indices: object, values: object, size: Sequence[int] | None = None, *,
    dtype: dtype | None = None, device: object = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return a matrix whose row i has `values[crow_indices[i]:crow_indices[i + 1]]` at the `col_indices` of the same places.

    The smallest `size` that fits, unless it is given. RuntimeError for indices that do not fit; with `check_invariants`, also
    where the columns of a row are not distinct and in order.
    """
    options = {
        "dtype": dtype, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad,
        "check_invariants": check_invariants,
    }  # fmt: skip
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=sparse_csr, **options)


def sparse_csc_tensor(
    ccol_indices: object, row_indices: object, values: object, size: Sequence[int] | None = None, *,
    dtype: dtype | None = None, device: object = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """Like `sparse_csr_tensor`, with compressed columns instead of rows."""
    options = {
        "dtype": dtype, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad,
        "check_invariants": check_invariants,
    }  # fmt: skip
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=sparse_csc, **options)


def sparse_compressed_tensor(
    compressed_indices: object, plain_indices: object, values: object, size: Sequence[int] | None = None, *,
    dtype: dtype | None = None, layout: layout | None = None, device: object = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """Return a tensor of `layout`, sparse_csr or sparse_csc, of compressed and plain indices and values."""
    kind = sparse_csr if layout is None else layout
    _require_supported(kind)
    if pin_memory:
        raise RuntimeError(NO_PINNED_MEMORY)
    require_host(device, "sparse")
    compressed, plain = _index(compressed_indices), _index(plain_indices)
    elements = values if isinstance(values, Tensor) else tensor(values, device="cpu")
    elements = elements if dtype is None else elements.to(dtype)
    _check_parts(compressed, plain, elements)
    wanted = tuple(_least_size(compressed, plain, elements, kind) if size is None else size)
    _check_indices(compressed, plain, elements, wanted, kind)
    if are_checked(check_invariants):
        _check_order(compressed, plain, kind)
    made = made_compressed(compressed, plain, elements, wanted, kind)
    return made.detach().requires_grad_() if requires_grad else made


def _require_supported(kind: layout) -> None:
    if kind not in (sparse_csr, sparse_csc):
        raise NotImplementedError(f"compressed sparse tensors have the layout torch.sparse_csr or torch.sparse_csc, not {kind}")


def _index(given: object) -> Tensor:
    made = given if isinstance(given, Tensor) else tensor(given, dtype=int64, device="cpu")
    if made.dtype not in (int32, int64):
        raise RuntimeError(f"compressed_indices and plain_indices dtype must be Int or Long, but got {made.dtype}")
    return made


def _check_parts(compressed: Tensor, plain: Tensor, values: Tensor) -> None:
    if compressed.dim() > 1 or plain.dim() > 1:
        raise NotImplementedError("batches of compressed sparse tensors are not supported: the indices must have 1 dimension")
    if not compressed.dim() or not plain.dim() or not values.dim() or compressed.dtype != plain.dtype:
        raise RuntimeError("compressed_indices, plain_indices (of one dtype) and values must have at least 1 dimension each")
    if plain.size(0) != values.size(0):
        raise RuntimeError(f"plain_indices.shape[-1] must be equal to nnz ({values.size(0)}), but got {plain.size(0)}")


def _names(kind: layout) -> tuple[str, str, str, str]:
    if kind is sparse_csr:
        return "crow_indices", "col_indices", "nrows", "ncols"
    return "ccol_indices", "row_indices", "ncols", "nrows"


def _least_size(compressed: Tensor, plain: Tensor, values: Tensor, kind: layout) -> tuple[int, ...]:
    lengths = compressed.size(0) - 1, int(plain.max()) + 1 if plain.numel() else 0
    return (*(lengths if kind is sparse_csr else lengths[::-1]), *values.shape[1:])


def _check_indices(compressed: Tensor, plain: Tensor, values: Tensor, size: tuple[int, ...], kind: layout) -> None:
    outer, inner, outer_count, inner_count = _names(kind)
    if len(size) != values.dim() + 1 or tuple(size[2:]) != tuple(values.shape[1:]):
        raise RuntimeError(f"size {list(size)} must be two lengths and the dense ones of values, {list(values.shape[1:])}")
    many, few = size[:2] if kind is sparse_csr else (size[1], size[0])
    starts, places = compressed.numpy(), plain.numpy()
    steps = np.diff(starts)
    for held, claim in (
        (len(starts) == many + 1, f"{outer}.shape[-1] must be equal to the number of {outer_count[1:]} plus one"),
        (len(starts) and starts[0] == 0, f"`{outer}[..., 0] == 0`"),
        (len(starts) and starts[-1] == len(places), f"`{outer}[..., -1] == nnz`"),
        (not len(steps) or steps.min() >= 0, f"`0 <= {outer}[..., 1:] - {outer}[..., :-1] <= {inner_count}`"),
        (not len(places) or (places.min() >= 0 and places.max() < few), f"`0 <= {inner} < {inner_count}`"),
    ):
        if not held:
            raise RuntimeError(f"{claim} is not satisfied.")


def _check_order(compressed: Tensor, plain: Tensor, kind: layout) -> None:
    outer, inner, count, _ = _names(kind)
    groups = outer_indices(compressed).numpy()
    rising = (np.diff(plain.numpy()) > 0) | (np.diff(groups) > 0)
    if not rising.all():
        raise RuntimeError(
            f"`{inner}[..., {outer}[..., i - 1]:{outer}[..., i]] for all i = 1, ..., {count} are sorted and distinct along "
            "the last dimension values` is not satisfied."
        )


def outer_indices(compressed: Tensor) -> Tensor:
    """Return for each element its row (CSR) or column (CSC)."""
    starts = compressed.numpy()
    if starts.ndim != 1 or not len(starts) or (np.diff(starts) < 0).any():
        raise RuntimeError("compressed indices must be numbers of one dimension that do not fall")
    return tensor_from_array(np.repeat(np.arange(len(starts) - 1, dtype=starts.dtype), np.diff(starts)))


def compressed_indices(sorted_indices: Tensor, size: int, kind: dtype = int64) -> Tensor:
    """Return the start of each of `size` rows among the sorted row indices of the elements, and the end of the last one."""
    rows = sorted_indices.numpy()
    if size < 0 or (rows.size and (rows.min() < 0 or rows.max() >= size)):
        raise RuntimeError(f"an index is out of range: there are {size} rows")
    counts = np.bincount(rows, minlength=size)
    return tensor_from_array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)).to(kind)


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Compressed indices of the sorted row indices `input`, for `size` rows."""
    return compressed_indices(input, size, int32 if out_int32 else int64)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the rows and columns of a CSR matrix's elements, (2, nnz); columns first where `transpose` is set."""
    found = [outer_indices(crow_indices), col_indices]
    return aten.stack(found[::-1] if transpose else found, 0).to(int32 if out_int32 else int64)


def coordinates(self: Tensor) -> Tensor:
    """Return the (sparse dimensions, nnz) indices of a sparse tensor of any layout, in the order of its values."""
    if is_sparse(self):
        return parts(self).indices
    own = compressed_parts(self)
    return _convert_indices_from_csr_to_coo(own.compressed, own.plain, transpose=not own.by_rows)


def to_sparse_coo(self: Tensor) -> Tensor:
    """This tensor in the layout sparse_coo; itself if it has that."""
    if is_sparse(self):
        return self
    if not is_compressed(self):
        return self.to_sparse()
    indices, values = coordinates(self), aten.values(self)
    if compressed_parts(self).by_rows:
        return aten._sparse_coo_tensor_unsafe(indices, values, self.shape, is_coalesced=True)
    order = tensor_from_array(np.lexsort(indices.numpy()[::-1]))
    return aten._sparse_coo_tensor_unsafe(indices[:, order], values[order], self.shape, is_coalesced=True)


def to_compressed(self: Tensor, kind: layout, dense_dim: int | None = None) -> Tensor:
    """This tensor in the layout `kind`, sparse_csr or sparse_csc; itself if it has that."""
    _require_supported(kind)
    if is_compressed(self) and compressed_parts(self).layout is kind:
        return self
    source = self.to_sparse(self.dim() - (dense_dim or 0)) if self.layout is strided else to_sparse_coo(self)
    source = source.coalesce()
    indices, values = parts(source).indices, aten.values(source)
    if indices.size(0) != 2:
        raise RuntimeError(f"to_{kind.name}: expected a tensor of two sparse dimensions, got {indices.size(0)}")
    axis = 0 if kind is sparse_csr else 1
    if axis:
        order = tensor_from_array(np.lexsort(indices.numpy()))
        indices, values = indices[:, order], values[order]
    compressed = compressed_indices(indices[axis], self.size(axis))
    return made_compressed(compressed, indices[1 - axis].contiguous(), values, self.shape, kind)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """This matrix in the layout sparse_csr."""
    return to_compressed(self, sparse_csr, dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """This matrix in the layout sparse_csc."""
    return to_compressed(self, sparse_csc, dense_dim)


def _part(self: Tensor, name: str, wanted: layout) -> CompressedParts:
    if not is_compressed(self) or compressed_parts(self).layout is not wanted:
        which = "row" if wanted is sparse_csr else "column"
        raise RuntimeError(
            f"{name} expected sparse {which} compressed tensor layout but got {LAYOUT_NAMES.get(self.layout, self.layout)}"
        )
    return compressed_parts(self)


def crow_indices(self: Tensor) -> Tensor:
    """Return the start of each row of a CSR tensor, and the end of the last one; RuntimeError for other layouts."""
    return _part(self, "crow_indices", sparse_csr).compressed.detach()


def col_indices(self: Tensor) -> Tensor:
    """Return the column of each element of a CSR tensor; RuntimeError for other layouts."""
    return _part(self, "col_indices", sparse_csr).plain.detach()


def ccol_indices(self: Tensor) -> Tensor:
    """Return the start of each column of a CSC tensor, and the end of the last one; RuntimeError for other layouts."""
    return _part(self, "ccol_indices", sparse_csc).compressed.detach()


def row_indices(self: Tensor) -> Tensor:
    """Return the row of each element of a CSC tensor; RuntimeError for other layouts."""
    return _part(self, "row_indices", sparse_csc).plain.detach()
