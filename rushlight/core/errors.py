"""Kinds of errors that programs catch by name."""

from __future__ import annotations


class AcceleratorError(RuntimeError):
    """What goes wrong on an accelerator."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """A device has no memory left."""
