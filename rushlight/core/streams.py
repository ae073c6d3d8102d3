"""`torch.Stream` and `torch.Event`: queues of work of an accelerator, of which there is none."""

from __future__ import annotations


class Stream:
    """A queue of work; RuntimeError, as there is no accelerator."""

    def __new__(cls, *args: object, **kwargs: object) -> Stream:
        raise RuntimeError("Cannot access accelerator device when none is available.")


class Event:
    """A moment in a queue of work; RuntimeError, as there is no accelerator."""

    def __new__(cls, *args: object, **kwargs: object) -> Event:
        raise RuntimeError("Cannot access accelerator device when none is available.")
