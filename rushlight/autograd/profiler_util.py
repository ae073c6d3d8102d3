"""`torch.autograd.profiler_util`: the events of a profile, their sums by name, and the table and trace made of them.

Times are microseconds; `start_us` and `end_us` count from the beginning of the profile. Times of other devices are 0.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.autograd.profiler_recording import Recording, Span
from rushlight.autograd.profiler_trace import trace_events

_TIMES = ("cpu_time", "cpu_time_total", "self_cpu_time_total")
_SORTABLE = (*_TIMES, "cpu_memory_usage", "self_cpu_memory_usage", "count", "flops", "device_time", "device_time_total",
             "self_device_time_total", "device_memory_usage", "self_device_memory_usage")  # fmt: skip
_TRUNCATED = ("Name", "Input Shapes", "Source Location")  # columns that are truncated if they are too wide
_METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total")


def _format_time(microseconds: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


def _format_memory(size: int) -> str:
    for unit, scale in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(size) >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} B"


class Interval:
    """A section of time, in microseconds."""

    def __init__(self, start: float, end: float):
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


class FormattedTimesMixin:
    """Times as text, and the average of a call."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time = device_time_total = self_device_time_total = cuda_time = 0.0
    device_memory_usage = self_device_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """The average time of a call, including the calls that it made."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` as text."""
        return _format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` as text."""
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` as text."""
        return _format_time(self.self_cpu_time_total)


class FunctionEvent(FormattedTimesMixin):
    """One call of an operator, or one named section of a program."""

    count = 1

    def __init__(self, number: int, span: Span, origin: int, thread: int, thread_name: str = ""):
        self.id = number
        self.name = self.trace_name = span.name
        self.key = "ProfilerStep*" if span.name.startswith("ProfilerStep#") else span.name  # steps are averaged together
        self.thread, self.thread_name = thread, thread_name
        self.time_range = Interval((span.start - origin) / 1e3, (span.end - origin) / 1e3)
        self.input_shapes = span.shapes
        self.concrete_inputs = span.inputs
        self.stack = span.stack
        self.flops = span.flops
        self.cpu_memory_usage = span.memory
        self.allocated_bytes = span.allocated
        self.sequence_nr, self.is_backward = span.sequence_nr, span.is_backward
        self.is_user_annotation, self.is_async = span.annotation, span.is_async
        self.facts = span.facts
        self._is_call, self.overload_name = span.is_call, span.overload
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Its duration."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Its duration without the calls that it made; 0 for what runs beside the thread."""
        if self.is_async:
            return 0.0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """The bytes of new memory among its results that none of its inner calls allocated."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add a call within this one."""
        self.cpu_children.append(child)
        child.cpu_parent = self

    def absorb(self, child: FunctionEvent) -> None:
        """Take the place of the only call within this one."""
        self.cpu_children = []
        for each in child.cpu_children:
            self.append_cpu_child(each)
        self.flops = self.flops or child.flops
        if self.sequence_nr < 0:
            self.sequence_nr = child.sequence_nr

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.time_range.start:.3f} "
            f"end_us={self.time_range.end:.3f} cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """The events of one name, added up."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = self.flops = self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.input_shapes: Any = None
        self.overload_name = ""
        self.stack: list[str] = []
        self.is_user_annotation = False

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or other events that were added up."""
        if self.key is None:
            self.key, self.is_user_annotation = other.key, other.is_user_annotation
            self.input_shapes, self.stack, self.overload_name = other.input_shapes, other.stack, other.overload_name
        for name in ("count", "flops", "cpu_memory_usage", "self_cpu_memory_usage", "cpu_time_total", "self_cpu_time_total"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list):
    """A list of events, in the order in which they began, or of sums of events."""

    def __init__(self, *given: Any, profile_memory: bool = False, with_flops: bool = False):
        super().__init__(*given)
        self._profile_memory = profile_memory
        self._with_flops = with_flops

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each without the calls that it made."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Return the events added up by name, and by the shapes of their inputs, the innermost frames and the overload if
        wanted."""
        found: dict[tuple, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            overload = event.overload_name if group_by_overload_name else ""
            found[event.key, shapes, tuple(event.stack[:group_by_stack_n]), overload].add(event)
        for average in found.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return EventList(found.values(), profile_memory=self._profile_memory, with_flops=self._with_flops)

    def total_average(self) -> FunctionEventAvg:
        """Return all events added up."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key, total.input_shapes, total.stack, total.overload_name = "Total", "", [], ""
        return total

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
        top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """Return the events as text, at most `row_limit` (-1: all), the greatest in `sort_by` first.

        `time_unit` is "s", "ms", "us" or None for what suits each. ValueError for names that nothing can be sorted by.
        """
        rows = [event for event in self if not top_level_events_only or getattr(event, "cpu_parent", None) is None]
        if sort_by is not None:
            rows.sort(key=_sort_key(sort_by), reverse=True)
        limits = dict(zip(_TRUNCATED, (max_name_column_width, max_shapes_column_width, max_src_column_width), strict=True))
        columns = _columns(self, self._profile_memory, self._with_flops, _time_format(time_unit))
        return _draw_table(rows[: row_limit if row_limit >= 0 else None], columns, limits, header, self.self_cpu_time_total)

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the events as JSON that chrome://tracing and Perfetto show."""
        with open(path, "w") as file:
            json.dump({"traceEvents": trace_events(self)}, file)

    def supported_export_stacks_metrics(self) -> list[str]:
        """Return the metrics that `export_stacks` can sum."""
        return list(_METRICS)

    def export_stacks(self, path: str | os.PathLike, metric: str) -> None:
        """Write each event's stack with its microseconds, as tools for flame graphs read them. ValueError for other metrics."""
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {list(_METRICS)}, got {metric!r}")
        table = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as file:
            for event in self:
                value = int(getattr(event, metric, 0))
                if event.stack and value > 0:
                    print(";".join(entry.translate(table) for entry in reversed(event.stack)), value, file=file)


def events_of(recordings: Iterable[Recording], origin: int) -> EventList:
    """Return the events of recordings; each knows its inner calls."""
    events: list[FunctionEvent] = []
    wish = None
    for recording in recordings:
        wish, open_events = recording.wish, []
        for span in recording.spans:
            event = FunctionEvent(len(events) + 1, span, origin, recording.thread, recording.thread_name)
            del open_events[span.depth :]
            if open_events:
                open_events[-1].append_cpu_child(event)
            open_events.append(event)
            events.append(event)
        for span in recording.beside:
            events.append(FunctionEvent(len(events) + 1, span, origin, recording.thread, recording.thread_name))
    for event in reversed(events):  # other spans than calls own the memory that their inner calls allocated, too
        if not event._is_call:
            event.cpu_memory_usage += sum(child.cpu_memory_usage for child in event.cpu_children)
    merged = _merge_repeated(events)
    return EventList(merged, profile_memory=bool(wish and wish.memory), with_flops=bool(wish and wish.flops))


def _merge_repeated(events: list[FunctionEvent]) -> list[FunctionEvent]:
    """Return the events, where one whose only inner call has its own name absorbs that call. An overload that calls another
    overload would otherwise count twice in the sums by name."""
    absorbed = set()
    for event in reversed(events):  # the innermost calls first
        if len(event.cpu_children) == 1 and event.cpu_children[0].name == event.name:
            absorbed.add(event.cpu_children[0].id)
            event.absorb(event.cpu_children[0])
    return [event for event in events if event.id not in absorbed]


def _sort_key(name: str) -> Callable[[Any], Any]:
    plain = name.replace("cuda", "device").replace("xpu", "device")
    if plain not in _SORTABLE:
        raise ValueError(f"sort_by should be one of: {', '.join(_SORTABLE)}, got {name!r}")
    return lambda event: getattr(event, plain)


def _time_format(unit: str | None) -> Callable[[float], str]:
    sizes = {"s": 1e6, "ms": 1e3, "us": 1.0}
    if unit is None:
        return _format_time
    if unit not in sizes:
        raise ValueError(f"time_unit should be one of: {', '.join(sizes)}, got {unit!r}")
    return lambda microseconds: f"{microseconds / sizes[unit]:.3f}{unit}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "NaN"


def _columns(events: EventList, memory: bool, flops: bool, show: Callable[[float], str]) -> dict[str, Callable[[Any], str]]:
    """Return the value of each column for an event."""
    whole = events.self_cpu_time_total
    columns: dict[str, Callable[[Any], str]] = {
        "Name": lambda event: event.key, "Self CPU %": lambda event: _share(event.self_cpu_time_total, whole),
        "Self CPU": lambda event: show(event.self_cpu_time_total),
        "CPU total %": lambda event: _share(event.cpu_time_total, whole),
        "CPU total": lambda event: show(event.cpu_time_total), "CPU time avg": lambda event: show(event.cpu_time),
    }  # fmt: skip
    if memory:
        columns["CPU Mem"] = lambda event: _format_memory(event.cpu_memory_usage)
        columns["Self CPU Mem"] = lambda event: _format_memory(event.self_cpu_memory_usage)
    columns["# of Calls"] = lambda event: str(event.count)
    if any(event.overload_name for event in events):
        columns["Overload Name"] = lambda event: event.overload_name
    if any(event.input_shapes for event in events):
        columns["Input Shapes"] = lambda event: str(event.input_shapes)
    if any(event.stack for event in events):
        columns["Source Location"] = lambda event: event.stack[0] if event.stack else ""
    if flops:
        columns["Total KFLOPs"] = lambda event: f"{event.flops / 1e3:.3f}" if event.flops else "--"
    return columns


def _draw_table(
    rows: list, columns: dict[str, Callable], limits: dict[str, int | None], header: str | None, total: float
) -> str:
    cells = [[_shorten(show(row), limits.get(name)) for name, show in columns.items()] for row in rows]
    widths = [
        max([len(name), *(len(line[position]) for line in cells), 10 if name != "Name" else 0]) + 2
        for position, name in enumerate(columns)
    ]
    rule = "  ".join("-" * width for width in widths)

    def line(texts: Iterable[str]) -> str:
        return "  ".join(f"{text:>{width}}" for text, width in zip(texts, widths, strict=True))

    top = [] if header is None else ["=" * len(rule), header]
    lines = [*top, rule, line(columns), rule, *map(line, cells), rule, f"Self CPU time total: {_format_time(total)}"]
    return "\n".join(lines) + "\n"


def _shorten(text: str, limit: int | None) -> str:
    return text if limit is None or len(text) <= limit else text[: limit - 3] + "..."
