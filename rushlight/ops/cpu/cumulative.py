"""CPU kernels of cumprod, cummax, cummin and logcumsumexp, on NumPy. NaN propagates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import convert, operand
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.cumulative import check_cumulative_extremum, check_logcumsumexp
from rushlight.ops.meta.sorting import cumsum_dtype
from rushlight.ops.registry import cpu


@cpu("cumprod")
def cumprod(self, dim, *, dtype=None):
    axis, kind = wrap_dim(dim, self.dim()), cumsum_dtype(self, dtype)
    array = convert(self._impl.array, kind.compute)
    if not array.ndim:
        return contiguous(np.array(array), kind)
    # Accumulate floats in double precision, as torch does on the CPU.
    accumulate = np.float64 if kind.is_floating_point else kind.compute
    return contiguous(quietly(np.multiply.accumulate, array, axis, accumulate), kind)


def _running(self: Tensor, axis: int, extremum: np.ufunc, reaches: Callable) -> tuple[Tensor, Tensor]:
    """Return the running extremum, and the index where it was last reached."""
    array = operand(self, self.dtype)
    if not array.ndim:
        return contiguous(np.array(array), self.dtype), contiguous(np.zeros((), np.int64), int64)
    values = extremum.accumulate(array, axis=axis)
    steps = np.arange(array.shape[axis]).reshape([-1 if dim == axis else 1 for dim in range(array.ndim)])
    reached = reaches(array, values)
    if self.dtype.is_floating_point:
        reached |= np.isnan(array)
    positions = np.maximum.accumulate(np.where(reached, steps, 0), axis=axis)
    return contiguous(values, self.dtype), contiguous(positions, int64)


@cpu("cummax")
def cummax(self, dim):
    return _running(self, check_cumulative_extremum(self, dim, "cummax"), np.maximum, np.greater_equal)


@cpu("cummin")
def cummin(self, dim):
    return _running(self, check_cumulative_extremum(self, dim, "cummin"), np.minimum, np.less_equal)


@cpu("logcumsumexp")
def logcumsumexp(self, dim):
    axis = check_logcumsumexp(self, dim)
    array = operand(self, self.dtype)
    if not array.ndim:
        return contiguous(np.array(array), self.dtype)
    run = _complex_log_sums if self.dtype.is_complex else np.logaddexp.accumulate
    return contiguous(quietly(run, array, axis), self.dtype)


_UNKNOWN = complex(math.nan, math.nan)


def _complex_log_sums(array: np.ndarray, axis: int) -> np.ndarray:
    steps = np.moveaxis(array, axis, 0)
    out = np.empty_like(steps)
    for index, step in enumerate(steps):
        out[index] = np.where(np.isnan(step), _UNKNOWN, step) if not index else _log_add(out[index - 1], step)
    return np.moveaxis(out, 0, axis)


def _log_add(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return log(exp(first) + exp(second)), computed relative to the operand with the larger real part, whose phase it keeps.

    NaN in a part of either makes both parts NaN.
    """
    first_leads = first.real >= second.real
    high, low = np.where(first_leads, first, second), np.where(first_leads, second, first)
    found = np.where(np.isinf(high.real), high, high + np.log1p(np.exp(low - high)))
    return np.where(np.isnan(first) | np.isnan(second), _UNKNOWN, found)
