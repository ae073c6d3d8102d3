"""Muon: momentum with orthogonalised steps. K. Jordan et al., https://kellerjordan.github.io/posts/muon (2024)."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

from rushlight.core.dtype import bfloat16
from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.optim.optimizer import Parameters
from rushlight.optim.options import check_learning_rate, check_not_negative, number
from rushlight.optim.per_parameter import PerParameterOptimizer

# The scaling of the learning rate by the shape (rows, columns) of the parameter.
_ADJUSTMENTS = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}
_MAX_ITERATIONS = 100
# Matrices of one shape are batched up to this many elements; batching larger ones is no faster.
_MAX_BATCHED = 1 << 20


class Muon(PerParameterOptimizer):
    """p = p * (1 - lr * weight_decay) - lr' * orthogonalized(m), where m is a running mean of g; for matrices only.

    The nearest semi-orthogonal matrix is approximated in bfloat16 by `ns_steps` iterations of the quintic Newton-Schulz
    polynomial with `ns_coefficients`. `adjust_lr_fn` is "original" (the default) or "match_rms_adamw". Raises ValueError for
    parameters that are no matrices and for options outside of their range, RuntimeError for complex parameters.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            check_learning_rate(lr)
        check_not_negative({"learning rate": lr, "momentum value": momentum, "weight decay value": weight_decay})
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported; give one of {list(_ADJUSTMENTS)}")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {parameter.size()}"
                    )

    def _update_together(self, parameters: list[Tensor], group: dict[str, Any]) -> list[Tensor]:
        """Update the parameters that share their shape with others, batch by batch; return the other parameters."""
        if len({id(parameter) for parameter in parameters}) < len(parameters):
            return parameters
        alike, left = defaultdict(list), []
        for parameter in parameters:
            alike[tuple(parameter.shape), parameter.grad.is_sparse or parameter.is_complex()].append(parameter)
        for (shape, is_other), found in alike.items():
            together = max(1, _MAX_BATCHED // max(1, math.prod(shape)))
            if is_other or together == 1 or len(found) == 1:
                left += found
                continue
            for start in range(0, len(found), together):
                batch = found[start : start + together]
                states = [self._state_of(parameter, group) for parameter in batch]
                self._update_batch(batch, [parameter.grad for parameter in batch], states, group)
        return left

    def _update_parameter(self, parameter: Tensor, group: dict[str, Any]) -> None:
        if parameter.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        super()._update_parameter(parameter, group)

    def _initial_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": aten.zeros_like(parameter.grad)}

    def _update(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        self._update_batch([parameter], [gradient], [state], group)

    def _update_batch(
        self, parameters: list[Tensor], gradients: list[Tensor], states: list[dict[str, Any]], group: dict[str, Any]
    ) -> None:
        """Update parameters of one shape."""
        momentum, directions = group["momentum"], []
        for gradient, state in zip(gradients, states, strict=True):
            mean = state["momentum_buffer"].lerp_(gradient, 1 - momentum)
            directions.append((gradient.lerp(mean, momentum) if group["nesterov"] else mean).to(bfloat16))
        one = len(directions) == 1
        matrices = directions[0] if one else aten.stack(directions)
        made = orthogonalized(matrices, group["ns_coefficients"], group["ns_steps"], group["eps"])
        lr = number(group["lr"])
        rate = lr * _ADJUSTMENTS[group["adjust_lr_fn"] or "original"](*parameters[0].shape)
        for parameter, direction in zip(parameters, [made] if one else made.unbind(0), strict=True):
            parameter.mul_(1 - lr * group["weight_decay"])
            parameter.add_(direction.to(parameter.dtype), alpha=-rate)


def orthogonalized(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return the nearest semi-orthogonal matrix to each of [..., rows, columns], approximately and in bfloat16: `steps`
    iterations of a polynomial drive singular values to 1."""
    if steps >= _MAX_ITERATIONS:
        raise ValueError(f"Number of steps must be less than {_MAX_ITERATIONS} for computational efficiency, but got {steps}")
    if len(coefficients) != 3:
        raise ValueError(f"Coefficients must be a tuple of exactly 3 values, but got {len(coefficients)}")
    linear, cubic, quintic = coefficients
    made = matrix.to(bfloat16)
    tall = made.size(-2) > made.size(-1)
    made = made.mT if tall else made
    made = made / made.norm(dim=(-2, -1), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = made @ made.mT
        change = _addmm_rounded_once(gram, gram, gram, cubic, quintic)
        made = _addmm_rounded_once(made, change, made, linear, 1.0)
    return made.mT if tall else made


def _addmm_rounded_once(added: Tensor, first: Tensor, second: Tensor, beta: float, alpha: float) -> Tensor:
    """Return beta * added + alpha * first @ second of bfloat16 matrices, computed in float32 and rounded once."""
    return (beta * added.float() + alpha * (first.float() @ second.float())).to(bfloat16)
