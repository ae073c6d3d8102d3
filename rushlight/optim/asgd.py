"""ASGD: averaged stochastic gradient descent. Polyak and Juditsky (1992), https://dl.acm.org/doi/10.1137/0330046."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.ops.construct import tensor
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_learning_rate, check_not_negative, hyperparameter, number
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_step_count, next_step, with_decay


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
            "step": new_step_count(),
            "eta": tensor(float(number(group["lr"]))),
            "mu": tensor(1.0),
            "ax": aten.zeros_like(parameter),
        }

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        names = ("lr", "lambd", "alpha", "t0", "weight_decay", "maximize")
        return NativeStep("asgd", ("ax", "step", "eta", "mu"), tuple(group[name] for name in names))

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, lambd = hyperparameter(group, "lr"), group["lambd"]
        step = next_step(state)
        gradient = with_decay(parameter, gradient, group)
        eta, weight, average = state["eta"].item(), state["mu"].item(), state["ax"]
        parameter.mul_(1 - lambd * eta)
        parameter.add_(gradient, alpha=-eta)
        if weight == 1:
            average.copy_(parameter)
        else:
            average.add_((parameter - average) * weight)
        state["eta"].fill_(number(lr / (1 + lambd * lr * step) ** group["alpha"]))
        state["mu"].fill_(1 / max(1.0, step - group["t0"]))
