"""SGD: stochastic gradient descent with momentum.

After Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013), in the form that
torch uses, in which the momentum does not contain the learning rate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.optim.optimizer import (
    Optimizer,
    Parameters,
    check_not_negative,
    check_supported,
    evaluate,
    number,
)


class SGD(Optimizer):
    """v = momentum * v + (1 - dampening) * g; p = p - lr * v, where g includes weight_decay * p.

    With `nesterov`, p moves by g + momentum * v. `maximize` climbs. `foreach` and `fused` choose among equal ways of
    computing in torch; they are accepted and change nothing. Raises ValueError for options outside of their range.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_supported("SGD", differentiable=differentiable)
        check_not_negative({"learning rate": lr, "momentum value": momentum, "weight_decay value": weight_decay})
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; returns the loss of `closure`, if given."""
        loss = evaluate(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        if group["maximize"]:
            gradient = -gradient
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=number(group["weight_decay"]))
        if group["momentum"] != 0:
            gradient = self._with_momentum(parameter, gradient, group)
        parameter.add_(gradient, alpha=-number(group["lr"]))

    def _with_momentum(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> Tensor:
        state = self.state[parameter]
        velocity = state.get("momentum_buffer")
        if velocity is None:
            velocity = state["momentum_buffer"] = gradient.detach().clone()
        else:
            velocity.mul_(group["momentum"]).add_(gradient, alpha=1 - group["dampening"])
        return gradient.add(velocity, alpha=group["momentum"]) if group["nesterov"] else velocity
