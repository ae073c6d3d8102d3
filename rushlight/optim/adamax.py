"""Adamax: Adam by the infinity norm. Kingma and Ba (2015), section 7.1, https://arxiv.org/abs/1412.6980."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_betas, check_learning_rate, check_not_negative, hyperparameter
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step, with_decay


class Adamax(PerParameterOptimizer):
    """p = p - lr * m' / u, where m' is the bias-corrected mean of g and u = max(beta2 * u, |g| + eps).

    g includes weight_decay * p. `foreach` is accepted and has no effect. Raises ValueError for options outside of their range.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_learning_rate(lr)
        check_not_negative({"epsilon value": eps})
        check_betas(betas)
        check_not_negative({"weight_decay value": weight_decay})
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_number(0.0, parameter, group),
            "exp_avg": aten.zeros_like(parameter),
            "exp_inf": aten.zeros_like(parameter),
        }

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        options = (group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["maximize"])
        return NativeStep("adamax", ("exp_avg", "exp_inf", "step"), options)

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        step = next_step(state)
        gradient = with_decay(parameter, gradient, group)
        mean, largest = state["exp_avg"], state["exp_inf"]
        mean.lerp_(gradient, 1 - beta1)
        largest.copy_(aten.maximum(largest * beta2, gradient.abs() + group["eps"]))
        parameter.add_(mean / largest * (-hyperparameter(group, "lr") / (1 - beta1**step)))
