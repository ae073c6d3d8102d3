"""The same model on all ranks: a comparison of shapes, and broadcasts of several tensors in few messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from rushlight._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.objects import all_gather_object

BROADCAST_BYTES = 250 << 20  # limit of one message, whose flat copy takes as much memory


def check_same_shapes(parameters: Sequence[Tensor], group: ProcessGroup) -> None:
    """Raise RuntimeError unless all ranks have as many parameters, of the same shapes and dtypes."""
    mine = [(tuple(each.shape), str(each.dtype)) for each in parameters]
    everyone: list = [None] * group.size()
    all_gather_object(everyone, mine, group)
    for rank, theirs in enumerate(everyone):
        if len(theirs) != len(everyone[0]):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank 0 has {len(everyone[0])} params, while rank {rank} has "
                f"inconsistent {len(theirs)} params."
            )
        for index, (first, other) in enumerate(zip(everyone[0], theirs, strict=True)):
            if first != other:
                raise RuntimeError(
                    f"DDP expects same model across all ranks: params[{index}] of rank {rank} is {other[1]} of sizes "
                    f"{list(other[0])}, which does not match rank 0: {first[1]} of sizes {list(first[0])}."
                )


def broadcast_all(tensors: Sequence[Tensor], group: ProcessGroup, root: int, limit: int = BROADCAST_BYTES) -> None:
    """Copy tensors of the group's rank `root` to all ranks, those of a dtype and device in messages of about `limit` bytes."""
    begin_broadcast_all(tensors, group, root, limit)()


def begin_broadcast_all(
    tensors: Sequence[Tensor], group: ProcessGroup, root: int, limit: int = BROADCAST_BYTES
) -> Callable[[], None]:
    """Begin what `broadcast_all` does; return the function that finishes it."""
    works = [(part, *_broadcast_flat(part, group, root)) for part in _parts(tensors, limit)]

    def finish() -> None:
        with no_grad():
            for part, flat, work in works:
                work.wait()
                if group.rank() != root:
                    for tensor, values in zip(part, _unflatten_dense_tensors(flat, part), strict=True):
                        tensor.detach().copy_(values)

    return finish


def _broadcast_flat(tensors: Sequence[Tensor], group: ProcessGroup, root: int) -> tuple:
    with no_grad():
        flat = _flatten_dense_tensors([tensor.detach() for tensor in tensors])
    return flat, broadcast(flat, group=group, group_src=root, async_op=True)


def _parts(tensors: Sequence[Tensor], limit: int) -> list[list[Tensor]]:
    groups: dict[object, list[list[Tensor]]] = defaultdict(lambda: [[]])
    sizes: dict[object, int] = defaultdict(int)
    for tensor in tensors:
        if not tensor.numel():
            continue
        kind = tensor.dtype, tensor.device
        if sizes[kind] + tensor.nbytes > limit and groups[kind][-1]:
            groups[kind].append([])
            sizes[kind] = 0
        groups[kind][-1].append(tensor)
        sizes[kind] += tensor.nbytes
    return [part for parts in groups.values() for part in parts if part]
