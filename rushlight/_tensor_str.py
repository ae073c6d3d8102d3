"""`torch._tensor_str`: how tensors are printed, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.core.printing import get_printoptions, restore_printoptions, set_printoptions

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Context in which tensors are printed with other options of `set_printoptions`."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        restore_printoptions(before)
