"""Algebra of sizes and strides for views, broadcasting and result layouts. Tuples in, tuples out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache


@lru_cache(4096)
def contiguous_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return row-major strides, in elements. Size-0 dimensions count as size 1."""
    strides = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_contiguous(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether the elements lie row-major without gaps (strides of size-1 dimensions do not matter)."""
    if 0 in sizes:
        return True
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def channels_last_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides of an (N, C, *spatial) tensor whose channels lie innermost."""
    order = (0, *range(2, len(sizes)), 1)
    return strides_in_order(sizes, order)


def lies_channels_last(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether an (N, C, *spatial) tensor has `channels_last_strides`, ignoring dimensions of size 1."""
    wanted = channels_last_strides(sizes)
    return all(size == 1 or have == want for size, have, want in zip(sizes, strides, wanted, strict=True))


def strides_in_order(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return gap-free strides with the dimensions of `order` from outermost to innermost."""
    strides = [0] * len(sizes)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return tuple(strides)


def is_non_overlapping_and_dense(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether some permutation of the dimensions is contiguous."""
    if is_contiguous(sizes, strides):
        return True
    expected = 1
    for stride, size in sorted((st, s) for st, s in zip(strides, sizes, strict=True) if s != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def has_internal_overlap(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether two indices certainly refer to the same element (an expanded dimension)."""
    # An open stride is a product of open sizes, so it is 0 only if the tensor is empty.
    repeated = [size for size, stride in zip(sizes, strides, strict=True) if type(stride) is int and stride == 0]
    return any(size > 1 for size in repeated) and 0 not in sizes


def may_overlap(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether two indices may refer to the same element. False only where each stride exceeds the extent of all
    smaller.
    """
    reach = 0
    for stride, size in sorted((stride, size) for stride, size in zip(strides, sizes, strict=True) if size > 1):
        if stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


def storage_extent(sizes: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """Return the number of storage elements that a view reaches, counted from the storage's start; RuntimeError for odd
    lengths."""
    if len(sizes) != len(strides):
        raise RuntimeError(f"dimensionality of sizes ({len(sizes)}) must match dimensionality of strides ({len(strides)})")
    if 0 in sizes:
        return offset
    return offset + 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the common shape of operands under NumPy's broadcasting rules; RuntimeError where two sizes differ."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for position in range(1, len(shape) + 1):
            size, current = shape[-position], result[-position]
            if size != current and size != 1:
                if current != 1:
                    raise RuntimeError(
                        f"The size of tensor a ({current}) must match the size of tensor b ({size}) at non-singleton "
                        f"dimension {rank - position}"
                    )
                result[-position] = size
    return tuple(result)


def expand_strides(sizes: tuple[int, ...], strides: tuple[int, ...], target: Sequence[int]) -> tuple[tuple, tuple]:
    """Return sizes and strides of `expand(target)`; -1 keeps a size, new leading dimensions get stride 0."""
    extra = len(target) - len(sizes)
    if extra < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({len(sizes)})"
        )
    new_sizes, new_strides = [], []
    for dim, wanted in reversed(list(enumerate(target))):
        if dim < extra:
            if wanted < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension {dim}"
                )
            size, stride = wanted, 0
        else:
            size, stride = sizes[dim - extra], strides[dim - extra]
            if wanted not in (-1, size):
                if size != 1 or wanted < 0:
                    raise RuntimeError(
                        f"The expanded size of the tensor ({wanted}) must match the existing size ({size}) at "
                        f"non-singleton dimension {dim}.  Target sizes: {list(target)}.  Tensor sizes: {list(sizes)}"
                    )
                size, stride = wanted, 0
        new_sizes.append(size)
        new_strides.append(stride)
    return tuple(reversed(new_sizes)), tuple(reversed(new_strides))


def expanded_view(sizes: tuple[int, ...], strides: tuple[int, ...], target: Sequence[int]) -> tuple[tuple, tuple]:
    """Return `expand_strides`, but new leading dimensions of size 1 get a stride that spans all inner ones, as in torch's
    `expand`.
    """
    new_sizes, new_strides = expand_strides(sizes, strides, target)
    if not sizes:
        return new_sizes, new_strides
    stepping = list(new_strides)
    for dim in reversed(range(len(new_sizes) - len(sizes))):
        stepping[dim] = new_sizes[dim + 1] * stepping[dim + 1] if new_sizes[dim] == 1 else 0
    return new_sizes, tuple(stepping)


@lru_cache(4096)
def infer_size(shape: tuple[int, ...], numel: int) -> tuple[int, ...]:
    """Return `shape` with a single -1 replaced so that it has `numel` elements; RuntimeError where that is impossible."""
    unknown = [dim for dim, size in enumerate(shape) if size == -1]
    if len(unknown) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any(size < -1 for size in shape):
        raise RuntimeError(f"invalid shape dimension {min(shape)}")
    known = math.prod(size for size in shape if size != -1)
    if unknown:
        if known == numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of {numel} elements into shape {list(shape)} because the unspecified dimension "
                "size -1 can be any value and is ambiguous"
            )
        if known and numel % known == 0:
            shape = [numel // known if size == -1 else size for size in shape]
            known = numel
    if known != numel:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(shape)


@lru_cache(4096)
def view_strides(sizes: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return strides under which `target` views the same elements in the same order, or None when a copy is needed.

    Old dimensions are grouped into runs that are contiguous among themselves; each run must be split exactly by new ones.
    """
    if 0 in sizes:
        return contiguous_strides(target)
    if not sizes:
        return (1,) * len(target)
    result = [0] * len(target)
    position = len(target) - 1
    run_numel, view_numel = 1, 1
    base_stride = strides[-1]
    for dim in reversed(range(len(sizes))):
        run_numel *= sizes[dim]
        starts_run = dim == 0 or (sizes[dim - 1] != 1 and strides[dim - 1] != run_numel * base_stride)
        if not starts_run:
            continue
        while position >= 0 and (view_numel < run_numel or target[position] == 1):
            result[position] = view_numel * base_stride
            view_numel *= target[position]
            position -= 1
        if view_numel != run_numel:
            return None
        if dim > 0:
            base_stride = strides[dim - 1]
            run_numel = view_numel = 1
    return tuple(result) if position == -1 else None


def wrap_dim(dim: int, rank: int) -> int:
    """Return a possibly negative dimension as 0 <= dim < rank (rank 0 counts as 1); IndexError outside."""
    bound = max(rank, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim + bound if dim < 0 else dim


def wrap_dims(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return `wrap_dim` over several; RuntimeError when one appears twice."""
    wrapped = tuple(wrap_dim(dim, rank) for dim in dims)
    if len(set(wrapped)) != len(wrapped):
        repeated = next(dim for dim in wrapped if wrapped.count(dim) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    return wrapped


def elementwise_strides(sizes: tuple[int, ...], operands: Sequence[tuple[tuple, tuple]]) -> tuple[int, ...]:
    """Return strides of a pointwise result: the order in which the operands (sizes, strides) lie is kept where they agree.

    Operands are broadcast to `sizes`; earlier operands decide first; dimensions that none orders stay row-major.
    """
    # Compare lengths first: comparing symbolic sizes adds guards.
    same_shape = [strides for shape, strides in operands if len(shape) == len(sizes) and shape == sizes]
    if len(same_shape) == len(operands) and same_shape:
        if all(is_contiguous(sizes, strides) for strides in same_shape):
            return contiguous_strides(sizes)
        if len(sizes) == 4 and all(lies_channels_last(sizes, strides) for strides in same_shape):
            return channels_last_strides(sizes)
        first = same_shape[0]
        if all(strides == first for strides in same_shape) and is_non_overlapping_and_dense(sizes, first):
            return first
    expanded = [expand_strides(shape, strides, sizes)[1] for shape, strides in operands]
    return strides_in_order(sizes, outermost_first(sizes, expanded))


def outermost_first(sizes: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the dimensions from the one with the largest strides to the one with the smallest.

    An insertion sort, as in torch's TensorIterator: where operands disagree, only this algorithm gives the same order.
    """
    order: list[int] = list(reversed(range(len(sizes))))  # innermost first
    for start in range(1, len(order)):
        position = start
        for inner in range(start - 1, -1, -1):
            lies = _compare_dims(order[inner], order[position], sizes, operands)
            if lies < 0:
                break
            if lies > 0:
                order[inner], order[position] = order[position], order[inner]
                position = inner
    return order[::-1]


def _compare_dims(inner: int, outer: int, sizes: tuple[int, ...], operands: Sequence[tuple[int, ...]]) -> int:
    """Return a negative number if dimension `inner` should be inside `outer`, a positive one for the reverse, 0 if no operand
    decides."""
    for strides in operands:
        if strides[inner] and strides[outer]:
            if strides[inner] != strides[outer]:
                return strides[inner] - strides[outer]
            if sizes[inner] > sizes[outer]:
                return 1
    return 0
