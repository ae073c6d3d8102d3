"""`torch.backends.mps`: Metal, which is not used."""

from __future__ import annotations

from rushlight.backends.absent import is_available, is_built

__all__ = ["is_available", "is_built"]


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Return whether this is macOS 13 or later: False where there is no Metal."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Return whether this is that macOS or later: False where there is no Metal."""
    return False
