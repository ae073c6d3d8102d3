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
from rushlight.core.device import META
from rushlight.core.strides import contiguous_strides, wrap_dim
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

    `local` is this rank's part, in the flat buffer. `dim` is the dimension that is cut, which comes first there: `turned` is
    the shape with it in front, `rows` the length of a rank's part of it, the same for all ranks; `start` and `count` are its
    place.
    """

    owners: list[tuple[Module, str]]
    name: str
    shape: tuple[int, ...]
    dim: int
    rows: int
    start: int
    count: int
    sharded: Any = None
    local: Any = None
    unsharded: Any = None
    node: Node | None = None
    arrivals: list[Any] = field(default_factory=list)

    @property
    def requires_grad(self) -> bool:
        """Return whether the parameter is trained."""
        return self.sharded.requires_grad

    @property
    def turned(self) -> tuple[int, ...]:
        """Return the shape with the dimension that is cut in front."""
        return (self.shape[self.dim], *self.shape[: self.dim], *self.shape[self.dim + 1 :])

    @property
    def current(self) -> Any:
        """Return the parameter that the module sees."""
        module, name = self.owners[0]
        return module._parameters[name]

    def register(self, parameter: Any) -> None:
        """Make the shard or the whole parameter the one that modules see."""
        for module, name in self.owners:
            module._parameters[name] = parameter


class ParameterGroup:
    """The parameters of one module, on a mesh of one dimension, or of two: whole copies along the first, shards along the last.

    Parameters on the meta device get their memory when the program has replaced them. `place` says along which dimension a
    parameter is cut. RuntimeError for parameters of several dtypes; ValueError for some that are on the meta device, or that
    cannot be cut.
    """

    def __init__(
        self, found: Sequence[tuple[str, Tensor, list[tuple[Module, str]]]], mesh: DeviceMesh, policy: MixedPrecisionPolicy,
        place: Callable[[Tensor], Shard | None] | None = None,
    ) -> None:  # fmt: skip
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
        self.parameters = self._lay_out(found, place)
        self.length = sum(each.count for each in self.parameters)
        self.dtype = next(iter(kinds))
        self._shard(found)

    def _lay_out(
        self, found: Sequence[tuple[str, Tensor, list[tuple[Module, str]]]], place: Callable[[Tensor], Shard | None] | None
    ) -> list[ShardedParameter]:
        made, start = [], 0
        for name, parameter, owners in found:
            if not parameter.dim():
                raise ValueError(f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel 1.")
            dim = self._dim(name, parameter, place)
            shape = tuple(parameter.shape)
            rows = -(-shape[dim] // self.group.size())
            count = rows * math.prod(shape) // max(shape[dim], 1)
            made.append(ShardedParameter(owners, name, shape, dim, rows, start, count))
            start += count
        return made

    def _dim(self, name: str, parameter: Tensor, place: Callable[[Tensor], Shard | None] | None) -> int:
        chosen = (place(parameter) if place is not None else None) or Shard(0)
        if not isinstance(chosen, Shard):
            raise ValueError(f"shard_placement_fn must return Shard or None, got {chosen!r} for {name}")
        dim = wrap_dim(chosen.dim, parameter.dim())
        if dim and parameter.shape[dim] % self.group.size():
            raise NotImplementedError(
                f"fully_shard cuts dimensions but the first into equal parts only: {name} of shape {list(parameter.shape)} has "
                f"{parameter.shape[dim]} along dimension {dim}, for {self.group.size()} ranks"
            )
        return dim

    def _shard(self, found: Sequence[tuple[str, Tensor, list[tuple[Module, str]]]]) -> None:
        """Keep this rank's rows of each parameter, and make them the modules' parameters."""
        on_meta = {parameter.is_meta for _, parameter, _ in found}
        if len(on_meta) > 1:
            raise ValueError("fully_shard: some parameters of a group are on the meta device, others are not")
        place = META if True in on_meta else found[0][1].device
        self.flat = aten.zeros([self.length], dtype=self.dtype, device=place)
        with no_grad():
            for each, (_, parameter, _) in zip(self.parameters, found, strict=True):
                begin, mine = self._own_rows(each)
                local = self._rows(self.flat, each, mine)
                if not parameter.is_meta:
                    local.copy_(parameter.detach().narrow(each.dim, begin, mine))
                placements = (*(Replicate(),) * (self.mesh.ndim - 1), Shard(each.dim))
                each.sharded = Parameter(DTensor(local, self._spec(each, placements)), parameter.requires_grad)
                each.local = each.sharded._local_tensor
                each.register(each.sharded)

    def _own_rows(self, each: ShardedParameter) -> tuple[int, int]:
        """Return where this rank's part of the dimension that is cut begins, and its length."""
        return part(each.shape[each.dim], self.group.size(), self.group.rank())

    def _adopt(self) -> None:
        """Take over what the program has put in the place of the shards, as `to_empty`, `to` and loading by assignment do.

        RuntimeError for parameters that are still on the meta device, or of several dtypes.
        """
        now = [each.current for each in self.parameters]
        kept = zip(now, self.parameters, strict=True)
        if all(one is each.sharded and one._local_tensor is each.local for one, each in kept) and not self.flat.is_meta:
            return
        for one, each in zip(now, self.parameters, strict=True):
            if not isinstance(one, DTensor):
                raise RuntimeError(f"fully_shard: {each.name} was replaced by a tensor that is not distributed")
            if one._local_tensor.is_meta:
                raise RuntimeError(
                    f"FSDP parameters should be materialized from meta device before training, but {each.name} is on it: call "
                    "module.to_empty(device='cpu') and initialize the values"
                )
        kinds = {one.dtype for one in now}
        if len(kinds) > 1:
            raise RuntimeError(f"fully_shard expects uniform original parameter dtype but got {kinds}")
        self.dtype = next(iter(kinds))
        self.flat = aten.zeros([self.length], dtype=self.dtype, device=now[0]._local_tensor.device)
        for one, each in zip(now, self.parameters, strict=True):
            self._take_over(each, one)

    def _take_over(self, each: ShardedParameter, now: DTensor) -> None:
        each.local = self._rows(self.flat, each, self._own_rows(each)[1])
        with no_grad():
            each.local.copy_(now._local_tensor)
        now._local_tensor = each.local
        each.sharded, each.unsharded = now, None
        each.register(now)

    def _rows(self, flat: Tensor, each: ShardedParameter, count: int) -> Tensor:
        rows = flat.narrow(0, each.start, each.count).view(each.rows, *each.turned[1:]).narrow(0, 0, count)
        return rows.movedim(0, each.dim)

    def _spec(self, each: ShardedParameter, placements: Placements) -> Spec:
        return Spec(self.mesh, placements, each.shape, contiguous_strides(each.shape), self.dtype)

    # Whole parameters

    def begin_unshard(self) -> None:
        """Begin to gather the whole parameters, unless they are there."""
        if self.is_unsharded or self._gathering is not None:
            return
        self._adopt()
        with no_grad():
            kind = self.policy.param_dtype or self.dtype
            mine = self.flat if kind is self.dtype else self.flat.to(kind)
            everything = self.flat.new_empty([self.group.size(), self.length], dtype=kind)
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
        rows = everything.narrow(1, each.start, each.count).reshape(-1, *each.turned[1:]).narrow(0, 0, each.turned[0])
        rows = rows.movedim(0, each.dim)
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
            everything = self.flat.new_empty([ranks, length], dtype=kind)
            start = 0
            for each in trained:
                _copy_rows(everything.narrow(1, start, each.count), each, ranks)
                each.unsharded.grad = None
                start += each.count
            everything.mul_(1.0 / (self.divisor or self._ranks()))
            mine = self.flat.new_empty([length], dtype=kind)
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
    elif each.rows * ranks == each.turned[0]:
        target.copy_(grad.movedim(each.dim, 0).contiguous().view(ranks, each.count))
    else:
        padded = grad.new_zeros((ranks * each.rows, *each.shape[1:]))
        padded.narrow(0, 0, each.shape[0]).copy_(grad)
        target.copy_(padded.view(ranks, each.count))


def _add_gradient(each: ShardedParameter, flat: Tensor) -> None:
    spec = each.sharded._spec
    rows = each.sharded._local_tensor.shape[each.dim]
    local = flat.view(each.rows, *each.turned[1:]).narrow(0, 0, rows).movedim(0, each.dim)
    if each.sharded.grad is None:
        each.sharded.grad = DTensor(local.clone(), spec)
    else:
        each.sharded.grad._local_tensor.add_(local)
