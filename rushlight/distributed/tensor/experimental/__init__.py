"""`torch.distributed.tensor.experimental`: plain tensors beside distributed ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight.core.absent import absent_function
from rushlight.distributed.tensor.dispatch import allow_mixing

context_parallel = absent_function("torch.distributed.tensor.experimental.context_parallel")
local_map = absent_function("torch.distributed.tensor.experimental.local_map", "to_local and DTensor.from_local do it")


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Context manager in which plain tensors beside distributed ones count as replicated."""
    before = allow_mixing(True)
    try:
        yield
    finally:
        allow_mixing(before)


__all__ = ["context_parallel", "implicit_replication", "local_map"]
