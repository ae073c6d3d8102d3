"""ZeroRedundancyOptimizer: each rank keeps the optimizer's state of its part of the parameters only.

The idea is the first stage of ZeRO (Rajbhandari, Rasley, Ruwase and He, "ZeRO: Memory Optimizations Toward Training Trillion
Parameter Models", 2020): a step updates a rank's own parameters, then ranks send them to each other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from rushlight.core.device import CPU, device
from rushlight.core.tensor import Tensor
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.groups import default_group
from rushlight.distributed.objects import gather_object
from rushlight.distributed.reducer.replicas import begin_broadcast_all
from rushlight.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is spread over the ranks of a group.

    `optimizer_class` is the optimizer, `defaults` are its options; all ranks give the same parameters. Gradients must be the
    same on all ranks, as DistributedDataParallel makes them.

        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)

    `state_dict` needs `consolidate_state_dict` before it, which collects the state on one rank. TypeError: the parameters are
    no tensors. ValueError: they are sparse, or of several dtypes. NotImplementedError for `overlap_with_ddp` and
    `parameters_as_bucket_view`.
    """

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        if overlap_with_ddp or parameters_as_bucket_view:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp and parameters_as_bucket_view are not available; leave them out"
            )
        self.process_group = default_group() if process_group is None else process_group
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self._optim_constructor, self._optim_defaults = optimizer_class, defaults
        self.optim: Optimizer | None = None
        self._gathered: list[dict] | None = None
        Joinable.__init__(self)
        Optimizer.__init__(self, params, defaults)
        self._check_parameters()
        self._build()

    def _check_parameters(self) -> None:
        everything = _ordered(self)
        if any(parameter.is_sparse for parameter in everything):
            raise ValueError("ZeroRedundancyOptimizer only supports dense parameters, got a sparse one")
        kinds = {parameter.dtype for parameter in everything}
        if len(kinds) > 1:
            raise ValueError(f"ZeroRedundancyOptimizer needs parameters of one dtype, got {', '.join(sorted(map(str, kinds)))}")

    def _build(self) -> None:
        """Share out the parameters, and make the optimizer of this rank's part."""
        self._owners = self._share_out()
        groups = [{**group, "params": self._mine(group)} for group in self.param_groups]
        self.optim = self._optim_constructor(groups, **self._optim_defaults)
        for group, local in zip(self.param_groups, self.optim.param_groups, strict=True):
            for name, value in local.items():
                group.setdefault(name, value)

    def _share_out(self) -> dict[int, int]:
        """Return the owner of each parameter, by id: the largest go first, each to the rank with the fewest elements."""
        loads = [0] * self.world_size
        owners: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in sorted(group["params"], key=lambda each: each.numel(), reverse=True):
                rank = loads.index(min(loads))
                owners[id(parameter)] = rank
                loads[rank] += parameter.numel()
        return owners

    def _mine(self, group: dict[str, Any]) -> list[Tensor]:
        return [parameter for parameter in group["params"] if self._owners[id(parameter)] == self.rank]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with options of their own. All ranks must call it."""
        super().add_param_group(param_group)
        if self.optim is None:
            return
        state = self.optim.state
        self._build()
        self.optim.state.update({key: value for key, value in state.items() if self._owners.get(id(key)) == self.rank})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update this rank's parameters, and copy all to all ranks. All ranks must call it.

        `kwargs` go to the `step` of the optimizer.
        """
        Join.notify_join_context(self)
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._exchange()
        return loss

    @staticmethod
    def _copy_options(sources: list[dict], targets: list[dict]) -> None:
        for source, target in zip(sources, targets, strict=True):
            target.update({name: value for name, value in source.items() if name != "params"})

    def _exchange(self) -> None:
        """Copy each rank's parameters to the others."""
        everything = _ordered(self)
        finish = [
            begin_broadcast_all([each for each in everything if self._owners[id(each)] == rank], self.process_group, rank)
            for rank in range(self.world_size)
        ]
        for each in finish:
            each()

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the state of all ranks on the group's rank `to`, where `state_dict` then gives it. All ranks must call it."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        everyone: list = [None] * self.world_size
        gather_object(self._numbered_state(), everyone if self.rank == to else None, group=self.process_group, group_dst=to)
        self._gathered = everyone if self.rank == to else None

    def _numbered_state(self) -> dict[int, Any]:
        """Return this rank's state by the numbers of parameters in the order of all groups."""
        numbers = {id(each): number for number, each in enumerate(_ordered(self))}
        return {numbers[id(key)]: value for key, value in self.optim.state.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters, as the optimizer itself would without ranks.

        RuntimeError unless `consolidate_state_dict` collected it on this rank before.
        """
        if self._gathered is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        packed = super().state_dict()
        packed["state"] = dict(sorted((pair for state in self._gathered for pair in state.items()), key=itemgetter(0)))
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the state of this rank's parameters from a state of all, which any number of ranks may have saved."""
        ordered, packed = _ordered(self), self.optim.state_dict()
        places = {id(each): number for number, each in enumerate(_ordered(self.optim))}
        packed["state"] = {
            places[id(ordered[number])]: copy.deepcopy(value)
            for number, value in state_dict["state"].items()
            if id(ordered[number]) in places
        }
        self._copy_options(state_dict["param_groups"], packed["param_groups"])
        self.optim.load_state_dict(packed)
        self._copy_options(state_dict["param_groups"], self.param_groups)
        self._gathered = None

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what a rank without inputs does: steps, so that its parameters are updated."""
        return _Shadow(self)

    @property
    def join_device(self) -> device:
        """Return the CPU."""
        return CPU

    @property
    def join_process_group(self) -> ProcessGroup:
        """Return the group that the state is spread over."""
        return self.process_group


def _ordered(optimizer: Optimizer) -> list[Tensor]:
    """Return an optimizer's parameters in the order of its groups."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


class _Shadow(JoinHook):
    """A rank without inputs still updates its part of the parameters."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        self.optimizer.step()
