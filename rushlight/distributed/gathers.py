"""Collectives of lists of tensors, one for each rank: gather, scatter, all_gather, reduce_scatter, all_to_all.

gather, scatter and all_to_all are messages between ranks, from and to the tensors' own memory. all_gather and reduce_scatter
are MPI's, over one contiguous copy, or over the tensors' memory where they follow each other there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.distributed.arguments import check_count, check_same, check_tensor, check_tensors
from rushlight.distributed.collectives import deliver_reduced, future_of, hand_over
from rushlight.distributed.engine import algorithms
from rushlight.distributed.engine.algorithms import Channel
from rushlight.distributed.engine.buffers import Buffer, empty, flat, joined, lie_together, source, target, write
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp
from rushlight.distributed.engine.reductions import Reduction
from rushlight.distributed.engine.work import Work
from rushlight.distributed.groups import member_of, root_of
from rushlight.futures import Future


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Put the tensor of each rank into `tensor_list`, which has one for each: all of one dtype and number of elements.

    With `async_op` a Work is returned. ValueError for lists or tensors of other sizes. DistBackendError when a rank is
    missing.
    """
    members = member_of(group, "all_gather")
    if members is None:
        return None
    _check_list(tensor_list, tensor, members.size(), "all_gather", "tensor_list")
    mine = source(tensor)
    whole, deliver = _memory_for(tensor_list)
    work = members.begin(
        "all_gather", lambda channel: [channel.comm.Iallgather(mine.whole, whole.shared(members.size()))], tensors=[tensor],
        outputs=tensor_list, finish=deliver,
    )  # fmt: skip
    return hand_over(work, async_op)


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]], input_tensor_list: Sequence[Tensor], group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Future | None:  # fmt: skip
    """Gather several tensors: `output_tensor_lists` has a list for each rank, with one tensor for each of the inputs.

    With `async_op` a Future is returned. RuntimeError for lists or tensors of other sizes.
    """
    members = member_of(group, "all_gather_coalesced")
    if members is None:
        return None
    return future_of(begin_all_gather_coalesced(members, output_tensor_lists, input_tensor_list), async_op)


def begin_all_gather_coalesced(
    members: ProcessGroup, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor],
    copies: Sequence[Sequence[Tensor]] = (),
) -> Work:  # fmt: skip
    """Begin to gather several tensors; all outputs in order are then copied into each list of `copies`."""
    check_tensors(input_list, "input_tensor_list")
    for listed in output_lists:
        check_tensors(listed, "output_tensor_lists")
    _check_coalesced(output_lists, input_list, members.size())
    inputs = [source(tensor) for tensor in input_list]
    places = [_memory_for(column) for column in zip(*output_lists, strict=True)]
    outputs = [tensor for each in output_lists for tensor in each]

    def finish() -> None:
        for _, deliver in places:
            deliver()
        for copied in copies:
            for output, other in zip(outputs, copied, strict=True):
                _copy(output, other)

    return members.begin(
        "all_gather_coalesced",
        lambda channel: [
            channel.comm.Iallgather(mine.whole, whole.shared(members.size()))
            for mine, (whole, _) in zip(inputs, places, strict=True)
        ],
        tensors=input_list, outputs=[outputs, *copies] if copies else outputs, finish=finish,
    )  # fmt: skip


def _check_coalesced(output_lists: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], ranks: int) -> None:
    if len(output_lists) != ranks:
        raise RuntimeError(f"all_gather_coalesced: output lists should be equal to world size: {len(output_lists)} of {ranks}")
    for number, listed in enumerate(output_lists):
        if len(listed) != len(inputs):
            raise RuntimeError(f"all_gather_coalesced: invalid output size: output list {number} has {len(listed)} tensors")
        for place, (output, given) in enumerate(zip(listed, inputs, strict=True)):
            if output.shape != given.shape:
                raise RuntimeError(
                    f"all_gather_coalesced: invalid size of output tensor at index {place} (expected {list(given.shape)}, got "
                    f"{list(output.shape)})"
                )
            if output.dtype is not given.dtype:
                raise RuntimeError(
                    f"all_gather_coalesced: invalid tensor type at index {place} (expected {given.dtype}, got {output.dtype})"
                )


def _memory_for(tensors: Sequence[Tensor]) -> tuple[Buffer, Callable[[], object]]:
    """Return contiguous memory that MPI writes for a list of tensors, and what brings the values into the list."""
    if lie_together(tensors):
        return Buffer(joined(tensors), None), lambda: [target(tensor).deliver() for tensor in tensors]
    whole = empty([sum(tensor.numel() for tensor in tensors)], tensors[0].dtype)

    def deliver() -> None:
        for tensor, part in zip(tensors, whole.split([each.numel() for each in tensors]), strict=True):
            write(tensor, part.view(tensor.shape))

    return Buffer(whole, None), deliver


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: RedOpType | ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Reduce lists of tensors, and give each rank the reduction at its place in the list, in `output`.

    `input_list` has one tensor for each rank; they may differ in size, alike on all ranks. Dtypes and errors are those of
    `all_reduce`; ValueError where `output` does not have the size of this rank's tensor.
    """
    members = member_of(group, "reduce_scatter")
    if members is None:
        return None
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_count(input_list, members.size(), "reduce_scatter", "input_list")
    check_same([input_list[members.rank()]], output, "reduce_scatter", "input_list")
    reduction = Reduction(op, output.dtype, members.size(), "reduce_scatter")
    counts = [tensor.numel() for tensor in input_list]
    whole = source(_one_piece(input_list, copy=reduction.scales))
    result = target(output)

    def start(channel: Channel) -> Iterator[Any]:
        reduction.before(flat(whole.tensor))
        return algorithms.reduce_scatter(channel, whole, counts, result, reduction)

    work = members.begin(
        "reduce_scatter", start, tensors=input_list, outputs=[output], detail=reduction.kind.name,
        finish=lambda: deliver_reduced(result, reduction),
    )  # fmt: skip
    return hand_over(work, async_op)


def _one_piece(tensors: Sequence[Tensor], copy: bool) -> Tensor:
    """Return the elements of all tensors in one contiguous tensor: their own memory where that is possible."""
    if not copy and lie_together(tensors):
        return joined(tensors)
    whole = empty([sum(tensor.numel() for tensor in tensors)], tensors[0].dtype)
    with no_grad():
        for tensor, part in zip(tensors, whole.split([each.numel() for each in tensors]), strict=True):
            part.copy_(tensor.detach().reshape(-1))
    return whole


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: ProcessGroup | None = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Put the tensor of each rank into `gather_list` of the world's rank `dst` (0 unless given), or the group's `group_dst`.

    The list is given there alone: ValueError elsewhere, or for tensors of other sizes. DistBackendError when a rank is
    missing.
    """
    members = member_of(group, "gather")
    if members is None:
        return None
    check_tensor(tensor, "tensor")
    root = root_of(members, dst, group_dst, "dst", default=0)
    _check_side(gather_list, members.rank() == root, "gather_list", "destination")
    mine = source(tensor)
    if members.rank() != root:
        return _exchange(members, "gather", {root: mine}, {}, [tensor], f"to rank {members.ranks[root]}", async_op)
    _check_list(gather_list, tensor, members.size(), "gather", "gather_list")
    _copy(tensor, gather_list[root])
    places = {rank: target(each) for rank, each in enumerate(gather_list) if rank != root}
    return _exchange(
        members, "gather", {}, places, [tensor], f"to rank {members.ranks[root]}", async_op, outputs=gather_list
    )  # fmt: skip


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: ProcessGroup | None = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Give each rank, in `tensor`, its tensor of the `scatter_list` of the world's rank `src` (0 unless given).

    The list is given there alone: ValueError elsewhere, or for tensors of other sizes. DistBackendError when a rank is
    missing.
    """
    members = member_of(group, "scatter")
    if members is None:
        return None
    check_tensor(tensor, "tensor")
    root = root_of(members, src, group_src, "src", default=0)
    _check_side(scatter_list, members.rank() == root, "scatter_list", "source")
    detail = f"from rank {members.ranks[root]}"
    if members.rank() != root:
        return _exchange(members, "scatter", {}, {root: target(tensor)}, [tensor], detail, async_op, outputs=[tensor])
    _check_list(scatter_list, tensor, members.size(), "scatter", "scatter_list")
    _copy(scatter_list[root], tensor)
    parts = {rank: source(each) for rank, each in enumerate(scatter_list) if rank != root}
    return _exchange(members, "scatter", parts, {}, [tensor], detail, async_op, outputs=[tensor])


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send the tensor at place i of `input_tensor_list` to rank i, whose output list has it at this rank's place.

    Both lists have one tensor for each rank; sizes may differ, as long as sender and receiver agree. ValueError for lists of
    other lengths. DistBackendError when a rank is missing.
    """
    members = member_of(group, "all_to_all")
    if members is None:
        return None
    for tensors, name in ((output_tensor_list, "output_tensor_list"), (input_tensor_list, "input_tensor_list")):
        check_tensors(tensors, name)
        check_count(tensors, members.size(), "all_to_all", name)
    me = members.rank()
    check_same([output_tensor_list[me]], input_tensor_list[me], "all_to_all", "output_tensor_list")
    _copy(input_tensor_list[me], output_tensor_list[me])
    sends = {rank: source(each) for rank, each in enumerate(input_tensor_list) if rank != me}
    places = {rank: target(each) for rank, each in enumerate(output_tensor_list) if rank != me}
    return _exchange(members, "all_to_all", sends, places, [], "", async_op, outputs=output_tensor_list)


def _exchange(
    members: ProcessGroup, name: str, sends: dict[int, Buffer], receives: dict[int, Buffer], tensors: Sequence[Tensor],
    detail: str, async_op: bool, outputs: Sequence[Tensor] = (),
) -> Work | None:  # fmt: skip
    """Send and receive buffers by rank of the group, as one collective."""

    def start(channel: Channel) -> list[Any]:
        coming = [channel.receive(buffer.tensor, rank) for rank, buffer in receives.items()]
        return coming + [channel.send(buffer.tensor, rank) for rank, buffer in sends.items()]

    def finish() -> None:
        for buffer in receives.values():
            buffer.deliver()

    return hand_over(members.begin(name, start, tensors=tensors, outputs=outputs, detail=detail, finish=finish), async_op)


def _copy(from_: Tensor, to: Tensor) -> None:
    write(to, from_.detach().reshape(to.shape))


def _check_side(tensors: object, is_root: bool, name: str, side: str) -> None:
    """Raise ValueError unless the list is given on the root, and there alone."""
    if is_root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {side} rank.")
    if not is_root and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{side} ranks.")


def _check_list(tensors: Sequence[Tensor] | None, like: Tensor, count: int, caller: str, name: str) -> None:
    """Raise unless a list has one tensor for each rank, of the dtype and number of elements of `like`."""
    check_tensors(tensors, name)
    check_tensor(like, "tensor")
    check_count(tensors, count, caller, name)
    check_same(tensors, like, caller, name)
