"""Helpers shared by the functionals: the operator namespace, reductions by name, integers as tuples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_code(reduction: str) -> int:
    """ATen's code for "none", "mean" or "sum"; ValueError for anything else."""
    code = REDUCTIONS.get(reduction)
    if code is None:
        raise ValueError(f"{reduction} is not a valid value for reduction; expected 'none', 'mean' or 'sum'")
    return code


def reduction_name(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return `reduction`, or the one that the deprecated flags `size_average` and `reduce` stand for, if given."""
    if size_average is None and reduce is None:
        return reduction
    decided = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{decided}' instead.", stacklevel=3
    )
    return decided


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """`loss`, its mean or its sum."""
    code = reduction_code(reduction)
    return loss if code == 0 else loss.mean() if code == 1 else loss.sum()


def as_tuple(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Return `value` repeated `count` times if it is a number, otherwise as a tuple."""
    return (value,) * count if isinstance(value, int | float) else tuple(value)


def check_probability(p: float) -> None:
    """Raise ValueError unless 0 <= p <= 1."""
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
