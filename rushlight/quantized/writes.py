"""What weights of few bits answer to writes: only `copy_` and `data` change them, as a whole."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import count_write


def refuse_write(func: Any, target: Any, kind: type) -> None:
    """RuntimeError where an operator would write numbers into a tensor of this class."""
    if func.is_mutable and isinstance(target, kind):
        raise RuntimeError(
            f"{func._schema.name}: a {kind.__name__} is not written to in parts; `copy_` puts other numbers in its place, and "
            "`dequantize()` gives a plain tensor"
        )


def refuse_item(self: Tensor, *_: Any) -> None:
    """`__setitem__`."""
    raise RuntimeError(f"__setitem__: a {type(self).__name__} is not written to in parts; `dequantize()` gives a plain tensor")


def check_same_kind(value: Any, kind: type) -> None:
    """RuntimeError unless what is assigned to `data` is of the same class."""
    if not isinstance(value, kind):
        raise RuntimeError(
            f"data: expected a {kind.__name__}, got a {type(value).__name__} of {getattr(value, 'dtype', None)}: `copy_` "
            "rounds numbers to its form, and `dequantize()` gives a plain tensor"
        )


def replaced(*parts: Tensor) -> None:
    """Say that a tensor is no longer made of these: compiled graphs hold them as constants."""
    for part in parts:
        count_write(part._impl)
