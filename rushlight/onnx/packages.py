"""Optional packages: `onnx` writes models, `onnxruntime` runs them."""

from __future__ import annotations

import importlib
from types import ModuleType


def need(name: str) -> ModuleType:
    """Return the package. ModuleNotFoundError that says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"torch.onnx.export needs the package {name}, which is not installed: pip install {name}", name=name
        ) from error
