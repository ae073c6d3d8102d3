"""ProcessGroup with the methods that communicate, for programs that hold a group: communication hooks, for example.

Each begins an operation and returns its Work. Ranks are the group's. The functions of `torch.distributed` are the same
operations with checks that suit most programs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.distributed import barriers, collectives, gathers, point_to_point, single_tensors
from rushlight.distributed.engine import process_group
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp, kind_of
from rushlight.distributed.engine.work import Work
from rushlight.distributed.options import (
    UNSET,
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from rushlight.distributed.sparse_sums import begin_sparse_sum
from rushlight.ops import aten

_ON_ONE_RANK: dict[RedOpType, Callable[[Tensor, Tensor], Tensor]] = {
    RedOpType.SUM: aten.add, RedOpType.PRODUCT: aten.mul, RedOpType.MIN: aten.minimum, RedOpType.MAX: aten.maximum,
    RedOpType.BAND: aten.bitwise_and, RedOpType.BOR: aten.bitwise_or, RedOpType.BXOR: aten.bitwise_xor,
}  # fmt: skip


def _listed(tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _check_alike(caller: str, tensors: Sequence[Tensor], like: Tensor) -> None:
    """Raise RuntimeError unless tensors have one type and size."""
    for index, tensor in enumerate(tensors):
        if tensor.layout is not like.layout:
            raise RuntimeError(
                f"ProcessGroup::{caller}: invalid tensor layout at index {index} (expected {like.layout}, got {tensor.layout})"
            )
        if tensor.dtype is not like.dtype:
            raise RuntimeError(
                f"ProcessGroup::{caller}: invalid tensor type at index {index} (expected {like.dtype}, got {tensor.dtype})"
            )
        if tensor.shape != like.shape:
            raise RuntimeError(
                f"ProcessGroup::{caller}: invalid tensor size at index {index} (expected {list(like.shape)}, got "
                f"{list(tensor.shape)})"
            )


def _with_time(method: Callable[..., Work]) -> Callable[..., Work]:
    """Return a method whose Work waits as long as its options say."""

    @functools.wraps(method)
    def timed(self: Any, *args: Any, **kwargs: Any) -> Work:
        work = method(self, *args, **kwargs)
        options = next((each for each in (*args, *kwargs.values()) if hasattr(each, "asyncOp")), None)
        if options is not None and options.timeout != UNSET:
            work.limit = options.timeout
        return work

    return timed


class ProcessGroup(process_group.ProcessGroup):
    """Some of the ranks, numbered from 0 in the group; `ranks` are their numbers in the world.

    `init_process_group` and `new_group` make them. A method takes tensors and options, or the simple forms that its
    parameters show.

        group.allreduce([tensor], options).wait()
        group.allreduce(tensor, op=ReduceOp.MAX).wait()
    """

    @_with_time
    def allreduce(
        self, tensors: Tensor | Sequence[Tensor], opts: AllreduceOptions | RedOpType | ReduceOp | None = None, *,
        op: RedOpType | ReduceOp | None = None,
    ) -> Work:  # fmt: skip
        """Reduce tensors: several ones of a rank are reduced to one, too."""
        reduced = _listed(tensors)
        self._check_some("allreduce", reduced)
        _check_alike("allreduce", reduced[1:], reduced[0])
        chosen = self._operation(opts, op)
        first, others = reduced[0], reduced[1:]
        with no_grad():
            for other in others:
                first.copy_(_ON_ONE_RANK[kind_of(chosen)](first, other))
        if first.is_sparse:
            work = begin_sparse_sum(self, first, chosen, others)
            work.progress_in_background()
            return work
        work = collectives.begin_all_reduce(self, "all_reduce", [first], chosen, others)
        work.progress_in_background()
        return work

    @_with_time
    def allreduce_coalesced(
        self, tensors: Sequence[Tensor], opts: AllreduceCoalescedOptions | RedOpType | ReduceOp | None = None
    ) -> Work:
        """Reduce each of several tensors."""
        reduced = _listed(tensors)
        self._check_some("allreduce_coalesced", reduced)
        for index, tensor in enumerate(reduced):
            if tensor.layout is not reduced[0].layout:
                raise RuntimeError(f"ProcessGroup::allreduce_coalesced: invalid tensor layout at index {index}")
        if reduced[0].is_sparse:
            raise RuntimeError("ProcessGroup::allreduce_coalesced: unsupported layout: tensors must be dense")
        if any(tensor.dtype is not reduced[0].dtype for tensor in reduced):
            raise RuntimeError("ProcessGroup::allreduce_coalesced: tensors must all have the same type")
        work = collectives.begin_all_reduce(self, "all_reduce_coalesced", reduced, self._operation(opts, None))
        work.progress_in_background()
        return work

    @_with_time
    def broadcast(
        self, tensors: Tensor | Sequence[Tensor], opts: BroadcastOptions | None = None, *, root: int | None = None
    ) -> Work:
        """Copy a tensor of the root into all tensors of all ranks."""
        given, options = _listed(tensors), opts or BroadcastOptions()
        source = self._checked_root("broadcast", options.rootRank if root is None else root)
        if not 0 <= options.rootTensor < len(given):
            raise RuntimeError(f"ProcessGroup::broadcast: invalid root tensor: {options.rootTensor}")
        _check_alike("broadcast", given, given[0])
        whole = given[options.rootTensor]
        others = [each for place, each in enumerate(given) if place != options.rootTensor]
        work = collectives.begin_broadcast(self, whole, source, others)
        work.progress_in_background()
        return work

    @_with_time
    def reduce(
        self, tensors: Tensor | Sequence[Tensor], opts: ReduceOptions | None = None, *, root: int | None = None,
        op: RedOpType | ReduceOp | None = None,
    ) -> Work:  # fmt: skip
        """Reduce a tensor to the root's."""
        tensor, options = self._the_one("reduce", tensors), opts or ReduceOptions()
        target = self._checked_root("reduce", options.rootRank if root is None else root)
        if options.rootTensor != 0:
            raise RuntimeError(f"ProcessGroup::reduce: invalid root tensor: {options.rootTensor}")
        return collectives.reduce(tensor, op=op or options.reduceOp, group=self, async_op=True, group_dst=target)

    @_with_time
    def allgather(
        self, output_tensors: Sequence[Any], input_tensors: Tensor | Sequence[Tensor], opts: AllgatherOptions | None = None
    ) -> Work:
        """Put the tensor of each rank into a list: [list], [tensor], or list, tensor. For several tensors of a rank, each
        list has all tensors of all ranks."""
        if isinstance(input_tensors, Tensor):
            return gathers.all_gather(output_tensors, input_tensors, self, async_op=True)
        if not input_tensors:
            raise RuntimeError("ProcessGroup::allgather: requires non-empty input tensor list")
        if len(input_tensors) != len(output_tensors):
            raise RuntimeError("ProcessGroup::allgather: requires input/output tensor lists to have the same length")
        tensor, count = input_tensors[0], len(input_tensors)
        for places in output_tensors:
            self._check_length("allgather", places, count)
            _check_alike("allgather", places, tensor)
        _check_alike("allgather", input_tensors, tensor)
        if count == 1:
            return gathers.all_gather(output_tensors[0], tensor, self, async_op=True)
        first = output_tensors[0]
        of_ranks = [first[place : place + count] for place in range(0, len(first), count)]
        work = gathers.begin_all_gather_coalesced(self, of_ranks, input_tensors, output_tensors[1:])
        work.progress_in_background()
        return work

    @_with_time
    def allgather_coalesced(
        self, output_lists: Sequence[Sequence[Tensor]], input_list: Sequence[Tensor], opts: AllgatherOptions | None = None
    ) -> Work:
        """Gather several tensors: the output has a list for each rank."""
        work = gathers.begin_all_gather_coalesced(self, output_lists, input_list)
        work.progress_in_background()
        return work

    @_with_time
    def allgather_into_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: AllgatherOptions | None = None
    ) -> Work:
        """Gather several tensors, each into one that has a part for each rank."""
        parts = [whole.chunk(self.size()) for whole in outputs]
        return self.allgather_coalesced(list(zip(*parts, strict=True)), inputs, opts)

    @_with_time
    def gather(
        self, output_tensors: Sequence[Any], input_tensors: Tensor | Sequence[Tensor], opts: GatherOptions | None = None, *,
        root: int | None = None,
    ) -> Work:  # fmt: skip
        """Put the tensor of each rank into the root's list: [list], [tensor], or list, tensor. Elsewhere the list is empty."""
        options = opts or GatherOptions()
        target = self._checked_root("gather", options.rootRank if root is None else root)
        tensor = self._the_one("gather", input_tensors, "input")
        places = None
        if self.rank() == target:
            places = self._of_root("gather", output_tensors, isinstance(input_tensors, Tensor), "output")
            _check_alike("gather", places, tensor)
        elif output_tensors:
            raise RuntimeError("ProcessGroup::gather: requires empty output on non-root")
        return gathers.gather(tensor, places, group=self, async_op=True, group_dst=target)

    @_with_time
    def scatter(
        self, output_tensors: Tensor | Sequence[Tensor], input_tensors: Sequence[Any], opts: ScatterOptions | None = None, *,
        root: int | None = None,
    ) -> Work:  # fmt: skip
        """Give each rank its tensor of the root's list: [tensor], [list], or tensor, list. Elsewhere the list is empty."""
        options = opts or ScatterOptions()
        source = self._checked_root("scatter", options.rootRank if root is None else root)
        tensor = self._the_one("scatter", output_tensors, "output")
        parts = None
        if self.rank() == source:
            parts = self._of_root("scatter", input_tensors, isinstance(output_tensors, Tensor), "input")
            _check_alike("scatter", parts, tensor)
        elif input_tensors:
            raise RuntimeError("ProcessGroup::scatter: requires empty input on non-root")
        return gathers.scatter(tensor, parts, group=self, async_op=True, group_src=source)

    @_with_time
    def reduce_scatter(
        self, output_tensors: Tensor | Sequence[Tensor], input_tensors: Sequence[Any],
        opts: ReduceScatterOptions | RedOpType | ReduceOp | None = None, *, op: RedOpType | ReduceOp | None = None,
    ) -> Work:  # fmt: skip
        """Reduce lists of tensors, and give each rank its part: [tensor], [list], or tensor, list."""
        parts = input_tensors if isinstance(output_tensors, Tensor) else input_tensors[0]
        result = self._the_one("reduce_scatter", output_tensors, "output")
        return gathers.reduce_scatter(result, parts, self._operation(opts, op), self, async_op=True)

    @_with_time
    def alltoall(
        self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor], opts: AllToAllOptions | None = None
    ) -> Work:
        """Send the tensor at each place to the rank of that number."""
        return gathers.all_to_all(output_tensors, input_tensors, self, async_op=True)

    @_with_time
    def alltoall_base(
        self, output: Tensor, input: Tensor, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int],
        opts: AllToAllOptions | None = None,
    ) -> Work:  # fmt: skip
        """Send rows to each rank, as many as the sizes say; equally many for empty lists."""
        return single_tensors.all_to_all_single(
            output, input, list(output_split_sizes), list(input_split_sizes), self, async_op=True
        )

    @_with_time
    def _allgather_base(self, output: Tensor, input: Tensor, opts: AllgatherOptions | None = None) -> Work:
        """Put the tensors of all ranks into one."""
        return single_tensors.all_gather_into_tensor(output, input, self, async_op=True)

    @_with_time
    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: ReduceScatterOptions | None = None) -> Work:
        """Reduce a tensor, and give each rank its part."""
        return single_tensors.reduce_scatter_tensor(output, input, self._operation(opts, None), self, async_op=True)

    @_with_time
    def reduce_scatter_tensor_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: ReduceScatterOptions | None = None
    ) -> Work:
        """Reduce several tensors, and give each rank its parts."""
        begun = [self._reduce_scatter_base(output, given, opts) for output, given in zip(outputs, inputs, strict=True)]
        if not begun:
            raise RuntimeError("ProcessGroup::reduce_scatter_tensor_coalesced: requires non-empty tensor list")
        return begun[0].together(begun[1:])

    def send(self, tensors: Sequence[Tensor], dstRank: int, tag: int = 0) -> Work:  # noqa: N803  (torch's name)
        """Begin to send a tensor."""
        return point_to_point.isend(self._the_one("send", tensors), group=self, tag=tag, group_dst=dstRank)

    def recv(self, tensors: Sequence[Tensor], srcRank: int, tag: int = 0) -> Work:  # noqa: N803
        """Begin to receive a tensor."""
        return point_to_point.irecv(self._the_one("recv", tensors), group=self, tag=tag, group_src=srcRank)

    def recv_anysource(self, tensors: Sequence[Tensor], tag: int = 0) -> Work:
        """Begin to receive a tensor from any rank."""
        return point_to_point.irecv(self._the_one("recv_anysource", tensors), group=self, tag=tag)

    @_with_time
    def barrier(self, opts: BarrierOptions | None = None) -> Work:
        """Begin to wait for all ranks."""
        return barriers.barrier(self, async_op=True, device_ids=(opts.device_ids or None) if opts else None)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait for all ranks, as `torch.distributed.monitored_barrier` does."""
        barriers.monitored_barrier(self, timeout, wait_all_ranks)

    @staticmethod
    def _operation(opts: Any, op: RedOpType | ReduceOp | None) -> RedOpType | ReduceOp:
        """Return the operation that is given alone, or by options."""
        if op is not None or opts is None:
            return op if op is not None else ReduceOp.SUM
        return opts if isinstance(opts, RedOpType | ReduceOp) else opts.reduceOp

    def _check_some(self, caller: str, tensors: Sequence[Tensor]) -> None:
        if not tensors:
            raise RuntimeError(f"ProcessGroup::{caller}: requires non-empty tensor list")

    def _the_one(self, caller: str, tensors: Tensor | Sequence[Tensor], what: str = "") -> Tensor:
        given = _listed(tensors)
        if len(given) != 1:
            raise RuntimeError(f"ProcessGroup::{caller}: requires a single-element {what + ' ' if what else ''}tensor list")
        return given[0]

    def _checked_root(self, caller: str, root: int) -> int:
        if not 0 <= root < self.size():
            raise RuntimeError(f"ProcessGroup::{caller}: invalid root rank: {root}")
        return root

    def _check_length(self, caller: str, tensors: Sequence[Tensor], each: int) -> None:
        """Raise RuntimeError unless a list has so many tensors of each rank."""
        if len(tensors) != self.size() * each:
            raise RuntimeError(
                f"ProcessGroup::{caller}: invalid output tensor list at index 0 (expected length {self.size() * each}, got "
                f"{len(tensors)})"
            )

    def _of_root(self, caller: str, tensors: Sequence[Any], is_plain: bool, what: str) -> Sequence[Tensor]:
        """Return the list of the root, which may be in a list."""
        if not is_plain and len(tensors) != 1:
            raise RuntimeError(f"ProcessGroup::{caller}: requires a single-element {what} list containing a list")
        listed = tensors if is_plain else tensors[0]
        if len(listed) != self.size():
            raise RuntimeError(
                f"ProcessGroup::{caller}: Incorrect {what} list size {len(listed)}. {what.capitalize()} list size should be "
                f"{self.size()}, same as size of the process group."
            )
        return listed
