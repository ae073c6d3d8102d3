"""The layout of batched tensors: a tensor whose leading dimensions are hidden, stored in place of its storage's memory.

A batched tensor is a `Tensor` like any other, with the sizes and strides of one example. Its `value` has additional leading
dimensions, one for each of its `levels`: the calls of vmap that map over it, as ascending numbers. Autograd sees only values:
it records operations on a batched tensor as operations on its value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rushlight.core.dispatch_key import BATCHED_BIT
from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
Levels = tuple[int, ...]


class BatchParts:
    """The hidden part of a batched tensor: its `value`, and `levels`, the vmap level of each leading dimension."""

    __slots__ = ("value", "levels")

    def __init__(self, value: Tensor, levels: Levels):
        self.value, self.levels = value, levels


def make_batched(value: Tensor, levels: Levels) -> Tensor:
    """Return the tensor that hides the leading dimensions of `value`; `value` itself without levels."""
    if not levels:
        return value
    impl, count = value._impl, len(levels)
    storage = StorageImpl(BatchParts(value, levels), 0, impl.device, 0)
    sizes, strides = impl.sizes[count:], impl.strides[count:]
    made = TensorImpl(storage, sizes, strides, impl.storage_offset, impl.dtype, impl.device, BATCHED_BIT, impl.version)
    made.fake = True  # as for a fake tensor, elements cannot be read
    return wrap(made)


def is_batched(value: object) -> bool:
    """Return whether a tensor is batched at some vmap level, active or ended."""
    return isinstance(value, Tensor) and bool(value._impl.key_set & BATCHED_BIT)


def value_of(tensor: Tensor) -> Tensor:
    """Return the tensor with all its dimensions: the value of a batched tensor, or a plain tensor itself."""
    return tensor._impl.storage.buffer.value if tensor._impl.key_set & BATCHED_BIT else tensor


def levels_of(tensor: Tensor) -> Levels:
    """Return the levels that a tensor is mapped over."""
    return tensor._impl.storage.buffer.levels if tensor._impl.key_set & BATCHED_BIT else ()


def tensors_in(values: Iterable) -> list[Tensor]:
    """Return the tensors among arguments, including those in lists."""
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(tensors_in(value))
    return found


def all_levels(*values: object) -> Levels:
    """Return all levels of the tensors among arguments."""
    found: Levels = ()
    for tensor in tensors_in(values):
        own = levels_of(tensor)
        if own and own != found:
            found = own if not found else tuple(sorted({*found, *own}))
    return found


def aligned(tensor: Tensor, levels: Levels, rank: int | None = None) -> Tensor:
    """Return the value of a tensor with one leading dimension per level in `levels`, of size 1 for levels that it lacks.

    `rank` is the number of dimensions that follow; dimensions that an example lacks are inserted with size 1.
    """
    own, value = levels_of(tensor), value_of(tensor)
    missing = 0 if rank is None else rank - (value.dim() - len(own))
    if own == levels and missing <= 0:
        return value
    sizes, position = [], 0
    for level in levels:
        is_own = position < len(own) and own[position] == level
        sizes.append(value.size(position) if is_own else 1)
        position += is_own
    for _ in range(len(levels) - len(own) + max(missing, 0)):
        value = aten.unsqueeze.default(value, len(own))
    return aten.view.default(value, [*sizes, *value.shape[len(levels) :]]) if _is_moved(own, levels) else value


def _is_moved(own: Levels, levels: Levels) -> bool:
    """Return whether `own` levels are not simply the first ones of `levels`, so that dimensions must be moved."""
    return own != levels[: len(own)]


def batch_sizes(levels: Levels, *values: object) -> tuple[int, ...]:
    """Return the number of examples at each level, from the tensors among arguments."""
    known: dict[int, int] = {}
    for tensor in tensors_in(values):
        own = levels_of(tensor)
        known.update(zip(own, value_of(tensor).shape, strict=False))
    return tuple(known[level] for level in levels)


def spread(tensor: Tensor, levels: Levels, sizes: Sequence[int], rank: int | None = None) -> Tensor:
    """Return `aligned`, with the levels' dimensions expanded to `sizes`."""
    value = aligned(tensor, levels, rank)
    if levels_of(tensor) == levels:
        return value
    return aten.expand.default(value, [*sizes, *value.shape[len(levels) :]])


def folded(value: Tensor, count: int) -> Tensor:
    """Return a value with its `count` leading dimensions flattened into one."""
    if count == 1:
        return value
    return aten.reshape.default(value, [math.prod(value.shape[:count]), *value.shape[count:]])


def unfolded(value: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return a value with its first dimension unflattened."""
    return value if len(sizes) == 1 else aten.reshape.default(value, [*sizes, *value.shape[1:]])
