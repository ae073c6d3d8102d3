"""Reducer: averages gradients over ranks, bucket by bucket, while the backward pass calculates the others.

`prepare` arms it after a forward pass. Each gradient that arrives is copied into its bucket; a bucket whose gradients are all
there is reduced asynchronously, in the buckets' order, which is the same on all ranks. At the end of the backward pass
`_finish` waits for the reductions and hands the averages to the parameters' `.grad`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.autograd.engine import queue_callback
from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.node import accumulator_of
from rushlight.core.dtype import int32
from rushlight.core.layout import strided
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import all_reduce
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.objects import broadcast_object_list
from rushlight.distributed.reducer.buckets import Bucket, GradBucket, assign
from rushlight.distributed.reducer.graph_walk import unreached
from rushlight.ops.construct import tensor


class Reducer:
    """Averages the gradients of `parameters` over the ranks of a group.

    `limits` are the buckets' sizes in bytes (see `assign`). With `as_views` the parameters' `.grad` are parts of the buckets.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        group: ProcessGroup,
        limits: Sequence[int],
        *,
        as_views: bool = False,
        find_unused: bool = False,
        static_graph: bool = False,
    ) -> None:
        self.parameters, self.names, self.group = list(parameters), list(names), group
        self.as_views, self.find_unused, self.static_graph = as_views, find_unused, static_graph
        self.divisor = group.size()
        self.hook: Callable | None = None
        self._limits = limits
        self._accumulators = [accumulator_of(each, each._autograd_meta()) for each in self.parameters]
        for index, node in enumerate(self._accumulators):
            node.register_hook(_arrival_hook(weakref.ref(self), index))
        self._arrivals: list[int] = []
        self._arrived: set[int] = set()
        """Parameters that got a gradient since the last reduction, in passes that were not reduced, too."""
        self._rebuilt = False
        self._uses: list[int] | None = None
        """With a static graph: how many gradients each parameter gets in a step, once the first step has shown it."""
        self._lay_out(assign(self.parameters, range(len(self.parameters))[::-1], limits))
        self._reset()

    def _lay_out(self, groups: Sequence[Sequence[int]]) -> None:
        self.buckets = [Bucket([self.parameters[index] for index in group], group) for group in groups]
        self._places = {
            index: (bucket, view)
            for bucket in self.buckets
            for index, view in zip(bucket.indices, bucket.views, strict=True)
        }

    def _reset(self) -> None:
        self._armed = self._began = False
        self._next = 0
        self._works: list[Any] = []
        self._ready: set[int] = set()
        self._unused: list[int] = []
        self._used_map: Tensor | None = None
        self._left = list(self._uses or [0] * len(self.parameters))
        for bucket in self.buckets:
            bucket.pending = len(bucket.indices)

    @property
    def has_reduced(self) -> bool:
        """Return whether a backward pass has been reduced."""
        return bool(self._arrivals) or self._rebuilt

    # Before the backward pass

    def prepare(self, results: Sequence[Tensor]) -> None:
        """Expect a backward pass from `results`. RuntimeError: the last one did not bring all gradients."""
        if self._began:
            self._refuse_unfinished()
        self._reset()
        self._armed = True
        if self.find_unused and not self.static_graph:
            self._unused = unreached(results, self._accumulators)
        elif self._uses is not None:
            self._unused = [index for index, count in enumerate(self._uses) if not count]

    def disarm(self) -> None:
        """Expect no backward pass: gradients stay on this rank."""
        if self._began:
            self._refuse_unfinished()
        self._armed = False

    def _refuse_unfinished(self) -> None:
        missing = [index for index in range(len(self.parameters)) if index not in self._ready]
        self._reset()
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
            "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
            "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by "
            "making sure all `forward` function outputs participate in calculating loss. Parameter indices which did not "
            f"receive grad for rank {self.group.rank()}: {missing} ({', '.join(self.names[index] for index in missing)})"
        )

    def rebuild(self) -> None:
        """After the first step, lay gradients out in the order in which they arrived on rank 0. All ranks must call it."""
        if self._rebuilt or (self.find_unused and not self.static_graph) or not self._arrivals:
            return
        order = [self._arrivals]
        broadcast_object_list(order, group=self.group, group_src=0)
        self._rebuilt = True
        if len(order[0]) == len(self.parameters):
            self._detach_views()
            self._lay_out(assign(self.parameters, order[0], self._limits))
            self._reset()

    def _detach_views(self) -> None:
        """Keep gradients that are parts of the buckets as tensors of their own: the buckets are laid out anew."""
        for index, parameter in enumerate(self.parameters):
            if parameter.grad is not None and _is_same_memory(parameter.grad, self._places[index][1]):
                parameter.grad = parameter.grad.clone()

    # During the backward pass

    def on_arrival(self, index: int) -> None:
        """Take note that a parameter's `.grad` was added to."""
        self._arrived.add(index)
        if not self._armed:
            return
        with no_grad():
            if not self._began:
                self._begin()
            if self.static_graph and self._uses is None:
                self._left[index] += 1
                if index not in self._arrivals:
                    self._arrivals.append(index)
                return
            self._left[index] -= 1
            if not self.static_graph or self._left[index] <= 0:
                self._mark_ready(index)

    def _begin(self) -> None:
        self._began = True
        if self.static_graph and self._uses is None:
            queue_callback(self._finish_first_static)
        for index in self._unused:
            self._mark_ready(index)

    def _finish_first_static(self) -> None:
        """Reduce everything after the first backward pass of a static graph, which has shown what arrives how often."""
        self._uses = list(self._left)
        with no_grad():
            for index in range(len(self.parameters))[::-1]:
                self._mark_ready(index)
        self._arrivals += [index for index in range(len(self.parameters)) if index not in self._arrivals]

    def _mark_ready(self, index: int) -> None:
        if index in self._ready:
            raise RuntimeError(
                "Expected to mark a variable ready only once. Its gradient arrived twice in one backward pass: the parameter "
                "was marked as unused, or is used in several reentrant backward passes (checkpoints); pass static_graph=True "
                f"if the graph does not change. Parameter at index {index}: {self.names[index]}"
            )
        self._ready.add(index)
        if not self._rebuilt and not self.static_graph:
            self._arrivals.append(index)
        bucket, view = self._places[index]
        self._copy_in(self.parameters[index], view)
        bucket.pending -= 1
        while self._next < len(self.buckets) and not self.buckets[self._next].pending:
            self._launch(self.buckets[self._next])
            if self._next == len(self.buckets):
                queue_callback(self._finish)

    def _copy_in(self, parameter: Tensor, view: Tensor) -> None:
        """Put a gradient into its part of the bucket."""
        grad = parameter.grad
        if grad is None:
            view.zero_()
            return
        if grad.layout is not strided:
            raise RuntimeError(f"DistributedDataParallel reduces strided gradients only, got one of layout {grad.layout}")
        if not _is_same_memory(grad, view):
            view.copy_(grad)
            if self.as_views:
                parameter.grad = view

    def _launch(self, bucket: Bucket) -> None:
        number = self._next
        self._next += 1
        is_last = self._next == len(self.buckets)
        if self.hook is not None:
            self._works.append(self.hook(GradBucket(bucket, number, is_last)))
        else:
            bucket.flat.mul_(1.0 / self.divisor)
            self._works.append(all_reduce(bucket.flat, group=self.group, async_op=True))
        if is_last and self.find_unused:
            self._begin_used_map()

    def _begin_used_map(self) -> None:
        self._used_map = tensor([int(index in self._arrived) for index in range(len(self.parameters))], dtype=int32)
        self._works.append(all_reduce(self._used_map, group=self.group, async_op=True))

    # At its end

    def _finish(self) -> None:
        used = None
        with no_grad():
            for bucket, work in zip(self.buckets, self._works, strict=False):
                self._await(bucket, work)
            if self._used_map is not None:
                self._works[-1].wait()
                used = self._used_map.tolist()
            for index, parameter in enumerate(self.parameters):
                if used is None or used[index]:
                    self._hand_over(parameter, self._places[index][1])
        self._arrived.clear()
        self._reset()

    def _await(self, bucket: Bucket, work: Any) -> None:
        result = work.wait()
        if self.hook is None:
            return
        value = result[0] if isinstance(result, list | tuple) else result
        if not _is_same_memory(value, bucket.flat):
            bucket.flat.copy_(value.reshape(-1))

    def _hand_over(self, parameter: Tensor, view: Tensor) -> None:
        grad = parameter.grad
        if grad is None:
            parameter.grad = view if self.as_views else view.clone()
        elif not _is_same_memory(grad, view):
            grad.copy_(view)

    # Uneven inputs

    def reduce_nothing(self) -> None:
        """Take part in the reductions of a step without gradients, for a rank that has no inputs left."""
        with no_grad():
            self._reset()
            for bucket in self.buckets:
                bucket.flat.zero_()
                self._launch(bucket)
            for work in self._works:
                work.wait()
            if not self._arrivals:
                self._arrivals = list(range(len(self.parameters)))[::-1]
            self._reset()


def _arrival_hook(reducer: weakref.ref[Reducer], index: int) -> Callable:
    """Return a hook of a leaf's node. It holds the reducer weakly: a module may be wrapped anew."""

    def arrived(*_: object) -> None:
        found = reducer()
        if found is not None:
            found.on_arrival(index)

    return arrived


def _is_same_memory(a: Tensor, b: Tensor) -> bool:
    first, second = a._impl, b._impl
    return first.storage is second.storage and first.storage_offset == second.storage_offset
