"""Short ranges on a device: parts of one that is kept, so that no kernel is compiled for each length or start.

In: the arguments of `arange`. Out: its result, or NotImplemented for long ranges, which kernels of their own make.
"""

from __future__ import annotations

import functools

import numpy as np

from rushlight.core.dtype import dtype, float64
from rushlight.core.tensor import Tensor, from_numpy
from rushlight.cuda import runtime, tensors
from rushlight.ops.meta.creation import arange_dtype, arange_length, arange_numbers
from rushlight.ops.registry import aten

LONGEST = 1 << 14


def short_range(start: float, end: float, step: float, kind: dtype | None, index: int) -> object:
    """Return start, start + step, ... below `end`; NotImplemented if there are more than LONGEST, for truncated numbers, or
    while work is captured."""
    kind = arange_dtype((start, end, step), kind)
    start, end, step = arange_numbers((start, end, step), kind)
    length = arange_length(start, end, step)
    stream = runtime.current_stream(index)
    is_whole = all(isinstance(value, int) for value in (start, step))
    if not is_whole and not kind.is_floating_point:  # integers from fractions: each is truncated by itself
        return NotImplemented
    if not 0 < length <= LONGEST or runtime.device_at(index).driver.is_capturing(stream):
        return NotImplemented
    kept: Tensor = aten("slice.Tensor")(_counted(index, stream), 0, 0, length)
    found = kept
    if not is_whole:
        found = aten("_to_copy")(found, dtype=float64)
    if step != 1:
        found = aten("mul.Tensor")(found, tensors.number(step, index))
    if start != 0:
        found = aten("add.Tensor")(found, tensors.number(start, index))
    return found if found is not kept and found._impl.dtype is kind else aten("_to_copy")(found, dtype=kind)


@functools.cache
def _counted(index: int, stream: int) -> Tensor:
    """Return 0, 1, ... below LONGEST, for later work on a stream."""
    return tensors.from_host(from_numpy(np.arange(LONGEST)), index)


runtime.on_forget(_counted.cache_clear)
