"""Schedules along a cosine. Loshchilov and Hutter, "SGDR" (2017), https://arxiv.org/abs/1608.03983."""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.optim.lr_scheduler.scheduler import LRScheduler, counts_steps
from rushlight.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Move the rate from its initial value to `eta_min` and back, along a cosine with half period `T_max` epochs."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        """Return the rates for epoch `last_epoch`, one per group."""
        self._warn_outside_step()
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if self._is_initial:
            return self._current()
        before, now = self._cosine_part(self.last_epoch - 1), self._cosine_part(self.last_epoch)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The rate was at its minimum, from which no ratio recovers it.
            return [
                rate + (base - self.eta_min) * now for rate, base in zip(self._current(), self.base_lrs, strict=True)
            ]
        return [self.eta_min + (rate - self.eta_min) * (now / before) for rate in self._current()]

    def _get_closed_form_lr(self) -> list[float | Tensor]:
        return [self.eta_min + (base - self.eta_min) * self._cosine_part(self.last_epoch) for base in self.base_lrs]

    def _cosine_part(self, epoch: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Move the rate from its initial value to `eta_min` along half a cosine, repeatedly.

    The first run takes `T_0` epochs, and each later run `T_mult` times as many as the one before. `step` also takes fractions
    of epochs. ValueError unless T_0 > 0 and T_mult >= 1 are ints and eta_min is a number.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        """Return the rates at position `T_cur` of the current run, one per group."""
        self._warn_outside_step()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    @counts_steps
    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to `epoch`, which may be a fraction. ValueError when that is negative."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self.T_cur, self.T_i = self._locate(epoch)
        self.last_epoch = math.floor(epoch) - 1
        self._update_lr()

    def _locate(self, epoch: float) -> tuple[float, int]:
        """Return an epoch's position in its run, and the length of that run."""
        if epoch < self.T_0:
            return epoch, self.T_0
        if self.T_mult == 1:
            return epoch % self.T_0, self.T_0
        runs = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        before = self.T_0 * (self.T_mult**runs - 1) / (self.T_mult - 1)
        return epoch - before, self.T_0 * self.T_mult**runs
