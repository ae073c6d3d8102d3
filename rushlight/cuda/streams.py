"""`torch.cuda.streams`: queues of work of a GPU, under the name of its module."""

from rushlight.cuda import (
    Event,
    ExternalStream,
    Stream,
)

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
]
