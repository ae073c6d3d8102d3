"""Adam and AdamW: gradient descent whose step is scaled by running means of the gradient and its square.

Adam is Kingma and Ba (2015), https://arxiv.org/abs/1412.6980, with the AMSGrad variant of Reddi et al. (2018). AdamW is
Loshchilov and Hutter (2019), https://arxiv.org/abs/1711.05101: its weight decay does not pass through the means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.ops.construct import tensor
from rushlight.optim.optimizer import (
    Optimizer,
    Parameters,
    check_not_negative,
    check_supported,
    evaluate,
    number,
)


class Adam(Optimizer):
    """p = p - lr * m' / (sqrt(v') + eps), where m' and v' are bias-corrected running means of g and g * g.

    g includes weight_decay * p, unless `decoupled_weight_decay`, where p shrinks by lr * weight_decay first. With
    `amsgrad`, v' is the largest so far. `foreach` and `fused` choose among equal ways of computing in torch; they are
    accepted and change nothing. Raises ValueError for options outside of their range, NotImplementedError for
    `capturable` and `differentiable`.
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
        check_supported(type(self).__name__, capturable=capturable, differentiable=differentiable)
        check_not_negative({"learning rate": lr, "epsilon value": eps})
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        check_not_negative({"weight_decay value": weight_decay})
        defaults = {
            "lr": lr, "betas": tuple(map(number, betas)), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Old checkpoints count steps in numbers.
        for values in self.state.values():
            if "step" in values and not isinstance(values["step"], Tensor):
                values["step"] = tensor(float(values["step"]))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; returns the loss of `closure`, if given."""
        loss = evaluate(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state = self._state_of(parameter, group["amsgrad"])
                    _update(parameter, parameter.grad, state, group)
        return loss

    def _state_of(self, parameter: Tensor, amsgrad: bool) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state["step"] = tensor(0.0)
            state["exp_avg"] = aten.zeros_like(parameter)
            state["exp_avg_sq"] = aten.zeros_like(parameter)
        if amsgrad and "max_exp_avg_sq" not in state:
            state["max_exp_avg_sq"] = state["exp_avg_sq"].clone()
        return state


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


def _update(parameter: Tensor, gradient: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
    (beta1, beta2), lr = group["betas"], number(group["lr"])
    if group["maximize"]:
        gradient = -gradient
    if group["weight_decay"] != 0:
        if group["decoupled_weight_decay"]:
            parameter.mul_(1 - lr * group["weight_decay"])
        else:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
    step = state["step"].add_(1).item()
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    mean.lerp_(gradient, 1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    if group["amsgrad"]:
        square = state["max_exp_avg_sq"].copy_(aten.maximum(state["max_exp_avg_sq"], square))
    scale = square.sqrt().div_((1 - beta2**step) ** 0.5).add_(group["eps"])
    parameter.addcdiv_(mean, scale, value=-lr / (1 - beta1**step))
