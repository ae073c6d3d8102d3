"""Adam and AdamW: gradient descent whose step is scaled by running means of the gradient and its square.

Adam is Kingma and Ba (2015), https://arxiv.org/abs/1412.6980, with the AMSGrad variant of Reddi et al. (2018). AdamW is
Loshchilov and Hutter (2019), https://arxiv.org/abs/1711.05101: its weight decay does not pass through the means.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import (
    check_betas,
    check_implementation,
    check_learning_rate,
    check_not_negative,
    check_tensor_betas,
    hyperparameter,
    number,
)
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer, new_number, next_step, with_decay


class Adam(PerParameterOptimizer):
    """p = p - lr * m' / (sqrt(v') + eps), where m' and v' are bias-corrected running means of g and g * g.

    g includes weight_decay * p, unless `decoupled_weight_decay`, where p shrinks by lr * weight_decay first. With `amsgrad`, v'
    is the largest so far. With `differentiable` the step is recorded. `capturable` and `fused` keep step counts of parameters
    on a GPU there; `foreach` has no effect.
    Raises ValueError for options outside of their range.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        check_learning_rate(lr, foreach=foreach, capturable=capturable)
        check_not_negative({"epsilon value": eps})
        check_betas(betas)
        check_not_negative({"weight_decay value": weight_decay})
        check_tensor_betas(betas, foreach, capturable)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_implementation(foreach=foreach, fused=fused, differentiable=differentiable)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = {
            "step": new_number(0.0, parameter, group),
            "exp_avg": aten.zeros_like(parameter),
            "exp_avg_sq": aten.zeros_like(parameter),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = aten.zeros_like(parameter)
        return state

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        states = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else None, "step")
        names = ("eps", "weight_decay", "decoupled_weight_decay", "maximize")
        return NativeStep("adam", states, (group["lr"], *group["betas"], *[group[name] for name in names]))

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        (beta1, beta2), lr = map(number, group["betas"]), hyperparameter(group, "lr")
        if not group["decoupled_weight_decay"]:
            gradient = with_decay(parameter, gradient, group)
        elif group["weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        step = next_step(state)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - beta1)
        square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            # The graph of a differentiable step saves the previous maximum, so don't overwrite it.
            before = largest.clone() if group["differentiable"] else largest
            square = largest.copy_(aten.maximum(before, square))
        scale, size = square.sqrt(), -lr / (1 - beta1**step)
        correction = (1 - beta2**step) ** 0.5
        if group["differentiable"] or isinstance(size, Tensor):
            parameter.add_(mean / (scale / correction + group["eps"]) * size)
        else:
            parameter.addcdiv_(mean, scale.div_(correction).add_(group["eps"]), value=size)


class AdamW(Adam):
    """Adam with decoupled weight decay: p shrinks by lr * weight_decay before each step."""

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
