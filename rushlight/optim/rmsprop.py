"""RMSprop: steps scaled by a running mean of squared gradients. G. Hinton's lecture notes (2012); centered: Graves (2013)."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_learning_rate, check_not_negative, hyperparameter
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step, with_decay


class RMSprop(PerParameterOptimizer):
    """p = p - lr * b, where b = momentum * b + g / (sqrt(v) + eps), and v is a running mean of g * g.

    g includes weight_decay * p. With `centered`, v is less the square of the running mean of g.
    Raises ValueError for options outside of their range.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_learning_rate(lr)
        check_not_negative({
            "epsilon value": eps, "momentum value": momentum, "weight_decay value": weight_decay, "alpha value": alpha,
        })  # fmt: skip
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
            "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {"step": new_number(0.0, parameter, group), "square_avg": aten.zeros_like(parameter)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = aten.zeros_like(parameter)
        if group["centered"]:
            state["grad_avg"] = aten.zeros_like(parameter)
        return state

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        velocity = "momentum_buffer" if group["momentum"] > 0 else None
        states = ("square_avg", velocity, "grad_avg" if group["centered"] else None, "step")
        names = ("lr", "alpha", "eps", "weight_decay", "momentum", "maximize")
        return NativeStep("rmsprop", states, tuple(group[name] for name in names))

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        next_step(state)
        gradient = with_decay(parameter, gradient, group)
        alpha, square = group["alpha"], state["square_avg"]
        square.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(gradient, 1 - alpha)
            square = square - mean * mean
        direction = gradient / (square.sqrt() + group["eps"])
        if group["momentum"] > 0:
            direction = state["momentum_buffer"].mul_(group["momentum"]).add_(direction)
        parameter.add_(direction * -hyperparameter(group, "lr"))
