"""`Timer`: run a piece of code repeatedly to measure its time."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any

from rushlight.utils.benchmark.measurement import Measurement, TaskSpec, set_torch_threads

timer = timeit.default_timer
_READINGS_PER_BLOCK = 100  # a block of calls takes at least as long as this many clock readings
_MAX_CALLS = 10**9  # the maximal number of calls in a block
_MAX_AUTORANGE_SECONDS = 10.0  # default time limit of `adaptive_autorange`, in seconds


class Language(enum.Enum):
    """The language of statements."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times the statement `stmt`, with names from `globals` and the statements of `setup`.

    It runs with `num_threads` threads, one by default. `label`, `sub_label`, `description` and `env` identify it in tables.
    NotImplementedError for statements in C++.
    """

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:  # fmt: skip
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(f"Timer: statements are in Python, got language={language!r}")
        if global_setup:
            raise ValueError(f"Timer: global_setup is for statements in C++, got {global_setup!r}")
        if not isinstance(stmt, str):
            raise ValueError(f"Timer: stmt must be a string, got {type(stmt).__name__}")
        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        self._globals = dict(globals or {})
        self._timer = timeit.Timer(stmt, setup, timer, globals=self._globals)
        self._clock = timer
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _time(self, number: int) -> float:
        # A clock that did not advance has only measured less than its resolution.
        return max(self._timer.timeit(number), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Measure one repetition of `number` calls, after a warm-up of a hundredth of them."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))
            return self._measurement(number, [self._time(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raise NotImplementedError, as torch does: use `blocked_autorange` or `adaptive_autorange` instead."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], None] | None = None) -> None:
        """Raise NotImplementedError, as torch does: see `repeat`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callable[[int, float], None] | None = None, min_run_time: float = 0.2
    ) -> Measurement:  # fmt: skip
        """Measure repetitions for `min_run_time` seconds in total, each long enough to make clock readings negligible."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            while sum(times) < min_run_time:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
            return self._measurement(number, times)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = _MAX_AUTORANGE_SECONDS,
        callback: Callable[[int, float], None] | None = None,
    ) -> Measurement:  # fmt: skip
        """Measure repetitions until the interquartile range is below `threshold` * median, or for `max_run_time` seconds."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            while True:
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
                spent, found = sum(times), self._measurement(number, times)
                enough = spent >= min_run_time and len(times) > 3
                if spent >= max_run_time or enough and found.meets_confidence(threshold):
                    return found

    def _block_size(self, min_run_time: float) -> int:
        overhead = min(timeit.Timer("pass", timer=self._clock).timeit(0) for _ in range(5))
        number = 1
        while number < _MAX_CALLS:
            taken = self._time(number)
            if taken >= max(overhead * _READINGS_PER_BLOCK, min_run_time / 1000) or taken >= min_run_time:
                break
            number *= 10
        return number

    def collect_callgrind(self, number: int = 100, **settings: Any) -> None:
        """Raise NotImplementedError: it needs Valgrind and libtorch's bindings to it."""
        raise NotImplementedError("Timer.collect_callgrind: instructions are not counted here; use blocked_autorange")
