"""CPU kernels of elementwise operators, on NumPy ufuncs. Each takes `out`, so that it serves the in-place variant too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import bool_, dtype, int64, uint8
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import UNROUNDED_NUMBER_OPERATIONS, apply, convert, empty, layout_of, make, number, operand
from rushlight.ops.cpu.special import erf
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.pointwise import check_negatable
from rushlight.ops.promotion import check_exponent, check_factor, float_type, result_type
from rushlight.ops.registry import cpu, elementwise


@native.stands_for("neg")
def _negative(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Compute -x. NumPy 2.4's np.negative writes wrong elements to an `out` with some strides, so for an `out` with gaps it
    computes into a copy."""
    if out is None or out.flags.c_contiguous:
        return np.negative(x, out=out)
    out[...] = np.negative(x)
    return out


@native.stands_for("sign")
def signum(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return -1, 0 or 1; 0 for NaN, as in torch."""
    made = np.asarray(np.sign(x, out=out))
    if made.dtype.kind == "f":
        np.nan_to_num(made, copy=False, nan=0.0)
    return made


@native.stands_for("sigmoid")
def sigmoid(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Compute 1 / (1 + exp(-x)); exp may overflow to infinity, which correctly gives 0."""
    out = _negative(x, np.empty_like(x) if out is None else out)
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


@native.stands_for("rsqrt")
def _rsqrt(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.reciprocal(np.sqrt(x), out=out)


@native.stands_for("relu")
def _relu(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.maximum(x, 0, out=out)


@native.stands_for("maximum")
def _maximum(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.maximum(a, b, out=out)


@native.stands_for("minimum")
def _minimum(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.minimum(a, b, out=out)


SAME_TYPE = {"neg": _negative, "sign": signum, "relu": _relu, "bitwise_not": np.invert}
ROUNDING = {"floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc}
FLOAT_TYPE = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "sqrt": np.sqrt, "rsqrt": _rsqrt,
    "reciprocal": np.reciprocal, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "erf": erf, "sigmoid": sigmoid,
}  # fmt: skip
PROMOTING = {
    "mul.Tensor": np.multiply, "maximum": _maximum, "minimum": _minimum, "bitwise_and.Tensor": np.bitwise_and,
    "bitwise_or.Tensor": np.bitwise_or, "bitwise_xor.Tensor": np.bitwise_xor,
}  # fmt: skip
PREDICATES = {
    "eq.Tensor": np.equal, "ne.Tensor": np.not_equal, "lt.Tensor": np.less, "le.Tensor": np.less_equal,
    "gt.Tensor": np.greater, "ge.Tensor": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}  # fmt: skip
# NumPy orders complex numbers and has signs and floors of them; torch raises.
REAL_ONLY = frozenset("sign relu floor ceil round trunc erf maximum minimum lt.Tensor le.Tensor gt.Tensor ge.Tensor".split())
_REFUSALS = {
    "sign": "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    "relu": "clamp is not supported for complex types",
    **{name: f"{name} is not supported for complex inputs" for name in ("floor", "ceil", "trunc")},
    **{name: f"{name} not implemented for complex tensors." for name in ("maximum", "minimum")},
}


def _check_real(name: str, kind: dtype) -> None:
    if kind.is_complex and name in REAL_ONLY:
        if name in _REFUSALS:
            raise NotImplementedError(_REFUSALS[name])
        raise not_implemented(f"{name.partition('.')[0]}_cpu", kind)


def _register_same_type(name: str, ufunc: Callable) -> None:
    @elementwise(name)
    def same_type(self, *, out=None):
        kind = self._impl.dtype
        check_negatable(name, kind)
        _check_real(name, kind)
        return apply(np.positive if kind is bool_ and name == "sign" else ufunc, kind, kind, self, out=out)


def _register_rounding(name: str, ufunc: Callable) -> None:
    @elementwise(name)
    def rounding(self, *, out=None):
        kind = self._impl.dtype
        _check_real(name, kind)
        if kind is bool_:
            raise not_implemented(name, kind)
        return apply(np.positive if kind.is_integral else ufunc, kind, kind, self, out=out)


def _register_float(name: str, ufunc: Callable) -> None:
    @elementwise(name)
    def in_float_type(self, *, out=None):
        kind = float_type(self._impl.dtype)
        _check_real(name, kind)
        return apply(ufunc, kind, kind, self, out=out)


def _register_promoting(name: str, ufunc: Callable) -> None:
    @elementwise(name)
    def promoting(self, other, *, out=None):
        kind = result_type(self, other)
        _check_real(name, kind)
        return apply(ufunc, kind, kind, self, other, out=out)


def _register_predicate(name: str, ufunc: Callable) -> None:
    @elementwise(name)
    def predicate(self, other, *, out=None):
        kind = result_type(self, other)
        _check_real(name, kind)
        return apply(ufunc, kind, bool_, self, other, out=out)


for _table, _register in (
    (SAME_TYPE, _register_same_type), (ROUNDING, _register_rounding), (FLOAT_TYPE, _register_float),
    (PROMOTING, _register_promoting), (PREDICATES, _register_predicate),
):  # fmt: skip
    for _name, _ufunc in _table.items():
        _register(_name, _ufunc)


@elementwise("abs")
def abs_(self, *, out=None):
    kind = self._impl.dtype
    return apply(np.abs, kind, kind.to_real(), self, out=out)


@elementwise("logical_not")
def logical_not(self, *, out=None):
    return apply(np.logical_not, self._impl.dtype, bool_, self, out=out)


@elementwise("isnan")
def isnan(self, *, out=None):
    return apply(np.isnan, self._impl.dtype, bool_, self, out=out)


@elementwise("isinf")
def isinf(self, *, out=None):
    return apply(np.isinf, self._impl.dtype, bool_, self, out=out)


@elementwise("add.Tensor")
def add(self, other, *, alpha=1, out=None):
    kind = result_type(self, other)
    check_factor("alpha", alpha, kind)
    alpha = bool(alpha) if kind is bool_ else alpha
    if alpha == 1:
        return apply(np.add, kind, kind, self, other, out=out)
    return _add_scaled(kind, self, other, alpha, alpha, out)


@elementwise("sub.Tensor")
def sub(self, other, *, alpha=1, out=None):
    kind = result_type(self, other)
    if any(isinstance(value, bool) or getattr(value, "dtype", None) is bool_ for value in (self, other)):
        both = all(getattr(value, "dtype", None) is bool_ for value in (self, other))
        raise RuntimeError(
            f"Subtraction, the `-` operator, with {'two bool tensors' if both else 'a bool tensor'} is not supported. "
            + ("Use the `^` or `logical_xor()` operator instead." if both else
               "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.")
        )  # fmt: skip
    check_factor("alpha", alpha, kind)
    if alpha == 1:
        return apply(np.subtract, kind, kind, self, other, out=out)
    return _add_scaled(kind, self, other, alpha, -alpha, out)


def _add_scaled(kind: dtype, self: object, other: object, alpha: complex, factor: complex, out: Tensor | None) -> Tensor:
    """Compute self + factor * other, where `factor` is `alpha` or its negative."""
    scale, ufunc = operand(alpha, kind), np.add if factor is alpha else np.subtract
    # Kernel parameters are doubles, which hold every integer up to 2^53.
    exact = isinstance(factor, float) or (isinstance(factor, int) and abs(factor) <= 1 << 53)
    kernel = native.kernel("add_scaled", factor) if exact else None
    return apply(lambda a, b, out=None: ufunc(a, b * scale, out=out), kind, kind, self, other, out=out, kernel=kernel)


@elementwise("div.Tensor")
def div(self, other, *, out=None):
    kind = float_type(result_type(self, other))
    return apply(np.divide, kind, kind, self, other, out=out)


@native.stands_for("trunc_divide")
def _trunc_divide(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    if np.result_type(a, b).kind == "f":
        return np.trunc(np.divide(a, b), out=out)
    inexact_negative = (np.fmod(a, b) != 0) & ((a < 0) != (b < 0))
    return np.add(np.floor_divide(a, b), inexact_negative, out=out, casting="unsafe")


UNROUNDED_NUMBER_OPERATIONS.add(_trunc_divide)


@elementwise("div.Tensor_mode")
def div_mode(self, other, *, rounding_mode, out=None):
    kind = result_type(self, other)
    if rounding_mode is None:
        return div(self, other, out=out)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    _check_real("floor", kind)
    _check_divisor(other, kind)
    ufunc = np.floor_divide if rounding_mode == "floor" else _trunc_divide
    return apply(ufunc, int64 if kind is bool_ else kind, kind, self, other, out=out)


def _check_divisor(other: object, kind: dtype) -> None:
    if kind.is_integral and not np.all(operand(other, kind)):
        raise RuntimeError("ZeroDivisionError")


def _register_modulo(name: str, ufunc: Callable) -> None:
    @elementwise(name)
    def modulo(self, other, *, out=None):
        kind = result_type(self, other)
        if kind.is_complex or kind is bool_:
            raise not_implemented(name.partition(".")[0], kind)
        _check_divisor(other, kind)
        return apply(ufunc, kind, kind, self, other, out=out)


_register_modulo("remainder.Tensor", np.remainder)
_register_modulo("fmod.Tensor", np.fmod)


def _integer_power(base: np.ndarray, exponent: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    # A negative exponent of an integer gives the truncated reciprocal: only 1 and -1 stay, the rest is 0, so the exponent's
    # parity suffices.
    negative = exponent < 0
    power = np.power(base, np.where(negative, exponent & 1, exponent))
    result = np.where(negative & (np.abs(base) != 1), 0, power)
    if out is None:
        return result
    out[...] = result
    return out


@native.stands_for("cube")
def _cube(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.multiply(x * x, x, out=out)


_POWERS = {2: np.square, 3: _cube, 0.5: np.sqrt, -0.5: _rsqrt, -1: np.reciprocal}


@elementwise("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def pow_(self, exponent, *, out=None):
    kind = result_type(self, exponent)
    if kind.is_integral:
        check_exponent(exponent, kind)
    else:
        special = _POWERS.get(exponent) if isinstance(exponent, int | float) else None
        if special is not None:
            return apply(special, kind, kind, self, out=out)
        return apply(np.power, kind, kind, self, exponent, out=out)
    return apply(_integer_power, int64 if kind is bool_ else kind, kind, self, exponent, out=out)


@cpu("where.self")
def where(condition, self, other):
    if condition.dtype is uint8:
        condition = make(condition._impl.array, bool_)
    if condition.dtype is not bool_:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}")
    kind = result_type(self, other)
    sizes, strides = layout_of((condition, self, other))
    out = empty(sizes, kind, strides)
    target = out._impl.array
    code, _ = native.kernel("where") or (None, ())
    if code is not None and native.compute(code, kind, target, (condition, self, other)):
        return out
    np.copyto(target, _in_dtype(other, kind))
    np.copyto(target, _in_dtype(self, kind), where=condition._impl.array)
    return out


def _in_dtype(value: object, kind: dtype) -> np.ndarray | np.generic:
    if not isinstance(value, Tensor):
        return number(value, kind.numpy)
    array = value._impl.array
    return array if array.dtype == kind.numpy else convert(array, kind.numpy)
