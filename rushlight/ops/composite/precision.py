"""Composites that compute in float32 for half inputs, and round once, as ATen's kernels do."""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight.core.dtype import bfloat16, dtype, float16, float32
from rushlight.core.tensor import Tensor


def in_full_precision(function: Callable) -> Callable:
    """Wrap a function of tensors and numbers: half inputs become float32, and the result gets the first tensor's dtype."""

    @functools.wraps(function)
    def precise(*args: object, **kwargs: object) -> Tensor:
        kind = next(value.dtype for value in (*args, *kwargs.values()) if isinstance(value, Tensor))
        if kind not in (bfloat16, float16):
            return function(*args, **kwargs)
        others = {name: _wide(value, kind) for name, value in kwargs.items()}
        return function(*[_wide(value, kind) for value in args], **others).to(kind)

    return precise


def _wide(value: object, kind: dtype) -> object:
    return value.to(float32) if isinstance(value, Tensor) and value.dtype is kind else value
