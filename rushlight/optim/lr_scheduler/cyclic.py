"""CyclicLR: rates that cycle in a triangle. L. N. Smith (2017), https://arxiv.org/abs/1506.01186."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any, Literal

from rushlight.core.tensor import Tensor
from rushlight.optim.lr_scheduler.momenta import has_betas, set_momentum
from rushlight.optim.lr_scheduler.scheduler import LRScheduler, check_optimizer, per_group, set_rate
from rushlight.optim.optimizer import Optimizer

# For each mode, the height of a cycle, and whether it is a function of the cycle's number or of the step's.
_HEIGHTS: dict[str, tuple[Callable[[float, float], float], str]] = {
    "triangular": (lambda cycle, gamma: 1.0, "cycle"),
    "triangular2": (lambda cycle, gamma: 1 / 2.0 ** (cycle - 1), "cycle"),
    "exp_range": (lambda step, gamma: gamma**step, "iterations"),
}


class CyclicLR(LRScheduler):
    """Move the rate from `base_lr` to `max_lr` in `step_size_up` steps and back in `step_size_down` (default: as many).

    The momentum moves in the opposite direction. `mode` is "triangular", "triangular2" (half as high in each cycle) or
    "exp_range" (gamma ** step high); `scale_fn` replaces it: a function of the cycle's number or of the step's ("iterations"),
    according to `scale_mode`. ValueError for other modes, for lists that are not one value per group, and for optimizers
    without momentum unless `cycle_momentum` is False.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ):
        self.optimizer = check_optimizer(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_rate(group, rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in _HEIGHTS and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None: expected one of {list(_HEIGHTS)}, got {mode!r}")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _HEIGHTS[mode][1]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momenta(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _start_momenta(self, base: float | list, largest: float | list, last_epoch: int) -> None:
        self.use_beta1 = has_betas(self.optimizer)
        self.base_momentums = per_group("base_momentum", self.optimizer, base)
        self.max_momentums = per_group("max_momentum", self.optimizer, largest)
        if last_epoch != -1:
            return
        for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
            set_momentum(group, high, self.use_beta1)
            group["max_momentum"], group["base_momentum"] = high, low

    def scale_fn(self, x: float) -> float:
        """Return the height of the cycle with this number, or at this step, as a fraction of the full height."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return _HEIGHTS[self.mode][0](x, self.gamma)

    def get_lr(self) -> list[float | Tensor]:
        """Return the rates for step `last_epoch`, one per group; sets the momenta."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        part = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        part *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in pairs:
                set_momentum(group, high - (high - low) * part, self.use_beta1)
        return [low + (high - low) * part for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return all fields but the optimizer; a `scale_fn` that is an object is replaced by its attributes."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        return {**state, "_scale_fn_custom": None if plain else dict(function.__dict__)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore fields from `state_dict`; a function is kept, a callable object gets its attributes back."""
        saved = dict(state_dict)
        attributes = saved.pop("_scale_fn_custom", None)
        super().load_state_dict(saved)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)
