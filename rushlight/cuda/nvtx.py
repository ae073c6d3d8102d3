"""`torch.cuda.nvtx`: marks for NVIDIA's profiler, which is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def _refuse() -> None:
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


def range_push(msg: str) -> int:
    """Begin a range; RuntimeError, as the profiler is not there."""
    _refuse()


def range_pop() -> int:
    """End a range; RuntimeError, as the profiler is not there."""
    _refuse()


def mark(msg: str) -> None:
    """Mark a moment; RuntimeError, as the profiler is not there."""
    _refuse()


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:  # noqa: A001  (torch's name)
    """Return a range as a context; RuntimeError, as the profiler is not there."""
    range_push(msg.format(*args, **kwargs))
    yield
