"""Autograd: the tape, its engine, the derivative table, grad modes, Function and gradcheck."""

from rushlight.autograd import derivatives, forward_ad, functional, geometry, graph, tensor_methods, variable
from rushlight.autograd.anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from rushlight.autograd.backward import backward, grad
from rushlight.autograd.function import Function, once_differentiable
from rushlight.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from rushlight.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from rushlight.autograd.node import Node
from rushlight.autograd.profiler import _is_profiler_enabled as _profiler_enabled
from rushlight.autograd.profiler import kineto_available
from rushlight.autograd.tensor_alias import Variable

__all__ = [
    "Function", "GradcheckError", "Node", "Variable", "backward", "derivatives", "detect_anomaly", "enable_grad", "forward_ad",
    "functional", "geometry", "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled", "is_grad_enabled", "is_inference_mode_enabled", "is_multithreading_enabled", "kineto_available",
    "no_grad", "once_differentiable",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "tensor_methods", "variable",
]  # fmt: skip
