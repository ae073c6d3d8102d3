"""Padding: constant, reflect, replicate and circular."""

from __future__ import annotations

from rushlight.ops.composite.network.common import arange, aten, in_order_of
from rushlight.ops.registry import composite

MODES = ("reflect", "replicate", "circular")


@composite('pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor')
def pad(self, pad, mode="constant", value=None):
    """Pad by `pad`, which holds (left, right) per dimension, last dimension first; negative amounts crop."""
    amounts = list(pad)
    if len(amounts) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {amounts}")
    if len(amounts) > 2 * self.dim():
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(amounts)} and input of dimension {self.dim()}"
        )
    if mode == "constant":
        return aten.constant_pad_nd.default(self, amounts, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f"Padding mode '{mode}' doesn't take in value argument")
    if mode not in MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}; expected 'constant' or one of {MODES}")
    if self.dim() not in (len(amounts) // 2 + 1, len(amounts) // 2 + 2):
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, where padding n dimensions "
            f"needs an input of n + 1 or n + 2; got {len(amounts)} amounts for an input of {self.dim()} dimensions"
        )
    # The result never shares memory with the input.
    padded = _pad_by_index(self, amounts, mode) if any(amounts) else aten.clone.default(self)
    return padded if mode == "circular" else in_order_of(self, padded)


def _pad_by_index(x, amounts: list[int], mode: str):
    for index in range(len(amounts) // 2):
        left, right = amounts[2 * index : 2 * index + 2]
        dim = x.dim() - 1 - index
        _check_amounts(x, dim, left, right, mode)
        if left or right:
            x = x.index_select(dim, _source_positions(x, x.shape[dim], left, right, mode))
    return x


def _source_positions(x, size: int, left: int, right: int, mode: str):
    if mode == "circular":
        # Apply negative amounts first, as crops; the rest is padded circularly.
        start, kept = max(-left, 0), size + min(left, 0) + min(right, 0)
        return arange(x, -max(left, 0), kept + max(right, 0)).remainder(kept) + start
    positions = arange(x, -left, size + right)
    if mode == "replicate":
        return positions.clamp(0, size - 1)
    return size - 1 - (size - 1 - positions.abs()).abs()


def _check_amounts(x, dim: int, left: int, right: int, mode: str) -> None:
    size, given = x.shape[dim], f"padding ({left}, {right}) at dimension {dim} of input {list(x.shape)}"
    if mode == "reflect" and max(left, right) >= size:
        raise RuntimeError(f"Padding size should be less than the corresponding input dimension, but got: {given}")
    if mode == "circular" and max(left, right) > size:
        raise RuntimeError(f"Padding value causes wrapping around more than once: {given}")
    if size + left + right < 1 or size == 0:
        raise RuntimeError(f"Padding leaves nothing of a dimension, or has nothing to repeat: {given}")
