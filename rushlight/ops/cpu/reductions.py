"""CPU kernels of reductions, on NumPy. Sums of 16-bit floats accumulate in float32."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import bool_, dtype, int64, uint8
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import convert, make
from rushlight.ops.meta.common import reduced_dims
from rushlight.ops.registry import cpu


def _array(self: Tensor, kind: dtype) -> np.ndarray:
    array = self._impl.array
    return array if array.dtype == kind.compute else convert(array, kind.compute)


def sum_dtype(self: Tensor, given: dtype | None) -> dtype:
    """What sums and products return: int64 for integers and bool, the input's dtype otherwise."""
    return given or (int64 if self.dtype.is_integral else self.dtype)


@cpu("sum.dim_IntList")
def sum_(self, dim, keepdim=False, *, dtype=None):
    kind = sum_dtype(self, dtype)
    axes = reduced_dims(self.dim(), dim)
    with np.errstate(all="ignore"):
        return make(np.add.reduce(_array(self, kind), axis=axes, keepdims=keepdim, dtype=kind.compute), kind)


@cpu("prod.dim_int")
def prod(self, dim, keepdim=False, *, dtype=None):
    kind = sum_dtype(self, dtype)
    axes = reduced_dims(self.dim(), dim)
    with np.errstate(all="ignore"):
        return make(np.multiply.reduce(_array(self, kind), axis=axes, keepdims=keepdim, dtype=kind.compute), kind)


def _check_not_empty(self: Tensor, axes: tuple[int, ...], name: str) -> None:
    if any(self.shape[axis] == 0 for axis in axes):
        raise IndexError(
            f"{name}(): Expected reduction dim {axes[0]} to have non-zero size, but got a tensor of shape {list(self.shape)}"
        )


def _extremum(self, dim, keepdim, ufunc, name):
    axes = reduced_dims(self.dim(), dim)
    _check_not_empty(self, axes, name)
    return make(ufunc.reduce(_array(self, self.dtype), axis=axes, keepdims=keepdim), self.dtype)


@cpu("amax")
def amax(self, dim=(), keepdim=False):
    return _extremum(self, dim, keepdim, np.maximum, "amax")


@cpu("amin")
def amin(self, dim=(), keepdim=False):
    return _extremum(self, dim, keepdim, np.minimum, "amin")


def _quantifier(self, dim, keepdim, ufunc):
    kind = uint8 if self.dtype is uint8 else bool_
    return make(ufunc.reduce(self._impl.array, axis=reduced_dims(self.dim(), dim), keepdims=keepdim, dtype=np.bool_), kind)


@cpu("any.dims")
def any_(self, dim=None, keepdim=False):
    return _quantifier(self, dim, keepdim, np.logical_or)


@cpu("all.dims")
def all_(self, dim=None, keepdim=False):
    return _quantifier(self, dim, keepdim, np.logical_and)


def _position(self, dim, keepdim, function, name):
    array = _array(self, self.dtype)
    if dim is None:
        if array.size == 0:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim.")
        found = np.asarray(function(array))
        return make(found.reshape((1,) * array.ndim) if keepdim else found, int64)
    axis = wrap_dim(dim, array.ndim)
    if array.ndim == 0:
        return make(np.zeros((), np.int64), int64)
    _check_not_empty(self, (axis,), name)
    return make(function(array, axis=axis, keepdims=keepdim), int64)


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
    axes = reduced_dims(self.dim(), dim)
    kind = self.dtype.to_real()
    array = _array(self, self.dtype)
    count = np.prod([array.shape[axis] for axis in axes]) if axes else 1
    with np.errstate(all="ignore"):
        mean = np.add.reduce(array, axis=axes, keepdims=True) / array.dtype.type(count)
        deviation = np.abs(array - mean)
        total = np.add.reduce(deviation * deviation, axis=axes, keepdims=keepdim)
        divisor = max(0.0, float(count) - (1 if correction is None else correction))
        return make(total / kind.compute.type(divisor), kind)

