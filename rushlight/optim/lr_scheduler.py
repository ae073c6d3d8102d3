"""Learning-rate schedules: each `step()` sets the learning rates of an optimizer's groups for the next epoch.

Every schedule derives the next rate from the current one where it can, so that several may act on one optimizer.
"""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.optim.optimizer import Optimizer


class LRScheduler:
    """Base class. Subclasses define `get_lr()`: the rates for epoch `last_epoch`, one per group.

    `last_epoch` is the epoch to resume after; -1 starts anew and takes the current rates as initial ones. Raises
    TypeError for an optimizer that is none, and KeyError when resuming groups that have no "initial_lr".
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for position, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                rate = group["lr"]
                group.setdefault("initial_lr", rate.clone() if isinstance(rate, Tensor) else rate)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{position}] when resuming an optimizer; "
                    "load the optimizer's state dict first"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        optimizer._opt_called = False
        self.step()

    def get_lr(self) -> list[float]:
        """The rates for epoch `last_epoch`, one per group."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr()")

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set."""
        return self._last_lr

    def step(self) -> None:
        """Go to the next epoch; to be called after the optimizer's steps of an epoch."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`; the first value of the schedule is "
                "skipped. Call them in the opposite order.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self._last_lr = self._current()

    def _current(self) -> list[float]:
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return [rate.clone() if isinstance(rate, Tensor) else rate for rate in rates]

    def state_dict(self) -> dict[str, Any]:
        """All fields but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over fields that `state_dict` gave."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`; one function for all groups, or one per group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ):
        groups = len(getattr(optimizer, "param_groups", ()))
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates for epoch `last_epoch`, one per group."""
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, self.base_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """All fields but the optimizer; functions are left out, of callable objects their attributes are kept."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(function, types.FunctionType) else dict(getattr(function, "__dict__", {}))
            for function in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over fields that `state_dict` gave; functions stay, callable objects take over attributes."""
        saved = dict(state_dict)
        attributes = saved.pop("lr_lambdas", [])
        super().load_state_dict(saved)
        for function, values in zip(self.lr_lambdas, attributes, strict=False):
            if values is not None:
                function.__dict__.update(values)


class StepLR(LRScheduler):
    """The rate times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates for epoch `last_epoch`, one per group."""
        falls = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma for rate in self._current()] if falls else self._current()


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to `eta_min` and back along a cosine with half period `T_max` epochs.

    After Loshchilov and Hutter, "SGDR" (2017), https://arxiv.org/abs/1608.03983, without restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates for epoch `last_epoch`, one per group."""
        if self.last_epoch == 0:
            return self._current()
        if self._step_count == 1:
            return [self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) for base in self.base_lrs]
        before, now = self._height(self.last_epoch - 1), self._height(self.last_epoch)
        if (self.last_epoch - 1) % (2 * self.T_max) == self.T_max:
            # The rate was at its minimum, from which no ratio leads back up.
            return [
                rate + (base - self.eta_min) * now for rate, base in zip(self._current(), self.base_lrs, strict=True)
            ]
        return [self.eta_min + (rate - self.eta_min) * now / before for rate in self._current()]

    def _height(self, epoch: int) -> float:
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2
