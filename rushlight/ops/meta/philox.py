"""Checks and Meta rules of counter-based random numbers."""

from __future__ import annotations

from rushlight.core.dtype import dtype, float32, float64, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.common import empty
from rushlight.ops.meta.creation import check_sizes
from rushlight.ops.registry import meta


def check_stream(name: str, seed: Tensor, offset: int) -> None:
    """Raise RuntimeError unless `seed` is one int64 and `offset` is a valid stream number."""
    if seed.dtype is not int64 or seed.numel() != 1:
        raise RuntimeError(f"{name} expects a seed of one int64, got {seed.dtype} of size {list(seed.shape)}")
    if not 0 <= offset < 1 << 32:
        raise RuntimeError(f"{name} expects an offset in [0, 2**32), got {offset}")


def check_uniform(kind: dtype | None) -> dtype:
    """Return the dtype of uniform numbers; RuntimeError for any but float32 and float64."""
    if kind not in (None, float32, float64):
        raise RuntimeError(f"_philox_uniform expects dtype float32 or float64, got {kind}")
    return kind or float32


@meta("_philox_seed")
def seed(*, device=None):
    return empty((), int64)


@meta("_philox_uniform")
def uniform(seed, offset, size, *, dtype=None):
    check_stream("_philox_uniform", seed, offset)
    return empty(check_sizes(size), check_uniform(dtype))


@meta("_philox_bits")
def bits(seed, offset, size):
    check_stream("_philox_bits", seed, offset)
    return empty(check_sizes(size), int64)
