"""`torch.utils.data._utils.pin_memory`: page-locked batches, from which a GPU copies while the program goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.core.device import gpus
from rushlight.core.tensor import Tensor


def pin_memory(data: Any, device: Any = None) -> Any:
    """Pin a batch: its CPU tensors, and objects whose class defines a method `pin_memory`. Without a GPU, tensors are
    unchanged.

    RuntimeError for a `device` if there is no GPU.
    """
    if device is not None and not gpus.count():
        raise RuntimeError(f"pin_memory: no accelerator is found, got device={device!r}")
    if isinstance(data, dict):
        return {name: pin_memory(value) for name, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(pin_memory, data))
    if isinstance(data, list | tuple):
        return type(data)(map(pin_memory, data))
    if isinstance(data, Tensor):
        return data.pin_memory() if data.is_cpu and gpus.count() else data
    if type(data).__module__.partition(".")[0] not in ("rushlight", "torch") and hasattr(data, "pin_memory"):
        return data.pin_memory()
    return data


class PinnedBatches:
    """An iterator over another one's batches, in page-locked memory."""

    def __init__(self, batches: Iterator):
        self.batches = batches

    def __iter__(self) -> PinnedBatches:
        return self

    def __next__(self) -> Any:
        return pin_memory(next(self.batches))

    def __len__(self) -> int:
        return len(self.batches)
