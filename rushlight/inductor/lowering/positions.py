"""Computed positions as index expressions: reads at such positions are views, which need no bounds check and fuse.

In: the value of a position, computed from loop variables alone, as in upsampling and flipping. Out: an index expression with
the same values that is provably in bounds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from rushlight.core.algebra import Expr, Var, as_expr, bounds, unflatten_index
from rushlight.core.dtype import int64
from rushlight.inductor.ir import (
    Buffer,
    Call,
    ComputedBuffer,
    Constant,
    IndexValue,
    Load,
    Pointwise,
    Value,
    contiguous_layout,
    substitute,
    walk,
)
from rushlight.inductor.sizes import Size

MAX_TRIED = 1 << 14  # an expression for a floating-point position is checked for at most this many values of the variable
EXACT = 1 << 53
ARITHMETIC: dict[str, Callable] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
TABLED = ARITHMETIC | {"div": np.divide, "minimum": np.minimum, "maximum": np.maximum, "floor": np.floor, "ceil": np.ceil}


def position_of(value: Value, size: Size, buffers: Mapping[str, Buffer]) -> Expr | None:
    """Return the index expression equal to a position in [0, size); None if there is none or it may be out of bounds."""
    value = _inline_loads(value, buffers) if isinstance(size, int) else None
    if value is None:
        return None
    found = _integer_expression(value)
    found = _fit_expression(value) if found is None else found
    if found is None:
        return None
    low, high = bounds(found)
    return found if low is not None and high is not None and 0 <= low and high < size else None


def _inline_loads(value: Value, buffers: Mapping[str, Buffer]) -> Value | None:
    """Inline the loops of buffers that a value loads, until it only contains loop variables; None if that is impossible."""
    if isinstance(value, Load):
        buffer = buffers[value.buffer]
        loop = buffer.data if isinstance(buffer, ComputedBuffer) else None
        if type(loop) is not Pointwise or buffer.layout != contiguous_layout(loop.dtype, loop.ranges):
            return None
        positions = unflatten_index(value.index, loop.ranges)
        return _inline_loads(substitute(loop.body, dict(zip(loop.variables, positions, strict=True))), buffers)
    if isinstance(value, Call):
        arguments = [_inline_loads(argument, buffers) for argument in value.arguments]
        return None if None in arguments else replace(value, arguments=tuple(arguments))
    return value if isinstance(value, Constant) or type(value) is IndexValue else None


def _integer_expression(value: Value) -> Expr | None:
    """Return the expression of a position computed in integers; None if there is none."""
    if value.dtype is not int64:
        return None
    if type(value) is IndexValue:
        return value.index
    if isinstance(value, Constant):
        return as_expr(value.number)
    if not isinstance(value, Call) or value.name not in (*ARITHMETIC, "floor_div", "minimum", "maximum"):
        return None
    parts = list(map(_integer_expression, value.arguments))
    if None in parts:
        return None
    made = _combine_expressions(value.name, *parts)
    return made if made is not None and _is_exact(made) else None


def _combine_expressions(name: str, left: Expr, right: Expr) -> Expr | None:
    if name in ARITHMETIC:
        return ARITHMETIC[name](left, right)
    low, high = bounds(right)
    if name == "floor_div":
        return left // right if low == high and low is not None and low > 0 else None
    low, high = bounds(left - right)
    if high is not None and high <= 0:
        return left if name == "minimum" else right
    if low is not None and low >= 0:
        return right if name == "minimum" else left
    return None


def _is_exact(expression: Expr) -> bool:
    low, high = bounds(expression)
    return low is not None and high is not None and -EXACT < low and high < EXACT


# Floating-point positions, as in nearest-neighbour sampling: compute all of them, and look for an integer expression that
# equals them


def _fit_expression(value: Value) -> Expr | None:
    """Find an expression that equals a position for every value of its variable."""
    indices = {node.index for node in walk(value) if isinstance(node, IndexValue)}
    if value.dtype is not int64 or len(indices) != 1:
        return None
    variable = next(iter(indices))
    if not isinstance(variable, Var) or not isinstance(variable.extent, int) or not 0 < variable.extent <= MAX_TRIED:
        return None
    count = variable.extent
    with np.errstate(all="ignore"):
        positions = _evaluate_all(value, np.arange(count))
    if positions is None or positions.shape != (count,) or positions.dtype != np.int64:
        return None
    sources = int(positions[-1]) + 1
    for scale, start in ((1, 0), (2, 1)):
        if np.array_equal((np.arange(count) * scale + start) * sources // (scale * count), positions):
            return (variable * scale + start) * sources // (scale * count)
    return None


def _evaluate_all(value: Value, given: np.ndarray) -> np.ndarray | None:
    """Evaluate a position for all values of its variable, as native code does; None where NumPy can't do the same."""
    if type(value) is IndexValue:
        return given.astype(np.int64)
    if isinstance(value, Constant):
        return np.asarray(value.number, value.dtype.numpy)
    if not isinstance(value, Call):
        return None
    parts = [_evaluate_all(argument, given) for argument in value.arguments]
    if any(part is None for part in parts):
        return None
    if value.name == "cast":
        return parts[0].astype(value.dtype.numpy)
    if value.name not in TABLED or any(part.dtype != value.dtype.numpy for part in parts):
        return None
    return TABLED[value.name](*parts)
