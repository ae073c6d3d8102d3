"""LRScheduler: the base of schedules.

Every schedule derives the next rate from the current one where it can, so that several may act on one optimizer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.optim.optimizer import Optimizer

counts_steps = runs_as_it_is("it counts steps, and none has the numbers of another", with_callees=True)


class LRScheduler:
    """Base class. Subclasses define `get_lr()`: the rates for epoch `last_epoch`, one per group.

    `last_epoch` is the epoch to resume after; -1 starts anew and takes the current rates as initial ones. Raises TypeError for
    anything but an optimizer, and KeyError when resuming groups that have no "initial_lr".
    """

    # The function that computes the rates of any epoch directly, where there is one.
    _get_closed_form_lr: Callable[[], list] | None = None

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer = check_optimizer(optimizer)
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy_rate(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{position}] when resuming an optimizer; "
                    "load the optimizer's state dict first"
                )
        self.base_lrs = [_copy_rate(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._is_initial = False
        self._get_lr_called_within_step = False
        optimizer._opt_called = False
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float | Tensor]:
        """Return the rates for epoch `last_epoch`, one per group. Only `step()` calls this; use `get_last_lr()` instead."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def get_last_lr(self) -> list[float | Tensor]:
        """Return the rates that the last step set."""
        return self._last_lr

    @counts_steps
    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch; call it after the optimizer's steps of an epoch. Passing `epoch` to jump is deprecated."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`; the first value of the schedule is "
                "skipped. Call them in the opposite order.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(
                "The epoch parameter in `scheduler.step()` is deprecated: call step() once per epoch without it",
                UserWarning,
                stacklevel=2,
            )
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        """Advance to `epoch`, or to the next one, and set its rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._get_lr_called_within_step = True
        try:
            closed = epoch is not None and self._get_closed_form_lr is not None
            rates = self._get_closed_form_lr() if closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = self._current()

    def _current(self) -> list[float | Tensor]:
        return current_rates(self.optimizer)

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return all fields but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore fields from `state_dict`."""
        self.__dict__.update(state_dict)


def check_optimizer(optimizer: Any) -> Optimizer:
    """Return `optimizer`; TypeError for anything else."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def current_rates(optimizer: Optimizer) -> list[float | Tensor]:
    """Return the rates of the groups; tensors are copied."""
    return [_copy_rate(group["lr"]) for group in optimizer.param_groups]


def set_rate(group: dict[str, Any], rate: float | Tensor, name: str = "lr") -> None:
    """Set a group's option; in place if it is a tensor, which others may hold."""
    if isinstance(group[name], Tensor):
        group[name].fill_(rate.item() if isinstance(rate, Tensor) else rate)
    else:
        group[name] = rate


def _copy_rate(rate: float | Tensor) -> float | Tensor:
    return rate.clone() if isinstance(rate, Tensor) else rate


def per_group(name: str, optimizer: Optimizer, value: float | list | tuple) -> list:
    """Return one value per group of an option that may be a single value for all; ValueError for a wrong number of values."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(f"{name} must have the same length as optimizer.param_groups: expected {groups}, got {len(value)}")
    return list(value)
