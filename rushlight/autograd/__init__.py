"""Autograd: the tape, its engine, the derivative table, grad modes, Function and gradcheck."""

from rushlight.autograd import derivatives, tensor_methods, variable
from rushlight.autograd.backward import backward, grad
from rushlight.autograd.function import Function, once_differentiable
from rushlight.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from rushlight.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from rushlight.autograd.node import Node

__all__ = [
    "Function", "GradcheckError", "Node", "backward", "derivatives", "enable_grad", "grad", "gradcheck", "gradgradcheck",
    "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "once_differentiable",
    "set_grad_enabled", "tensor_methods", "variable",
]  # fmt: skip
