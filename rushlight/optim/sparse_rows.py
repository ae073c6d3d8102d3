"""Sparse gradients as what optimizers work on: the places that they name, and the values there."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops import aten


def places_and_values(gradient: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """The index of a coalesced gradient's places in a tensor that `indexable` returned, and its values."""
    indices = gradient.indices()
    places = tuple(indices.unbind(0)) if indices.size(0) else (aten.zeros(indices.shape[1:], dtype=indices.dtype),)
    return places, gradient.values()


def indexable(tensor: Tensor) -> Tensor:
    """`tensor`, or a view of it with one dimension where it has none."""
    return tensor if tensor.dim() else tensor.view(1)
