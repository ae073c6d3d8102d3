"""`rushlight.signal`: signal processing. `signal.windows` holds window functions."""

from rushlight.signal import windows

__all__ = ["windows"]
