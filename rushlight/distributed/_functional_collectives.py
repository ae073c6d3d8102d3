"""`torch.distributed._functional_collectives`: collectives as functions of tensors, which return new ones and have gradients.

Compiled functions keep them as calls of operators. Groups are given as a ProcessGroup, its name, a DeviceMesh of one
dimension, a mesh and a dimension, or a list of ranks for which there is a group.

    import rushlight.distributed._functional_collectives as funcol

    total = funcol.all_reduce(x, "sum", dist.group.WORLD)
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.absent import absent_class
from rushlight.core.tensor import Tensor
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.functional_operators import functional
from rushlight.distributed.groups import get_group_rank, group_by_name, registry
from rushlight.ops import aten

AsyncCollectiveTensor = absent_class(
    "torch.distributed._functional_collectives.AsyncCollectiveTensor", "functional collectives return plain tensors"
)

Group = ProcessGroup | str | DeviceMesh | tuple | list | None


def wait_tensor(tensor: Tensor) -> Tensor:
    """Return a tensor, once the collective that writes it is complete."""
    return functional.wait_tensor.default(tensor)


def all_reduce(self: Tensor, reduceOp: str, group: Group, tag: str = "") -> Tensor:  # noqa: N803  (torch's name)
    """Return the reduction of the tensors of all ranks: "sum", "avg", "product", "min", "max", "band", "bor", "bxor"."""
    return wait_tensor(functional.all_reduce.default(self, reduceOp.lower(), _name(group, tag)))


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: str, group: Group, tag: str = "") -> list[Tensor]:  # noqa: N803
    """Return the reductions of several tensors."""
    begun = functional.all_reduce_coalesced.default(list(self), reduceOp.lower(), _name(group, tag))
    return [wait_tensor(each) for each in begun]


def all_gather_tensor(self: Tensor, gather_dim: int, group: Group, tag: str = "") -> Tensor:
    """Return the tensors of all ranks, joined along a dimension."""
    name = _name(group, tag)
    size = group_by_name(name).size()
    whole = wait_tensor(functional.all_gather_into_tensor.default(self.contiguous(), size, name))
    return aten.cat(aten.chunk(whole, size, 0), gather_dim) if gather_dim else whole


def all_gather_into_tensor_coalesced(self: Sequence[Tensor], group: Group, tag: str = "") -> list[Tensor]:
    """Return, for each of several tensors, those of all ranks, joined along dimension 0."""
    name = _name(group, tag)
    begun = functional.all_gather_into_tensor_coalesced.default(list(self), group_by_name(name).size(), name)
    return [wait_tensor(each) for each in begun]


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Group, tag: str = "") -> Tensor:  # noqa: N803
    """Return this rank's part, along a dimension, of the reduction of all ranks' tensors.

    RuntimeError for a dimension that is no multiple of the number of ranks.
    """
    name = _name(group, tag)
    size = group_by_name(name).size()
    return wait_tensor(
        functional.reduce_scatter_tensor.default(_part_first(self, scatter_dim, size), reduceOp.lower(), size, name)
    )


def _part_first(tensor: Tensor, dim: int, size: int) -> Tensor:
    """Return a tensor with the parts of the ranks along `dim` one after the other along dimension 0."""
    if tensor.shape[dim] % size:
        raise RuntimeError(f"input dimension {dim} ({tensor.shape[dim]}) must be a multiple of group_size {size}")
    return aten.cat(aten.chunk(tensor, size, dim), 0) if dim else tensor.contiguous()


def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Tensor], reduceOp: str, scatter_dim: Sequence[int], group: Group, tag: str = ""  # noqa: N803
) -> list[Tensor]:  # fmt: skip
    """Return this rank's parts of the reductions of several tensors."""
    name = _name(group, tag)
    size = group_by_name(name).size()
    parts = [_part_first(each, dim, size) for each, dim in zip(inputs, scatter_dim, strict=True)]
    begun = functional.reduce_scatter_tensor_coalesced.default(parts, reduceOp.lower(), size, name)
    return [wait_tensor(each) for each in begun]


def all_to_all_single(
    self: Tensor, output_split_sizes: Sequence[int] | None, input_split_sizes: Sequence[int] | None, group: Group, tag: str = ""
) -> Tensor:
    """Return the rows that all ranks send to this one: the i-th part of `self` goes to rank i.

    Sizes of parts are rows; both are given or none, which means equal parts.
    """
    name = _name(group, tag)
    size = group_by_name(name).size()
    if (output_split_sizes is None) != (input_split_sizes is None):
        raise ValueError("output_split_sizes and input_split_sizes must either be specified together or both set to None")
    equal = [self.shape[0] // size] * size
    going, coming = input_split_sizes or equal, output_split_sizes or equal
    return wait_tensor(functional.all_to_all_single.default(self.contiguous(), list(coming), list(going), name))


def broadcast(self: Tensor, src: int, group: Group, tag: str = "") -> Tensor:
    """Return the tensor of the world's rank `src`."""
    name = _name(group, tag)
    return wait_tensor(functional.broadcast.default(self, get_group_rank(group_by_name(name), src), name))


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Group, tag: str = "") -> Tensor:
    """Return the tensor of another rank: that of rank i goes to the group's rank `src_dst[i]`."""
    name = _name(group, tag)
    members = group_by_name(name)
    going, coming = [0] * members.size(), [0] * members.size()
    going[src_dst[members.rank()]] = self.numel()
    coming[list(src_dst).index(members.rank())] = self.numel()
    return all_to_all_single(self.reshape(-1), coming, going, name).reshape(self.shape)


all_gather_tensor_autograd, reduce_scatter_tensor_autograd = all_gather_tensor, reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
all_gather_single, reduce_scatter_single = all_gather_tensor, reduce_scatter_tensor


def _name(group: Group, tag: str) -> str:
    """Return the name of a group.

    ValueError for a list of ranks without a group, or a tag; TypeError for what is no group.
    """
    if tag:
        raise ValueError(f"groups have no tags, got {tag!r}: give the process group itself, or its name")
    if isinstance(group, str):
        return group
    if group is None:
        return "0"
    if isinstance(group, ProcessGroup):
        return group.group_name
    if isinstance(group, DeviceMesh):
        return group.get_group().group_name
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1]).group_name
    if isinstance(group, list | tuple):
        return _of_ranks(tuple(group))
    raise TypeError(f"expected a process group, its name, a DeviceMesh, or ranks, got {group!r}")


def _of_ranks(ranks: tuple[int, ...]) -> str:
    for name, members in registry.by_name.items():
        if members.ranks == ranks:
            return name
    raise ValueError(f"there is no process group of the ranks {list(ranks)}: make one by new_group")
