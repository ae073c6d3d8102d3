"""Helpers shared by the network composites: integers per dimension, reductions of losses, in-place variants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import dtype, float64
from rushlight.core.layout import channels_last, channels_last_3d
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.pointwise import source_of_write
from rushlight.ops.meta.checks import is_channels_last
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")

NONE, MEAN, SUM = 0, 1, 2


def in_order_of(given: Tensor, result: Tensor) -> Tensor:
    """Return the result in channels-last layout where `given`, of the same rank, is channels-last."""
    if not is_channels_last(given):
        return result
    return result.contiguous(memory_format=channels_last if result.dim() == 4 else channels_last_3d)


def spread(value: int | Sequence[int], count: int, name: str) -> list[int]:
    """Return `value` per dimension: an integer or a list of one repeats, a list of `count` stays; RuntimeError otherwise."""
    if isinstance(value, int):
        return [value] * count
    values = list(value)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values, but got {values}"
        )
    return values


def reduce_loss(loss: Tensor, reduction: int) -> Tensor:
    """Return `loss` as it is, its mean or its sum, for the reductions 0, 1, 2."""
    if reduction == MEAN:
        return loss.mean()
    if reduction == SUM:
        return loss.sum()
    return loss


def inplace(schema: str, function: Callable) -> None:
    """Define the operator `schema`, which overwrites `self` with `function(self, ...)`."""

    def overwrite(self, *args, **kwargs):
        source = source_of_write(self, (*args, *kwargs.values()))
        return self.copy_(function(source, *args, **kwargs))

    composite(schema)(overwrite)


def window_count(size: int, kernel: int, stride: int, padding: int, dilation: int = 1, ceil_mode: bool = False) -> int:
    """Return the number of pooling windows over a dimension of `size` elements."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (math.ceil(span / stride) if ceil_mode else span // stride) + 1
    # With ceil_mode a last window must still start inside the input or its left padding.
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def select_windows(x: Tensor, dim: int, starts: Tensor, offsets: Tensor) -> Tensor:
    """Return `x` with dimension `dim` replaced by (windows, offsets): element [w, o] comes from `starts[w] + offsets[o]`."""
    positions = starts.unsqueeze(1) + offsets
    chosen = x.index_select(dim, positions.reshape(-1))
    return chosen.view([*x.shape[:dim], *positions.shape, *x.shape[dim + 1 :]])


def arange(like: Tensor, *bounds: int) -> Tensor:
    """Return the integers in the given range (start, end, step), on the device of `like`."""
    start, end, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    return aten.arange.start_step(start, end, step, device=like.device)


def quotient(like: Tensor, dividend: float, divisor: int, kind: dtype = float64) -> float | Tensor:
    """Return `dividend / divisor` as a number, or, for a symbolic size, as a tensor of dtype `kind` on the device of `like`."""
    if SymInt not in (type(dividend), type(divisor)):
        return dividend / divisor
    return (aten.full.default((), dividend, dtype=float64, device=like.device) / divisor).to(kind)


def values_of(x: Tensor) -> np.ndarray | None:
    """Return the elements as an array, to check them without dispatching; None for tensors without data (meta, fake,
    batched), and for those on GPUs, whose kernels check them."""
    return None if x._impl.fake or x._impl.storage.buffer is None or x.is_cuda else x._impl.array


def checked_later(x: Tensor, holds: Callable[[Tensor], Tensor], error: type[Exception], message: str) -> Tensor:
    """Return `x`; where its elements are unknown during capture, the graph checks a condition on them when it runs.

    The check raises `error`; in its message, `{}` stands for the first element that violates the condition.
    """
    return x if values_of(x) is not None else aten._checked.default(x, holds(x), error.__name__, message)
