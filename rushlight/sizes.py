"""Checks and arithmetic on sizes: `torch._check` and similar functions, and operations that keep symbolic sizes symbolic.

They take truth values and numbers, and return a number or raise an exception. All of them can be captured by compilation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from rushlight.core.dtype import bool_
from rushlight.core.symbolic import SymBool, SymFloat, SymInt, sym_float, sym_sqrt
from rushlight.core.tensor import Tensor

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


def _check_with(error: type[Exception], cond: bool, message: Callable[[], object] | None) -> None:
    """Raise `error` with what `message` returns, unless `cond` holds; TypeError for what is no truth value."""
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all "
            "elements are true."
        )
    if not isinstance(cond, bool | SymBool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error("Expected cond to be True, but got False." if message is None else str(message()))


def _check(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raise RuntimeError with the text of `message()` unless `cond` holds. A condition on open sizes becomes a guard."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raise IndexError unless `cond` holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raise ValueError unless `cond` holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raise TypeError unless `cond` holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: Callable[[], object] | None = None) -> None:
    """Raise NotImplementedError unless `cond` holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Callable[[], object] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError unless `i` can be a size, and is at most `max`."""
    _check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], object] | None = None) -> None:
    """Raise RuntimeError unless all elements of a tensor of truth values are true. It needs their values."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(RuntimeError, cond.all().item(), message)


def sym_int(a: float) -> int:
    """Return `a` rounded towards zero; an open int as it is."""
    return a if type(a) is SymInt else math.trunc(a)


def sym_max(a: float, b: float) -> float:
    """Return the larger one, a float if one of them is."""
    larger = max(a, b)
    return sym_float(larger) if isinstance(a, float) or isinstance(b, float) else larger


def sym_min(a: float, b: float) -> float:
    """Return the smaller one, a float if one of them is."""
    smaller = min(a, b)
    return sym_float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_not(a: bool) -> bool:
    """Return `not a`."""
    return not a


def sym_ite(b: bool, t: object, f: object) -> object:
    """Return `t` if `b` holds, else `f`, which are of one type."""
    if type(t) is not type(f):
        raise TypeError(f"sym_ite expects two values of one type, got {type(t).__name__} and {type(f).__name__}")
    return t if b else f


def sym_sum(args: Iterable[int]) -> int:
    """Return the sum of integers."""
    return sum(args)
