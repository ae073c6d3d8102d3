"""ReduceLROnPlateau: lower the rates when a metric stops improving."""

from __future__ import annotations

import math
from typing import Any, Literal, SupportsFloat

from rushlight.core.tensor import Tensor
from rushlight.optim.lr_scheduler.scheduler import LRScheduler, check_optimizer, counts_steps, current_rates, set_rate
from rushlight.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor`, down to `min_lr`, after more than `patience` steps without a new best value.

    Better is lower ("min") or higher ("max") by more than `threshold`, as a part of the best ("rel") or a difference ("abs").
    After a reduction, `cooldown` steps do not count. Changes of at most `eps` are skipped. ValueError for options outside of
    their range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0. Got {factor}")
        self.factor = factor
        self.optimizer = check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, list | tuple):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr, self.min_lrs = None, list(min_lr)
        else:
            self.default_min_lr, self.min_lrs = min_lr, [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = current_rates(optimizer)
        self._set_comparison(mode, threshold, threshold_mode)
        self._reset()

    def _set_comparison(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        """Reset the best value and all counts."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @counts_steps
    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:
        """Record a metric, and reduce the rates if it is time."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = current_rates(self.optimizer)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when `ReduceLROnPlateau` was "
                    f"initialized ({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. Please "
                    "modify the `min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_rate(group, new)

    @property
    def in_cooldown(self) -> bool:
        """Whether the cooldown after a reduction is active, in which steps do not count."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        lower = self.mode == "min"
        if self.threshold_mode == "rel":
            bound = best * (1.0 - self.threshold if lower else 1.0 + self.threshold)
        else:
            bound = best - self.threshold if lower else best + self.threshold
        return value < bound if lower else value > bound

    def get_lr(self) -> list[float | Tensor]:
        """Return the current rates."""
        return self._current()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore fields from `state_dict`."""
        self.__dict__.update(state_dict)
        self._set_comparison(self.mode, self.threshold, self.threshold_mode)
