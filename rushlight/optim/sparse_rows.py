"""Sparse gradients for optimizers: the indices of their elements, and the values there."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops import aten


def places_and_values(gradient: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return the index of a coalesced gradient's elements in a tensor from `indexable`, and their values."""
    indices = gradient.indices()
    places = tuple(indices.unbind(0)) if indices.size(0) else (aten.zeros(indices.shape[1:], dtype=indices.dtype),)
    return places, gradient.values()


def indexable(tensor: Tensor) -> Tensor:
    """Return `tensor`, or a 1-dimensional view of a 0-dim one."""
    return tensor if tensor.dim() else tensor.view(1)
