"""Formulas of derivatives that do not exist: they raise when a gradient is asked for."""

from __future__ import annotations

from collections.abc import Callable


def refuse(message: str) -> Callable[[], None]:
    """Return a formula that raises NotImplementedError with this message."""

    def raise_error() -> None:
        raise NotImplementedError(message)

    return raise_error


def refuse_derivative(name: str, argument: str) -> Callable[[], None]:
    """Return a formula that raises NotImplementedError: no derivative is known for this input."""
    return refuse(f"the derivative for '{argument}' is not implemented (in {name})")


def refuse_double_backward(name: str) -> Callable[[], None]:
    """Return a formula that raises NotImplementedError: this gradient cannot be differentiated again."""
    return refuse(f"derivative for aten::{name} is not implemented: {name} cannot be differentiated twice")
