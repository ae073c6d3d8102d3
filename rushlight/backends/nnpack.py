"""`torch.backends.nnpack`, which is not used."""

from __future__ import annotations

from rushlight.backends.absent import flags, is_available

__all__ = ["flags", "is_available"]
