"""SGD: stochastic gradient descent with momentum.

After Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013), in the form that
torch uses, in which the momentum does not contain the learning rate.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_implementation, check_learning_rate, check_not_negative, hyperparameter, number
from rushlight.optim.per_parameter import NativeStep, PerParameterOptimizer
from rushlight.optim.sparse_rows import indexable, places_and_values


class SGD(PerParameterOptimizer):
    """v = momentum * v + (1 - dampening) * g; p = p - lr * v, where g includes weight_decay * p.

    With `nesterov`, p moves by g + momentum * v. `maximize` ascends. With `differentiable` the step is recorded. `foreach` and
    `fused` are accepted and have no effect. A sparse gradient touches only its rows. Raises ValueError for options outside of
    their range.
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
        check_learning_rate(lr)
        check_not_negative({"momentum value": momentum, "weight_decay value": weight_decay})
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_implementation(foreach=foreach, fused=fused, differentiable=differentiable)

    def _native_step(self, group: dict[str, Any]) -> NativeStep:
        options = [group[name] for name in ("lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize")]
        return NativeStep("sgd", ("momentum_buffer" if group["momentum"] != 0 else None,), tuple(options))

    def _row(self, parameter: Tensor, gradient: Tensor, native: NativeStep, group: dict[str, Any]) -> tuple:
        if native.states[0] is None:
            return (parameter, gradient, None, 1.0)
        velocity = self.state[parameter].get("momentum_buffer")
        if velocity is None:
            return (parameter, gradient, aten.empty_like(parameter), 0.0)
        return (parameter, gradient, velocity, 1.0)

    def _note_stepped(self, rows: list[tuple], left: list[Tensor]) -> None:
        untouched = {id(parameter) for parameter in left}
        for parameter, _, velocity, steps in rows:
            if velocity is not None and steps == 0 and id(parameter) not in untouched:
                self.state[parameter]["momentum_buffer"] = velocity

    def _state_of(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Return the state of a parameter. Without momentum there is none, and no entry is created."""
        return self.state[parameter] if group["momentum"] != 0 else {}

    def _has_state(self, parameter: Tensor, group: dict[str, Any]) -> bool:
        """Return whether the momentum's buffer is there; the first step makes it of the gradient."""
        return group["momentum"] == 0 or self.state[parameter].get("momentum_buffer") is not None

    def _update_parameter(self, parameter: Tensor, group: dict[str, Any]) -> None:
        self._update_row(parameter, parameter.grad, self._state_of(parameter, group), group)

    def _update_row(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """Update one parameter. Every operation is linear, so complex parameters need no special case."""
        gradient, lr = -gradient if group["maximize"] else gradient, hyperparameter(group, "lr")
        if group["weight_decay"] != 0:
            gradient = gradient.add(parameter, alpha=number(group["weight_decay"]))
        if group["momentum"] != 0:
            gradient = self._with_momentum(gradient, state, group)
        if gradient.is_sparse:
            rows, values = places_and_values(gradient.coalesce())
            indexable(parameter).index_put_(rows, values * -lr, accumulate=True)
        elif isinstance(lr, Tensor):
            parameter.add_(gradient * -lr)
        else:
            parameter.add_(gradient, alpha=-lr)

    def _with_momentum(self, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        velocity = state.get("momentum_buffer")
        if velocity is None:
            velocity = state["momentum_buffer"] = gradient.detach().clone()
        else:
            if group["differentiable"]:
                velocity = state["momentum_buffer"] = velocity.clone()
            velocity.mul_(group["momentum"]).add_(gradient, alpha=1 - group["dampening"])
        return gradient.add(velocity, alpha=group["momentum"]) if group["nesterov"] else velocity
