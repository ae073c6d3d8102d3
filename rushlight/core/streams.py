"""`torch.Stream` and `torch.Event`, an accelerator's work queues. There is no accelerator, so making one raises."""

from __future__ import annotations


class Stream:
    """A work queue; making one raises RuntimeError, as there is no accelerator."""

    def __new__(cls, *args: object, **kwargs: object) -> Stream:
        raise RuntimeError("Cannot access accelerator device when none is available.")


class Event:
    """A point in a work queue; making one raises RuntimeError, as there is no accelerator."""

    def __new__(cls, *args: object, **kwargs: object) -> Event:
        raise RuntimeError("Cannot access accelerator device when none is available.")
