"""Exception classes that programs catch by name."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """An error of an accelerator."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """A device is out of memory."""
