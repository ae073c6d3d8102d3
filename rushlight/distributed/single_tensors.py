"""Collectives of one tensor that is made of a part for each rank: all_gather_into_tensor, reduce_scatter_tensor,
all_to_all_single. They are MPI's, on the tensors' own memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.distributed.arguments import check_tensor
from rushlight.distributed.collectives import deliver_reduced, hand_over
from rushlight.distributed.engine import algorithms, mpi
from rushlight.distributed.engine.algorithms import Channel
from rushlight.distributed.engine.buffers import flat, source, staged, target
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp
from rushlight.distributed.engine.reductions import Reduction
from rushlight.distributed.engine.work import Work
from rushlight.distributed.groups import member_of


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Put the tensors of all ranks into one: of shape (ranks * n, ...) for inputs of shape (n, ...), or (ranks, n, ...).

    The input may be this rank's part of the output. ValueError for an output of another dtype or number of elements.
    DistBackendError when a rank is missing.
    """
    members = member_of(group, "all_gather_into_tensor")
    if members is None:
        return None
    _check_whole(output_tensor, input_tensor, members.size(), "all_gather_into_tensor", ("output_tensor", "input_tensor"))
    whole = target(output_tensor)
    mine = source(staged(input_tensor) if _is_other_part(output_tensor, input_tensor, members.rank()) else input_tensor)
    in_place = mine.tensor.data_ptr() == whole.tensor.data_ptr() + members.rank() * mine.nbytes

    def start(channel: Channel) -> list[Any]:
        return [channel.comm.Iallgather(mpi.load().IN_PLACE if in_place else mine.whole, whole.shared(members.size()))]

    work = members.begin(
        "all_gather_into_tensor", start, tensors=[input_tensor], outputs=[output_tensor], finish=whole.deliver
    )  # fmt: skip
    return hand_over(work, async_op)


def _is_other_part(whole: Tensor, part: Tensor, rank: int) -> bool:
    """Return whether a part shares the memory of the whole, but is not the part at the rank's place."""
    if whole._impl.storage is not part._impl.storage:
        return False
    offset = part._impl.storage_offset - whole._impl.storage_offset
    return offset != rank * part.numel() or not part.is_contiguous()


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: RedOpType | ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Reduce the inputs of all ranks, and give each rank its part: `input` has `ranks` times the elements of `output`.

    The output may be a part of the input. Dtypes and errors are those of `all_reduce`; ValueError for other sizes.
    """
    members = member_of(group, "reduce_scatter_tensor")
    if members is None:
        return None
    _check_whole(input, output, members.size(), "reduce_scatter_tensor", ("input", "output"))
    reduction = Reduction(op, output.dtype, members.size(), "reduce_scatter_tensor")
    shares = input._impl.storage is output._impl.storage
    whole, part = source(staged(input) if shares or reduction.scales else input), target(output)

    def start(channel: Channel) -> Iterator[Any]:
        reduction.before(flat(whole.tensor))
        return algorithms.reduce_scatter(channel, whole, [output.numel()] * members.size(), part, reduction)

    work = members.begin(
        "reduce_scatter_tensor", start, tensors=[input], outputs=[output], detail=reduction.kind.name,
        finish=lambda: deliver_reduced(part, reduction),
    )  # fmt: skip
    return hand_over(work, async_op)


def _check_whole(whole: Tensor, part: Tensor, size: int, caller: str, names: tuple[str, str]) -> None:
    for tensor, name in zip((whole, part), names, strict=True):
        check_tensor(tensor, name)
    if whole.dtype is not part.dtype or whole.numel() != part.numel() * size:
        raise ValueError(
            f"{caller}: {names[0]} is {whole.dtype} of shape {list(whole.shape)}, expected {size} times the elements of "
            f"{names[1]}, {part.dtype} of shape {list(part.shape)}"
        )


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: ProcessGroup | None = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Send the i-th part of `input` to rank i, whose `output` gets the parts in the order of the ranks.

    Parts are rows along dimension 0: as many as the split sizes say, or equally many. ValueError for sizes that do not fit
    the tensors, RuntimeError for rows that cannot be shared out equally. DistBackendError when a rank is missing.
    """
    members = member_of(group, "all_to_all_single")
    if members is None:
        return None
    for tensor, name in ((output, "output"), (input, "input")):
        check_tensor(tensor, name)
    if output.dtype is not input.dtype:
        raise ValueError(f"all_to_all_single: output is {output.dtype}, input is {input.dtype}")
    going = _counts(input, input_split_sizes, members.size(), "input")
    coming = _counts(output, output_split_sizes, members.size(), "output")
    whole = source(staged(input) if output._impl.storage is input._impl.storage else input)
    result = target(output)
    work = members.begin(
        "all_to_all_single", lambda channel: [channel.comm.Ialltoallv(whole.split(going), result.split(coming))],
        outputs=[output], finish=result.deliver,
    )  # fmt: skip
    return hand_over(work, async_op)


def _counts(tensor: Tensor, sizes: Sequence[int] | None, ranks: int, name: str) -> list[int]:
    """Return how many elements of a tensor belong to each rank."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not sizes:
        if rows % ranks:
            raise RuntimeError(
                f"Tensor's dim 0 does not divide equally across group size: {name} has {rows} rows, of {ranks} ranks"
            )
        sizes = [rows // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != rows:
        raise ValueError(f"all_to_all_single: {name}_split_sizes {list(sizes)} do not fit {rows} rows and {ranks} ranks")
    width = math.prod(tensor.shape[1:])
    return [size * width for size in sizes]
