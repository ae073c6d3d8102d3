"""Checks of the tangents that a Function's `jvp` returns: they must alias the given ones where the outputs alias inputs."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops.batching.layout import is_batched


def check_tangent(
    ctx: Any, index: int, output: Tensor, tangent: Tensor, args: tuple, given: list, versions: list[int | None]
) -> None:
    """Raise RuntimeError if output number `index` cannot have this tangent.

    `given` holds the tangents of the arguments, `versions` their versions before `jvp`.
    """
    if index in ctx._constant_outputs:
        raise RuntimeError(
            f"Function's jvp returned a gradient at position {index}, but the corresponding forward output is not a "
            "differentiable Tensor. You should return None at that position instead."
        )
    if is_batched(output) or is_batched(tangent):
        return
    if index in ctx._dirty_outputs:
        position = next(position for position, value in enumerate(args) if value is output)
        if tangent is not given[position] or tangent._version == versions[position]:
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying "
                "an input inplace, then the jvp function must modify the corresponding gradient inplace."
            )
    elif output._impl.view is not None:
        _check_view(output, tangent, args, given)


def _check_view(output: Tensor, tangent: Tensor, args: tuple, given: list) -> None:
    base = output._impl.view.base._impl
    pairs = ((value, start) for value, start in zip(args, given, strict=True) if isinstance(value, Tensor))
    source, start = next(((value, start) for value, start in pairs if _root_of(value) is base), (None, None))
    if source is None or start is None:
        return
    if tangent._impl.view is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    if _root_of(tangent) is not _root_of(start):
        whose = "the given grad input" if source._impl.view is None else "the same base as the given grad input"
        raise RuntimeError(f"A custom Function is returning a view but the jvp is not returning a view of {whose}.")


def _root_of(tensor: Tensor) -> Any:
    impl = tensor._impl
    return impl if impl.view is None else impl.view.base._impl
