"""CPU kernels of reductions, on NumPy. Sums of 16-bit floats accumulate in float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import bool_, dtype, int64, uint8
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import convert, empty
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import reduced_dims
from rushlight.ops.meta.reductions import check_extremum, sum_dtype
from rushlight.ops.registry import cpu


def _array(self: Tensor, kind: dtype) -> np.ndarray:
    array = self._impl.array
    return array if array.dtype == kind.compute else convert(array, kind.compute)


def _reduce(ufunc: np.ufunc, self: Tensor, kind: dtype, dim: Sequence[int] | None, keepdim: bool) -> Tensor:
    sizes = self._impl.sizes
    axes = reduced_dims(len(sizes), dim)
    if keepdim:
        kept = [1 if axis in axes else size for axis, size in enumerate(sizes)]
    else:
        kept = [size for axis, size in enumerate(sizes) if axis not in axes]
    out = empty(kept, kind)
    if kind.compute is kind.numpy:
        quietly(ufunc.reduce, _array(self, kind), axes, kind.compute, out._impl.array, keepdim)
    else:
        out._impl.array[...] = convert(quietly(ufunc.reduce, _array(self, kind), axes, kind.compute, None, keepdim), kind.numpy)
    return out


@cpu("sum.dim_IntList")
def sum_(self, dim, keepdim=False, *, dtype=None):
    return _reduce(np.add, self, sum_dtype(self, dtype), dim, keepdim)


@cpu("prod.dim_int")
def prod(self, dim, keepdim=False, *, dtype=None):
    return _reduce(np.multiply, self, sum_dtype(self, dtype), dim, keepdim)


@cpu("amax")
def amax(self, dim=(), keepdim=False):
    check_extremum(self, dim, "amax")
    return _reduce(np.maximum, self, self.dtype, dim, keepdim)


@cpu("amin")
def amin(self, dim=(), keepdim=False):
    check_extremum(self, dim, "amin")
    return _reduce(np.minimum, self, self.dtype, dim, keepdim)


def _quantifier(self: Tensor, dim: Sequence[int] | None, keepdim: bool, ufunc: np.ufunc) -> Tensor:
    kind = uint8 if self.dtype is uint8 else bool_
    axes = reduced_dims(self.dim(), dim) if dim is None or len(dim) else ()
    return contiguous(ufunc.reduce(self._impl.array, axis=axes, keepdims=keepdim, dtype=np.bool_), kind)


@cpu("any.dims")
def any_(self, dim=None, keepdim=False):
    return _quantifier(self, dim, keepdim, np.logical_or)


@cpu("all.dims")
def all_(self, dim=None, keepdim=False):
    return _quantifier(self, dim, keepdim, np.logical_and)


def _position(self: Tensor, dim: int | None, keepdim: bool, function: Callable, name: str) -> Tensor:
    if self.dtype.is_complex or self.dtype is bool_:
        raise not_implemented(f"{name}_cpu", self.dtype)
    array = _array(self, self.dtype)
    if dim is None:
        if array.size == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim."
            )
        found = np.asarray(function(array))
        return contiguous(found.reshape((1,) * array.ndim) if keepdim else found, int64)
    axis = wrap_dim(dim, array.ndim)
    if array.ndim == 0:
        return contiguous(np.zeros((), np.int64), int64)
    check_extremum(self, (axis,), name)
    return contiguous(function(array, axis=axis, keepdims=keepdim), int64)


@cpu("argmax")
def argmax(self, dim=None, keepdim=False):
    return _position(self, dim, keepdim, np.argmax, "argmax")


@cpu("argmin")
def argmin(self, dim=None, keepdim=False):
    return _position(self, dim, keepdim, np.argmin, "argmin")


@cpu("var.correction")
def var(self, dim=None, *, correction=None, keepdim=False):
    if self.dtype.is_integral:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    array, axes = _array(self, self.dtype), reduced_dims(self.dim(), dim)
    count = math.prod(array.shape[axis] for axis in axes)
    divisor = max(0.0, float(count) - (1 if correction is None else correction))
    return contiguous(quietly(_mean_square, array, axes, keepdim, count, divisor), self.dtype.to_real())


def _mean_square(array: np.ndarray, axes: tuple[int, ...], keepdim: bool, count: int, divisor: float) -> np.ndarray:
    mean = np.add.reduce(array, axis=axes, keepdims=True) / array.dtype.type(count)
    deviation = np.abs(array - mean)
    total = np.add.reduce(deviation * deviation, axis=axes, keepdims=keepdim)
    return total / total.dtype.type(divisor)
