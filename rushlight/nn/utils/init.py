"""skip_init: make a module without spending time on initialisation."""

from __future__ import annotations

import inspect
from typing import Any

from rushlight.nn.modules.module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Return an instance of `module_cls` whose parameters and buffers are uninitialised.

    Raises RuntimeError unless it is a Module whose constructor takes `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    where = kwargs.pop("device", None) or "cpu"
    return module_cls(*args, device="meta", **kwargs).to_empty(device=where)
