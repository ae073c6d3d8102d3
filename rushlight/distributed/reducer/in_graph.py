"""The reduction of gradients inside captured graphs: as operators, which the compiler orders among the others.

Each bucket's parameters pass through a function that changes nothing, and whose backward averages their gradients in one
message.
"""

from __future__ import annotations

from typing import Any

from rushlight.autograd.function import Function
from rushlight.core.tensor import Tensor
from rushlight.distributed.functional_operators import functional
from rushlight.ops import aten


class AverageGradients(Function):
    """Return the tensors after `group_name`; their gradients are the averages of those of all ranks of the group."""

    @staticmethod
    def forward(ctx: Any, group_name: str, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group_name = group_name
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        flat = aten.cat([grad.reshape(-1) for grad in grads])
        averages = functional.wait_tensor(functional.all_reduce(flat, "avg", ctx.group_name))
        parts = averages.split([grad.numel() for grad in grads])
        return (None, *(part.view(grad.shape) for part, grad in zip(parts, grads, strict=True)))
