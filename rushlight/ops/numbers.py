"""Convert Python numbers for operators that need a tensor."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import result_type, rounded_to_half, wrapped

aten = namespaces.namespace("aten")


def as_operand(value: object, beside: Tensor | complex | float | int | bool, like: Tensor | None = None) -> Tensor:
    """Return a number as a 0-dim tensor of the common dtype of it and the operand `beside` it.

    The tensor is on the device of `like`, or of `beside`. Tensors are returned as they are. RuntimeError for a number that
    overflows the dtype; halves become infinite instead.
    """
    if isinstance(value, Tensor):
        return value
    device, kind = (beside if like is None else like).device, result_type(value, beside)
    return aten.full.default((), rounded_to_half(value, kind), dtype=kind, device=device)


def as_real_operand(value: object, beside: Tensor) -> Tensor:
    """Convert like `as_operand`, for functions with floating results: an integer beside an integer tensor keeps its value."""
    return as_wrapped_operand(float(value) if isinstance(value, int) else value, beside)


def as_wrapped_operand(value: object, beside: Tensor) -> Tensor:
    """Convert like `as_operand`, but an overflowing number wraps around or becomes infinite, as in arithmetic."""
    if type(value) in (int, float):
        value = wrapped(value, result_type(value, beside))
    return as_operand(value, beside)
