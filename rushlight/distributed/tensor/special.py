"""Operators of which the ranks' parts need more than the operator itself: tables cut along rows, views of strided parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.distributed.single_tensors import all_gather_into_tensor
from rushlight.distributed.tensor.layout import Spec, local_part
from rushlight.distributed.tensor.placement_types import Shard
from rushlight.ops import aten

SPECIAL: dict[str, Callable[[Any, tuple, dict, Sequence[Spec], Sequence[Spec]], Any]] = {}
"""By an operator's name: a function of the operator, its arguments on this rank, and the Specs of inputs and outputs."""


def special(*names: str) -> Callable:
    """Return a decorator that registers the way of ATen operators on parts."""

    def register(function: Callable) -> Callable:
        for name in names:
            SPECIAL[f"aten::{name}"] = function
        return function

    return register


@special("embedding")
def embedding(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> Tensor:
    """Look up the rows that this rank has, and give zeros for the others, so that the sum over ranks is the result."""
    table, indices = args[:2]
    if not any(placement == Shard(0) for placement in specs[0].placements):
        return op(*args, **kwargs)
    _, (first, *_) = local_part(specs[0].shape, specs[0].mesh, specs[0].placements)
    own = indices - first
    missing = (own < 0) | (own >= table.shape[0])
    if not table.shape[0]:
        return table.new_zeros((*indices.shape, table.shape[1]))
    return op(table, own.masked_fill(missing, 0)).masked_fill(missing.unsqueeze(-1), 0)


@special("view", "_unsafe_view")
def view(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> Tensor:
    """Copy where this rank's part has gaps that the whole does not have."""
    return aten.reshape(args[0], args[1])


@special("linalg_vector_norm")
def vector_norm(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> Tensor:
    """Put the parts' norms together: the norm of all elements is the norm of the norms of parts."""
    norm, order = op(*args, **kwargs), args[1] if len(args) > 1 else 2
    if len(args) > 2 and args[2] is not None:
        return norm
    for mesh_dim, placement in enumerate(specs[0].placements):
        if isinstance(placement, Shard):
            group = specs[0].mesh.get_group(mesh_dim)
            parts = norm.new_empty((group.size(), *norm.shape))
            all_gather_into_tensor(parts, norm.contiguous(), group=group)
            norm = op(parts, order, [0])
    return norm


@special("new_empty_strided")
def new_empty_strided(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> Tensor:
    """A part has the order of the whole's dimensions in its Spec; its own memory is contiguous."""
    return aten.new_empty(args[0], args[1], **kwargs)
