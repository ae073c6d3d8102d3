"""Measured times of code: their median, spread, and number of significant digits."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rushlight.core.parallel import get_num_threads, set_num_threads

_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_NAMES = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_MIN_FOR_SPREAD = 4
_MAX_SPREAD = 0.1  # measurements warn if the interquartile range exceeds this share of the median


def trim_sigfig(x: float, n: int) -> float:
    """Return a number with `n` significant digits. ValueError where `n` is no positive integer."""
    if n != int(n) or n < 1:
        raise ValueError(f"trim_sigfig: n must be a positive integer, got {n}")
    if x == 0 or not math.isfinite(x):
        return float(x)
    scale = 10 ** (math.floor(math.log10(abs(x))) + 1 - int(n))
    return float(round(x / scale) * scale)


def select_unit(t: float) -> tuple[str, float]:
    """Return a suitable unit for a time in seconds, and its length: ("us", 1e-6)."""
    unit = "ns"
    for name, size in _UNITS.items():
        if t >= size:
            unit = name
    return unit, _UNITS[unit]


def unit_to_english(u: str) -> str:
    """Return a unit's name: "us" is "microsecond"."""
    return _NAMES[u]


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Elements without duplicates, in order of first occurrence."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A block that runs with `n` threads."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """The measured task, and its names in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n" + _indent(self.stmt)

    def setup_str(self) -> str:
        """Return the setup as shown in tables."""
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{_indent(self.setup)}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Return all of it, in lines."""
        parts = [self.title, self.description or "", self.setup_str()]
        if self.env:
            parts.append(f"environment: {self.env}")
        return "\n".join(part for part in parts if part)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of one task: `raw_times` are the seconds of several repetitions of `number_per_run` calls each.

    ValueError for queries of a measurement without times.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    @property
    def times(self) -> list[float]:
        """The seconds of a call, one for each repetition."""
        return [time / self.number_per_run for time in self.raw_times]

    def _known(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("No times to show: the measurement is empty")
        return sorted(self.times)

    @property
    def median(self) -> float:
        """The median of `times`."""
        return statistics.median(self._known())

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return statistics.fmean(self._known())

    @property
    def iqr(self) -> float:
        """The interquartile range of `times`."""
        return _quantile(self._known(), 0.75) - _quantile(self._known(), 0.25)

    @property
    def significant_figures(self) -> int:
        """The number of significant digits of the median, from the width of its 50% confidence interval."""
        times = self._known()
        spread = self.iqr / 1.349 / math.sqrt(len(times))  # a normal distribution's quartiles are 1.349 deviations apart
        width = 2 * 0.6745 * spread
        if width == 0:
            return 4
        return min(max(math.floor(math.log10(self.median / width)), 1), 4)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread too much."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _MAX_SPREAD) -> bool:
        """Whether the interquartile range is below this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The measured task."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """The environment, as given by the caller."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name: str) -> Any:
        if name in {each.name for each in dataclasses.fields(TaskSpec)}:
            return getattr(self.__dict__["task_spec"], name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    def __repr__(self) -> str:
        times = self._known()
        unit, scale = select_unit(self.median)
        count = len(times)
        lines = [super().__repr__(), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}")
        if count >= _MIN_FOR_SPREAD:
            low, high = (_quantile(times, part) / scale for part in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        runs = f"{count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs "
        threads = self.task_spec.num_threads
        lines.append(f"  {runs}{'per measurement' if count > 1 else ''}, {threads} thread{'s' if threads > 1 else ''}")
        if count >= _MIN_FOR_SPREAD and not self.meets_confidence():
            share = f"{100 * self.iqr / self.median:.1f}%"
            lines.append(f"  WARNING: Interquartile range is {share} of the median measurement.")
            lines.append("           This could indicate system fluctuation.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Measurements of one task as one. Calls per repetition need not agree."""
        found: dict[TaskSpec, list[Measurement]] = {}
        for each in measurements:
            found.setdefault(each.task_spec, []).append(each)
        return [
            group[0] if len(group) == 1 else Measurement(1, [time for each in group for time in each.times], task)
            for task, group in found.items()
        ]


def _quantile(ordered: Sequence[float], part: float) -> float:
    """Return a quantile of sorted numbers, by interpolation."""
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
