"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements, one parameter after the other."""
    return aten.cat.default([parameter.reshape([-1]) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the parameters views of consecutive parts of `vec`; TypeError unless it is a Tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
