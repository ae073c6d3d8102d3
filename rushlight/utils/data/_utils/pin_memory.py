"""`torch.utils.data._utils.pin_memory`: page-locked batches, which are no use without an accelerator."""

from __future__ import annotations

from typing import Any


def pin_memory(data: Any, device: Any = None) -> Any:
    """Pin a batch: calls the method `pin_memory` of objects whose class defines one. Tensors are unchanged.

    RuntimeError for a `device`: no accelerator is found.
    """
    if device is not None:
        raise RuntimeError(f"pin_memory: no accelerator is found, got device={device!r}")
    if isinstance(data, dict):
        return {name: pin_memory(value) for name, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin_memory, data))
    if isinstance(data, list | tuple):
        return type(data)(map(pin_memory, data))
    if type(data).__module__.partition(".")[0] not in ("rushlight", "torch") and hasattr(data, "pin_memory"):
        return data.pin_memory()
    return data
