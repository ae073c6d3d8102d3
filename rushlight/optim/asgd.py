"""ASGD: averaged stochastic gradient descent. Polyak and Juditsky (1992), https://dl.acm.org/doi/10.1137/0330046."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_learning_rate, check_not_negative, hyperparameter, number
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step, value_of, with_decay


class ASGD(PerParameterOptimizer):
    """p = p * (1 - lambd * eta) - eta * g with eta = lr / (1 + lambd * lr * step) ** alpha.

    The state "ax" averages p from step `t0`. g includes weight_decay * p. Raises ValueError for options outside of their range.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_learning_rate(lr)
        check_not_negative({"weight_decay value": weight_decay})
        defaults = {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_number(0.0, parameter, group),
            "eta": new_number(float(number(group["lr"])), parameter, group),
            "mu": new_number(1.0, parameter, group),
            "ax": aten.zeros_like(parameter),
        }

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        names = ("lr", "lambd", "alpha", "t0", "weight_decay", "maximize")
        return NativeStep("asgd", ("ax", "step", "eta", "mu"), tuple(group[name] for name in names))

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, lambd = hyperparameter(group, "lr"), group["lambd"]
        step = next_step(state)
        gradient = with_decay(parameter, gradient, group)
        eta, weight, average = value_of(state["eta"]), value_of(state["mu"]), state["ax"]
        parameter.mul_(1 - lambd * eta)
        if isinstance(eta, Tensor):
            parameter.sub_(gradient * eta)
        else:
            parameter.add_(gradient, alpha=-eta)
        if not isinstance(weight, Tensor) and weight == 1:
            average.copy_(parameter)
        else:
            average.add_((parameter - average) * weight)
        rate, over = lr / (1 + lambd * lr * step) ** group["alpha"], step - group["t0"]
        state["eta"].fill_(value_of(rate) if isinstance(rate, Tensor) else rate)
        state["mu"].fill_(1 / (over.clamp(min=1.0) if isinstance(over, Tensor) else max(1.0, over)))
