"""How tensors are reduced over ranks: by MPI, or by messages between neighbours and the library's own kernels.

Each function yields the requests to wait for, one after the other; what stands between two of them runs when the first is
complete. MPI reduces small tensors and integers. It takes large buffers of floats three times as long as a ring of messages
does, whose sums are vector code, and it has no 16-bit floats.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor
from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.buffers import Buffer, empty, flat
from rushlight.distributed.engine.reductions import Reduction

_RING_MESSAGE = 1 << 17  # the bytes for each rank at which a ring gets faster than MPI's reduction, measured with two ranks
_PIECE = 1 << 20  # bytes of a message: the first is added while the next arrives

Requests = Iterator[Any]


class Channel:
    """The communicators and the tag of one operation: `comm` for MPI's collectives, `pairs` for messages between two ranks."""

    def __init__(self, comm: Any, pairs: Any, tag: int) -> None:
        self.comm, self.pairs, self.tag = comm, pairs, tag

    def send(self, tensor: Tensor, rank: int) -> Any:
        """Begin to send a tensor."""
        return self.pairs.Isend(Buffer(tensor, None).whole, rank, self.tag)

    def receive(self, tensor: Tensor, rank: int) -> Any:
        """Begin to receive a tensor."""
        return self.pairs.Irecv(Buffer(tensor, None).whole, rank, self.tag)


def together(each: Sequence[Requests]) -> Requests:
    """Return the requests of several operations, all of which begin now: MPI's collectives must begin alike on all ranks."""
    first = [next(requests) for requests in each]
    return itertools.chain.from_iterable(itertools.chain([one], rest) for one, rest in zip(first, each, strict=True))


def all_reduce(channel: Channel, buffer: Buffer, reduction: Reduction) -> Requests:
    """Reduce a buffer over all ranks, in place."""
    ranks = channel.comm.size
    if _is_ring_faster(buffer, ranks) and reduction.has_kernel and ranks > 1:
        return _ring_all_reduce(channel, flat(buffer.tensor), reduction)
    if reduction.operation is None:
        return _gathered_all_reduce(channel, flat(buffer.tensor), reduction)
    return iter([channel.comm.Iallreduce(mpi.load().IN_PLACE, buffer.whole, reduction.operation)])


def _is_ring_faster(buffer: Buffer, ranks: int) -> bool:
    """Return whether a ring's messages, one for each rank, are large enough to be worth starting each of them."""
    return buffer.nbytes >= _RING_MESSAGE * ranks


def _ring_all_reduce(channel: Channel, whole: Tensor, reduction: Reduction) -> Requests:
    """Reduce part i while it travels once around the ring; then have each finished part travel around it."""
    ranks, me = channel.comm.size, channel.comm.rank
    parts = list(whole.tensor_split(ranks))
    spare = empty(parts[0].shape, whole.dtype)
    for step in range(ranks - 1):
        sent, mine = parts[(me - step) % ranks], parts[(me - step - 1) % ranks]
        yield from _shift(channel, sent, spare[: mine.numel()], _adding(reduction, mine, spare))
    for step in range(ranks - 1):
        sent, mine = parts[(me + 1 - step) % ranks], parts[(me - step) % ranks]
        yield from _shift(channel, sent, mine)


def _shift(channel: Channel, sent: Tensor, received: Tensor, arrived: Callable[[slice], None] | None = None) -> Requests:
    """Send to the next rank and receive from the previous one, in pieces; call `arrived` with the place of each."""
    ranks, me = channel.comm.size, channel.comm.rank
    width = max(_PIECE // sent.dtype.itemsize, 1)
    coming = [channel.receive(piece, (me - 1) % ranks) for piece in received.split(width)]
    going = [channel.send(piece, (me + 1) % ranks) for piece in sent.split(width)]
    for index, request in enumerate(coming):
        yield request
        if arrived is not None:
            arrived(slice(index * width, (index + 1) * width))
    yield from going


def _adding(reduction: Reduction, into: Tensor, other: Tensor) -> Callable[[slice], None]:
    """Return what reduces a piece of one tensor into that of another."""
    return lambda piece: reduction.combine(into[piece], other[piece][: into[piece].numel()])


def _gathered_all_reduce(channel: Channel, whole: Tensor, reduction: Reduction) -> Requests:
    """Have all ranks' values on each rank, and reduce them there in float32."""
    everyone = empty([channel.comm.size, whole.numel()], whole.dtype)
    yield channel.comm.Iallgather(Buffer(whole, None).whole, Buffer(everyone, None).shared(channel.comm.size))
    _reduce_rows(everyone, whole, reduction)


def _reduce_rows(rows: Tensor, into: Tensor, reduction: Reduction) -> None:
    """Reduce the rows of a matrix of 16-bit floats in float32."""
    with no_grad():
        total = rows[0].to(float32)
        for row in rows[1:]:
            reduction.combine(total, row.to(float32))
        into.copy_(total)


def reduce(channel: Channel, buffer: Buffer, reduction: Reduction, root: int) -> Requests:
    """Reduce a buffer over all ranks into that of the root, in place there."""
    if reduction.operation is None:
        return _gathered_reduce(channel, flat(buffer.tensor), reduction, root)
    if channel.comm.rank == root:
        return iter([channel.comm.Ireduce(mpi.load().IN_PLACE, buffer.whole, reduction.operation, root)])
    return iter([channel.comm.Ireduce(buffer.whole, None, reduction.operation, root)])


def _gathered_reduce(channel: Channel, whole: Tensor, reduction: Reduction, root: int) -> Requests:
    mine = Buffer(whole, None)
    if channel.comm.rank != root:
        yield channel.comm.Igather(mine.whole, None, root)
        return
    everyone = empty([channel.comm.size, whole.numel()], whole.dtype)
    yield channel.comm.Igather(mine.whole, Buffer(everyone, None).shared(channel.comm.size), root)
    _reduce_rows(everyone, whole, reduction)


def reduce_scatter(
    channel: Channel, whole: Buffer, counts: Sequence[int], result: Buffer, reduction: Reduction
) -> Requests:
    """Reduce a buffer of a part for each rank, of `counts` elements, over all ranks; each gets its part in `result`."""
    by_messages = _is_ring_faster(whole, channel.comm.size) and reduction.has_kernel or reduction.operation is None
    if by_messages and channel.comm.size > 1:
        return _ring_reduce_scatter(channel, whole, counts, flat(result.tensor), reduction)
    if reduction.operation is None:
        return iter([channel.comm.Iallgather(whole.whole, result.whole)])
    units = [count * whole.units for count in counts]
    return iter([channel.comm.Ireduce_scatter(whole.whole, result.whole, units, reduction.operation)])


def _ring_reduce_scatter(
    channel: Channel, whole: Buffer, counts: Sequence[int], result: Tensor, reduction: Reduction
) -> Requests:
    """Have part i travel around the ring, from rank i + 1 to rank i, each adding its own."""
    ranks, me = channel.comm.size, channel.comm.rank
    parts = flat(whole.tensor).split([count * whole.parts for count in counts])
    sent = parts[(me - 1) % ranks]
    for step in range(1, ranks):
        mine = parts[(me - 1 - step) % ranks]
        received = result if step == ranks - 1 else empty(mine.shape, mine.dtype)
        yield from _shift(channel, sent, received, _adding(reduction, received, mine))
        sent = received
