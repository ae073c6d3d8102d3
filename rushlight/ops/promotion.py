"""Type promotion: the dtype in which an operator computes, from tensors, 0-dim tensors and Python numbers."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.core.dtype import (
    BOOLEAN,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    dtype,
    get_default_dtype,
    of_number,
    promote_types,
)
from rushlight.core.tensor import Tensor


def result_type(*operands: Tensor | bool | int | float | complex) -> dtype:
    """The common dtype of operands under torch's rules.

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


DIMENSIONED, ZERO_DIM, NUMBER = range(3)
_CATEGORY_OF_NUMBER = {bool: BOOLEAN, int: INTEGRAL, float: FLOATING, complex: COMPLEX}


def _of_pair(first: object, second: object) -> dtype | None:
    """The result type in the frequent cases: two tensors of one dtype, or a tensor and a number that it can hold."""
    if isinstance(first, Tensor):
        kind = first._impl.dtype
        if isinstance(second, Tensor):
            return kind if kind is second._impl.dtype else None
        if kind.category >= _CATEGORY_OF_NUMBER.get(type(second), COMPLEX):
            return kind
    return None


def promote_kinds(kinds: Iterable[tuple[dtype, int]]) -> dtype:
    """The common dtype of operands given as (dtype, DIMENSIONED | ZERO_DIM | NUMBER)."""
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
    """`kind`, or the default dtype where `kind` is an integer or bool: what functions like exp return."""
    return get_default_dtype() if kind.is_integral else kind
