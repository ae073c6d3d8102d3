"""`torch.distributed.tensor.experimental`: plain tensors beside distributed ones, and functions of parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight.core.absent import absent_function
from rushlight.distributed.tensor.dispatch import allow_mixing
from rushlight.distributed.tensor.experimental.mapping import local_map

context_parallel = absent_function("torch.distributed.tensor.experimental.context_parallel")


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Context manager in which plain tensors beside distributed ones count as replicated."""
    before = allow_mixing(True)
    try:
        yield
    finally:
        allow_mixing(before)


__all__ = ["context_parallel", "implicit_replication", "local_map"]
