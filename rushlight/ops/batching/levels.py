"""The active calls of vmap in a thread, and how each adds and removes its batch dimension."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.providers import import_provider, set_provider
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.batching.layout import aten, is_batched, levels_of, make_batched, spread, value_of

_numbers = itertools.count(1)
VMAP_MODE = bit(DispatchKey.VmapMode)
_RULES = "what operators do with batched tensors"
set_provider(_RULES, "rushlight.ops.batching.loading")


@dataclass(frozen=True)
class Level:
    """An active call of vmap: its number, its number of examples, and its setting for random operators.

    `randomness` is "error", "same" or "different". Inner levels have higher numbers.
    """

    number: int
    size: int
    randomness: str


class Mapping:
    """Context manager of a call of vmap; yields the new Level."""

    def __init__(self, size: int, randomness: str = "error"):
        import_provider(_RULES)
        self.level = Level(next(_numbers), size, randomness)

    def __enter__(self) -> Level:
        self.outer, self.include = state.batch_levels, state.include
        state.batch_levels = (*self.outer, self.level)
        state.include |= VMAP_MODE
        return self.level

    def __exit__(self, *error: object) -> None:
        state.batch_levels, state.include = self.outer, self.include


def add_batch_dim(tensor: Tensor, dim: int, level: Level) -> Tensor:
    """Return `tensor` with dimension `dim` hidden, as the batch dimension of a level inside those that it has."""
    own, value = levels_of(tensor), value_of(tensor)
    count, dim = len(own), len(own) + wrap_dim(dim, tensor.dim())
    value = _move_dim(value, dim, count)
    return make_batched(value, (*own, level.number))


def remove_batch_dim(tensor: Tensor, level: Level, dim: int) -> Tensor:
    """Return `tensor` with the batch dimension of a level moved to dimension `dim`. A tensor without that level is expanded
    instead."""
    own, value = levels_of(tensor), value_of(tensor)
    dim = wrap_dim(dim, tensor.dim() + 1)
    if level.number in own:
        position = own.index(level.number)
        others = (*own[:position], *own[position + 1 :])
    else:
        position, others = len(own), own
        value = aten.unsqueeze.default(value, position)
        sizes = value.shape
        value = aten.expand.default(value, [*sizes[:position], level.size, *sizes[position + 1 :]])
    return make_batched(_move_dim(value, position, len(others) + dim), others)


def _move_dim(value: Tensor, source: int, target: int) -> Tensor:
    if source == target:
        return aten.alias.default(value)
    order = [dim for dim in range(value.dim()) if dim != source]
    order.insert(target, source)
    return aten.permute.default(value, order)


def in_all_levels(value: Any) -> Any:
    """Return a tensor mapped over by every active level, expanded where it was not. Other values stay as they are."""
    running = state.batch_levels
    if not running or not isinstance(value, Tensor):
        return value
    own = levels_of(value)
    sizes = {level.number: level.size for level in running}
    sizes.update(zip(own, value_of(value).shape, strict=False))
    levels = tuple(sorted(sizes))
    return value if levels == own else make_batched(spread(value, levels, [sizes[level] for level in levels]), levels)


def is_mapped_by(value: object, level: Level) -> bool:
    """Return whether a level maps over a tensor."""
    return is_batched(value) and level.number in levels_of(value)
