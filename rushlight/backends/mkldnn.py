"""`torch.backends.mkldnn`: oneDNN, which is not used."""

from __future__ import annotations

from rushlight.backends.absent import flags, is_available, is_built, version

__all__ = ["flags", "is_available", "is_built", "version"]

enabled = False
deterministic = False
allow_tf32 = True


def set_flags(*switches: object) -> tuple:
    """Set switches of the library, which change nothing; those before."""
    return (enabled, deterministic, allow_tf32)
