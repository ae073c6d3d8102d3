"""CPU kernels of elementwise operators, on NumPy ufuncs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import bool_, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import apply, make, operand
from rushlight.ops.cpu.special import erf
from rushlight.ops.promotion import float_type, result_type
from rushlight.ops.registry import cpu


def _sigmoid(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    out = np.negative(x, out=out)
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


def _rsqrt(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.reciprocal(np.sqrt(x, out=out), out=out)


def _relu(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.maximum(x, 0, out=out)


SAME_TYPE = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "trunc": np.trunc, "relu": _relu, "bitwise_not": np.invert,
}  # fmt: skip
FLOAT_TYPE = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "sqrt": np.sqrt, "rsqrt": _rsqrt,
    "reciprocal": np.reciprocal, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "erf": erf, "sigmoid": _sigmoid,
}  # fmt: skip
PROMOTING = {
    "mul.Tensor": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "bitwise_and.Tensor": np.bitwise_and,
    "bitwise_or.Tensor": np.bitwise_or, "bitwise_xor.Tensor": np.bitwise_xor,
}  # fmt: skip
PREDICATES = {
    "eq.Tensor": np.equal, "ne.Tensor": np.not_equal, "lt.Tensor": np.less, "le.Tensor": np.less_equal,
    "gt.Tensor": np.greater, "ge.Tensor": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}  # fmt: skip
ROUNDING = ("floor", "ceil", "round", "trunc")


def _register_unary(name: str, ufunc: Callable) -> None:
    def same_type(self):
        kind = self._impl.dtype
        if name in ROUNDING and kind.is_integral:
            return apply(np.positive, kind, kind, self) if kind is not bool_ else make(self._impl.array.copy(), kind)
        if kind is bool_ and name == "neg":
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
                "the `~` or `logical_not()` operator instead."
            )
        if kind.is_floating_point and name == "bitwise_not":
            raise TypeError(f"bitwise_not: expected an integer or bool tensor, got {kind}")
        return apply(ufunc, kind, kind, self)

    cpu(name)(same_type)


def _register_float(name: str, ufunc: Callable) -> None:
    def in_float_type(self):
        kind = float_type(self._impl.dtype)
        return apply(ufunc, kind, kind, self)

    cpu(name)(in_float_type)


def _register_promoting(name: str, ufunc: Callable) -> None:
    def promoting(self, other):
        kind = result_type(self, other)
        return apply(ufunc, kind, kind, self, other)

    cpu(name)(promoting)


def _register_predicate(name: str, ufunc: Callable) -> None:
    def predicate(self, other):
        return apply(ufunc, result_type(self, other), bool_, self, other)

    cpu(name)(predicate)


for _name, _ufunc in SAME_TYPE.items():
    _register_unary(_name, _ufunc)
for _name, _ufunc in FLOAT_TYPE.items():
    _register_float(_name, _ufunc)
for _name, _ufunc in PROMOTING.items():
    _register_promoting(_name, _ufunc)
for _name, _ufunc in PREDICATES.items():
    _register_predicate(_name, _ufunc)


@cpu("logical_not")
def logical_not(self):
    return apply(np.logical_not, self.dtype, bool_, self)


@cpu("isnan")
def isnan(self):
    return apply(np.isnan, self.dtype, bool_, self)


@cpu("isinf")
def isinf(self):
    return apply(np.isinf, self.dtype, bool_, self)


@cpu("add.Tensor")
def add(self, other, *, alpha=1):
    kind = result_type(self, other)
    if alpha != 1:
        _check_alpha(kind, alpha)
        return apply(lambda a, b, out=None: np.add(a, b * operand(alpha, kind), out=out), kind, kind, self, other)
    return apply(np.logical_or if kind is bool_ else np.add, kind, kind, self, other)


@cpu("sub.Tensor")
def sub(self, other, *, alpha=1):
    kind = result_type(self, other)
    if any(isinstance(value, bool) or getattr(value, "dtype", None) is bool_ for value in (self, other)):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    if alpha != 1:
        _check_alpha(kind, alpha)
        return apply(lambda a, b, out=None: np.subtract(a, b * operand(alpha, kind), out=out), kind, kind, self, other)
    return apply(np.subtract, kind, kind, self, other)


def _check_alpha(kind, alpha) -> None:
    if kind.is_integral and isinstance(alpha, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


@cpu("div.Tensor")
def div(self, other):
    kind = float_type(result_type(self, other))
    return apply(np.divide, kind, kind, self, other)


def _trunc_divide(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    if np.result_type(a, b).kind == "f":
        return np.trunc(np.divide(a, b, out=out), out=out)
    quotient = np.floor_divide(a, b, out=out)
    inexact_negative = (np.fmod(a, b) != 0) & ((a < 0) != (b < 0))
    return np.add(quotient, inexact_negative, out=out, casting="unsafe")


@cpu("div.Tensor_mode")
def div_mode(self, other, *, rounding_mode):
    kind = result_type(self, other)
    if rounding_mode is None:
        return div(self, other)
    if rounding_mode not in ("floor", "trunc"):
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    if kind.is_integral and not np.all(operand(other, kind)):
        raise RuntimeError("ZeroDivisionError")
    return apply(np.floor_divide if rounding_mode == "floor" else _trunc_divide, kind, kind, self, other)


@cpu("remainder.Tensor")
def remainder(self, other):
    return _modulo(np.remainder, self, other)


@cpu("fmod.Tensor")
def fmod(self, other):
    return _modulo(np.fmod, self, other)


def _modulo(ufunc: Callable, self, other) -> Tensor:
    kind = result_type(self, other)
    if kind.is_integral and not np.all(operand(other, kind)):
        raise RuntimeError("ZeroDivisionError")
    return apply(ufunc, kind, kind, self, other)


def _integer_power(base: np.ndarray, exponent: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    # A negative exponent of an integer gives the truncated reciprocal: 1 and -1 survive, the rest is 0.
    negative = exponent < 0
    power = np.power(base, np.where(negative, -exponent, exponent))
    unit = np.abs(base) == 1
    result = np.where(negative & ~unit, 0, power)
    if out is None:
        return result
    out[...] = result
    return out


@cpu("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def pow_(self, exponent):
    kind = result_type(self, exponent)
    if not kind.is_integral:
        if isinstance(exponent, int | float) and exponent == 2:
            return apply(np.square, kind, kind, self)
        if isinstance(exponent, float) and exponent == 0.5:
            return apply(np.sqrt, kind, kind, self)
        return apply(np.power, kind, kind, self, exponent)
    if isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return apply(_integer_power, int64 if kind is bool_ else kind, kind, self, exponent)


@cpu("where.self")
def where(condition, self, other):
    if condition.dtype is not bool_:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}")
    kind = result_type(self, other)
    mask, a, b = condition._impl.array, _plain(self, kind), _plain(other, kind)
    return make(np.where(mask, a, b), kind)


def _plain(value, kind):
    if isinstance(value, Tensor):
        return value._impl.array.astype(kind.numpy, copy=False)
    return np.asarray(value, kind.numpy)


@cpu("silu")
def silu(self):
    kind = float_type(self.dtype)
    return apply(lambda x, out=None: np.multiply(x, _sigmoid(x), out=out), kind, kind, self)


_SQRT_HALF = math.sqrt(0.5)
_TANH_SCALE = math.sqrt(2.0 / math.pi)
_TANH_CUBIC = 0.044715


def _gelu_parts(x: np.ndarray, approximate: str) -> tuple[np.ndarray, np.ndarray]:
    """The normal distribution's (approximate) cumulative function at x, and its derivative there."""
    if approximate == "none":
        density = np.exp(-0.5 * x * x) * x.dtype.type(1 / math.sqrt(2 * math.pi))
        return 0.5 * (1 + erf(x * x.dtype.type(_SQRT_HALF))), density
    inner = x.dtype.type(_TANH_SCALE) * (x + x.dtype.type(_TANH_CUBIC) * x * x * x)
    slope = x.dtype.type(_TANH_SCALE) * (1 + x.dtype.type(3 * _TANH_CUBIC) * x * x)
    bent = np.tanh(inner)
    return 0.5 * (1 + bent), 0.5 * (1 - bent * bent) * slope


def _check_approximate(approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, got {approximate!r}")


@cpu("gelu")
def gelu(self, *, approximate="none"):
    _check_approximate(approximate)
    kind = self.dtype
    if kind.is_integral:
        raise RuntimeError(f"\"GeluKernelImpl\" not implemented for '{kind.name}'")
    return apply(lambda x, out=None: np.multiply(x, _gelu_parts(x, approximate)[0], out=out), kind, kind, self)


@cpu("gelu_backward")
def gelu_backward(grad_output, self, *, approximate="none"):
    _check_approximate(approximate)
    kind = result_type(grad_output, self)

    def formula(grad, x, out=None):
        cumulative, density = _gelu_parts(x, approximate)
        return np.multiply(grad, cumulative + x * density, out=out)

    return apply(formula, kind, kind, grad_output, self)


@cpu("threshold_backward")
def threshold_backward(grad_output, self, threshold):
    kind = result_type(grad_output, self)
    return apply(lambda grad, x, out=None: np.multiply(grad, x > threshold, out=out), kind, kind, grad_output, self)
