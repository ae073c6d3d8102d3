"""`torch.Stream` and `torch.Event`: an accelerator's work queues, and points in them. `torch.cuda` has a GPU's classes."""

from __future__ import annotations

from typing import Any

from rushlight.core.device import as_device, device, gpus
from rushlight.core.lazy_module import LazyModule

streams = LazyModule("rushlight.cuda.streams")


def _require_accelerator(where: device | str | int | None) -> None:
    """Raise RuntimeError if there is no accelerator, or if `where` is none."""
    if not gpus.count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if where is not None and not isinstance(where, int) and as_device(where).type != "cuda":
        raise RuntimeError(f"Expected a device with streams and events, which is 'cuda' here, but got: {where}")


class Stream:
    """A work queue of an accelerator. Calling this class makes a `torch.cuda.Stream`; RuntimeError without an accelerator."""

    def __new__(cls, device: device | str | int | None = None, *args: Any, **kwargs: Any) -> Stream:
        if cls is Stream:
            _require_accelerator(device)
            cls = streams.Stream
        return object.__new__(cls)


class Event:
    """A point in a work queue. Calling this class makes a `torch.cuda.Event`; RuntimeError without an accelerator."""

    def __new__(cls, device: Any = None, *args: Any, **kwargs: Any) -> Event:
        if cls is Event:
            _require_accelerator(device)
            cls = streams.EventOfDevice
        return object.__new__(cls)
