"""Collectives that every rank calls with a tensor of the same shape: broadcast and reductions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.distributed.arguments import check_tensor, check_tensors
from rushlight.distributed.engine import algorithms
from rushlight.distributed.engine.algorithms import Channel
from rushlight.distributed.engine.buffers import Buffer, flat, source, staged, target, write
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp
from rushlight.distributed.engine.reductions import Reduction
from rushlight.distributed.engine.work import Work
from rushlight.distributed.groups import member_of, root_of
from rushlight.distributed.sparse_sums import begin_sparse_sum
from rushlight.futures import Future


def hand_over(work: Work, async_op: bool) -> Work | None:
    """Return the Work of an asynchronous operation, which the background thread advances; else wait for it."""
    if not async_op:
        work.wait()
        return None
    work.progress_in_background()
    return work


def future_of(work: Work, async_op: bool) -> Future | None:
    """Return the Future of an asynchronous operation; else wait for it."""
    begun = hand_over(work, async_op)
    return None if begun is None else begun.get_future()


def broadcast(
    tensor: Tensor, src: int | None = None, group: ProcessGroup | None = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Copy the tensor of the world's rank `src` (or the group's `group_src`) into that of all ranks.

    `tensor` has the same shape and dtype on all ranks. With `async_op` a Work is returned. ValueError for a rank that is not
    in the group. DistBackendError when a rank is missing.
    """
    members = member_of(group, "broadcast")
    if members is None:
        return None
    check_tensor(tensor, "tensor")
    root = root_of(members, src, group_src, "src")
    return hand_over(begin_broadcast(members, tensor, root), async_op)


def begin_broadcast(members: ProcessGroup, tensor: Tensor, root: int, others: Sequence[Tensor] = ()) -> Work:
    """Begin to copy the tensor of the group's rank `root`, on each rank also into `others`."""
    buffer = source(tensor) if members.rank() == root else target(tensor)

    def finish() -> None:
        buffer.deliver()
        _copy_to(others, tensor)

    return members.begin(
        "broadcast", lambda channel: [channel.comm.Ibcast(buffer.whole, root)], tensors=[tensor], outputs=[tensor, *others],
        detail=f"from rank {members.ranks[root]}", finish=finish,
    )  # fmt: skip


def _copy_to(others: Sequence[Tensor], tensor: Tensor) -> None:
    for other in others:
        write(other, tensor.detach())


def all_reduce(
    tensor: Tensor, op: RedOpType | ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Replace the tensor of each rank by the reduction of all.

    `tensor` has the same shape and dtype on all ranks: any integers, bool (a sum is "or"), float16, bfloat16, float32,
    float64, and for sums complex numbers. AVG is the sum divided by the number of ranks. Of sparse tensors (COO) there are sums
    only. With `async_op` a Work is returned.

        dist.all_reduce(gradient, dist.ReduceOp.AVG)

    RuntimeError or ValueError for an operation that the dtype does not have. DistBackendError when a rank is missing.
    """
    members = member_of(group, "all_reduce")
    if members is None:
        return None
    if isinstance(tensor, Tensor) and tensor.is_sparse:
        return hand_over(begin_sparse_sum(members, tensor, op), async_op)
    check_tensor(tensor, "tensor")
    return hand_over(begin_all_reduce(members, "all_reduce", [tensor], op), async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: RedOpType | ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Future | None:  # fmt: skip
    """Replace each of several tensors by the reduction of those of all ranks, as `all_reduce` does for one.

    With `async_op` a Future of the tensors is returned.
    """
    members = member_of(group, "all_reduce_coalesced")
    if members is None:
        return None
    check_tensors(tensors, "tensors")
    return future_of(begin_all_reduce(members, "all_reduce_coalesced", list(tensors), op), async_op)


def begin_all_reduce(
    members: ProcessGroup, name: str, tensors: list[Tensor], op: RedOpType | ReduceOp, others: Sequence[Tensor] = ()
) -> Work:
    """Begin to reduce tensors; on each rank the first is copied into `others` afterwards."""
    reductions = [Reduction(op, tensor.dtype, members.size(), "all_reduce") for tensor in tensors]
    buffers = [
        target(tensor, load=True) if all(tensor is not other for other in tensors[:place]) else Buffer(staged(tensor), None)
        for place, tensor in enumerate(tensors)
    ]  # a tensor that is given twice is reduced once, the second time in a copy

    def start(channel: Channel) -> Iterator[Any]:
        for buffer, reduction in zip(buffers, reductions, strict=True):
            reduction.before(flat(buffer.tensor))
        return algorithms.together([
            algorithms.all_reduce(channel, buffer, reduction) for buffer, reduction in zip(buffers, reductions, strict=True)
        ])

    def finish() -> None:
        for buffer, reduction in zip(buffers, reductions, strict=True):
            deliver_reduced(buffer, reduction)
        if others:
            _copy_to(others, tensors[0])

    detail = reductions[0].kind.name if reductions else ""
    return members.begin(name, start, tensors=tensors, outputs=[*tensors, *others], detail=detail, finish=finish)


def deliver_reduced(buffer: Buffer, reduction: Reduction) -> None:
    """Finish a reduction in its buffer, and write it back where that is a staging copy."""
    reduction.after(flat(buffer.tensor))
    buffer.deliver()


def reduce(
    tensor: Tensor, dst: int | None = None, op: RedOpType | ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Replace the tensor of the world's rank `dst` (or the group's `group_dst`) by the reduction of those of all ranks.

    The other ranks' tensors stay as they are. Dtypes and errors are those of `all_reduce`.
    """
    members = member_of(group, "reduce")
    if members is None:
        return None
    check_tensor(tensor, "tensor")
    root = root_of(members, dst, group_dst, "dst")
    reduction = Reduction(op, tensor.dtype, members.size(), "reduce")
    at_root = members.rank() == root
    buffer = target(tensor, load=True) if at_root else source(staged(tensor) if reduction.scales else tensor)

    def start(channel: Channel) -> Iterator[Any]:
        reduction.before(flat(buffer.tensor))
        return algorithms.reduce(channel, buffer, reduction, root)

    work = members.begin(
        "reduce", start, tensors=[tensor], outputs=[tensor], detail=f"{reduction.kind.name} to rank {members.ranks[root]}",
        finish=(lambda: deliver_reduced(buffer, reduction)) if at_root else None,
    )  # fmt: skip
    return hand_over(work, async_op)
