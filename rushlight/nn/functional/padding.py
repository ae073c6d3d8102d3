"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Extend by (left, right) per dimension, the last dimension first; negative amounts crop.

    `mode` is "constant" (with `value`), "reflect", "replicate" or "circular".
    """
    return aten.pad(input, pad, mode, value)
