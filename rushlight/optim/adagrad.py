"""Adagrad: steps scaled by the root of all squared gradients so far. Duchi, Hazan and Singer (JMLR 12, 2011)."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_implementation, check_learning_rate, check_not_negative, hyperparameter
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step, with_decay
from rushlight.optim.sparse_rows import indexable, places_and_values


class Adagrad(PerParameterOptimizer):
    """p = p - lr' * g / (sqrt(s) + eps), where s sums g * g and lr' = lr / (1 + (step - 1) * lr_decay).

    g includes weight_decay * p. The sums start at `initial_accumulator_value`, and exist from the start. Sparse gradients
    touch only their rows.
    Raises ValueError for options outside of their range, RuntimeError for weight_decay with sparse gradients.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_learning_rate(lr)
        check_not_negative({
            "lr_decay value": lr_decay, "weight_decay value": weight_decay,
            "initial_accumulator_value value": initial_accumulator_value, "epsilon value": eps,
        })  # fmt: skip
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_implementation(foreach=foreach, fused=fused, differentiable=differentiable)
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = self._initial_state(parameter, group)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        start = complex(start, start) if parameter.is_complex() else start
        return {"step": new_number(0.0, parameter, group), "sum": aten.full_like(parameter, start)}

    def _rate(self, state: dict[str, Any], group: dict[str, Any]) -> float | Tensor:
        return hyperparameter(group, "lr") / (1 + (next_step(state) - 1) * group["lr_decay"])

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        names = ("lr", "lr_decay", "eps", "weight_decay", "maximize")
        return NativeStep("adagrad", ("sum", "step"), tuple(group[name] for name in names))

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        rate = self._rate(state, group)
        gradient = with_decay(parameter, gradient, group)
        total = state["sum"].addcmul_(gradient, gradient)
        parameter.add_(gradient / total.sqrt().add(group["eps"]) * -rate)

    def _update_from_sparse(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state = self.state[parameter]
        rate = self._rate(state, group)
        rows, values = places_and_values(gradient.coalesce())
        sums = indexable(state["sum"])
        totals = sums[rows] + values * values
        sums.index_put_(rows, totals)
        indexable(parameter).index_put_(rows, values / totals.sqrt().add(group["eps"]) * -rate, accumulate=True)
