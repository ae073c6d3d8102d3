"""Schedules that multiply rates: by functions of the epoch, at milestones, or along a line, a power or an exponential."""

from __future__ import annotations

import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.optim.lr_scheduler.scheduler import LRScheduler
from rushlight.optim.optimizer import Optimizer

Rates = list[float | Tensor]
Factor = Callable[[int], float]


class _FunctionLR(LRScheduler):
    """Base of schedules with user functions. State dicts store only the attributes of callable objects."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1):
        groups = len(getattr(optimizer, "param_groups", ()))
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return all fields but the optimizer; functions are left out, callable objects are replaced by their attributes."""
        state = {name: value for name, value in super().state_dict().items() if name != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if isinstance(function, types.FunctionType) else dict(getattr(function, "__dict__", {}))
            for function in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore fields from `state_dict`; functions are kept, callable objects get their attributes back."""
        saved = dict(state_dict)
        attributes = saved.pop("lr_lambdas", [])
        super().load_state_dict(saved)
        for function, values in zip(self.lr_lambdas, attributes, strict=False):
            if values is not None:
                function.__dict__.update(values)


class LambdaLR(_FunctionLR):
    """The initial rate times `lr_lambda(epoch)`; one function for all groups, or one per group."""

    def get_lr(self) -> Rates:
        """Return the rates for epoch `last_epoch`, one per group."""
        self._warn_outside_step()
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_FunctionLR):
    """The rate times `lr_lambda(epoch)` in every epoch but the first; one function for all groups, or one per group."""

    def get_lr(self) -> Rates:
        """Return the rates for epoch `last_epoch`, one per group."""
        self._warn_outside_step()
        if self._is_initial:
            return self._current()
        pairs = zip(self.lr_lambdas, self._current(), strict=True)
        return [rate * function(self.last_epoch) for function, rate in pairs]


class _FactorLR(LRScheduler):
    """Base of schedules with one factor for all groups: `_step_factor` applies to the previous rate, `_factor` to the initial
    one."""

    def get_lr(self) -> Rates:
        """Return the rates for epoch `last_epoch`, one per group."""
        self._warn_outside_step()
        factor = self._step_factor(self.last_epoch)
        return self._current() if factor is None else [rate * factor for rate in self._current()]

    def _get_closed_form_lr(self) -> Rates:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]

    def _step_factor(self, epoch: int) -> float | None:
        """Return the factor of the previous rate (at the start, the initial one); None for no change."""
        raise NotImplementedError

    def _factor(self, epoch: int) -> float:
        """Return the factor of the initial rate."""
        raise NotImplementedError


class StepLR(_FactorLR):
    """The rate times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _step_factor(self, epoch: int) -> float | None:
        return None if epoch == 0 or epoch % self.step_size else self.gamma

    def _factor(self, epoch: int) -> float:
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(_FactorLR):
    """The rate times `gamma` at each of the epochs `milestones`; an epoch listed twice counts twice."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _step_factor(self, epoch: int) -> float | None:
        return self.gamma ** self.milestones[epoch] if epoch in self.milestones else None

    def _factor(self, epoch: int) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch)


class ConstantLR(_FactorLR):
    """The rate times `factor` until epoch `total_iters`, then the initial one. ValueError unless 0 <= factor <= 1."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1.0:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1, but got {factor}.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _step_factor(self, epoch: int) -> float | None:
        if epoch == 0:
            return self.factor
        return 1.0 / self.factor if epoch == self.total_iters else None

    def _factor(self, epoch: int) -> float:
        return 1.0 if epoch >= self.total_iters else self.factor


class LinearLR(_FactorLR):
    """The factor changes linearly from `start_factor` to `end_factor` in `total_iters` epochs, and then stays.

    ValueError unless 0 < start_factor <= 1 and 0 <= end_factor <= 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1.0:
            raise ValueError(
                f"Starting multiplicative factor expected to be greater than 0 and less or equal to 1, but got {start_factor}."
            )
        if not 0 <= end_factor <= 1.0:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1, but got {end_factor}.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _step_factor(self, epoch: int) -> float | None:
        if epoch == 0:
            return self.start_factor
        if self._is_initial or epoch > self.total_iters:
            return None
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (epoch - 1) * rise)

    def _factor(self, epoch: int) -> float:
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, epoch) / self.total_iters


class ExponentialLR(_FactorLR):
    """The rate times `gamma` in every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _step_factor(self, epoch: int) -> float | None:
        return None if self._is_initial else self.gamma

    def _factor(self, epoch: int) -> float:
        return self.gamma**epoch


class PolynomialLR(_FactorLR):
    """The factor is (1 - epoch / total_iters) ** power, and 0 from epoch `total_iters` on."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _step_factor(self, epoch: int) -> float | None:
        if self._is_initial or epoch > self.total_iters:
            return None
        return ((1.0 - epoch / self.total_iters) / (1.0 - (epoch - 1) / self.total_iters)) ** self.power

    def _factor(self, epoch: int) -> float:
        return (1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power
