"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Extend by (left, right) per dimension, the last dimension first; negative amounts crop.

    `mode` is "constant" (with `value`), "reflect", "replicate" or "circular".

    Args:
        input (Tensor): the input.
        pad (Sequence[int]): (left, right) of the last dimension, then of the one before, and so on.
        mode (str): "constant", "reflect", "replicate" or "circular".
        value (float | None): the padding value of mode "constant"; 0 if None.

    Example:
        >>> F.pad(torch.ones(2), (1, 0))
        tensor([0., 1., 1.])
    """
    return aten.pad(input, pad, mode, value)
