"""Averages of weights over training, and a schedule for them.

Stochastic weight averaging is Izmailov et al. (2018), https://arxiv.org/abs/1803.05407; exponential averages are Polyak's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, Literal

from rushlight.autograd import no_grad
from rushlight.core.device import device
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.batchnorm import _BatchNorm
from rushlight.nn.modules.module import Module
from rushlight.ops.construct import tensor
from rushlight.ops.together import call_together
from rushlight.optim.lr_scheduler.scheduler import LRScheduler, per_group
from rushlight.optim.optimizer import Optimizer

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip
AverageFunction = Callable[[Tensor, Tensor, Tensor | int], Tensor]
MultiAverageFunction = Callable[[list[Tensor], list[Tensor], Tensor | int], None]


def get_swa_avg_fn() -> AverageFunction:
    """Return the equal average: `f(average, value, number_averaged)` is the average with one more value."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> AverageFunction:
    """Return the exponential average decay * average + (1 - decay) * value. ValueError unless decay is in [0, 1]."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Tensor | int) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_multi_avg_fn() -> MultiAverageFunction:
    """Return the equal average of lists of tensors, in place."""

    @no_grad()
    def update(averages: list[Tensor], values: list[Tensor], number: Tensor | int) -> None:
        if isinstance(number, Tensor) and number.is_cuda:
            call_together(_add_to_equal, [*averages, *values, number])
        else:
            call_together(_add_to_equal, [*averages, *values], [float(number + 1)])

    return update


def _add_to_equal(tensors: Sequence[Tensor], numbers: Sequence[float], options: tuple) -> tuple:
    """Add the second half of `tensors` to the first half, equal averages. The count of values, with the new one, is the number;
    without a number the last tensor counts those before."""
    count = numbers[0] if numbers else tensors[-1] + 1
    half = len(tensors) // 2
    for mean, value in zip(tensors[:half], tensors[half : 2 * half], strict=True):
        mean.copy_(mean + (value - mean) / count)
    return ()


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverageFunction:
    """Return the exponential average of lists of tensors, in place. ValueError unless decay is in [0, 1]."""
    _check_decay(decay)

    @no_grad()
    def update(averages: list[Tensor], values: list[Tensor], number: Tensor | int) -> None:
        call_together(_add_to_exponential, [*averages, *values], [decay, 1 - decay])

    return update


def _add_to_exponential(tensors: Sequence[Tensor], numbers: Sequence[float], options: tuple) -> tuple:
    """Add the second half of `tensors` to the first half, exponential averages, with weights for old and new values."""
    half = len(tensors) // 2
    for mean, value in zip(tensors[:half], tensors[half:], strict=True):
        mean.copy_(numbers[0] * mean + numbers[1] * value)
    return ()


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _update_in_place(average: AverageFunction) -> MultiAverageFunction:
    @no_grad()
    def update(averages: list[Tensor], values: list[Tensor], number: Tensor | int) -> None:
        for mean, value in zip(averages, values, strict=True):
            mean.copy_(average(mean, value, number))

    return update


class AveragedModel(Module):
    """A copy of `model` whose parameters are averages: equal ones, or `avg_fn` of each, or `multi_avg_fn` of all in place.

    The first `update_parameters` copies the parameters. Buffers are averaged with `use_buffers`, else copied each time.
    ValueError when both functions are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: int | device | None = None,
        avg_fn: AverageFunction | None = None,
        multi_avg_fn: MultiAverageFunction | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the averaged model."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Add the current parameters of `model` to the averages."""
        mine, others = self._tensors_to_average(self.module), self._tensors_to_average(model)
        if self.n_averaged == 0:
            for mean, value in zip(mine, others, strict=True):
                mean.copy_(value.detach())
        else:
            update = self.multi_avg_fn or (_update_in_place(self.avg_fn) if self.avg_fn else get_swa_multi_avg_fn())
            update([mean.detach() for mean in mine], [value.detach() for value in others], self.n_averaged)
        if not self.use_buffers:
            for mean, value in zip(self.module.buffers(), model.buffers(), strict=True):
                mean.detach().copy_(value.detach())
        self.n_averaged += 1

    def _tensors_to_average(self, model: Module) -> list[Tensor]:
        return list(chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters())


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: int | device | None = None) -> None:
    """Recompute the running statistics of batch normalisations in one pass over `loader`: inputs, or tuples that start with
    them."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    was_training, momenta = model.training, [module.momentum for module in norms]
    for module in norms:
        module.reset_running_stats()
        # With momentum None, the statistics are equal averages.
        module.momentum = None
    model.train()
    for batch in loader:
        given = batch[0] if isinstance(batch, list | tuple) else batch
        model(given if device is None else given.to(device))
    for module, momentum in zip(norms, momenta, strict=True):
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Move the rate to the constant `swa_lr` in `anneal_epochs` epochs; `anneal_strategy` is "cos" or "linear"."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ):
        for group, rate in zip(optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        """Return the rates for this step, one per group."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._progress(step - 1), self._progress(step)
        made = []
        for group in self.optimizer.param_groups:
            target, rate = group["swa_lr"], group["lr"]
            first = target if before == 1 else (rate - before * target) / (1 - before)
            made.append(target * now + first * (1 - now))
        return made

    def _progress(self, step: int) -> float:
        """Return the progress after a step, from 0 to 1."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2
