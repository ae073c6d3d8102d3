"""Checks and Meta rules of index_select, gather, scatter, embedding, nonzero, cat and padding."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.strides import contiguous_strides, elementwise_strides, is_non_overlapping_and_dense, wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentShapeError
from rushlight.ops.meta.checks import is_channels_last, kept_format_strides, require_index
from rushlight.ops.meta.common import empty
from rushlight.ops.promotion import check_number, result_type
from rushlight.ops.registry import meta


def check_cat(tensors: Sequence[Tensor], dim: int) -> tuple[int, tuple[int, ...], list[Tensor]]:
    """Return the dimension, the result's sizes, and the tensors to concatenate: empty 1-dimensional ones are skipped.

    If all are skipped, any dimension is valid.
    """
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(tensor).__name__}")
        if tensor.dim() == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    counted = [tensor for tensor in tensors if tensor._impl.sizes != (0,)] or [tensors[0]]
    first = counted[0]._impl.sizes
    axis = 0 if first == (0,) else wrap_dim(dim, len(first))
    for position, tensor in enumerate(tensors):
        if tensor._impl.sizes != (0,):
            _check_cat_sizes(first, tensor._impl.sizes, axis, position)
    total = sum(tensor._impl.sizes[axis] for tensor in counted)
    return axis, (*first[:axis], total, *first[axis + 1 :]), counted


def _check_cat_sizes(first: tuple[int, ...], sizes: tuple[int, ...], axis: int, position: int) -> None:
    if len(sizes) != len(first):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(sizes)}")
    for dim, (expected, size) in enumerate(zip(first, sizes, strict=True)):
        if dim != axis and size != expected:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {axis}. Expected size {expected} but got size {size} "
                f"for tensor number {position} in the list."
            )


def cat_strides(sizes: tuple[int, ...], tensors: Sequence[Tensor]) -> tuple[int, ...] | None:
    """Return channels-last strides if all tensors are channels-last, else None."""
    return kept_format_strides(sizes, tensors[0]) if all(map(is_channels_last, tensors)) else None


@meta("cat")
def cat(tensors, dim=0):
    _, sizes, counted = check_cat(tensors, dim)
    return empty(sizes, result_type(*tensors), cat_strides(sizes, counted))


def check_index_select(self: Tensor, dim: int, index: Tensor) -> tuple[int, tuple[int, ...]]:
    """Return the wrapped dimension and the result's sizes; errors for an index that is not a vector of integers."""
    axis = wrap_dim(dim, self.dim())
    if index.dim() > 1:
        raise IndexError(f"index_select(): Index is supposed to be a vector, but got shape {list(index.shape)}")
    require_index("index_select", index)
    if not self.dim():
        if index.numel() != 1:
            raise IndexError(f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)")
        return axis, ()
    sizes = self._impl.sizes
    return axis, (*sizes[:axis], index.numel(), *sizes[axis + 1 :])


@meta("index_select")
def index_select(self, dim, index):
    return empty(check_index_select(self, dim, index)[1], self.dtype)


def check_gather(self: Tensor, dim: int, index: Tensor) -> int:
    """Return the wrapped dimension; RuntimeError unless the index is within `self` in the other dimensions."""
    axis = wrap_dim(dim, self.dim())
    require_index("gather", index)
    if index.numel():
        _check_ranks(self, index)
        if not _no_larger(index, self, axis):
            raise RuntimeError(
                f"Size does not match at dimension {_first_larger(index, self, axis)} expected index "
                f"{list(index.shape)} to be no larger than self {list(self.shape)} apart from dimension {axis}"
            )
    return axis


def _check_ranks(self: Tensor, index: Tensor, role: str = "input") -> None:
    if max(self.dim(), 1) != max(index.dim(), 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {role} tensor: got index of shape "
            f"{list(index.shape)} and {role} of shape {list(self.shape)}"
        )


def _first_larger(index: Tensor, other: Tensor, axis: int) -> int | None:
    sizes = index._impl.sizes or (1,)
    limits = other._impl.sizes or (1,)
    larger = (dim for dim, size in enumerate(sizes) if dim != axis and size > limits[dim])
    return next(larger, None)


def _no_larger(index: Tensor, other: Tensor, axis: int) -> bool:
    return _first_larger(index, other, axis) is None


@meta("gather")
def gather(self, dim, index, *, sparse_grad=False):
    check_gather(self, dim, index)
    return empty(index._impl.sizes, self.dtype)


def check_scatter(self: Tensor, dim: int, index: Tensor, src: Tensor, name: str) -> int:
    """Return the wrapped dimension; RuntimeError unless the index is within `self` and `src`, which must have one dtype."""
    axis = wrap_dim(dim, self.dim())
    require_index(name, index)
    if self.dtype is not src.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype, got {self.dtype} and {src.dtype}")
    if index.numel():
        _check_ranks(self, index, "self")
        _check_ranks(src, index, "src")
        if not _no_larger(index, self, axis) or not _no_larger(index, src, -1):
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} apart from dimension "
                f"{axis} and to be no larger size than src {list(src.shape)}"
            )
    return axis


@meta("scatter.src", "scatter_add")
def scatter(self, dim, index, src):
    check_scatter(self, dim, index, src, "scatter")
    return empty(self._impl.sizes, self.dtype)


@meta("nonzero")
def nonzero(self):
    raise DataDependentShapeError("nonzero")


def check_embedding(weight: Tensor, indices: Tensor) -> tuple[int, ...]:
    """Return the result's sizes; RuntimeError unless the weight is a matrix and the indices are integers."""
    if weight.dim() != 2:
        raise RuntimeError(f"'weight' must be 2-D (embedding: got a weight of shape {list(weight.shape)})")
    require_embedding_indices(indices, "embedding")
    return (*indices._impl.sizes, weight._impl.sizes[1])


def require_embedding_indices(indices: Tensor, name: str) -> None:
    """Raise RuntimeError unless the indices are int32 or int64."""
    if indices.dtype.name not in ("int32", "int64"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{indices.dtype} instead (while checking arguments for {name})"
        )


@meta("embedding")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return empty(check_embedding(weight, indices), weight.dtype)


@meta("embedding_dense_backward")
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    require_embedding_indices(indices, "embedding_backward")
    return empty((num_weights, grad_output.size(-1)), grad_output.dtype)


def check_pad(self: Tensor, pad: Sequence[int]) -> tuple[list[tuple[int, int]], tuple[int, ...]]:
    """Return padding (before, after) per dimension from the first on, and the result's sizes."""
    sizes = self._impl.sizes
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(sizes):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(pad)} while the input has {len(sizes)} dimensions."
        )
    padded = [(pad[index], pad[index + 1]) for index in range(len(pad) - 2, -1, -2)]
    pairs = [(0, 0)] * (len(sizes) - len(padded)) + padded
    result = tuple(size + before + after for size, (before, after) in zip(sizes, pairs, strict=True))
    for dim, size in enumerate(result):
        if size < 0 or sizes[dim] + sum(amount for amount in pairs[dim] if amount < 0) < 0:
            raise RuntimeError(
                f"The input size {sizes[dim]}, plus negative padding {pairs[dim][0]} and {pairs[dim][1]} resulted in a "
                f"negative output size, which is invalid. Check dimension {dim} of your input."
            )
    return pairs, result


def pad_strides(self: Tensor, pad: Sequence[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides of the padded result: channels-last is kept, and pads that only crop give the layout of a clone."""
    if any(amount > 0 for amount in pad):
        return kept_format_strides(sizes, self) or contiguous_strides(sizes)
    strides = self._impl.strides
    return strides if is_non_overlapping_and_dense(sizes, strides) else elementwise_strides(sizes, [(sizes, strides)])


@meta("constant_pad_nd")
def constant_pad_nd(self, pad, value=0):
    check_number(value, self.dtype)
    _, sizes = check_pad(self, pad)
    return empty(sizes, self.dtype, pad_strides(self, pad, sizes))
