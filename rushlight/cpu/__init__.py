"""The CPU as a device: what programs ask of devices in general."""

from __future__ import annotations

from rushlight.cpu import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """True: there is always a CPU."""
    return True


def device_count() -> int:
    """1: the CPU counts as one device."""
    return 1


def current_device() -> str:
    """The name of the device."""
    return "cpu"


def synchronize(device: object = None) -> None:
    """Nothing: every operation is done when it returns."""
