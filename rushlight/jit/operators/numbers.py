"""Operators on numbers: arithmetic, comparison, conversion and `math`.

Where C and Python differ, C's rules apply: ints wrap around at 64 bits, and dividing a float by zero gives infinity or NaN.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Sequence

from rushlight.core.dtype import bool_, complex128, float64, int64
from rushlight.core.tensor import Tensor
from rushlight.jit.operators.registry import declare_operator
from rushlight.ops.construct import tensor


def wrapped(value: int) -> int:
    """Return an int wrapped to 64 bits."""
    return value if -(1 << 63) <= value < 1 << 63 else (value + (1 << 63)) % (1 << 64) - (1 << 63)


def wrapping(function: Callable) -> Callable:
    """A function whose result, if it is an int, is wrapped to 64 bits."""

    def wrap(*operands: object) -> object:
        result = function(*operands)
        return wrapped(result) if type(result) is int else result

    return wrap


def _truncate(number: object) -> int:
    """A number as an int. RuntimeError for floats that have none of 64 bits, as in PyTorch."""
    if isinstance(number, float) and not -9223372036854775808.0 <= number < 9223372036854775808.0:
        raise RuntimeError(f"Cannot convert float {number:f} to integer")
    return int(number)


def _shift_left(a: int, b: int) -> int:
    if b < 0:
        raise RuntimeError("negative shift count")
    return wrapped(a << b) if b < 64 else 0


def _shift_right(a: int, b: int) -> int:
    if b < 0:
        raise RuntimeError("negative shift count")
    return a >> b


def _round_to_zero(a: int, b: int) -> int:
    """A quotient without its fraction."""
    quotient = abs(_floor_divide(abs(a), abs(b)))
    return wrapped(quotient if (a < 0) == (b < 0) else -quotient)


def _register_binary(name: str, pairs: Sequence[tuple[str, str, str]], function: Callable, own: Callable | None = None) -> None:
    """Register overloads named by their types: `.int`, `.int_float`; `own` is the function for two ints."""
    for left, right, result in pairs:
        overload = left if left == right else f"{left}_{right}"
        chosen = own if own is not None and left == right == "int" else function
        declare_operator(f"{name}.{overload}({left} a, {right} b) -> {result}", chosen)


_SAME = [("int", "int", "int"), ("float", "float", "float"), ("int", "float", "float"), ("float", "int", "float")]
_COMPLEX = [
    ("complex", "complex", "complex"), ("int", "complex", "complex"), ("complex", "int", "complex"),
    ("float", "complex", "complex"), ("complex", "float", "complex"),
]  # fmt: skip
_REAL = [(left, right, "float") for left, right, _ in _SAME]
_COMPARED = [(left, right, "bool") for left, right, _ in _SAME]


def _floor_divide(a, b):
    if b != 0:
        return a // b
    if isinstance(a, int) and isinstance(b, int):
        raise RuntimeError("division by 0")
    return _divide(a, b)


def _divide(a, b):
    if b != 0 or isinstance(a, complex) or isinstance(b, complex):
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, math.copysign(1.0, a) * math.copysign(1.0, b))


def _remainder(a, b):
    if b != 0:
        return a % b
    if isinstance(a, int) and isinstance(b, int):
        raise RuntimeError("modulo by 0")
    return math.nan


def _power(a, b):
    if isinstance(a, complex) or isinstance(b, complex):
        return a**b
    if a == 0 and b < 0:
        raise ZeroDivisionError("0.0 cannot be raised to a negative power")
    try:
        return math.pow(a, b)
    except ValueError:
        return math.nan
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf


def _int_power(a: int, b: int) -> int:
    if b < 0:
        raise RuntimeError("negative exponent is not supported by ints; use a float base")
    return wrapped(pow(a, b, 1 << 65) if abs(a) > 1 and b > 64 else a**b)


def _register_arithmetic() -> None:
    for name, function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
        _register_binary(f"aten::{name}", [*_SAME, *_COMPLEX], function, wrapping(function))
        declare_operator(f"aten::{name}(Scalar a, Scalar b) -> Scalar", wrapping(function))
    quotients = [("int", "int", "float"), ("float", "float", "float"), ("complex", "complex", "complex")]
    _register_binary("aten::div", quotients, _divide)
    declare_operator("aten::div(Scalar a, Scalar b) -> float", _divide)
    _register_binary("aten::floordiv", _SAME, _floor_divide, wrapping(_floor_divide))
    declare_operator("aten::floordiv(Scalar a, Scalar b) -> Scalar", wrapping(_floor_divide))
    declare_operator("aten::__round_to_zero_floordiv.int(int a, int b) -> int", _round_to_zero)
    _register_binary("aten::remainder", _SAME, _remainder)
    declare_operator("aten::remainder(Scalar a, Scalar b) -> Scalar", _remainder)
    powers = [("int", "int", "float"), *(pair for pair in _SAME if pair[0] != "int" or pair[1] != "int")]
    _register_binary("aten::pow", [*powers, ("complex", "complex", "complex"), ("float", "complex", "complex"),
                          ("complex", "float", "complex")], _power)  # fmt: skip
    declare_operator("aten::pow.Scalar_Scalar(Scalar a, Scalar b) -> float", _power)
    declare_operator("aten::pow.int_to_int(int a, int b) -> int", _int_power)


def _register_comparisons() -> None:
    ordered = {"lt": operator.lt, "gt": operator.gt, "le": operator.le, "ge": operator.ge}
    for name, function in {**ordered, "eq": operator.eq, "ne": operator.ne}.items():
        _register_binary(f"aten::{name}", _COMPARED, function)
        declare_operator(f"aten::{name}.str(str a, str b) -> bool", function)
        declare_operator(f"aten::{name}(Scalar a, Scalar b) -> bool", function)
    for name, function in (("eq", operator.eq), ("ne", operator.ne)):
        mixed = [("complex", "complex", "bool"), ("float", "complex", "bool"), ("complex", "float", "bool")]
        _register_binary(f"aten::{name}", mixed, function)
        for kind in ("bool", "Device"):
            declare_operator(f"aten::{name}.{kind.lower()}({kind} a, {kind} b) -> bool", function)
        declare_operator(f"aten::{name}.enum(AnyEnumType a, AnyEnumType b) -> bool", function)
        for kind in ("int", "float", "bool", "str", "Tensor"):
            compare = function if kind != "Tensor" else _compare_tensor_lists(name == "eq")
            declare_operator(f"aten::{name}.{kind}_list({kind}[] a, {kind}[] b) -> bool", compare)


def _compare_tensor_lists(wanted: bool) -> Callable:
    def compare(a: list[Tensor], b: list[Tensor]) -> bool:
        same = len(a) == len(b) and all(bool((left == right).all()) for left, right in zip(a, b, strict=True))
        return same == wanted

    return compare


def _register_bits() -> None:
    for name, function in (("__and__", operator.and_), ("__or__", operator.or_), ("__xor__", operator.xor)):
        declare_operator(f"aten::{name}.bool(bool a, bool b) -> bool", function)
        declare_operator(f"aten::{name}.int(int a, int b) -> int", function)
    declare_operator("aten::__lshift__.int(int a, int b) -> int", _shift_left)
    declare_operator("aten::__rshift__.int(int a, int b) -> int", _shift_right)
    declare_operator("aten::bitwise_not.int(int a) -> int", operator.invert)
    declare_operator("aten::__not__(bool self) -> bool", operator.not_)


def _register_unary(name: str, function: Callable, kinds: str = "int float Scalar", result: str = "float") -> None:
    for kind in kinds.split():
        given = "Scalar" if kind == "Scalar" else "complex" if kind == "complex" else result
        declare_operator(f"aten::{name}.{kind}({kind} a) -> {given}", function)


def _either(real: Callable, complicated: Callable) -> Callable:
    return lambda a: complicated(a) if isinstance(a, complex) else real(a)


def _logarithm(real: Callable) -> Callable:
    def function(a):
        return -math.inf if a == 0 else real(a) if a > 0 else math.nan

    return function


def _square_root(a):
    return math.sqrt(a) if a >= 0 else math.nan


def _like_c(name: str) -> Callable[[float], float]:
    """A function of `math` that gives infinity and NaN, as C's does, where Python's raises."""
    function = getattr(math, name)

    def call(a):
        try:
            return function(a)
        except OverflowError:
            return math.copysign(math.inf, a) if name == "sinh" else math.inf
        except ValueError:
            return _POLES[name](a) if name in _POLES else math.nan

    return call


_POLES: dict[str, Callable[[float], float]] = {
    "log1p": lambda a: -math.inf if a == -1 else math.nan,
    "atanh": lambda a: math.copysign(math.inf, a) if abs(a) == 1 else math.nan,
    "gamma": lambda a: math.copysign(math.inf, a) if a == 0 else math.nan,
    "lgamma": lambda a: math.inf,
}
"""The values of functions outside of Python's domain where not all of them are NaN."""


def _fmod(a, b):
    try:
        return math.fmod(a, b)
    except ValueError:
        return math.nan


def _round(a):
    return math.copysign(float(round(a)), a) if math.isfinite(a) else float(a)


def _to_int(function: Callable) -> Callable:
    def convert(a: float) -> int:
        _truncate(a)  # refuses those without an int of 64 bits
        return function(a)

    return convert


def _register_math() -> None:
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "exp"):
        _register_unary(name, _either(_like_c(name), getattr(cmath, name)), "int float complex Scalar")
    _register_unary("sqrt", _either(_square_root, cmath.sqrt), "int float complex Scalar")
    _register_unary("log", _either(_logarithm(math.log), cmath.log), "int float complex Scalar")
    _register_unary("log10", _either(_logarithm(math.log10), cmath.log10), "int float complex Scalar")
    for name in ("lgamma", "erf", "erfc", "expm1", "log1p", "degrees", "radians", "fabs", "gamma"):
        _register_unary(name, _like_c(name))
    for name in ("floor", "ceil"):
        _register_unary(name, _to_int(getattr(math, name)), result="int")
    _register_unary("round", _round)
    for kind in ("int", "float", "complex"):
        declare_operator(f"aten::neg.{kind}({kind} a) -> {kind}", wrapping(operator.neg))
        declare_operator(f"prim::abs.{kind}({kind} a) -> {'float' if kind == 'complex' else kind}", wrapping(abs))
        declare_operator(f"aten::angle.{kind}({kind} a) -> float", lambda a: cmath.phase(a))
    declare_operator("aten::neg.Scalar(Scalar a) -> Scalar", wrapping(operator.neg))
    declare_operator("prim::abs.Scalar(Scalar a) -> Scalar", wrapping(abs))
    declare_operator("aten::angle.Scalar(Scalar a) -> Scalar", lambda a: cmath.phase(a))
    for kind in ("float", "complex"):
        for name in ("isnan", "isinf", "isfinite"):
            function = _either(getattr(math, name), getattr(cmath, name))
            declare_operator(f"aten::{name}.{kind}({kind} a) -> bool", function)
    _register_math_of_two()


def _register_math_of_two() -> None:
    for name, function in (("fmod", _fmod), ("atan2", math.atan2), ("copysign", math.copysign),
                           ("mathremainder", math.remainder)):  # fmt: skip
        _register_binary(f"aten::{name}", _REAL, function)
    declare_operator("aten::fmod(Scalar a, Scalar b) -> float", _fmod)
    _register_binary("aten::log", [*_REAL, *_COMPLEX], _logarithm_of_base)
    declare_operator("aten::gcd.int(int a, int b) -> int", wrapping(math.gcd))
    declare_operator("aten::factorial.int(int a) -> int", wrapping(math.factorial))
    declare_operator("aten::ldexp(float x, int i) -> float", math.ldexp)
    declare_operator("aten::frexp(float a) -> (float, int)", math.frexp)
    declare_operator("aten::modf(float a) -> (float, float)", math.modf)
    _register_binary("aten::polar", [("int", "int", "complex"), ("float", "float", "complex"), ("int", "float", "complex"),
                            ("float", "int", "complex")], cmath.rect)  # fmt: skip
    _register_binary("aten::divmod", [(a, b, f"({r}, {r})") for a, b, r in _SAME], _divmod)


def _divmod(a, b):
    if b == 0:
        raise ZeroDivisionError("integer division or modulo by zero" if isinstance(a, int) else "float divmod()")
    return divmod(a, b)


def _logarithm_of_base(a, b):
    if isinstance(a, complex) or isinstance(b, complex):
        return cmath.log(a, b)
    logarithm = _logarithm(math.log)
    base = logarithm(b)
    return logarithm(a) / base if base else math.inf


def _register_extremes() -> None:
    for name, function in (("max", max), ("min", min)):
        _register_binary(f"prim::{name}", _SAME, lambda a, b, choose=function: float(choose(a, b)), function)
        declare_operator(f"prim::{name}(Scalar a, Scalar b) -> Scalar", function)
        for kind in ("int", "float", "bool"):
            declare_operator(f"prim::{name}.{kind}_list({kind}[] l, {kind}[] r) -> {kind}[]", function)
            declare_operator(f"prim::{name}.self_{kind}({kind}[] self) -> {kind}", _of_list(name, function))


def _of_list(name: str, function: Callable) -> Callable:
    def extreme(values: list):
        if not values:
            raise RuntimeError(f"{name}() arg is an empty sequence")
        return function(values)

    return extreme


def _register_conversions() -> None:
    for kind in ("bool", "float", "Scalar"):
        declare_operator(f"aten::Int.{kind}({kind} a) -> int", _truncate)
    declare_operator("aten::Int.str(str a) -> int", int)
    for kind in ("int", "bool", "Scalar", "str"):
        declare_operator(f"aten::Float.{kind}({kind} a) -> float", float)
    for kind in ("int", "float"):
        declare_operator(f"aten::Bool.{kind}({kind} a) -> bool", bool)
    declare_operator("aten::Complex.Scalar(Scalar a) -> complex", complex)
    for left in ("int", "float", "bool"):
        for right in ("int", "float", "bool"):
            declare_operator(f"aten::Complex.{left}_{right}({left} x, {right} y) -> complex", complex)
        for x, y in ((left, "Tensor"), ("Tensor", left)):
            declare_operator(f"aten::Complex.{x}_{y}({x} x, {y} y) -> complex", _complex_of_parts)
    declare_operator("aten::Complex.Tensor_Tensor(Tensor x, Tensor y) -> complex", _complex_of_parts)
    whole, real = _real(int, "int64_t"), _real(float, "double")
    declare_operator("aten::Bool.Tensor(Tensor a) -> bool", bool)
    for name, function in (("Int", whole), ("Float", real), ("Complex", complex)):
        declare_operator(f"aten::{name}.Tensor(Tensor a) -> {name.lower()}", _of_tensor(function))
        declare_operator(f"aten::{name}Implicit(Tensor a) -> {name.lower()}", _implicitly(name, function))
    declare_operator("aten::ScalarImplicit(Tensor a) -> Scalar", lambda a: _implicitly("Scalar", lambda item: item)(a))
    for kind in ("int", "float", "complex"):
        declare_operator(f"prim::NumToTensor.{kind}({kind} a) -> Tensor", _number_to_tensor)
    declare_operator("prim::NumToTensor.Scalar(Scalar a) -> Tensor", _number_to_tensor)
    declare_operator("prim::NumToTensor.bool(bool a) -> Tensor", _number_to_tensor)


def _complex_of_parts(x: bool | int | float | Tensor, y: bool | int | float | Tensor) -> complex:
    real, imaginary = (part.item() if isinstance(part, Tensor) else part for part in (x, y))
    return complex(real, imaginary)


def _of_tensor(function: Callable) -> Callable:
    return lambda a: function(a.item())


def _implicitly(name: str, function: Callable) -> Callable:
    """Return the number of a 0-dim tensor that a program passes in place of a number. Only integer tensors become ints."""

    def convert(a: Tensor):
        if a.requires_grad:
            raise RuntimeError("Cannot input a tensor that requires grad as a scalar argument")
        if a.dim() != 0:
            raise RuntimeError("Cannot input a tensor of dimension other than 0 as a scalar argument")
        if name == "Int" and (not a.dtype.is_integral or a.dtype is bool_):
            raise RuntimeError(f"Cannot input a tensor of type {a.dtype.scalar_name} as an integral argument")
        return function(a.item())

    return convert


def _real(function: Callable, c_name: str) -> Callable:
    """Convert a number with `int` or `float`. A complex number must not have an imaginary part."""

    def convert(value: bool | int | float | complex):
        if isinstance(value, complex):
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {c_name} without overflow")
            value = value.real
        return function(value)

    return convert


_WIDEST = {bool: bool_, int: int64, float: float64, complex: complex128}


def _number_to_tensor(a) -> Tensor:
    return tensor(a, dtype=_WIDEST[type(a)])


_register_arithmetic()
_register_comparisons()
_register_bits()
_register_math()
_register_extremes()
_register_conversions()
