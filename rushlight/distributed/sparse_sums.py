"""Sums of sparse tensors over ranks. Elements are at different places on each: every rank sends its own to every other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.distributed.engine.algorithms import Channel
from rushlight.distributed.engine.buffers import Buffer, empty
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp, kind_of
from rushlight.distributed.engine.work import Work
from rushlight.ops import aten
from rushlight.sparse.functions import sparse_coo_tensor


def begin_sparse_sum(
    members: ProcessGroup, tensor: Tensor, op: RedOpType | ReduceOp, others: Sequence[Tensor] = ()
) -> Work:
    """Begin to replace a sparse tensor (COO) of each rank by the sum of all, which is then copied into `others`.

    RuntimeError for other reductions.
    """
    if kind_of(op) is not RedOpType.SUM:
        raise RuntimeError(f"all_reduce: unsupported reduction operation {kind_of(op).name} of sparse tensors: only SUM is")
    with no_grad():
        own = tensor.detach().coalesce()
        places, values = own.indices().t().contiguous(), own.values().contiguous()
    gathered: list[tuple[Tensor, Tensor]] = []

    def start(channel: Channel) -> Iterator[Any]:
        ranks, me = channel.comm.size, channel.comm.rank
        count = empty([1], int64)
        with no_grad():
            count.fill_(values.shape[0])
        counts = empty([ranks], int64)
        yield channel.comm.Iallgather(Buffer(count, None).whole, Buffer(counts, None).shared(ranks))
        for number in counts.tolist():
            gathered.append((empty([number, places.shape[1]], int64), empty([number, *values.shape[1:]], values.dtype)))
        gathered[me] = places, values
        peers = [rank for rank in range(ranks) if rank != me]
        requests = [channel.receive(each, rank) for rank in peers for each in gathered[rank]]
        yield from requests + [channel.send(each, rank) for rank in peers for each in (places, values)]

    def finish() -> None:
        with no_grad():
            all_places = aten.cat([each for each, _ in gathered]).t()
            total = sparse_coo_tensor(all_places, aten.cat([each for _, each in gathered]), list(tensor.shape))
            for each in (tensor, *others):
                each.detach().copy_(total.coalesce())

    return members.begin(
        "all_reduce", start, tensors=[tensor], outputs=[tensor, *others], detail="SUM of sparse", finish=finish
    )
