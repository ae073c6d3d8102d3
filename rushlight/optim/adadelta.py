"""Adadelta: steps in units of the parameter. M. D. Zeiler (2012), https://arxiv.org/abs/1212.5701."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_learning_rate, check_not_negative, hyperparameter
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step, with_decay


class Adadelta(PerParameterOptimizer):
    """p = p - lr * d, where d = g * rms(d) / rms(g) with running means of rate `rho`; g includes weight_decay * p.

    `foreach` is accepted and has no effect. Raises ValueError for options outside of their range.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_learning_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative({"epsilon value": eps, "weight_decay value": weight_decay})
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
            "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_number(0.0, parameter, group),
            "square_avg": aten.zeros_like(parameter),
            "acc_delta": aten.zeros_like(parameter),
        }

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        names = ("lr", "rho", "eps", "weight_decay", "maximize")
        return NativeStep("adadelta", ("square_avg", "acc_delta", "step"), tuple(group[name] for name in names))

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        next_step(state)
        gradient = with_decay(parameter, gradient, group)
        rho, eps = group["rho"], group["eps"]
        square, moved = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
        delta = moved.add(eps).sqrt() / square.add(eps).sqrt() * gradient
        moved.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        parameter.add_(delta * -hyperparameter(group, "lr"))
