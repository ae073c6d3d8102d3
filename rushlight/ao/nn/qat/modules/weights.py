"""Conversion between float layers and layers with a fake-quantized weight."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.parametrize import type_before_parametrizations


def check_qconfig(qconfig: Any) -> Any:
    """Return the qconfig; AssertionError if there is none."""
    if not qconfig:
        raise AssertionError("qconfig must be provided for QAT module")
    return qconfig


def check_float_module(cls: type, mod: Module, expected: type) -> None:
    """Raise AssertionError unless a module has the class that `cls.from_float` accepts, and a qconfig."""
    if type_before_parametrizations(mod) is not expected:
        given = type_before_parametrizations(mod).__name__
        raise AssertionError(f"qat.{cls.__name__}.from_float only works for {expected.__name__}, got {given}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError("Input float module must have a valid qconfig")


def detached(value: Tensor | None) -> Parameter | None:
    """Return a new parameter over the same memory."""
    return None if value is None else Parameter(value.detach())
