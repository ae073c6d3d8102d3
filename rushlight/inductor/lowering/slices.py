"""Bounds of slices, for sizes that may be symbolic."""

from __future__ import annotations

from rushlight.core.symbolic import SymInt

Integer = int | SymInt


def slice_bounds(start: Integer | None, end: Integer | None, size: Integer) -> tuple[Integer, Integer]:
    """Return the first position and the end position of `start:end` in a dimension, both in [0, size].

    Comparisons of symbolic sizes that cannot be proven use the example's values and are guarded.
    """
    if not any(isinstance(value, SymInt) for value in (start, end, size)):
        first, last, _ = slice(start, end).indices(size)
        return first, last
    return _clamp_position(start, 0, size), _clamp_position(end, size, size)


def _clamp_position(position: Integer | None, default: Integer, size: Integer) -> Integer:
    if position is None:
        return default
    if position < 0:
        position = position + size
        return 0 if position < 0 else position
    return size if position > size else position
