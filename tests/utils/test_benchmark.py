"""`torch.utils.benchmark`: timers, what their measurements say, and tables of them."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.utils import benchmark
from rushlight.utils.benchmark import Compare, Measurement, TaskSpec, Timer


class Clock:
    """A clock that `tick` moves on, by half a second."""

    now = 0.0

    def __call__(self):
        return self.now

    def tick(self):
        self.now += 0.5


def measured(*times, number=1, **names):
    return Measurement(number, list(times), TaskSpec("x", "pass", **names))


def test_timers_run_what_they_are_given():
    seen = []
    found = Timer("seen.append(x)", setup="x = 1 + y", globals={"seen": seen, "y": 1}).timeit(200)
    assert seen == [2] * 202 and found.number_per_run == 200 and len(found.times) == 1
    threads = []
    Timer("threads.append(get())", globals={"threads": threads, "get": torch.get_num_threads}, num_threads=1).timeit(2)
    assert set(threads) == {1}


def test_ranges_are_as_long_as_wished():
    calls, clock = [], Clock()
    found = Timer("tick()", timer=clock, globals={"tick": clock.tick}).blocked_autorange(lambda number, time: calls.append((number, time)), min_run_time=2.0)
    assert found.raw_times == [0.5] * 4 and calls == [(found.number_per_run, 0.5)] * 4
    found = Timer("tick()", timer=clock, globals={"tick": clock.tick}).adaptive_autorange(min_run_time=1.0)
    assert found.raw_times == [0.5] * 4
    real = Timer("x + x", globals={"x": torch.ones(4)}).blocked_autorange(min_run_time=0.01)
    assert sum(real.raw_times) >= 0.01 and 0 < real.median <= sum(real.raw_times)


def test_statistics():
    found = measured(1.0, 2.0, 3.0, 4.0, number=2)
    assert found.times == [0.5, 1.0, 1.5, 2.0]
    assert (found.median, found.mean, found.iqr) == (1.25, 1.25, 0.75) and found.has_warnings
    assert measured(1.0, 1.0, 1.0).significant_figures == 4 and not measured(1.0, 1.0).has_warnings
    with pytest.raises(ValueError, match="empty"):
        measured().median  # noqa: B018
    merged = Measurement.merge([measured(1.0), measured(4.0, number=2), measured(5.0, label="other")])
    assert [each.times for each in merged] == [[1.0, 2.0], [5.0]]


def test_what_a_measurement_shows():
    text = repr(measured(2e-3, 2e-3, label="a", sub_label="b", description="c"))
    assert text.splitlines()[1:] == ["a: b", "c", "  Median: 2.00 ms", "  2 measurements, 1 runs per measurement, 1 thread"]
    assert "WARNING" in repr(measured(1.0, 2.0, 3.0, 4.0)) and measured(1.0, label="a").label == "a"


def test_tables():
    results = [
        measured(time, label="ops", sub_label=row, description=column)
        for row, column, time in [("n=8", "add", 1e-6), ("n=8", "mul", 2.5e-6), ("n=1000", "add", 3e-6)]
    ]
    compare = Compare(results)
    lines = str(compare).splitlines()
    assert [line.split() for line in lines[1:5]] == [
        ["|", "add", "|", "mul"], ["1", "threads:", "-" * (len(lines[0]) - 11)], ["n=8", "|", "1.0", "|", "2.5"],
        ["n=1000", "|", "3.0", "|"],
    ]  # fmt: skip
    assert lines[-1] == "Times are in microseconds (us)." and lines[0].strip("[]- ") == "ops"
    compare.colorize(rowwise=True)
    assert "\033[92m1.0\033[0m" in str(compare) and "\033[31m2.5\033[0m" in str(compare)
    with pytest.raises(ValueError, match="instance of `Measurement`"):
        compare.extend_results([1.0])


def test_numbers_and_units():
    assert [benchmark.trim_sigfig(1234.5, digits) for digits in (1, 2, 4)] == [1000.0, 1200.0, 1234.0]
    assert [benchmark.select_unit(time)[0] for time in (1e-12, 2e-9, 5e-5, 0.02, 3)] == ["ns", "ns", "us", "ms", "s"]
    assert benchmark.unit_to_english("us") == "microsecond" and benchmark.ordered_unique([2, 1, 2]) == [2, 1]


def test_what_is_not_there():
    with pytest.raises(NotImplementedError, match="Python"):
        Timer("x;", language="c++")
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        Timer("pass").collect_callgrind()
