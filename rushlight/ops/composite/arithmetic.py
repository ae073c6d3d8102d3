"""Composite arithmetic: aliases under NumPy's names, angles in degrees, powers in double precision, tests for infinities."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_, float32, float64
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.pointwise import with_inplace
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.numbers import as_wrapped_operand
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import result_type
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")

UNARY_ALIASES = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan", "arctanh": "atanh",
    "absolute": "abs", "negative": "neg", "fix": "trunc",
}  # fmt: skip
COMPARISON_ALIASES = {"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne"}


def _define_unary_alias(alias: str, name: str) -> None:
    @with_inplace(f"{alias}(Tensor self) -> Tensor")
    def function(self):
        return getattr(aten, name).default(self)


def _define_comparison_alias(alias: str, name: str) -> None:
    schemas = [f"{alias}.{kind}(Tensor self, {kind} other) -> Tensor" for kind in ("Tensor", "Scalar")]

    @with_inplace(*schemas)
    def function(self, other):
        return getattr(aten, name).Tensor(self, other)


for _alias, _name in UNARY_ALIASES.items():
    _define_unary_alias(_alias, _name)
for _alias, _name in COMPARISON_ALIASES.items():
    _define_comparison_alias(_alias, _name)


@with_inplace("arctan2(Tensor self, Tensor other) -> Tensor")
def arctan2(self, other):
    return aten.atan2.default(self, other)


@with_inplace("divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor")
def divide_mode(self, other, *, rounding_mode):
    return aten.div.Tensor_mode(self, other, rounding_mode=rounding_mode)


@with_inplace("deg2rad(Tensor self) -> Tensor")
def deg2rad(self):
    return _scale_angle(self, math.pi / 180, "deg2rad")


@with_inplace("rad2deg(Tensor self) -> Tensor")
def rad2deg(self):
    return _scale_angle(self, 180 / math.pi, "rad2deg")


def _scale_angle(self: Tensor, factor: float, name: str) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError(f"{name} is not supported for complex tensors.")
    return aten.mul.Tensor(self, factor)


@with_inplace("sinc(Tensor self) -> Tensor")
def sinc(self):
    if self.dtype.compute is not self.dtype.numpy:
        return sinc(self.to(float32)).to(self.dtype)
    zero = self == 0
    angle = aten.where.self(zero, 1, self) * math.pi
    return aten.where.self(zero, 1, aten.sin.default(angle) / angle)


def _in_double(*operands: Tensor | complex | float) -> list:
    """Return the operands with the tensors in float64, or in complex128 where one operand is complex."""
    wide = float64.to_complex() if result_type(*operands).is_complex else float64
    return [operand.to(wide) if isinstance(operand, Tensor) else operand for operand in operands]


@composite("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor")
def float_power(self, exponent):
    return aten.pow.Tensor_Tensor(*_in_double(self, exponent))


@composite("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor")
def float_power_of_number(self, exponent):
    return aten.pow.Tensor_Scalar(*_in_double(self, exponent))


@composite("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor")
def float_power_by_tensor(self, exponent):
    return aten.pow.Scalar(*_in_double(self, exponent))


@composite(
    "float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
    "float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
)
def float_power_(self, exponent):
    wide = float64.to_complex() if result_type(self, exponent).is_complex else float64
    if self.dtype is not wide:
        raise RuntimeError(f"the base given to float_power_ has dtype {self.dtype.scalar_name} but the operation's result "
                           f"requires dtype {wide.scalar_name}")  # fmt: skip
    return aten.pow_(self, exponent)


@with_inplace("ldexp.Tensor(Tensor self, Tensor other) -> Tensor", overload="")
def ldexp(self, other):
    kind = self.dtype
    if not kind.is_floating_point or not other.dtype.is_integral:
        return self * aten.pow.Scalar(2.0, other)
    return (self * aten.pow.Scalar(2.0, other)).to(kind)


@composite("logaddexp2(Tensor self, Tensor other) -> Tensor")
def logaddexp2(self, other):
    if result_type(self, other).is_integral:
        raise not_implemented("logaddexp2_cpu", result_type(self, other))
    high = aten.maximum.default(self, other)
    spread = -aten.abs.default(self - other)
    return aten.where.self(self == other, high + 1, high + aten.log1p.default(aten.exp2.default(spread)) / math.log(2))


@with_inplace("heaviside(Tensor self, Tensor values) -> Tensor")
def heaviside(self, values):
    if self.dtype.is_complex or values.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if self.dtype is not values.dtype:
        raise RuntimeError(
            f"heaviside is not yet implemented for tensors with different dtypes, but got {self.dtype} and {values.dtype}."
        )
    return aten.where.self(self == 0, values, (self > 0).to(self.dtype))


@composite("isposinf(Tensor self) -> Tensor")
def isposinf(self):
    return _equals_infinity(self, math.inf, "isposinf")


@composite("isneginf(Tensor self) -> Tensor")
def isneginf(self):
    return _equals_infinity(self, -math.inf, "isneginf")


def _equals_infinity(self: Tensor, infinity: float, name: str) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError(f"{name} does not support complex inputs.")
    if self.dtype.is_integral:
        return aten.zeros_like.default(self, dtype=bool_)
    return aten.eq.Tensor(self, infinity)


# The operator names of Python's operators, which TorchScript archives call.
PYTHON_OPERATORS = {
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
}  # fmt: skip
NUMBER_FIRST = "remainder bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()


def _define_python_operator(alias: str, name: str) -> None:
    @composite(f"{alias}.Tensor(Tensor self, Tensor other) -> Tensor", f"{alias}.Scalar(Tensor self, Scalar other) -> Tensor")
    def function(self, other):
        return getattr(aten, name).Tensor(self, other)


def _define_with_number_first(name: str) -> None:
    @composite(f"{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor")
    def function(self, other):
        return getattr(aten, name).Tensor(as_wrapped_operand(self, other), other)


for _alias, _name in PYTHON_OPERATORS.items():
    _define_python_operator(_alias, _name)
for _name in NUMBER_FIRST:
    _define_with_number_first(_name)
