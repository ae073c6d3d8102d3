"""Spec: shape, dtype and placements of a distributed tensor; which part of it a rank has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rushlight.core.dtype import dtype
from rushlight.core.strides import wrap_dim
from rushlight.distributed.device_mesh import DeviceMesh, current_mesh
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

Placements = tuple[Placement, ...]


@dataclass(frozen=True)
class Spec:
    """What all ranks know of a distributed tensor; `shape` and `strides` are those of the whole."""

    mesh: DeviceMesh
    placements: Placements
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: dtype

    def placed(self, placements: Placements) -> Spec:
        """Return the same with other placements."""
        return replace(self, placements=placements)


def required_mesh(mesh: DeviceMesh | None, caller: str) -> DeviceMesh:
    """Return the mesh that a function was given, or else whose context this is. ValueError: there is none."""
    mesh = mesh or current_mesh()
    if mesh is None:
        raise ValueError(f"{caller} needs a device_mesh: init_device_mesh('cpu', (ranks,)) makes one")
    return mesh


def part(length: int, ranks: int, rank: int) -> tuple[int, int]:
    """Return where a rank's part of a dimension begins, and its length: all have as much as the first, the last ones less."""
    size = -(-length // ranks)
    begin = min(size * rank, length)
    return begin, min(size, length - begin)


def local_part(shape: Sequence[int], mesh: DeviceMesh, placements: Placements) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of this rank's part, and where it begins in the whole. A rank that is not in the mesh has none."""
    sizes, offsets = list(shape), [0] * len(shape)
    place = mesh.get_coordinate()
    if place is None:
        return (0,), ()
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            begin, size = part(sizes[placement.dim], mesh.size(mesh_dim), place[mesh_dim])
            offsets[placement.dim] += begin
            sizes[placement.dim] = size
    return tuple(sizes), tuple(offsets)


def sizes_along(spec: Spec, mesh_dim: int) -> tuple[int, list[int]]:
    """Return the tensor's dimension that is cut along a dimension of the mesh, and the parts' lengths for each rank there."""
    dim = spec.placements[mesh_dim].dim
    length = local_part(spec.shape, spec.mesh, spec.placements[:mesh_dim])[0][dim]
    ranks = spec.mesh.size(mesh_dim)
    return dim, [part(length, ranks, rank)[1] for rank in range(ranks)]


def normalized(placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int) -> Placements:
    """Return placements, one for each dimension of the mesh, with dimensions counted from the front; None: replicated.

    ValueError for another number of them, TypeError for other objects, IndexError for a dimension that is not there.
    """
    given = tuple(placements) if placements is not None else (Replicate(),) * mesh.ndim
    if len(given) != mesh.ndim:
        raise ValueError(f"`placements` must have the same length as the mesh has dimensions: {len(given)} for {mesh.ndim}")
    made: list[Placement] = []
    for placement in given:
        if not isinstance(placement, Shard | Replicate | Partial):
            raise TypeError(f"a placement is Shard, Replicate or Partial, got {placement!r}")
        if isinstance(placement, Shard):
            placement = Shard(wrap_dim(placement.dim, ndim))
        made.append(placement)
    return tuple(made)
