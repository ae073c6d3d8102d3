"""The layout of sparse tensors: tensors of indices and values, in place of a storage's memory.

A sparse tensor of shape (s1, ..., sm, d1, ..., dn) has `indices` of shape (m, nnz), int64, and `values` of shape (nnz, d1, ...,
dn); an index that appears more than once counts as the sum of its values. It is a `Tensor` with the dispatch key SparseCPU:
operators without a kernel for that key reject it.

A compressed tensor (CSR or CSC) of shape (s1, s2, d1, ..., dn) has the key SparseCPU, too. Its `compressed` indices are the
start of each row (for CSR; column for CSC) in `plain`, the column (or row) of each element, and in `values`.
"""

from __future__ import annotations

from rushlight.core.device import CPU
from rushlight.core.dispatch_key import AUTOGRAD_BITS, DispatchKey, bit
from rushlight.core.layout import layout, sparse_csr
from rushlight.core.storage import StorageImpl
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl

SPARSE_BIT = bit(DispatchKey.SparseCPU)


class SparseParts:
    """The parts that a sparse tensor and its aliases share: `indices`, `values` (plain tensors), and whether they are
    coalesced."""

    __slots__ = ("indices", "values", "coalesced")

    def __init__(self, indices: Tensor, values: Tensor, coalesced: bool):
        self.indices, self.values, self.coalesced = indices, values, coalesced

    def arguments(self) -> tuple:
        """Return the arguments that rebuild these parts."""
        return self.indices, self.values, self.coalesced

    def copied(self) -> SparseParts:
        """Return a copy of the parts."""
        return SparseParts(self.indices.clone(), self.values.clone(), self.coalesced)

    def replace(self, other: SparseParts) -> None:
        """Take over another tensor's parts (an in-place write)."""
        self.indices, self.values, self.coalesced = other.indices, other.values, other.coalesced


class SparseStorage(StorageImpl):
    """The storage of a sparse tensor, which holds its parts; it copies and pickles them."""

    __slots__ = ()

    def bytes(self) -> None:
        """Raises RuntimeError: a sparse tensor has no memory of its own."""
        raise NotImplementedError("Cannot access storage of SparseTensorImpl: a sparse tensor has none, but values()")

    def copied(self) -> SparseStorage:
        """Return a storage with copied parts."""
        return SparseStorage(self.buffer.copied(), 0, CPU, 0)

    def reduced(self, tensor: Tensor) -> tuple:
        """Return the pickle recipe of a tensor over this storage."""
        return (_unpickle, (type(self.buffer), self.buffer.arguments(), tuple(tensor.shape), tensor.requires_grad))


def _unpickle(kind: type, arguments: tuple, size: tuple[int, ...], requires_grad: bool) -> Tensor:
    held = kind(*arguments)
    return _holding(held, size, held.values).requires_grad_(requires_grad)


class CompressedParts:
    """The parts that a compressed tensor and its aliases share: its two index tensors, its values, and its layout."""

    __slots__ = ("compressed", "plain", "values", "layout")

    def __init__(self, compressed: Tensor, plain: Tensor, values: Tensor, layout: layout):
        self.compressed, self.plain, self.values, self.layout = compressed, plain, values, layout

    @property
    def by_rows(self) -> bool:
        """Whether rows are compressed."""
        return self.layout is sparse_csr

    def arguments(self) -> tuple:
        """Return the arguments that rebuild these parts."""
        return self.compressed, self.plain, self.values, self.layout

    def copied(self) -> CompressedParts:
        """Return a copy of the parts."""
        return CompressedParts(self.compressed.clone(), self.plain.clone(), self.values.clone(), self.layout)

    def replace(self, other: CompressedParts) -> None:
        """Take over another tensor's parts (an in-place write)."""
        self.compressed, self.plain, self.values = other.compressed, other.plain, other.values


def make_sparse(indices: Tensor, values: Tensor, size: tuple[int, ...], coalesced: bool = False) -> Tensor:
    """Return a sparse tensor of the given parts, which it shares."""
    held = SparseParts(indices.detach(), values.detach(), coalesced or indices.size(1) < 2)
    return _holding(held, tuple(size), values)


def make_compressed(compressed: Tensor, plain: Tensor, values: Tensor, size: tuple[int, ...], kind: layout) -> Tensor:
    """Return a compressed tensor of layout `kind`, sparse_csr or sparse_csc, of the given parts, which it shares."""
    return _holding(CompressedParts(compressed.detach(), plain.detach(), values.detach(), kind), tuple(size), values)


def _holding(held: SparseParts | CompressedParts, size: tuple[int, ...], values: Tensor) -> Tensor:
    storage = SparseStorage(held, 0, CPU, 0)
    key_set = SPARSE_BIT | AUTOGRAD_BITS
    return wrap(TensorImpl(storage, size, contiguous_strides(size), 0, values.dtype, CPU, key_set))


def is_sparse(tensor: Tensor) -> bool:
    """Whether a tensor's layout is sparse_coo."""
    impl = tensor._impl
    return bool(impl.key_set & SPARSE_BIT) and isinstance(impl.storage.buffer, SparseParts)


def is_compressed(tensor: Tensor) -> bool:
    """Whether a tensor's layout is sparse_csr or sparse_csc."""
    impl = tensor._impl
    return bool(impl.key_set & SPARSE_BIT) and isinstance(impl.storage.buffer, CompressedParts)


def has_indices(tensor: Tensor) -> bool:
    """Whether a tensor is sparse, of any layout."""
    return bool(tensor._impl.key_set & SPARSE_BIT)


def parts(tensor: Tensor) -> SparseParts:
    """Return the indices and values of a sparse COO tensor."""
    return tensor._impl.storage.buffer


def compressed_parts(tensor: Tensor) -> CompressedParts:
    """Return the indices and values of a compressed tensor."""
    return tensor._impl.storage.buffer
