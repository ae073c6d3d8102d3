"""`torch._inductor.wrapper_benchmark`: what a generated program does when it is run by itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rushlight._inductor.utils import maybe_profile


def compiled_module_main(benchmark_name: str, benchmark_compiled_module_fn: Callable[..., float]) -> None:
    """Time a program by its own function, as often as `--times` and `--repeat` say; `--profile` prints where the time goes."""
    parser = argparse.ArgumentParser(description=f"Times the compiled program of {benchmark_name}.")
    parser.add_argument("--times", "-t", type=int, default=10, help="calls in one run")
    parser.add_argument("--repeat", "-r", type=int, default=10, help="runs")
    parser.add_argument("--profile", "-p", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    with maybe_profile(options.profile) as profile:
        benchmark_compiled_module_fn(times=options.times, repeat=options.repeat)
    if profile is not None:
        profile.print_stats("tottime")
