"""What happened in captures, and what can be captured."""

from rushlight.core.device import as_device
from rushlight.dynamo.rules import counters

__all__ = ["counters", "is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Return whether `torch.compile` makes code for a device. RuntimeError for a name of no device."""
    return as_device(device_type).type == "cpu"
