"""Moves a rank's part of a tensor from one set of placements to another, by collectives along dimensions of the mesh."""

from __future__ import annotations

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import all_reduce
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.reduce_op import RedOpType
from rushlight.distributed.gathers import all_gather, all_to_all
from rushlight.distributed.single_tensors import reduce_scatter_tensor
from rushlight.distributed.tensor.layout import Placements, Spec, part, sizes_along
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from rushlight.ops import aten

_OPERATIONS = {
    "sum": RedOpType.SUM, "avg": RedOpType.AVG, "product": RedOpType.PRODUCT, "min": RedOpType.MIN, "max": RedOpType.MAX,
}  # fmt: skip


def moved(local: Tensor, spec: Spec, placements: Placements) -> Tensor:
    """Return this rank's part of the tensor with other placements. All ranks of the mesh must call it."""
    if spec.mesh.get_coordinate() is None:
        return local
    with no_grad():
        for mesh_dim, target in _steps(spec.placements, placements):
            local = _moved_along(local, spec, mesh_dim, target)
            spec = spec.placed((*spec.placements[:mesh_dim], target, *spec.placements[mesh_dim + 1 :]))
    return local


def _steps(current: Placements, wanted: Placements) -> list[tuple[int, Placement]]:
    """Return the changes in order: each is a dimension of the mesh and its new placement.

    Where several dimensions of the mesh cut one of the tensor, and one changes, all are gathered first, the last one before.
    """
    cutting: dict[int, set[int]] = {}
    for mesh_dim, placement in [*enumerate(current), *enumerate(wanted)]:
        if isinstance(placement, Shard):
            cutting.setdefault(placement.dim, set()).add(mesh_dim)
    again = {
        dim for dim, mesh_dims in cutting.items()
        if len(mesh_dims) > 1 and any(current[mesh_dim] != wanted[mesh_dim] for mesh_dim in mesh_dims)
    }  # fmt: skip
    now, changes = list(current), []
    for mesh_dim in range(len(now))[::-1]:
        if _cut(now[mesh_dim]) in again:
            now[mesh_dim] = Replicate()
            changes.append((mesh_dim, now[mesh_dim]))
    return changes + [(mesh_dim, target) for mesh_dim, target in enumerate(wanted) if now[mesh_dim] != target]


def _cut(placement: Placement) -> int | None:
    return placement.dim if isinstance(placement, Shard) else None


def _moved_along(local: Tensor, spec: Spec, mesh_dim: int, target: Placement) -> Tensor:
    before, group = spec.placements[mesh_dim], spec.mesh.get_group(mesh_dim)
    if isinstance(before, Shard):
        if isinstance(target, Shard):
            return _sharded_anew(local, spec, mesh_dim, target, group)
        whole = _gathered(local, *sizes_along(spec, mesh_dim), group)
        return whole if isinstance(target, Replicate) else _as_partial(whole, target, group)
    if isinstance(before, Partial):
        if isinstance(target, Shard):
            return _reduced_part(local, before, target.dim, group)
        if isinstance(target, Replicate):
            return _reduced(local, before, group)
        raise RuntimeError(f"a distributed tensor cannot go from {before} to {target}: redistribute it to Replicate() first")
    return cut(local, target.dim, group) if isinstance(target, Shard) else _as_partial(local, target, group)


def cut(whole: Tensor, dim: int, group: ProcessGroup) -> Tensor:
    """Return this rank's part along a dimension."""
    return aten.narrow(whole, dim, *part(whole.shape[dim], group.size(), group.rank())).contiguous()


def _as_partial(whole: Tensor, target: Partial, group: ProcessGroup) -> Tensor:
    """Return the whole on one rank and zeros on the others, whose sum is the tensor; for other reductions, the whole."""
    if target.reduce_op != "sum" or group.rank() == 0:
        return whole
    return aten.zeros_like(whole)


def _gathered(local: Tensor, dim: int, sizes: list[int], group: ProcessGroup) -> Tensor:
    """Return the parts of all ranks, joined along a dimension; shorter parts travel padded."""
    padded = _padded(local, dim, max(sizes)).contiguous()
    pieces = [aten.empty_like(padded) for _ in sizes]
    all_gather(pieces, padded, group=group)
    return aten.cat([aten.narrow(piece, dim, 0, size) for piece, size in zip(pieces, sizes, strict=True)], dim)


def _padded(local: Tensor, dim: int, size: int) -> Tensor:
    if local.shape[dim] == size:
        return local
    shape = list(local.shape)
    shape[dim] = size - shape[dim]
    return aten.cat([local, local.new_zeros(shape)], dim)


def _reduced(local: Tensor, before: Partial, group: ProcessGroup) -> Tensor:
    result = local.clone().contiguous()
    all_reduce(result, _OPERATIONS[before.reduce_op], group=group)
    return result


def _reduced_part(local: Tensor, before: Partial, dim: int, group: ProcessGroup) -> Tensor:
    """Return this rank's part of the reduction along a dimension."""
    ranks, length = group.size(), local.shape[dim]
    size = -(-length // ranks)
    rows = _padded(local, dim, size * ranks).movedim(dim, 0).contiguous()
    result = rows.new_empty((size, *rows.shape[1:]))
    reduce_scatter_tensor(result, rows, _OPERATIONS[before.reduce_op], group=group)
    mine = part(length, ranks, group.rank())[1]
    return aten.narrow(result, 0, 0, mine).movedim(0, dim).contiguous()


def _sharded_anew(local: Tensor, spec: Spec, mesh_dim: int, target: Shard, group: ProcessGroup) -> Tensor:
    """Return this rank's part along another dimension: each rank sends every other what it needs."""
    dim, sizes = sizes_along(spec, mesh_dim)
    ranks, length = group.size(), local.shape[target.dim]
    going = [aten.narrow(local, target.dim, *part(length, ranks, rank)).contiguous() for rank in range(ranks)]
    mine, shape = part(length, ranks, group.rank())[1], list(local.shape)
    coming = []
    for size in sizes:
        shape[dim], shape[target.dim] = size, mine
        coming.append(local.new_empty(shape))
    all_to_all(coming, going, group=group)
    return aten.cat(coming, dim)
