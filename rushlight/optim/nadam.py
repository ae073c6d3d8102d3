"""NAdam: Adam with Nesterov momentum. T. Dozat, "Incorporating Nesterov Momentum into Adam" (ICLR workshop, 2016)."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_betas, check_learning_rate, check_not_negative, hyperparameter
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step, value_of, with_decay


class NAdam(PerParameterOptimizer):
    """Adam whose step takes the next momentum: p = p - lr * (mu_next * m' + (1 - mu) * g') / (sqrt(v') + eps).

    mu at step t is beta1 * (1 - 0.96 ** (t * momentum_decay) / 2); m' and g' are corrected by the product of all mu. g includes
    weight_decay * p unless `decoupled_weight_decay`, where p shrinks by lr * weight_decay first. Raises ValueError for options
    outside of their range.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative({"weight_decay value": weight_decay, "momentum_decay value": momentum_decay})
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_number(0.0, parameter, group),
            "mu_product": new_number(1.0, parameter, group),
            "exp_avg": aten.zeros_like(parameter),
            "exp_avg_sq": aten.zeros_like(parameter),
        }

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        names = ("eps", "weight_decay", "momentum_decay", "decoupled_weight_decay", "maximize")
        options = (group["lr"], *group["betas"], *[group[name] for name in names])
        return NativeStep("nadam", ("exp_avg", "exp_avg_sq", "step", "mu_product"), options)

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (beta1, beta2), lr = group["betas"], hyperparameter(group, "lr")
        step = next_step(state)
        if group["decoupled_weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        else:
            gradient = with_decay(parameter, gradient, group)
        momentum, following = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        product = value_of(state["mu_product"].mul_(momentum))
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        scale = (square / (1 - beta2**step)).sqrt() + group["eps"]
        parameter.add_(gradient / scale * (-lr * (1 - momentum) / (1 - product)))
        parameter.add_(mean / scale * (-lr * following / (1 - product * following)))
