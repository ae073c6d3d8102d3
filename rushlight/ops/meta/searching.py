"""Checks and Meta rules of searchsorted and of the search for distinct values."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_, int32, int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentShapeError
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def check_searchsorted(
    sorted_sequence: Tensor, values: Tensor, out_int32: bool, right: bool, side: str | None, sorter: Tensor | None
) -> bool:
    """Return whether to insert before equal values; RuntimeError for arguments that do not fit together."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    sequence = sorted_sequence.shape
    if not sequence:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if len(sequence) > 1 and tuple(sequence[:-1]) != tuple(values.shape[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(sequence)} and input value tensor "
            f"{list(values.shape)}"
        )
    if values.numel() and (values.dtype.is_complex or values.dtype is bool_):
        raise not_implemented("searchsorted_out_cpu", values.dtype)
    if out_int32 and sequence[-1] >= 1 << 31:
        raise RuntimeError(
            f"torch.searchsorted(): the size of boundaries' last dimension should be less than {(1 << 31) - 1}, but we got "
            f"{sequence[-1]}"
        )
    _check_sorter(sorted_sequence, sorter)
    return right or side == "right"


def _check_sorter(sorted_sequence: Tensor, sorter: Tensor | None) -> None:
    if sorter is None:
        return
    if sorter.shape != sorted_sequence.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sorted_sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype is not int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype.scalar_name}"
        )


@meta("searchsorted.Tensor")
def searchsorted(sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None):
    check_searchsorted(sorted_sequence, self, out_int32, right, side, sorter)
    return empty(self._impl.sizes, int32 if out_int32 else int64)


def check_unique_dim(self: Tensor, dim: int) -> int:
    """Return the wrapped dimension; RuntimeError when the slices along it are empty."""
    axis = wrap_dim(dim, self.dim())
    sizes = self._impl.sizes
    if not sizes:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not math.prod(sizes[:axis] + sizes[axis + 1 :]) and sizes[axis]:
        raise RuntimeError(
            f"There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: got shape {list(sizes)} and "
            f"dim {axis}"
        )
    if not sizes[axis] and sum(size == 0 for size in sizes) > 1:
        raise RuntimeError("Number of zero sized dimensions is more than one, so unique cannot be applied")
    return axis


@meta("_unique2", "unique_dim", "unique_consecutive")
def unique(*args, **kwargs):
    raise DataDependentShapeError("unique")
