"""`torch.backends.mha`: the shortcut of attention modules in evaluation, whose results are the same without."""

from __future__ import annotations

_enabled = True


def get_fastpath_enabled() -> bool:
    """Return whether the shortcut may be taken."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Set whether the shortcut may be taken."""
    global _enabled
    _enabled = value
