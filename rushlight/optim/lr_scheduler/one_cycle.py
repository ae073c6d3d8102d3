"""OneCycleLR: one rise and one long fall. Smith and Topin, "Super-Convergence" (2018), https://arxiv.org/abs/1708.07120."""

from __future__ import annotations

import math
from typing import Any, Literal

from rushlight.core.tensor import Tensor
from rushlight.optim.lr_scheduler.momenta import has_betas, set_momentum
from rushlight.optim.lr_scheduler.scheduler import LRScheduler, check_optimizer, per_group
from rushlight.optim.optimizer import Optimizer

# Keys of the parameter group for each phase: learning rate at its start, at its end; momentum at its start, at its end.
_RISE = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
_FALL = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
_END = ("initial_lr", "min_lr", "max_momentum", "max_momentum")
_FALL_TO_END = ("max_lr", "min_lr", "base_momentum", "max_momentum")


class OneCycleLR(LRScheduler):
    """Move the rate from max_lr / div_factor to `max_lr` in `pct_start` of the steps, then to first rate / final_div_factor.

    With `three_phase` the fall first mirrors the rise. The momentum moves the other way between `max_momentum` and
    `base_momentum`. There are `total_steps` steps, or epochs * steps_per_epoch. `anneal_strategy` is "cos" or "linear".
    ValueError for options outside of their range, for optimizers without momentum unless `cycle_momentum` is False, and for
    too many steps.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        self.optimizer = check_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for group, largest in zip(optimizer.param_groups, per_group("max_lr", optimizer, max_lr), strict=True):
                group["initial_lr"] = largest / div_factor
                group["max_lr"] = largest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = has_betas(optimizer)
            low = per_group("base_momentum", optimizer, base_momentum)
            high = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._start_momenta(low, high)
        super().__init__(optimizer, last_epoch)

    def _start_momenta(self, low: list[float], high: list[float]) -> None:
        for group, least, largest in zip(self.optimizer.param_groups, low, high, strict=True):
            set_momentum(group, largest, self.use_beta1)
            group["max_momentum"], group["base_momentum"] = largest, least

    def get_lr(self) -> list[float | Tensor]:
        """Return the rates for step `last_epoch`, one per group; sets the momenta."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin, phase = 0.0, self._schedule_phases[0]
        for following in self._schedule_phases[1:]:
            if step <= phase["end_step"]:
                break
            begin, phase = phase["end_step"], following
        part = (step - begin) / (phase["end_step"] - begin)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                momentum = self._interpolate(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                set_momentum(group, momentum, self.use_beta1)
        return [
            self._interpolate(group[phase["start_lr"]], group[phase["end_lr"]], part) for group in self.optimizer.param_groups
        ]

    def _interpolate(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _total_steps(total: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(steps: int, rising: float, three: bool) -> list[dict[str, Any]]:
    """Return the phases: the end of each, and the group's fields between which it moves."""
    up = float(rising * steps) - 1
    if three:
        ends: list[tuple] = [(up, _RISE), (float(2 * rising * steps) - 2, _FALL), (steps - 1, _END)]
    else:
        ends = [(up, _RISE), (steps - 1, _FALL_TO_END)]
    names = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return [{"end_step": end, **dict(zip(names, fields, strict=True))} for end, fields in ends]
