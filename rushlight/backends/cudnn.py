"""`torch.backends.cudnn`: cuDNN, which is not used."""

from __future__ import annotations

from rushlight.backends.absent import flags, is_available, is_built, version

__all__ = ["flags", "is_available", "is_built", "version"]

enabled = True
benchmark = False
benchmark_limit = None
deterministic = False
allow_tf32 = True


def is_acceptable(tensor: object) -> bool:
    """Return whether the library computes with a tensor: never."""
    return False


def set_flags(*switches: object) -> tuple:
    """Set switches of the library, which change nothing; those before."""
    return (enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
