"""RAdam: Adam that corrects the variance of its early steps. Liu et al. (2020), https://arxiv.org/abs/1908.03265."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_betas, check_learning_rate, check_not_negative, hyperparameter
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step, with_decay

# For shorter approximated moving averages the variance is intractable, and a plain momentum step is taken.
_TRACTABLE = 5.0


class RAdam(PerParameterOptimizer):
    """Adam whose adaptive step is scaled by a rectification term, and skipped while too few gradients were seen.

    g includes weight_decay * p unless `decoupled_weight_decay`, where p shrinks by lr * weight_decay first. Raises ValueError
    for options outside of their range.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_learning_rate(lr)
        check_not_negative({"epsilon value": eps})
        check_betas(betas)
        check_not_negative({"weight_decay value": weight_decay})
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_number(0.0, parameter, group),
            "exp_avg": aten.zeros_like(parameter),
            "exp_avg_sq": aten.zeros_like(parameter),
        }

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        names = ("eps", "weight_decay", "decoupled_weight_decay", "maximize")
        options = (group["lr"], *group["betas"], *[group[name] for name in names])
        return NativeStep("radam", ("exp_avg", "exp_avg_sq", "step"), options)

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (beta1, beta2), lr = group["betas"], hyperparameter(group, "lr")
        step = next_step(state)
        if group["decoupled_weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        else:
            gradient = with_decay(parameter, gradient, group)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        direction = mean / (1 - beta1**step)
        length = _length(beta2, step)
        if isinstance(length, Tensor):
            adapted = _adapted(direction, square, length, beta2, step, group["eps"])
            direction = aten.where(length > _TRACTABLE, adapted, direction)
        elif length > _TRACTABLE:
            direction = _adapted(direction, square, length, beta2, step, group["eps"])
        parameter.add_(direction * -lr)


def _length(beta2: float, step: float | Tensor) -> float | Tensor:
    """Return the length of the approximated moving average, the paper's rho_t."""
    return _longest(beta2) - 2 * step * beta2**step / (1 - beta2**step)


def _longest(beta2: float) -> float:
    return 2 / (1 - beta2) - 1


def _adapted(
    direction: Tensor, square: Tensor, length: float | Tensor, beta2: float, step: float | Tensor, eps: float
) -> Tensor:  # fmt: skip
    """Return the direction divided by the root of the second moment, and rectified by the paper's r_t."""
    limit = _longest(beta2)
    rectification = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
    return direction / (square.sqrt() + eps) * (rectification * (1 - beta2**step) ** 0.5)
