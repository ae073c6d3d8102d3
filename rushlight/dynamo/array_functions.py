"""NumPy's functions on tensors. Captured calls of NumPy become calls of these.

In: tensors in the place of arrays, and numbers. Out: tensors with the values and dtypes that NumPy gives. Stage: nodes of
captured graphs. A NumPy function that is missing here breaks the graph, and NumPy itself runs it.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.core.dtype import dtype, from_numpy_dtype
from rushlight.core.tensor import Tensor
from rushlight.fx.targets import TORCH as torch

Operand = Tensor | bool | int | float | complex


def _kind(given: Any) -> dtype | None:
    return given if given is None or isinstance(given, dtype) else from_numpy_dtype(np.dtype(given))


def _tensor(value: Any, kind: dtype | None = None) -> Tensor:
    """Convert an operand to a tensor. Numbers get NumPy's default dtypes, sequences are stacked."""
    if isinstance(value, Tensor):
        return value if kind is None else value.to(kind)
    if isinstance(value, list | tuple) and builtins.any(isinstance(item, Tensor | list | tuple) for item in value):
        parts = [_tensor(item) for item in value]
        common = functools.reduce(torch.promote_types, [part.dtype for part in parts])
        return torch.stack([part.to(kind or common) for part in parts])
    return torch.tensor(value, dtype=kind or from_numpy_dtype(np.asarray(value).dtype))


def _promotion_operand(value: Operand) -> Any:
    """Convert an operand to the form `resolve_dtypes` takes, in which Python numbers promote weakly."""
    if isinstance(value, Tensor):
        return value.dtype.numpy
    return np.dtype(bool) if isinstance(value, bool) else type(value)


# Ufunc name -> function on tensors. Its operands already have the dtypes of the loop that NumPy would choose.
_OPERATIONS: dict[str, Callable] = {
    "add": torch.add, "subtract": torch.subtract, "multiply": torch.multiply, "divide": torch.true_divide,
    "floor_divide": torch.floor_divide, "remainder": torch.remainder, "fmod": torch.fmod, "power": torch.pow,
    "float_power": torch.pow, "negative": torch.negative, "positive": torch.positive, "absolute": torch.abs, "fabs": torch.abs,
    "sign": torch.sgn, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2,
    "log10": torch.log10, "log1p": torch.log1p, "sqrt": torch.sqrt, "square": torch.square, "reciprocal": torch.reciprocal,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "arcsin": torch.asin, "arccos": torch.acos, "arctan": torch.atan,
    "arctan2": torch.atan2, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "arcsinh": torch.asinh,
    "arccosh": torch.acosh, "arctanh": torch.atanh, "hypot": torch.hypot, "deg2rad": torch.deg2rad, "radians": torch.deg2rad,
    "rad2deg": torch.rad2deg, "degrees": torch.rad2deg, "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor, "invert": torch.bitwise_not, "left_shift": torch.bitwise_left_shift,
    "right_shift": torch.bitwise_right_shift, "logical_and": torch.logical_and, "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor, "logical_not": torch.logical_not, "greater": torch.gt, "greater_equal": torch.ge,
    "less": torch.lt, "less_equal": torch.le, "equal": torch.eq, "not_equal": torch.ne, "maximum": torch.maximum,
    "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin, "isfinite": torch.isfinite, "isinf": torch.isinf,
    "isnan": torch.isnan, "signbit": torch.signbit, "copysign": torch.copysign, "nextafter": torch.nextafter,
    "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "rint": torch.round, "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2, "heaviside": torch.heaviside, "gcd": torch.gcd, "lcm": torch.lcm, "matmul": torch.matmul,
    "conjugate": torch.conj_physical,
}  # fmt: skip
_ON_BOOLS = {"add": torch.logical_or, "multiply": torch.logical_and, "maximum": torch.logical_or, "minimum": torch.logical_and,
             "absolute": torch.positive}  # fmt: skip


def elementwise(name: str, *operands: Operand) -> Tensor:
    """Implement `np.name(*operands)`. TypeError for dtypes that NumPy refuses."""
    *taken, result = getattr(np, name).resolve_dtypes((*map(_promotion_operand, operands), None))
    kinds = list(map(from_numpy_dtype, taken))
    given = [_tensor(value, kind) for value, kind in zip(operands, kinds, strict=True)]
    operation = _OPERATIONS[name]
    if builtins.all(kind is torch.bool for kind in kinds):
        operation = _ON_BOOLS.get(name, operation)
    found = operation(*given)
    return found if found.dtype is from_numpy_dtype(result) else found.to(from_numpy_dtype(result))


def _elementwise(name: str) -> Callable:
    """Make the function that replaces a ufunc in graphs."""
    def function(*operands: Operand) -> Tensor:
        return elementwise(name, *operands)

    function.__name__ = function.__qualname__ = name
    return function


ELEMENTWISE = {name: _elementwise(name) for name in _OPERATIONS}
"""Ufunc name -> the function that replaces it in graphs."""

globals().update(ELEMENTWISE)  # generated code looks the functions up in this module


def assigned(self: Tensor, value: Tensor) -> Tensor:
    """Return `self` with the values of another array written into it, as `self += other` does. TypeError where kinds differ."""
    if not np.can_cast(value.dtype.numpy, self.dtype.numpy, "same_kind"):
        raise TypeError(f"Cannot cast from {value.dtype} to {self.dtype} with casting rule 'same_kind'")
    return self.copy_(value)


def item(self: Tensor, key: Any) -> Tensor:
    """Implement `self[key]`, also for slices that go backwards."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if not builtins.any(map(_goes_backwards, parts)):
        return self[key]
    if builtins.any(isinstance(part, Tensor | list) for part in parts):
        raise TypeError("slices that go backwards beside lists of indices")
    dim, flipped = 0, []
    if Ellipsis in parts:
        place, taken = parts.index(Ellipsis), builtins.sum(part is not None and part is not Ellipsis for part in parts)
        parts[place : place + 1] = [slice(None)] * (self.dim() - taken)
    for index, part in enumerate(parts):
        if _goes_backwards(part):
            numbers = range(self.shape[dim])[part]
            parts[index] = slice(numbers[-1], numbers[0] + 1, -part.step) if numbers else slice(0, 0)
            flipped.append(index - builtins.sum(isinstance(other, int) for other in parts[:index]))
        dim += part is not None
    return self[tuple(parts)].flip(flipped)


def _goes_backwards(part: Any) -> bool:
    return isinstance(part, slice) and part.step is not None and part.step < 0


def _dims(self: Tensor, axis: int | Sequence[int] | None) -> list[int]:
    return list(range(self.dim())) if axis is None else [axis] if isinstance(axis, int) else list(axis)


def _cast_for_sum(self: Tensor, kind: dtype | None) -> Tensor:
    """Cast the operand of a sum or product to NumPy's accumulation dtype: integers take at least 64 bits."""
    if kind is None and not (self.dtype.is_floating_point or self.dtype.is_complex):
        kind = torch.uint64 if self.dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64) else torch.int64
    return self if kind is None else self.to(kind)


def sum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001 - NumPy's name
    """Implement `np.sum`."""
    a = _cast_for_sum(_tensor(a), _kind(dtype))
    if a.dtype is torch.uint64:
        raise TypeError("sums of unsigned integers")
    return torch.sum(a, _dims(a, axis), keepdim=keepdims)


def prod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Implement `np.prod`."""
    a = _cast_for_sum(_tensor(a), _kind(dtype))
    if a.dtype is torch.uint64:
        raise TypeError("products of unsigned integers")
    for dim in sorted([each % max(a.dim(), 1) for each in _dims(a, axis)], reverse=True):
        a = torch.prod(a, dim, keepdim=keepdims)
    return a


def _cast_for_mean(self: Tensor, kind: dtype | None) -> Tensor:
    """Cast the operand of a mean: integers to float64, others to `kind`."""
    is_exact = not (self.dtype.is_floating_point or self.dtype.is_complex)
    kind = kind or (torch.float64 if is_exact else None)
    return self if kind is None else self.to(kind)


def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Implement `np.mean`."""
    a = _cast_for_mean(_tensor(a), _kind(dtype))
    return torch.mean(a, _dims(a, axis), keepdim=keepdims)


def var(a: Any, axis: Any = None, dtype: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Implement `np.var`."""
    a = _cast_for_mean(_tensor(a), _kind(dtype))
    return torch.var(a, _dims(a, axis), correction=ddof, keepdim=keepdims)


def std(a: Any, axis: Any = None, dtype: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Implement `np.std`."""
    return torch.sqrt(var(a, axis, dtype, ddof=ddof, keepdims=keepdims))


def amax(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Implement `np.max`."""
    a = _tensor(a)
    return torch.amax(a, _dims(a, axis), keepdim=keepdims)


def amin(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Implement `np.min`."""
    a = _tensor(a)
    return torch.amin(a, _dims(a, axis), keepdim=keepdims)


def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Implement `np.ptp`."""
    return amax(a, axis, keepdims) - amin(a, axis, keepdims)


def _cast_bool_to_uint8(a: Any) -> Tensor:
    a = _tensor(a)
    return a.to(torch.uint8) if a.dtype is torch.bool else a


def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Implement `np.argmax`."""
    return torch.argmax(_cast_bool_to_uint8(a), axis, keepdim=keepdims)


def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Implement `np.argmin`."""
    return torch.argmin(_cast_bool_to_uint8(a), axis, keepdim=keepdims)


def any(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001 - NumPy's name
    """Implement `np.any`."""
    a = _tensor(a).to(torch.bool)
    return torch.any(a, _dims(a, axis), keepdim=keepdims) if a.dim() else a


def all(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001 - NumPy's name
    """Implement `np.all`."""
    a = _tensor(a).to(torch.bool)
    return torch.all(a, _dims(a, axis), keepdim=keepdims) if a.dim() else a


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Implement `np.count_nonzero`."""
    a = _tensor(a)
    return torch.sum(a != 0, _dims(a, axis), keepdim=keepdims)


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Implement `np.nansum`."""
    a = _tensor(a)
    return sum(torch.where(a != a, torch.zeros_like(a), a), axis, dtype, keepdims)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Implement `np.cumsum`."""
    a = _cast_for_sum(_tensor(a), _kind(dtype))
    return torch.cumsum(a.reshape(-1) if axis is None else a, 0 if axis is None else axis)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Implement `np.cumprod`."""
    a = _cast_for_sum(_tensor(a), _kind(dtype))
    return torch.cumprod(a.reshape(-1) if axis is None else a, 0 if axis is None else axis)


def median(a: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Implement `np.median`."""
    a = _cast_for_mean(_tensor(a), None)
    return torch.quantile(a, 0.5, axis, keepdim=keepdims)


def sort(a: Any, axis: int | None = -1) -> Tensor:
    """Implement `np.sort`."""
    a = _tensor(a)
    return torch.sort(a.reshape(-1) if axis is None else a, -1 if axis is None else axis).values


def argsort(a: Any, axis: int | None = -1) -> Tensor:
    """Implement `np.argsort`, always with a stable sort."""
    a = _tensor(a)
    return torch.argsort(a.reshape(-1) if axis is None else a, dim=-1 if axis is None else axis, stable=True)


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    """Implement `np.clip`."""
    least, most = (a_min if min is None else min), (a_max if max is None else max)
    found = a
    if least is not None:
        found = elementwise("maximum", found, least)
    return found if most is None else elementwise("minimum", found, most)


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """Implement `np.where` of three operands."""
    kinds = [value.dtype.numpy if isinstance(value, Tensor) else value for value in (x, y)]
    common = from_numpy_dtype(np.result_type(*kinds))
    return torch.where(_tensor(condition).to(torch.bool), _tensor(x, common), _tensor(y, common))


def _round(self: Tensor, decimals: int) -> Tensor:
    return torch.round(self, decimals=decimals) if self.dtype.is_floating_point else self.clone()


def around(a: Any, decimals: int = 0) -> Tensor:
    """Implement `np.round`."""
    return _round(_tensor(a), decimals)


def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Implement `np.nan_to_num`."""
    return torch.nan_to_num(_tensor(x), nan, posinf, neginf)


def cbrt(x: Any) -> Tensor:
    """Implement `np.cbrt`."""
    x = _cast_for_mean(_tensor(x), None)
    return torch.sign(x) * torch.pow(torch.abs(x), 1 / 3)


# Functions that change shapes


def _shape(shape: Any) -> list[int]:
    return [shape] if isinstance(shape, int) else list(shape)


def reshape(a: Any, shape: Any) -> Tensor:
    """Implement `np.reshape`."""
    return torch.reshape(_tensor(a), _shape(shape))


def ravel(a: Any) -> Tensor:
    """Implement `np.ravel`."""
    return torch.reshape(_tensor(a), [-1])


def flatten(a: Tensor) -> Tensor:
    """Implement `a.flatten()`, which copies."""
    return torch.reshape(a, [-1]).clone()


def transpose(a: Any, axes: Any = None) -> Tensor:
    """Implement `np.transpose`."""
    a = _tensor(a)
    return a.permute(list(range(a.dim()))[::-1] if axes is None else list(axes))


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Implement `np.swapaxes`."""
    return torch.transpose(_tensor(a), axis1, axis2)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Implement `np.moveaxis`."""
    return torch.movedim(_tensor(a), source, destination)


def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Implement `np.squeeze`."""
    a = _tensor(a)
    if axis is None:
        return torch.squeeze(a)
    for dim in _dims(a, axis):
        if a.shape[dim] != 1:
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return torch.squeeze(a, tuple(_dims(a, axis)))


def expand_dims(a: Any, axis: Any) -> Tensor:
    """Implement `np.expand_dims`."""
    a = _tensor(a)
    wanted = [axis] if isinstance(axis, int) else list(axis)
    total = a.dim() + len(wanted)
    for dim in sorted(each % total for each in wanted):
        a = torch.unsqueeze(a, dim)
    return a


def broadcast_to(array: Any, shape: Any) -> Tensor:
    """Implement `np.broadcast_to`."""
    return torch.broadcast_to(_tensor(array), _shape(shape))


def _common(arrays: Any, kind: Any = None) -> list[Tensor]:
    """Convert a sequence of arrays to tensors of their common dtype."""
    parts = [_tensor(each) for each in (arrays if isinstance(arrays, list | tuple) else arrays.unbind(0))]
    common = _kind(kind) or from_numpy_dtype(np.result_type(*[part.dtype.numpy for part in parts]))
    return [part.to(common) for part in parts]


def concatenate(arrays: Any, axis: int | None = 0, *, dtype: Any = None) -> Tensor:
    """Implement `np.concatenate`."""
    parts = _common(arrays, dtype)
    return torch.cat([part.reshape(-1) for part in parts] if axis is None else parts, 0 if axis is None else axis)


def stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Tensor:
    """Implement `np.stack`."""
    return torch.stack(_common(arrays, dtype), axis)


def vstack(tup: Any, *, dtype: Any = None) -> Tensor:
    """Implement `np.vstack`."""
    return torch.vstack(_common(tup, dtype))


def hstack(tup: Any, *, dtype: Any = None) -> Tensor:
    """Implement `np.hstack`."""
    return torch.hstack(_common(tup, dtype))


def dstack(tup: Any, *, dtype: Any = None) -> Tensor:
    """Implement `np.dstack`."""
    return torch.dstack(_common(tup, dtype))


def column_stack(tup: Any) -> Tensor:
    """Implement `np.column_stack`."""
    return torch.column_stack(_common(tup))


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Implement `np.array_split`."""
    return list(torch.tensor_split(_tensor(ary), indices_or_sections, axis))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Implement `np.split`."""
    ary = _tensor(ary)
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, indices_or_sections, axis)


def tile(A: Any, reps: Any) -> Tensor:  # noqa: N803 - NumPy's name
    """Implement `np.tile`."""
    return torch.tile(_tensor(A), _shape(reps))


def repeat(a: Any, repeats: int, axis: int | None = None) -> Tensor:
    """Implement `np.repeat` by a number."""
    a = _tensor(a)
    return torch.repeat_interleave(a.reshape(-1) if axis is None else a, repeats, 0 if axis is None else axis)


def flip(m: Any, axis: Any = None) -> Tensor:
    """Implement `np.flip`."""
    m = _tensor(m)
    return torch.flip(m, _dims(m, axis))


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Implement `np.roll`."""
    return torch.roll(_tensor(a), shift, () if axis is None else axis)


def atleast_1d(a: Any) -> Tensor:
    """Implement `np.atleast_1d` of one array."""
    return torch.atleast_1d(_tensor(a))


def atleast_2d(a: Any) -> Tensor:
    """Implement `np.atleast_2d` of one array."""
    return torch.atleast_2d(_tensor(a))


def meshgrid(*xi: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Implement `np.meshgrid`."""
    return tuple([grid.clone() for grid in torch.meshgrid(*[_tensor(x).reshape(-1) for x in xi], indexing=indexing)])


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Implement `np.diagonal`."""
    return torch.diagonal(_tensor(a), offset, axis1, axis2)


def diag(v: Any, k: int = 0) -> Tensor:
    """Implement `np.diag`."""
    return torch.diag(_tensor(v), k)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Implement `np.trace`."""
    return sum(diagonal(a, offset, axis1, axis2), -1)


def tril(m: Any, k: int = 0) -> Tensor:
    """Implement `np.tril`."""
    return torch.tril(_tensor(m), k)


def triu(m: Any, k: int = 0) -> Tensor:
    """Implement `np.triu`."""
    return torch.triu(_tensor(m), k)


def take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Implement `np.take`."""
    a, indices = _tensor(a), _tensor(indices)
    flat = a.reshape(-1) if axis is None else a
    dim = 0 if axis is None else axis % a.dim()
    found = torch.index_select(flat, dim, indices.reshape(-1) % flat.shape[dim])
    return found.reshape([*flat.shape[:dim], *indices.shape, *flat.shape[dim + 1 :]])


def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Tensor:
    """Implement `np.take_along_axis` of arrays whose other dimensions agree."""
    arr = _tensor(arr).reshape(-1) if axis is None else _tensor(arr)
    dim = 0 if axis is None else axis
    return torch.take_along_dim(arr, _tensor(indices) % arr.shape[dim], dim)


def fftshift(x: Any, axes: Any = None) -> Tensor:
    """Implement `np.fft.fftshift`."""
    return torch.fft.fftshift(_tensor(x), axes)


def ifftshift(x: Any, axes: Any = None) -> Tensor:
    """Implement `np.fft.ifftshift`."""
    return torch.fft.ifftshift(_tensor(x), axes)


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Implement `np.diff`."""
    return torch.diff(_tensor(a), n, axis)


# Products of arrays


def _promote(*values: Any) -> list[Tensor]:
    """Convert arrays to tensors of their common dtype."""
    parts = [_tensor(value) for value in values]
    common = from_numpy_dtype(np.result_type(*[part.dtype.numpy for part in parts]))
    return [part.to(common) for part in parts]


def dot(a: Any, b: Any) -> Tensor:
    """Implement `np.dot`."""
    a, b = _promote(a, b)
    if not a.dim() or not b.dim():
        return a * b
    return torch.tensordot(a, b, ([a.dim() - 1], [max(b.dim() - 2, 0)]))


def inner(a: Any, b: Any) -> Tensor:
    """Implement `np.inner`."""
    return torch.inner(*_promote(a, b))


def outer(a: Any, b: Any) -> Tensor:
    """Implement `np.outer`."""
    a, b = _promote(a, b)
    return torch.outer(a.reshape(-1), b.reshape(-1))


def vdot(a: Any, b: Any) -> Tensor:
    """Implement `np.vdot`."""
    a, b = _promote(a, b)
    return torch.vdot(a.reshape(-1), b.reshape(-1))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Implement `np.tensordot`."""
    return torch.tensordot(*_promote(a, b), axes)


def einsum(subscripts: str, *operands: Any) -> Tensor:
    """Implement `np.einsum` by a text."""
    return torch.einsum(subscripts, *_promote(*operands))


def kron(a: Any, b: Any) -> Tensor:
    """Implement `np.kron`."""
    return torch.kron(*_promote(a, b))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Implement `np.linalg.norm`."""
    return torch.linalg.norm(_cast_for_mean(_tensor(x), None), ord, axis, keepdims)


def inv(a: Any) -> Tensor:
    """Implement `np.linalg.inv`."""
    return torch.linalg.inv(_cast_for_mean(_tensor(a), None))


def det(a: Any) -> Tensor:
    """Implement `np.linalg.det`."""
    return torch.linalg.det(_cast_for_mean(_tensor(a), None))


def solve(a: Any, b: Any) -> Tensor:
    """Implement `np.linalg.solve`."""
    a, b = _promote(_cast_for_mean(_tensor(a), None), _cast_for_mean(_tensor(b), None))
    return torch.linalg.solve(a, b)


# Functions that make arrays


def zeros(shape: Any, dtype: Any = float) -> Tensor:
    """Implement `np.zeros`."""
    return torch.zeros(_shape(shape), dtype=_kind(dtype) or torch.float64)


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Implement `np.ones`."""
    return torch.ones(_shape(shape), dtype=_kind(dtype) or torch.float64)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Implement `np.full`."""
    filled = _tensor(fill_value, _kind(dtype))
    return torch.broadcast_to(filled, _shape(shape)).clone()


def zeros_like(a: Any, dtype: Any = None) -> Tensor:
    """Implement `np.zeros_like`."""
    return torch.zeros_like(_tensor(a), dtype=_kind(dtype))


def ones_like(a: Any, dtype: Any = None) -> Tensor:
    """Implement `np.ones_like`."""
    return torch.ones_like(_tensor(a), dtype=_kind(dtype))


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """Implement `np.full_like`."""
    a = _tensor(a)
    return full(a.shape, fill_value, _kind(dtype) or a.dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Tensor:  # noqa: N803 - NumPy's names
    """Implement `np.eye`."""
    columns = N if M is None else M
    rows, places = torch.arange(N).unsqueeze(1), torch.arange(columns)
    return (places == rows + k).to(_kind(dtype))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Implement `np.arange`."""
    start, stop = (0, start) if stop is None else (start, stop)
    numbers = (start, stop, step)
    is_whole = not [number for number in numbers if isinstance(number, float)]
    if is_whole:
        return torch.arange(start, stop, step, dtype=_kind(dtype) or torch.int64)
    count = max(math.ceil((stop - start) / step), 0)
    return (torch.arange(count, dtype=torch.float64) * step + start).to(_kind(dtype) or torch.float64)


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, *, dtype: Any = None) -> Tensor:
    """Implement `np.linspace` of numbers."""
    parts = num - 1 if endpoint else num
    step = (stop - start) / parts if parts else math.nan
    found = torch.arange(num, dtype=torch.float64)
    found = found * step + start if num > 1 else found + start
    if endpoint and num > 1:
        found[-1] = stop
    return found.to(_kind(dtype) or torch.float64)


def array(object: Any, dtype: Any = None) -> Tensor:
    """Implement `np.array`, which copies."""
    made = _tensor(object, _kind(dtype))
    return made.clone() if made is object else made


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """Implement `np.asarray`, which copies only to another dtype."""
    return _tensor(a, _kind(dtype))


def astype(self: Tensor, dtype: Any) -> Tensor:
    """Implement `self.astype(dtype)`."""
    return self.to(_kind(dtype), copy=True)


def copy(a: Any) -> Tensor:
    """Implement `np.copy`."""
    return _tensor(a).clone()


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Implement `np.isclose`."""
    return torch.isclose(*_promote(_cast_for_mean(_tensor(a), None), _cast_for_mean(_tensor(b), None)), rtol, atol, equal_nan)


def real(val: Any) -> Tensor:
    """Implement `np.real`."""
    return torch.real(_tensor(val)) if _tensor(val).is_complex() else _tensor(val)


def imag(val: Any) -> Tensor:
    """Implement `np.imag`."""
    val = _tensor(val)
    return torch.imag(val) if val.is_complex() else torch.zeros_like(val)


_FUNCTIONS = {
    np: [
        sum, prod, mean, var, std, amax, amin, ptp, argmax, argmin, any, all, count_nonzero, nansum, cumsum, cumprod, median,
        sort, argsort, clip, where, around, nan_to_num, cbrt, reshape, ravel, transpose, swapaxes, moveaxis, squeeze,
        expand_dims, broadcast_to, concatenate, stack, vstack, hstack, dstack, column_stack, array_split, split, tile, repeat,
        flip, roll, atleast_1d, atleast_2d, meshgrid, diagonal, diag, trace, tril, triu, take, diff, dot, inner, outer, vdot,
        take_along_axis, tensordot, einsum, kron, zeros, ones, full, zeros_like, ones_like, full_like, eye, arange, linspace,
        array, asarray, copy, isclose, real, imag,
    ],
    np.linalg: [norm, inv, det, solve],
    np.fft: [fftshift, ifftshift],
}  # fmt: skip


def functions() -> dict[Any, Callable]:
    """Return numPy function -> the function that replaces it in graphs."""
    found = {getattr(module, each.__name__): each for module, group in _FUNCTIONS.items() for each in group}
    found |= {np.max: amax, np.min: amin, np.round: around, np.ascontiguousarray: asarray}
    return found | {getattr(np, name): ELEMENTWISE[name] for name in _OPERATIONS}


METHODS: dict[str, Callable] = {
    **{each.__name__: each for each in (
        sum, prod, mean, var, std, ptp, argmax, argmin, any, all, cumsum, cumprod, argsort, clip, reshape, ravel, flatten,
        transpose, swapaxes, squeeze, repeat, diagonal, trace, take, dot, astype, copy,
    )},
    "max": amax, "min": amin, "round": around, "conj": ELEMENTWISE["conjugate"], "conjugate": ELEMENTWISE["conjugate"],
    "__abs__": ELEMENTWISE["absolute"],
}  # fmt: skip
"""Name of an ndarray method -> the function that replaces it in graphs."""
