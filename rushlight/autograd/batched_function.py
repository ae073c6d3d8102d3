"""vmap over user-defined Functions: by their own rule (`vmap`), or example by example (`generate_vmap_rule`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.batching.layout import aten, is_batched, levels_of, value_of
from rushlight.ops.batching.levels import Level, add_batch_dim, remove_batch_dim

_DOCS_HINT = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """The facts about the map that a Function's `vmap` receives: the number of examples, and the randomness setting."""

    batch_size: int
    randomness: str


def apply_batched(function: type, args: tuple) -> Any:
    """Return `function.apply(*args)` where some arguments are batched. Removes the innermost level, which the Function's rule
    handles.

    RuntimeError for a Function without `setup_context`, and for one with no vmap rule or with two.
    """
    name, has_rule = function.__name__, any("vmap" in vars(kind) for kind in function.__mro__[:-2])
    if function.setup_context is None:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
            f"the setup_context staticmethod. {_DOCS_HINT}"
        )
    if has_rule and function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod. "
            f"Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. {_DOCS_HINT}"
        )
    if not has_rule and not function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap "
            f"staticmethod or set generate_vmap_rule=True. {_DOCS_HINT}"
        )
    leaves, form = tree_flatten(args)
    level = innermost_level(tuple(leaves))
    mapped = [is_batched(value) and level.number in levels_of(value) for value in leaves]
    shown = [remove_batch_dim(v, level, 0) if is_mapped else v for v, is_mapped in zip(leaves, mapped, strict=True)]
    before = state.batch_levels
    state.batch_levels = tuple(one for one in before if one.number != level.number)
    try:
        if not has_rule:
            examples = (tree_unflatten(_select_example(shown, mapped, index), form) for index in range(level.size))
            return _stack_examples([function.apply(*example) for example in examples], level)
        in_dims = tree_unflatten([0 if is_mapped else None for is_mapped in mapped], form)
        info = VmapInfo(level.size, level.randomness)
        output, out_dims = _check_vmap_result(function, function.vmap(info, in_dims, *tree_unflatten(shown, form)))
    finally:
        state.batch_levels = before
    return _batch_output(function, output, out_dims, level)


def innermost_level(args: tuple) -> Level:
    """Return the innermost level that arguments are batched over."""
    batched = [value for value in args if is_batched(value)]
    number = max(levels_of(value)[-1] for value in batched)
    running = {level.number: level for level in state.batch_levels}
    tensor = next(value for value in batched if levels_of(value)[-1] == number)
    return running.get(number) or Level(number, value_of(tensor).shape[len(levels_of(tensor)) - 1], "error")


def _select_example(args: list, mapped: list[bool], index: int) -> list:
    return [aten.select.int(v, 0, index) if is_mapped else v for v, is_mapped in zip(args, mapped, strict=True)]


def _stack_examples(results: list, level: Level) -> Any:
    if not results:
        raise RuntimeError("vmap: a Function with generate_vmap_rule=True runs example by example, and there are none")
    if isinstance(results[0], tuple):
        return tuple(_stack_examples(list(column), level) for column in zip(*results, strict=True))
    return add_batch_dim(aten.stack.default(results, 0), 0, level) if isinstance(results[0], Tensor) else results[0]


def _check_vmap_result(function: type, result: Any) -> tuple:
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"Expected the vmap staticmethod of {function.__name__} to have two returns, an output and out_dims with pytree "
            f"structure compatible with the output, got {type(result).__name__}"
        )
    return result


def _batch_output(function: type, output: Any, dims: Any, level: Level) -> Any:
    """Return the output batched over the level. `dims` is the batch dimension: one number for all outputs, or their
    structure."""
    if isinstance(output, tuple | list):
        dims_by_output = dims if isinstance(dims, tuple | list) else (dims,) * len(output)
        has_other_form = isinstance(dims, tuple | list) and type(dims) is not type(output)
        if has_other_form or len(dims_by_output) != len(output):
            raise _incompatible_error(function, output, dims)
        pairs = zip(output, dims_by_output, strict=True)
        return type(output)(_batch_output(function, value, dim, level) for value, dim in pairs)
    if isinstance(output, dict):
        dims_by_output = dims if isinstance(dims, dict) else dict.fromkeys(output, dims)
        if set(dims_by_output) != set(output):
            raise _incompatible_error(function, output, dims)
        return {key: _batch_output(function, value, dims_by_output[key], level) for key, value in output.items()}
    if dims is not None and not isinstance(dims, int):
        raise _incompatible_error(function, output, dims)
    return output if dims is None or not isinstance(output, Tensor) else add_batch_dim(output, dims, level)


def _incompatible_error(function: type, output: Any, dims: Any) -> RuntimeError:
    return RuntimeError(
        f"The vmap staticmethod of {function.__name__} returned an incompatible (output, out_dims) tuple. Expected "
        f"out_dims={dims} to be compatible with the structure of `output`, a {type(output).__name__}"
    )
