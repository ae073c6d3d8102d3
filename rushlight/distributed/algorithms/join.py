"""`torch.distributed.algorithms.join`: training with a different number of inputs on each rank.

A rank that has run out of inputs leaves the body of `Join` and takes part in the collectives of those that have not: each
Joinable class says by its JoinHook what those are.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

from rushlight.core.device import device
from rushlight.core.tensor import Tensor
from rushlight.distributed.collectives import all_reduce
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.work import Work
from rushlight.ops.construct import tensor

__all__ = ["Join", "JoinHook", "Joinable"]

_WARN_AFTER = 1000  # steps without inputs of its own before a rank says that the inputs are very uneven


class JoinHook:
    """What a rank without inputs does for one Joinable: `main_hook` in each step of the others, `post_hook` at the end."""

    def main_hook(self) -> None:
        """Take part in the collectives of one step."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Finish, when all ranks have run out of inputs; `is_last_joiner` says whether this rank was among the last."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """Return the state outside of `Join`."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """A class whose objects make collectives in each step, and can train with uneven inputs."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for ranks without inputs; `kwargs` are those of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> device:
        """Return the device of the tensors that Join exchanges."""

    @property
    @abstractmethod
    def join_process_group(self) -> ProcessGroup:
        """Return the group of the ranks that train together."""


class Join:
    """Context manager around the loop over a rank's inputs, of which ranks may have different numbers.

        with Join([model, optimizer]):
            for x in inputs:
                model(x).sum().backward()
                optimizer.step()

    With `throw_on_early_termination` all ranks raise RuntimeError as soon as one has no inputs left. ValueError: the joinables
    have different groups, or there are none.
    """

    def __init__(
        self, joinables: Sequence[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        groups = {id(each.join_process_group): each.join_process_group for each in joinables}
        if len(groups) > 1:
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables = list(joinables)
        self._hooks = [each.join_hook(**kwargs) for each in self._joinables]
        self._enable, self._throws = enable, throw_on_early_termination
        self._group = self._joinables[0].join_process_group
        for place, each in enumerate(self._joinables):
            each._join_config = _JoinConfig(enable, throw_on_early_termination, place == 0)

    def __enter__(self) -> None:
        """Nothing happens at the beginning."""

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take part in the steps of the others until all have joined."""
        if not self._enable or kind is not None:
            return
        steps, is_last = 0, True
        while self._count_active():
            if self._throws:
                self._tell_others_to_stop()
            is_last = False
            for hook in self._hooks:
                hook.main_hook()
            steps += 1
            if steps == _WARN_AFTER:
                warnings.warn(
                    f"Detected uneven input skew of greater than {steps}. This means that rank {self._group.rank()} has at "
                    f"least {steps} fewer inputs than other currently-active ranks. This level of skew could lead to "
                    "performance degradation during training.",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(is_last)

    def _count_active(self) -> int:
        count = tensor(0)
        all_reduce(count, group=self._group)
        return int(count.item())

    def _tell_others_to_stop(self) -> None:
        all_reduce(tensor(1), group=self._group)
        raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell ranks without inputs that this one makes a step; a Joinable calls it before the collectives of each step.

        Returns the Work of counting the active ranks, whose result is their number; None outside of `Join`, and for all
        joinables but the first. RuntimeError with `throw_on_early_termination` when a rank has no inputs left.
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group = joinable.join_process_group
        work = all_reduce(tensor(1), group=group, async_op=True)
        if config.throw_on_early_termination:
            stops: Tensor = tensor(0)
            all_reduce(stops, group=group)
            if int(stops.item()):
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
