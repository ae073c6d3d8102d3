"""Schedules that combine others: in sequence, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from rushlight.optim.lr_scheduler.plateau import ReduceLROnPlateau
from rushlight.optim.lr_scheduler.scheduler import LRScheduler, counts_steps, current_rates
from rushlight.optim.optimizer import Optimizer


class _CombinedLR(LRScheduler):
    """Base class: its state dicts contain those of the schedules."""

    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """Return all fields but the optimizer, with schedules replaced by their state dicts."""
        state = {name: value for name, value in super().state_dict().items() if name != "_schedulers"}
        return {**state, "_schedulers": [schedule.state_dict() for schedule in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore fields from `state_dict`."""
        saved = dict(state_dict)
        parts = saved.pop("_schedulers")
        super().load_state_dict(saved)
        for schedule, part in zip(self._schedulers, parts, strict=True):
            schedule.load_state_dict(part)


def _check_schedules(schedulers: Sequence[LRScheduler], optimizer: Optimizer, name: str) -> None:
    """Raise unless all schedules act on `optimizer` and need no measured values."""
    for position, schedule in enumerate(schedulers):
        if not hasattr(schedule, "optimizer"):
            raise TypeError(f"{name} at index {position} should have `optimizer` as its attribute.")
        if isinstance(schedule, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified "
                f"when calling `step`, but got one at index {position} in the given schedulers sequence."
            )
        if schedule.optimizer is not optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(schedule).__name__} at index {position} that belongs to another one."
            )


class SequentialLR(_CombinedLR):
    """Schedules in sequence: at each of the epochs `milestones` the next one takes over and starts at its own epoch 0.

    Raises ValueError for no schedules, ReduceLROnPlateau, schedules of other optimizers, and unless there is one milestone less
    than schedules.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ):
        if not schedulers:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        _check_schedules(schedulers, optimizer, type(self).__name__)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        # Each schedule made its first step when it was created; undo them all, and repeat that of the first schedule.
        for schedule in schedulers:
            _take_back_step(schedule)
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    @counts_steps
    def step(self) -> None:
        """Advance to the next epoch."""
        self.last_epoch += 1
        position = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[position]
        if position > 0 and self._milestones[position - 1] == self.last_epoch:
            schedule._update_lr(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()


def _take_back_step(schedule: LRScheduler) -> None:
    for part in getattr(schedule, "_schedulers", ()):
        _take_back_step(part)
    if hasattr(schedule, "last_epoch"):
        schedule.last_epoch -= 1


class ChainedScheduler(_CombinedLR):
    """All schedules step together; each continues from the rate that the previous one set.

    Raises ValueError for no schedules, for ReduceLROnPlateau, and for schedules of other optimizers.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not schedulers:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        _check_schedules(schedulers, optimizer, type(self).__name__)
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = current_rates(optimizer)

    @counts_steps
    def step(self) -> None:
        """Advance to the next epoch."""
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = current_rates(self.optimizer)
