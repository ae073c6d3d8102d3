"""What happened in captures, and where there are any."""

from rushlight.dynamo.rules import counters

__all__ = ["counters", "is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether functions of tensors on a kind of device can be compiled."""
    return device_type == "cpu"
