"""Custom operators on batched tensors, by rules that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.autograd.batched_function import VmapInfo, innermost_level
from rushlight.core.pytree import tree_flatten, tree_map
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.batching.layout import is_batched, levels_of
from rushlight.ops.batching.levels import Level, add_batch_dim, remove_batch_dim


def apply_rule(name: str, rule: Callable, args: tuple, kwargs: dict) -> Any:
    """Return `rule(info, in_dims, *args, **kwargs)` for the innermost level that arguments are batched over.

    A list of tensors has a list in `in_dims`. RuntimeError unless the rule returns an output and its out_dims.
    """
    level = innermost_level(tuple(leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)))
    if any(_is_mapped(leaf, level) for leaf in tree_flatten(kwargs)[0]):
        raise RuntimeError(f"{name}: a map over keyword-only arguments is not supported")
    in_dims = tree_map(lambda leaf: 0 if _is_mapped(leaf, level) else None, args)
    shown = tree_map(lambda leaf: remove_batch_dim(leaf, level, 0) if _is_mapped(leaf, level) else leaf, args)
    before = state.batch_levels
    state.batch_levels = tuple(one for one in before if one.number != level.number)
    try:
        result = rule(VmapInfo(level.size, level.randomness), in_dims, *shown, **kwargs)
    finally:
        state.batch_levels = before
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"Expected the vmap function of {name} to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output, got {type(result).__name__}"
        )
    return _add_batch_dims(name, *result, level)


def _is_mapped(value: object, level: Level) -> bool:
    return is_batched(value) and level.number in levels_of(value)


def _add_batch_dims(name: str, output: Any, dims: Any, level: Level) -> Any:
    if isinstance(output, list | tuple):
        places = dims if isinstance(dims, list | tuple) else (dims,) * len(output)
        if len(places) != len(output):
            raise RuntimeError(f"{name}: its vmap function returned {len(output)} results, and out_dims={dims} for them")
        return type(output)([_add_batch_dims(name, value, dim, level) for value, dim in zip(output, places, strict=True)])
    return output if dims is None or not isinstance(output, Tensor) else add_batch_dim(output, dims, level)
