"""CPU kernels of arithmetic on the parts of numbers: signs, exponents, neighbours, integers, minima that skip NaN."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import bool_, dtype, int32
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import apply, convert, empty, layout_of
from rushlight.ops.cpu.quiet import quietly
from rushlight.ops.meta.arithmetic import check_frexp, check_integers, check_real
from rushlight.ops.promotion import float_type, result_type
from rushlight.ops.registry import cpu, elementwise


def _neighbour(kind: dtype) -> Callable:
    """Return nextafter for the dtype itself. bfloat16 needs its own step, because its kernels compute in float32."""

    def next_after(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        return np.nextafter(np.asarray(a).astype(kind.numpy), np.asarray(b).astype(kind.numpy), out=out)

    return next_after


@elementwise("copysign.Tensor")
def copysign(self, other, *, out=None):
    kind = float_type(result_type(self, other))
    check_real("copysign", kind)
    return apply(np.copysign, kind, kind, self, other, out=out)


@elementwise("nextafter")
def nextafter(self, other, *, out=None):
    kind = result_type(self, other)
    check_real("nextafter", kind, floating=True)
    return apply(np.nextafter if kind.compute == kind.numpy else _neighbour(kind), kind, kind, self, other, out=out)


def _register_extremum(name: str, ufunc: np.ufunc) -> None:
    @cpu(name)
    def extremum(self, other):
        kind = result_type(self, other)
        check_real(name, kind)
        return apply(ufunc, kind, kind, self, other)


_register_extremum("fmax", np.fmax)
_register_extremum("fmin", np.fmin)


@elementwise("signbit")
def signbit(self, *, out=None):
    kind = self._impl.dtype
    check_real("signbit", kind)
    ufunc = _below_zero if kind.is_integral else np.signbit
    return apply(ufunc, kind, bool_, self, out=out)


def _below_zero(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.less(x, 0, out=out)


@cpu("frexp.Tensor")
def frexp(self):
    check_frexp(self)
    sizes, strides = layout_of((self,))
    mantissa, exponent = empty(sizes, self.dtype, strides), empty(sizes, int32, strides)
    array = self._impl.array
    parts = quietly(np.frexp, convert(array, self.dtype.compute) if array.dtype != self.dtype.compute else array)
    mantissa._impl.array[...] = parts[0]
    exponent._impl.array[...] = parts[1]
    return mantissa, exponent


def _least_multiple(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    wide = np.promote_types(a.dtype, np.int32)  # compute in int as C++ does, and take `abs` before narrowing
    divisor = np.gcd(a, b)
    result = np.abs(np.floor_divide(a, np.where(divisor == 0, 1, divisor), dtype=wide) * b).astype(a.dtype)
    return result if out is None else np.copyto(out, result) or out


def _shift_left(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    beyond = (b < 0) | (b >= 8 * a.dtype.itemsize)
    return np.multiply(np.left_shift(a, np.where(beyond, 0, b)), ~beyond, out=out)


def _shift_right(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    # Shifting by the whole width leaves copies of the sign bit, or zeros for unsigned numbers.
    last = 8 * a.dtype.itemsize - 1
    beyond = (b < 0) | (b > last)
    shifted = np.right_shift(a, np.where(beyond, last, b).astype(a.dtype))
    return np.multiply(shifted, ~(beyond & (a.dtype.kind == "u")), out=out)


def _register_integer(name: str, ufunc: Callable) -> None:
    @elementwise(name)
    def integers(self: Tensor, other, *, out=None):
        kind = result_type(self, other)
        check_integers(name, kind)
        return apply(ufunc, kind, kind, self, other, out=out)


for _name, _ufunc in (
    ("gcd", np.gcd), ("lcm", _least_multiple), ("bitwise_left_shift.Tensor", _shift_left),
    ("bitwise_right_shift.Tensor", _shift_right),
):  # fmt: skip
    _register_integer(_name, _ufunc)
