"""ParameterGroup: the parameters of one module that are gathered and reduced together.

Each rank keeps rows of each parameter, side by side in one flat buffer. `begin_unshard` and `finish_unshard` gather the whole
parameters, `reshard` frees them, `begin_reduce` and `finish_reduce` average the gradients and give each rank its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.node import Node, accumulator_of
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import all_reduce
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.fsdp.policies import MixedPrecisionPolicy
from rushlight.distributed.single_tensors import all_gather_into_tensor, reduce_scatter_tensor
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.layout import Placements, Spec, part
from rushlight.distributed.tensor.placement_types import Replicate, Shard
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops import aten


@dataclass
class ShardedParameter:
    """One parameter: its shard (`sharded`, a DTensor), the whole one while it is gathered, and the modules that have it.

    `rows` is the length of a rank's part of dimension 0, the same for all ranks; `start` and `count` its place in the flat
    buffer.
    """

    owners: list[tuple[Module, str]]
    name: str
    shape: tuple[int, ...]
    rows: int
    start: int
    count: int
    sharded: Any = None
    unsharded: Any = None
    node: Node | None = None
    arrivals: list[Any] = field(default_factory=list)

    @property
    def requires_grad(self) -> bool:
        """Return whether the parameter is trained."""
        return self.sharded.requires_grad

    def register(self, parameter: Any) -> None:
        """Make the shard or the whole parameter the one that modules see."""
        for module, name in self.owners:
            module._parameters[name] = parameter


class ParameterGroup:
    """The parameters of one module, on a mesh of one dimension, or of two: whole copies along the first, shards along the last.

    RuntimeError for parameters of several dtypes.
    """

    def __init__(
        self, found: Sequence[tuple[str, Tensor, list[tuple[Module, str]]]], mesh: DeviceMesh, policy: MixedPrecisionPolicy
    ) -> None:
        kinds = {parameter.dtype for _, parameter, _ in found}
        if len(kinds) > 1:
            raise RuntimeError(f"fully_shard expects uniform original parameter dtype but got {kinds}")
        self.mesh, self.policy = mesh, policy
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.divisor: float | None = None
        self.is_unsharded = False
        self._gathering: tuple[Tensor, Any] | None = None
        self._reducing: tuple[list[ShardedParameter], Tensor, Any] | None = None
        self.parameters = self._lay_out(found)
        self.length = sum(each.count for each in self.parameters)
        self.dtype = next(iter(kinds))
        self._shard(found)

    def _lay_out(self, found: Sequence[tuple[str, Tensor, list[tuple[Module, str]]]]) -> list[ShardedParameter]:
        made, start = [], 0
        for name, parameter, owners in found:
            if not parameter.dim():
                raise ValueError(f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel 1.")
            shape = tuple(parameter.shape)
            rows = -(-shape[0] // self.group.size())
            count = rows * math.prod(shape[1:])
            made.append(ShardedParameter(owners, name, shape, rows, start, count))
            start += count
        return made

    def _shard(self, found: Sequence[tuple[str, Tensor, list[tuple[Module, str]]]]) -> None:
        """Keep this rank's rows of each parameter, and make them the modules' parameters."""
        self.flat = aten.zeros([self.length], dtype=self.dtype)
        placements = (*(Replicate(),) * (self.mesh.ndim - 1), Shard(0))
        with no_grad():
            for each, (_, parameter, _) in zip(self.parameters, found, strict=True):
                begin, mine = part(each.shape[0], self.group.size(), self.group.rank())
                local = self._rows(self.flat, each, mine)
                local.copy_(parameter.detach().narrow(0, begin, mine))
                each.sharded = Parameter(DTensor(local, self._spec(each, placements)), parameter.requires_grad)
                each.register(each.sharded)

    def _rows(self, flat: Tensor, each: ShardedParameter, count: int) -> Tensor:
        return flat.narrow(0, each.start, each.count).view(each.rows, *each.shape[1:]).narrow(0, 0, count)

    def _spec(self, each: ShardedParameter, placements: Placements) -> Spec:
        return Spec(self.mesh, placements, each.shape, contiguous_strides(each.shape), self.dtype)

    # Whole parameters

    def begin_unshard(self) -> None:
        """Begin to gather the whole parameters, unless they are there."""
        if self.is_unsharded or self._gathering is not None:
            return
        with no_grad():
            kind = self.policy.param_dtype or self.dtype
            mine = self.flat if kind is self.dtype else self.flat.to(kind)
            everything = aten.empty([self.group.size(), self.length], dtype=kind)
            work = all_gather_into_tensor(everything, mine, group=self.group, async_op=True)
        self._gathering = everything, work

    def finish_unshard(self, on_arrival: Callable[[ShardedParameter], None]) -> None:
        """Wait for the whole parameters, and make them the modules'; `on_arrival` is called when one has its gradient."""
        if self.is_unsharded:
            return
        self.begin_unshard()
        everything, work = self._gathering
        work.wait()
        self._gathering = None
        with no_grad():
            for each in self.parameters:
                self._fill(each, everything, on_arrival)
                each.register(each.unsharded)
        self.is_unsharded = True

    def _fill(self, each: ShardedParameter, everything: Tensor, on_arrival: Callable) -> None:
        """Copy the gathered rows into the whole parameter. It is the same tensor each time, because the graph may hold it."""
        rows = everything.narrow(1, each.start, each.count).reshape(-1, *each.shape[1:]).narrow(0, 0, each.shape[0])
        if each.unsharded is None:
            each.unsharded = Parameter(rows.contiguous().clone(), each.requires_grad)
            if each.requires_grad:
                each.node = accumulator_of(each.unsharded, each.unsharded._autograd_meta())
                each.node.register_hook(lambda *_: on_arrival(each))
            return
        storage, version = each.unsharded.untyped_storage(), each.unsharded._impl.version
        before = version.value
        storage.resize_(each.unsharded.numel() * each.unsharded.dtype.itemsize)
        each.unsharded.detach().copy_(rows)
        version.value = before  # the values are those that the graph has saved

    def reshard(self) -> None:
        """Make the shards the modules' parameters, and free the whole ones."""
        if self._gathering is not None:
            self._gathering[1].wait()
            self._gathering = None
        if not self.is_unsharded:
            return
        for each in self.parameters:
            each.register(each.sharded)
            each.unsharded.untyped_storage().resize_(0)
        self.is_unsharded = False

    # Gradients

    def begin_reduce(self) -> None:
        """Begin to average the gradients of the whole parameters; ones that are missing count as zeros."""
        self.finish_reduce()
        trained = [each for each in self.parameters if each.requires_grad]
        if all(each.unsharded is None or each.unsharded.grad is None for each in trained):
            return
        with no_grad():
            kind = self.policy.reduce_dtype or self.policy.param_dtype or self.dtype
            ranks, length = self.group.size(), sum(each.count for each in trained)
            everything = aten.empty([ranks, length], dtype=kind)
            start = 0
            for each in trained:
                _copy_rows(everything.narrow(1, start, each.count), each, ranks)
                each.unsharded.grad = None
                start += each.count
            everything.mul_(1.0 / (self.divisor or self._ranks()))
            mine = aten.empty([length], dtype=kind)
            work = reduce_scatter_tensor(mine, everything, group=self.group, async_op=True)
        self._reducing = trained, mine, work

    def _ranks(self) -> int:
        return self.group.size() * (1 if self.replicas is None else self.replicas.size())

    def finish_reduce(self) -> None:
        """Wait for the averages, and add them to the shards' gradients."""
        if self._reducing is None:
            return
        trained, mine, work = self._reducing
        self._reducing = None
        work.wait()
        with no_grad():
            if self.replicas is not None:
                all_reduce(mine, group=self.replicas)
            start = 0
            for each in trained:
                _add_gradient(each, mine.narrow(0, start, each.count).to(self.dtype))
                start += each.count


def _copy_rows(target: Tensor, each: ShardedParameter, ranks: int) -> None:
    """Copy a gradient into a part (ranks, rows * width) of what is sent, with zeros where ranks have fewer rows."""
    grad = each.unsharded.grad
    if grad is None:
        target.zero_()
    elif each.rows * ranks == each.shape[0]:
        target.copy_(grad.contiguous().view(ranks, each.count))
    else:
        padded = grad.new_zeros((ranks * each.rows, *each.shape[1:]))
        padded.narrow(0, 0, each.shape[0]).copy_(grad)
        target.copy_(padded.view(ranks, each.count))


def _add_gradient(each: ShardedParameter, flat: Tensor) -> None:
    spec = each.sharded._spec
    rows = each.sharded._local_tensor.shape[0]
    local = flat.view(each.rows, *each.shape[1:]).narrow(0, 0, rows)
    if each.sharded.grad is None:
        each.sharded.grad = DTensor(local.clone(), spec)
    else:
        each.sharded.grad._local_tensor.add_(local)
