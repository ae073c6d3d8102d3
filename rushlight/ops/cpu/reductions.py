"""CPU kernels of reductions, on NumPy. 16-bit floats accumulate in float32."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import bool_, dtype, int64, uint8
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native_reductions
from rushlight.ops.cpu.common import convert, empty
from rushlight.ops.cpu.native_reductions import ALL, ANY, ARGMAX, ARGMIN, DEVIATION, MAX, MIN, OFFSET, PROD, SUM
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.common import reduced_dims
from rushlight.ops.meta.reductions import check_extremum, check_position, sum_dtype
from rushlight.ops.registry import cpu


def _array(self: Tensor, kind: dtype) -> np.ndarray:
    array = self._impl.array
    return array if array.dtype == kind.compute else convert(array, kind.compute)


def _reduced_sizes(sizes: tuple[int, ...], axes: tuple[int, ...], keepdim: bool) -> list[int]:
    if keepdim:
        return [1 if axis in axes else size for axis, size in enumerate(sizes)]
    return [size for axis, size in enumerate(sizes) if axis not in axes]


def _reduce(
    ufunc: np.ufunc, operation: int, self: Tensor, kind: dtype, dim: Sequence[int] | None, keepdim: bool
) -> Tensor:
    sizes = self._impl.sizes
    axes = reduced_dims(len(sizes), dim)
    out = empty(_reduced_sizes(sizes, axes, keepdim), kind)
    if native_reductions.reduce(operation, self._impl.array, axes, out._impl.array):
        return out
    if kind.compute is kind.numpy:
        quietly(ufunc.reduce, _array(self, kind), axes, kind.compute, out._impl.array, keepdim)
    else:
        out._impl.array[...] = convert(quietly(ufunc.reduce, _array(self, kind), axes, kind.compute, None, keepdim), kind.numpy)
    return out


@cpu("sum.dim_IntList")
def sum_(self, dim, keepdim=False, *, dtype=None):
    return _reduce(np.add, SUM, self, sum_dtype(self, dtype), dim, keepdim)


@cpu("prod.dim_int")
def prod(self, dim, keepdim=False, *, dtype=None):
    return _reduce(np.multiply, PROD, self, sum_dtype(self, dtype), dim, keepdim)


@cpu("amax")
def amax(self, dim=(), keepdim=False):
    check_extremum(self, dim, "amax")
    return _reduce(np.maximum, MAX, self, self.dtype, dim, keepdim)


@cpu("amin")
def amin(self, dim=(), keepdim=False):
    check_extremum(self, dim, "amin")
    return _reduce(np.minimum, MIN, self, self.dtype, dim, keepdim)


def _quantifier(self: Tensor, dim: Sequence[int] | None, keepdim: bool, ufunc: np.ufunc, operation: int) -> Tensor:
    kind = uint8 if self.dtype is uint8 else bool_
    axes = reduced_dims(self.dim(), dim) if dim is None or len(dim) else ()
    if axes:
        out = empty(_reduced_sizes(self._impl.sizes, axes, keepdim), kind)
        if native_reductions.reduce(operation, self._impl.array, axes, out._impl.array):
            return out
    return contiguous(ufunc.reduce(self._impl.array, axis=axes, keepdims=keepdim, dtype=np.bool_), kind)


@cpu("any.dims")
def any_(self, dim=None, keepdim=False):
    return _quantifier(self, dim, keepdim, np.logical_or, ANY)


@cpu("all.dims")
def all_(self, dim=None, keepdim=False):
    return _quantifier(self, dim, keepdim, np.logical_and, ALL)


def _position(
    self: Tensor, dim: int | None, keepdim: bool, function: Callable, operation: int, name: str
) -> Tensor:
    check_position(self, name)
    array = _array(self, self.dtype)
    if dim is None:
        if array.size == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim."
            )
        out = empty((1,) * array.ndim if keepdim else (), int64)
        if not native_reductions.reduce(operation, np.ascontiguousarray(array).reshape(-1), (0,), out._impl.array):
            out._impl.array[...] = function(array)
        return out
    axis = wrap_dim(dim, array.ndim)
    if array.ndim == 0:
        return contiguous(np.zeros((), np.int64), int64)
    check_extremum(self, (axis,), name)
    out = empty(_reduced_sizes(array.shape, (axis,), keepdim), int64)
    if not native_reductions.reduce(operation, array, (axis,), out._impl.array):
        out._impl.array[...] = function(array, axis=axis, keepdims=keepdim)
    return out


@cpu("argmax")
def argmax(self, dim=None, keepdim=False):
    return _position(self, dim, keepdim, np.argmax, ARGMAX, "argmax")


@cpu("argmin")
def argmin(self, dim=None, keepdim=False):
    return _position(self, dim, keepdim, np.argmin, ARGMIN, "argmin")


@cpu("var.correction")
def var(self, dim=None, *, correction=None, keepdim=False):
    if self.dtype.is_integral:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    array, axes = _array(self, self.dtype), reduced_dims(self.dim(), dim)
    count = math.prod(array.shape[axis] for axis in axes)
    divisor = max(0.0, float(count) - (1 if correction is None else correction))
    if not divisor:
        warnings.warn(
            "var(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
            f"divided by output numel), but got {count} values and correction={1 if correction is None else correction}",
            stacklevel=4,
        )
    found = _native_variance(array, axes, keepdim, count, divisor)
    if found is None:
        found = quietly(_mean_square, array, axes, keepdim, count, divisor)
    return contiguous(found, self.dtype.to_real())


def _native_variance(
    array: np.ndarray, axes: tuple[int, ...], keepdim: bool, count: int, divisor: float
) -> np.ndarray | None:
    sizes = _reduced_sizes(array.shape, axes, keepdim)
    if array.dtype.kind != "f" or not array.size:
        return None
    mean, total, offset = (np.empty(sizes, array.dtype) for _ in range(3))
    if not native_reductions.reduce(SUM, array, axes, mean):
        return None
    mean *= array.dtype.type(1 / count)
    for operation, out in ((DEVIATION, total), (OFFSET, offset)):
        if not native_reductions.reduce(operation, array, axes, out, mean):
            return None
    return quietly(_from_sums, total, offset, count, divisor)


def _mean_square(array: np.ndarray, axes: tuple[int, ...], keepdim: bool, count: int, divisor: float) -> np.ndarray:
    difference = array - np.add.reduce(array, axis=axes, keepdims=True) / array.dtype.type(count)
    deviation = np.abs(difference)
    total = np.add.reduce(deviation * deviation, axis=axes, keepdims=keepdim)
    return _from_sums(total, np.abs(np.add.reduce(difference, axis=axes, keepdims=keepdim)), count, divisor)


def _from_sums(total: np.ndarray, offset: np.ndarray, count: int, divisor: float) -> np.ndarray:
    """Return the variance from the sum of squared differences from a rounded mean, corrected by the sum of the differences
    (Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983)."""
    real = total.dtype.type
    return np.maximum(total - offset * (offset / real(count)), real(0)) / real(divisor)
