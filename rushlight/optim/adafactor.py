"""Adafactor: Adam with second moments kept as an outer product of rows and columns.

Shazeer and Stern (2018), https://arxiv.org/abs/1804.04235, with torch's step size: lr bounds the relative step.
"""

from __future__ import annotations

import math
from typing import Any

from rushlight.core.dtype import finfo
from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_learning_rate, check_not_negative, number
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step


class Adafactor(PerParameterOptimizer):
    """p = p - alpha * u / max(1, rms(u) / d), where u = g / sqrt(v) and alpha = max(eps[1], rms(p)) * min(lr, 1 / sqrt(step)).

    v is a running mean of g * g with rate 1 - step ** beta2_decay; for two dimensions and more it is the product of means over
    rows and over columns. p shrinks by lr * weight_decay first. `eps[0]` None is the machine epsilon. Raises ValueError for
    options outside of their range, and RuntimeError for complex parameters.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        check_learning_rate(lr)
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        for number_of, value in enumerate(eps, 1):
            if not (value is None and number_of == 1) and not value >= 0:
                raise ValueError(f"epsilon{number_of} should be >= 0 but is: {value}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check_not_negative({"weight_decay value": weight_decay})
        defaults = {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if parameter.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        gradient = parameter.grad
        if gradient.dim() < 2:
            return {"step": new_number(0.0, parameter, group), "variance": aten.zeros_like(gradient)}
        *rest, rows, columns = gradient.shape
        return {
            "step": new_number(0.0, parameter, group),
            "row_var": gradient.new_zeros([*rest, rows, 1]),
            "col_var": gradient.new_zeros([*rest, 1, columns]),
        }

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        smallest, least_scale = group["eps"]
        bounds = (math.nan if smallest is None else smallest, least_scale)
        options = (group["lr"], group["beta2_decay"], *bounds, group["d"], group["weight_decay"], group["maximize"])
        return NativeStep("adafactor", ("variance", "row_var", "col_var", "step"), options)

    def _row(self, parameter: Tensor, gradient: Tensor, native: NativeStep, group: dict[str, Any]) -> tuple:
        state = self._state_of(parameter, group)
        return (parameter, gradient, *[state.get(name) for name in native.states])

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        step, lr = next_step(state), number(group["lr"])
        smallest, least_scale = group["eps"]
        smallest = finfo(parameter.dtype).eps if smallest is None else smallest
        size = _rms(parameter).clamp(min=least_scale) * min(lr, step**-0.5)
        if group["weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        variance = _variance(gradient, state, step ** group["beta2_decay"], smallest)
        direction = variance.clamp_(min=smallest * smallest).rsqrt_().mul_(gradient)
        parameter.sub_(direction * (size / (_rms(direction) / group["d"]).clamp(min=1.0)))


def _rms(tensor: Tensor) -> Tensor:
    return tensor.square().mean().sqrt()


def _variance(gradient: Tensor, state: dict[str, Any], weight: float, smallest: float) -> Tensor:
    """Return the new running mean of the squared gradient, which enters with `weight`; not an alias of the state."""
    square = gradient * gradient
    if "variance" in state:
        return state["variance"].lerp_(square, weight).clone()
    rows = state["row_var"].lerp_(square.mean(-1, keepdim=True), weight)
    columns = state["col_var"].lerp_(square.mean(-2, keepdim=True), weight)
    return (rows @ columns) / rows.mean(-2, keepdim=True).clamp(min=smallest)
