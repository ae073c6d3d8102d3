"""Steps of gradcheck that compare no Jacobians: the outputs allowed, and how a backward treats zeros and missing gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.autograd import jacobians
from rushlight.autograd.backward import grad
from rushlight.autograd.duals import is_inexact
from rushlight.autograd.function import Function
from rushlight.core.layout import sparse_coo, strided
from rushlight.core.tensor import Tensor
from rushlight.ops import aten


class GradcheckError(RuntimeError):
    """The analytical and the numerical gradients differ."""


def is_checked(value: object) -> bool:
    """Return whether an input's gradient is to be checked."""
    return is_inexact(value) and value.requires_grad


def differentiable_outputs(function: Callable, inputs: Sequence) -> list[Tensor]:
    """Return the outputs of a call that are tensors of floats or complex numbers."""
    result = function(*inputs)
    found = list(result) if isinstance(result, tuple | list) else [result]
    return [value for value in found if is_inexact(value)]


def check_outputs(outputs: list[Tensor]) -> None:
    """Raise ValueError for sparse outputs."""
    if any(output.layout is not strided for output in outputs):
        raise ValueError(
            "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for "
            "gradcheck."
        )


def check_constant(function: Callable, inputs: tuple, checked: list[Tensor], eps: float) -> None:
    """Raise GradcheckError if outputs that don't require grad depend on an input."""
    for index, tensor in enumerate(checked):
        found = jacobians.numerical(lambda: differentiable_outputs(function, inputs), tensor, eps)
        if any((abs(jacobian) > eps).any() for jacobian in found):
            raise GradcheckError(
                f"Numerical gradient for function expected to be zero with respect to input {index}, because no output "
                "requires grad"
            )


def check_multiplied_by_gradient(outputs: list[Tensor], inputs: list[Tensor]) -> None:
    """Raise GradcheckError if a gradient has another layout than its input, or is not zero for zero gradients of outputs."""
    starts = [aten.zeros_like(output.detach()) for output in outputs]
    for found, tensor in zip(grad(outputs, inputs, starts, retain_graph=True, allow_unused=True), inputs, strict=True):
        if found is not None:
            _check_form(found, tensor)
            if jacobians.array_of(found).any():
                raise GradcheckError("backward not multiplied by grad_output")


def _check_form(found: Tensor, tensor: Tensor) -> None:
    if found.layout is not strided and found.layout is not tensor.layout:
        raise GradcheckError(f"grad is incorrect layout ({found.layout} is not {tensor.layout})")
    if found.layout is sparse_coo:
        for name in ("sparse_dim", "dense_dim"):
            one, other = getattr(found, name)(), getattr(tensor, name)()
            if one != other:
                raise GradcheckError(f"grad is sparse tensor, but has incorrect {name} {one}, expected {other}")


class _Undefined(Function):
    """The identity, whose input gets no gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> None:
        return None


def check_undefined(outputs: list[Tensor], inputs: list[Tensor]) -> None:
    """Raise GradcheckError if the backward does not accept missing gradients of all outputs, or of all but one."""
    try:
        _check_undefined_outputs(outputs, inputs, range(len(outputs)))
        for index in range(len(outputs)) if len(outputs) > 1 else ():
            _check_undefined_outputs(outputs, inputs, (index,))
    except GradcheckError:
        warnings.warn(
            "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
            'existing callers of this function. If this is true for you, you can call this function with "check_undefined_grad='
            'False" to disable the feature',
            stacklevel=5,
        )
        raise


def _check_undefined_outputs(outputs: list[Tensor], inputs: list[Tensor], missing: Sequence[int]) -> None:
    """Check the gradients of inputs where the outputs at `missing` have no gradient, and the others a zero one."""
    ends = [_Undefined.apply(output) if index in missing else output for index, output in enumerate(outputs)]
    starts = [aten.zeros_like(output.detach()) for output in outputs]
    try:
        found = grad(ends, inputs, starts, retain_graph=True, allow_unused=True)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise GradcheckError(f"Expected backward function to handle undefined output grads, but it raised {error!r}") from error
    if any(value is not None and jacobians.array_of(value).any() for value in found):
        raise GradcheckError(
            "Expected all input grads to be undefined or zero when all output grads are undefined or zero"
        )
