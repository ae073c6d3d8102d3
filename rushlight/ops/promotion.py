"""Type promotion: the dtype in which an operator computes, from tensors, 0-dim tensors and Python numbers."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.core.dtype import dtype, get_default_dtype, of_number, promote_types
from rushlight.core.tensor import Tensor


def result_type(*operands: Tensor | bool | int | float | complex) -> dtype:
    """The common dtype of operands under torch's rules.

    Tensors with dimensions decide first; 0-dim tensors, then Python numbers, only raise the category (bool, integer,
    floating, complex) when theirs is higher.
    """
    kinds = []
    for operand in operands:
        if isinstance(operand, Tensor):
            kinds.append((operand._impl.dtype, DIMENSIONED if operand._impl.sizes else ZERO_DIM))
        elif operand is not None:
            kinds.append((of_number(operand), NUMBER))
    return promote_kinds(kinds)


DIMENSIONED, ZERO_DIM, NUMBER = range(3)


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
