"""Checks and Meta rule of the run-time check of values."""

from __future__ import annotations

from rushlight.core.dtype import bool_
from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import pointwise
from rushlight.ops.registry import meta

ERRORS = {kind.__name__: kind for kind in (RuntimeError, IndexError, ValueError)}


def check_condition(self: Tensor, holds: Tensor, error: str) -> None:
    """Raise RuntimeError unless `holds` is a bool tensor that expands to the values' sizes, and the error is known."""
    if holds.dtype is not bool_ or tuple(broadcast_shapes(self.shape, holds.shape)) != tuple(self.shape):
        raise RuntimeError(
            f"_checked: expected bools for values of shape {list(self.shape)}, got {holds.dtype} of shape {list(holds.shape)}"
        )
    if error not in ERRORS:
        raise RuntimeError(f"_checked: the error must be one of {', '.join(ERRORS)}, got {error}")


@meta("_checked")
def checked(self, holds, error, message):
    check_condition(self, holds, error)
    return pointwise(self.dtype, self)
