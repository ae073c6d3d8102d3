"""Rprop: steps by the signs of gradients. Riedmiller and Braun, "A direct adaptive method..." (ICNN, 1993)."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_learning_rate, number
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step


class Rprop(PerParameterOptimizer):
    """p = p - sign(g) * size, where a size grows by etas[1] while the sign stays, and shrinks by etas[0] when it turns.

    An element whose sign changed is not updated in that step. Sizes start at `lr` and stay within `step_sizes`. Raises
    ValueError unless 0 < etas[0] < 1 < etas[1].
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_learning_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        size = number(group["lr"])
        size = complex(size, size) if parameter.is_complex() else size
        return {
            "step": new_number(0.0, parameter, group),
            "prev": aten.zeros_like(parameter),
            "step_size": aten.full_like(parameter, size),
        }

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        return NativeStep("rprop", ("prev", "step_size", "step"), (*group["etas"], *group["step_sizes"], group["maximize"]))

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        next_step(state)
        (shrink, grow), size, previous = group["etas"], state["step_size"], state["prev"]
        agreement = gradient * previous
        same, turned = agreement > 0, agreement < 0
        factor = aten.ones_like(gradient).masked_fill(same, grow).masked_fill(turned, shrink)
        size.mul_(factor).clamp_(*group["step_sizes"])
        gradient = gradient.masked_fill(turned, 0)
        parameter.sub_(gradient.sign() * size)
        previous.copy_(gradient)
