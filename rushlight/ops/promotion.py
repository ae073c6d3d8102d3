"""Type promotion: the dtype in which an operator computes, from tensors, 0-dim tensors and Python numbers."""

from __future__ import annotations

from rushlight.core.dtype import dtype, get_default_dtype, of_number, promote_types
from rushlight.core.tensor import Tensor


def result_type(*operands: Tensor | bool | int | float | complex) -> dtype:
    """The common dtype of operands under torch's rules.

    Tensors with dimensions decide first; 0-dim tensors, then Python numbers, only raise the category (bool, integer,
    floating, complex) when theirs is higher.
    """
    dimensioned = scalar = number = None
    for operand in operands:
        if isinstance(operand, Tensor):
            impl = operand._impl
            if impl.sizes:
                dimensioned = impl.dtype if dimensioned is None else promote_types(dimensioned, impl.dtype)
            else:
                scalar = impl.dtype if scalar is None else promote_types(scalar, impl.dtype)
        elif operand is not None:
            kind = of_number(operand)
            number = kind if number is None else promote_types(number, kind)
    return _combine(_combine(dimensioned, scalar), number)


def _combine(higher: dtype | None, lower: dtype | None) -> dtype:
    if higher is None or lower is None:
        return higher or lower
    if higher.category >= lower.category:
        return higher
    if lower.is_complex and higher.is_floating_point:
        return higher.to_complex()
    return lower


def float_type(kind: dtype) -> dtype:
    """`kind`, or the default dtype where `kind` is an integer or bool: what functions like exp return."""
    return get_default_dtype() if kind.is_integral else kind
