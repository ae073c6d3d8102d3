"""How a sparse COO tensor is kept: an index matrix and a tensor of values, in the place of a storage's memory.

A sparse tensor of shape (s1, ..., sm, d1, ..., dn) has `indices` of shape (m, nnz), int64, and `values` of shape
(nnz, d1, ..., dn); an index that appears more than once counts as the sum of its values. It is a `Tensor` like any other, whose
dispatch key is SparseCPU: operators without a kernel for that key refuse it.
"""

from __future__ import annotations

from rushlight.core.device import CPU
from rushlight.core.dispatch_key import AUTOGRAD_BITS, DispatchKey, bit
from rushlight.core.storage import StorageImpl
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl

SPARSE_BIT = bit(DispatchKey.SparseCPU)


class SparseParts:
    """What a sparse tensor and its aliases share: `indices`, `values` (plain tensors), and whether they are coalesced."""

    __slots__ = ("indices", "values", "coalesced")

    def __init__(self, indices: Tensor, values: Tensor, coalesced: bool):
        self.indices, self.values, self.coalesced = indices, values, coalesced

    def replace(self, other: SparseParts) -> None:
        """Take over what another tensor holds (a write in place)."""
        self.indices, self.values, self.coalesced = other.indices, other.values, other.coalesced


def make_sparse(indices: Tensor, values: Tensor, size: tuple[int, ...], coalesced: bool = False) -> Tensor:
    """A sparse tensor of the given parts, which it shares."""
    held = SparseParts(indices.detach(), values.detach(), coalesced or indices.size(1) < 2)
    storage = StorageImpl(held, 0, CPU, 0)
    key_set = SPARSE_BIT | AUTOGRAD_BITS
    return wrap(TensorImpl(storage, tuple(size), contiguous_strides(tuple(size)), 0, values.dtype, CPU, key_set))


def is_sparse(tensor: Tensor) -> bool:
    """Whether a tensor is sparse."""
    return bool(tensor._impl.key_set & SPARSE_BIT)


def parts(tensor: Tensor) -> SparseParts:
    """The indices and values of a sparse tensor."""
    return tensor._impl.storage.buffer
