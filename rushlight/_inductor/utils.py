"""`torch._inductor.utils`: timing of generated programs."""

from __future__ import annotations

import contextlib
import cProfile
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def timed(model: Callable, example_inputs: Sequence[Any] = (), times: int = 1, device: str = "cpu") -> float:
    """The seconds that `times` calls take."""
    begin = time.perf_counter()
    for _ in range(times):
        model(*example_inputs)
    return time.perf_counter() - begin


def print_performance(
    model: Callable, example_inputs: Sequence[Any] = (), times: int = 10, repeat: int = 10, baseline: float = 1.0,
    device: str = "cpu",
) -> float:  # fmt: skip
    """Print the median over `repeat` runs of the seconds per call, divided by `baseline`; the median itself is returned."""
    median = statistics.median(timed(model, example_inputs, times, device) for _ in range(repeat)) / times
    print(f"{median / baseline:.6f}")
    return median


@contextlib.contextmanager
def maybe_profile(should_profile: bool, *args: Any, **kwargs: Any) -> Iterator[cProfile.Profile | None]:
    """A block that Python's profiler watches if `should_profile`; the profile can be looked at afterwards."""
    if not should_profile:
        yield None
        return
    with cProfile.Profile() as profile:
        yield profile
