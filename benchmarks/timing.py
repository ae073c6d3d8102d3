"""Timing of one call in this process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

SHORTEST_SAMPLE = 1e-3  # seconds; shorter calls are repeated within one sample
WARM_UP_SHARE = 0.25
FEWEST_SAMPLES = 5


def seconds_per_call(call: Callable[[], object], repeats: int) -> float:
    """The mean over some calls in a row."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def sample(call: Callable[[], object], budget: float) -> list[float]:
    """Seconds per call, measured again and again for about `budget` seconds, a share of which is warm-up."""
    repeats = max(1, int(SHORTEST_SAMPLE / max(seconds_per_call(call, 1), 1e-9)))
    warm_until = time.perf_counter() + budget * WARM_UP_SHARE
    while time.perf_counter() < warm_until:
        seconds = seconds_per_call(call, repeats)
        repeats = max(1, int(SHORTEST_SAMPLE / max(seconds, 1e-9)))
    samples: list[float] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + budget
        while len(samples) < FEWEST_SAMPLES or time.perf_counter() < end:
            samples.append(seconds_per_call(call, repeats))
    finally:
        if collecting:
            gc.enable()
    return samples
