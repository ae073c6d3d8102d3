"""`torch.nn`: modules, their functional forms, starting values and utilities."""

from __future__ import annotations

from rushlight.nn import functional, init, modules, utils
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.modules import __all__ as _module_names
from rushlight.nn.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "utils", *_module_names]
