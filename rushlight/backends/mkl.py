"""`torch.backends.mkl`: MKL, which is not used."""

from __future__ import annotations

from rushlight.backends.absent import is_available, is_built, version

__all__ = ["is_available", "is_built", "version"]
