"""The number of threads that native kernels use."""

from __future__ import annotations

import os
from collections.abc import Callable

MAX_THREADS = 4096  # if the OpenMP library cannot start a thread, it ends the process


def _default() -> int:
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if given.isdigit() and int(given) > 0:
        return min(int(given), MAX_THREADS)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = [_default()]
_followers: list[Callable[[int], None]] = []


def get_num_threads() -> int:
    """Return how many threads eager kernels, and code compiled from now on, use: `OMP_NUM_THREADS`, else this process's
    processors.
    """
    return _threads[0]


def set_num_threads(number: int) -> None:
    """Set the number of threads of eager kernels and of code compiled from now on; RuntimeError unless it is positive and at
    most MAX_THREADS.

    NumPy's BLAS, which computes products of float64, takes its own from OPENBLAS_NUM_THREADS when it is loaded.
    """
    if not isinstance(number, int) or number <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {number!r}")
    if number > MAX_THREADS:
        raise RuntimeError(f"set_num_threads expects at most {MAX_THREADS} threads, got {number}")
    _threads[0] = number
    for follower in _followers:
        follower(number)


def follow(follower: Callable[[int], None]) -> None:
    """Call `follower` with the number of threads, now and at every change."""
    _followers.append(follower)
    follower(_threads[0])
