"""`torch.nn`: modules, their functional forms, starting values and utilities."""

from __future__ import annotations

from rushlight.nn import attention, functional, grad, init, modules, parallel, utils
from rushlight.nn.functional.classification import LinearCrossEntropyOptions
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.modules import __all__ as _module_names
from rushlight.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "LinearCrossEntropyOptions",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "utils",
    *_module_names,
]
