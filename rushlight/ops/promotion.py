"""Type promotion: the dtype in which an operator computes, from tensors, 0-dim tensors and Python numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

import numpy as np

from rushlight.core.dtype import (
    BOOLEAN,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    bfloat16,
    bool_,
    dtype,
    finfo,
    float16,
    get_default_dtype,
    iinfo,
    of_number,
    promote_types,
)
from rushlight.core.tensor import Tensor


def result_type(*operands: Tensor | bool | int | float | complex) -> dtype:
    """Return the common dtype of operands under torch's rules.

    Tensors with dimensions decide first; 0-dim tensors, then Python numbers, only raise the category (bool, integer,
    floating, complex) when theirs is higher.
    """
    if len(operands) == 2:
        certain = _of_pair(*operands)
        if certain is not None:
            return certain
    kinds = []
    for operand in operands:
        if isinstance(operand, Tensor):
            kinds.append((operand._impl.dtype, DIMENSIONED if operand._impl.sizes else ZERO_DIM))
        elif operand is not None:
            kinds.append((of_number(operand), NUMBER))
    return promote_kinds(kinds)


def rounded(value: float | int, kind: dtype) -> float:
    """Return a number rounded to the floating dtype `kind`."""
    with np.errstate(over="ignore"):
        return float(kind.numpy.type(value))


# C++'s names of the element types, for messages.
_C_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "uint16": "uint16_t",
    "uint32": "uint32_t", "uint64": "uint64_t", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float",
    "float64": "double", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip
_MIN_INT, _MAX_INT = -(1 << 63), (1 << 64) - 1


def check_int(value: int) -> int:
    """Return the int; OverflowError for one that no integer of 64 bits holds."""
    if not _MIN_INT <= value <= _MAX_INT:
        raise OverflowError("int too big to convert")
    return value


def rounded_to_half(value: float, kind: dtype) -> float:
    """Return a number that becomes a tensor of `kind`; it becomes infinite where it overflows a half."""
    return rounded(value, kind) if kind in HALVES and type(value) in (int, float) else value


def wrapped(value: float, kind: dtype) -> float:
    """Return the number after C conversion to `kind`: integers wrap around, floats overflow."""
    if kind.is_integral and kind is not bool_ and isinstance(value, int):
        bits = 8 * kind.itemsize
        value = check_int(value) & ((1 << bits) - 1)
        return value - (1 << bits) if kind.is_signed and value >> (bits - 1) else value
    return rounded(value, kind) if kind.is_floating_point and isinstance(value, int | float) else value


def check_number(value: complex, kind: dtype) -> None:
    """Raise RuntimeError unless the number fits `kind`: integers up to their limits, finite floats up to theirs. Unsigned
    integers also accept negative integers down to minus their maximum, which wrap around. Symbolic numbers are not checked."""
    if type(value) not in _CATEGORY_OF_NUMBER and not isinstance(value, np.number):
        return
    if type(value) is int:
        check_int(value)
    if kind is bool_ or kind.name not in _C_NAMES or _holds(value, kind):
        return
    raise RuntimeError(f"value cannot be converted to type {_C_NAMES[kind.name]} without overflow")


def check_factor(name: str, value: complex, kind: dtype) -> None:
    """Raise RuntimeError unless a factor such as `alpha` fits results of `kind`: bools only for bools, floats not for
    integers."""
    if isinstance(value, bool) and kind is not bool_:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if kind.is_integral and isinstance(value, float | complex):
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    check_number(value, kind)


def check_exponent(exponent: object, kind: dtype) -> None:
    """Raise RuntimeError unless a number can be the exponent of integers of `kind`; tensors are not checked."""
    if type(exponent) is int or isinstance(exponent, np.number):
        check_number(exponent, kind)
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")


def _holds(value: complex, kind: dtype) -> bool:
    if isinstance(value, complex):
        if not kind.is_complex:
            return value.imag == 0 and _holds(value.real, kind)
        return _holds(value.real, kind) and _holds(value.imag, kind)
    if kind.is_integral and not math.isfinite(value):
        return False
    if isinstance(value, float) and value < 0 and not kind.is_signed:
        return False
    least, most = _limits(kind)
    return not math.isfinite(value) or least <= (int(value) if kind.is_integral else value) <= most


@functools.cache
def _limits(kind: dtype) -> tuple[float, float]:
    info = iinfo(kind) if kind.is_integral else finfo(kind)
    return info.min or -info.max, info.max


HALVES = (bfloat16, float16)
DIMENSIONED, ZERO_DIM, NUMBER = range(3)
_CATEGORY_OF_NUMBER = {bool: BOOLEAN, int: INTEGRAL, float: FLOATING, complex: COMPLEX}


def _of_pair(first: object, second: object) -> dtype | None:
    """Return the result type in the common cases: two tensors of one dtype, or a tensor and a number that fits it."""
    if isinstance(first, Tensor):
        kind = first._impl.dtype
        if isinstance(second, Tensor):
            return kind if kind is second._impl.dtype else None
        if kind.category >= _CATEGORY_OF_NUMBER.get(type(second), COMPLEX):
            return kind
    return None


def promote_kinds(kinds: Iterable[tuple[dtype, int]]) -> dtype:
    """Return the common dtype of operands given as (dtype, DIMENSIONED | ZERO_DIM | NUMBER)."""
    found: list[dtype | None] = [None, None, None]
    for kind, rank in kinds:
        present = found[rank]
        found[rank] = kind if present is None else promote_types(present, kind)
    return _combine(_combine(found[DIMENSIONED], found[ZERO_DIM]), found[NUMBER])


def _combine(higher: dtype | None, lower: dtype | None) -> dtype:
    if higher is None or lower is None:
        return higher or lower
    if higher.category >= lower.category:
        return higher
    if lower.is_complex and higher.is_floating_point:
        return higher.to_complex()
    return lower


def float_type(kind: dtype) -> dtype:
    """Return `kind`, or the default dtype where `kind` is an integer or bool: the result dtype of functions like exp."""
    return get_default_dtype() if kind.is_integral else kind
