"""The events of a profile in the form of chrome://tracing and Perfetto: the "Trace Event Format" of the Catapult project.

In: events. Out: dicts for JSON: names of the process and its threads, a slice for each event, the two ends of those that run
beside their thread, an arrow from each forward call to its backward node, and the memory in use over time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rushlight.autograd.profiler_util import FunctionEvent


def trace_events(events: Iterable[FunctionEvent]) -> list[dict]:
    """Return events as those of a trace."""
    events, process = list(events), os.getpid()
    names = {event.thread: event.thread_name for event in events}
    return [
        *_metadata(process, names), *(_slice(event, process) for event in events if not event.is_async),
        *(end for event in events if event.is_async for end in _ends(event, process)), *_arrows(events, process),
        *_memory(events, process),
    ]  # fmt: skip


def _metadata(process: int, threads: dict[int, str]) -> Iterator[dict]:
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    yield _fact("process_name", process, 0, name=program)
    yield _fact("process_labels", process, 0, labels="CPU")
    yield _fact("process_sort_index", process, 0, sort_index=process)
    for thread, name in threads.items():
        yield _fact("thread_name", process, thread, name=f"thread {thread} ({name})")
        yield _fact("thread_sort_index", process, thread, sort_index=thread)


def _fact(kind: str, process: int, thread: int, **args: Any) -> dict:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": args}


def _slice(event: FunctionEvent, process: int) -> dict:
    facts = {
        "Input Dims": event.input_shapes, "Concrete Inputs": event.concrete_inputs, "Call stack": ";\n".join(event.stack),
        "FLOPs": event.flops, "Bytes": event.cpu_memory_usage, "Overload": event.overload_name,
    }  # fmt: skip
    args = {"External id": event.id} | {name: value for name, value in facts.items() if value}
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
    return {
        "ph": "X", "cat": "user_annotation" if event.is_user_annotation else "cpu_op", "name": event.name, "pid": process,
        "tid": event.thread, "ts": event.time_range.start, "dur": event.time_range.elapsed_us(), "args": args,
    }  # fmt: skip


def _ends(event: FunctionEvent, process: int) -> Iterator[dict]:
    common = {"cat": "collective", "name": event.name, "id": event.id, "pid": process, "tid": event.thread}
    yield common | {"ph": "b", "ts": event.time_range.start, "args": event.facts}
    yield common | {"ph": "e", "ts": event.time_range.end}


def _arrows(events: list[FunctionEvent], process: int) -> Iterator[dict]:
    """Yield the two ends of an arrow for each forward call whose backward node ran."""
    forward = {event.sequence_nr: event for event in events if event.sequence_nr >= 0 and not event.is_backward}
    for event in events:
        start = forward.get(event.sequence_nr) if event.is_backward else None
        if start is not None:
            common = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.id, "pid": process}
            yield common | {"ph": "s", "tid": start.thread, "ts": start.time_range.start}
            yield common | {"ph": "f", "bp": "e", "tid": event.thread, "ts": event.time_range.start}


def _memory(events: list[FunctionEvent], process: int) -> Iterator[dict]:
    """Yield the bytes that tensors held after each call, where they changed."""
    known = [event for event in events if event.allocated_bytes is not None]
    before = None
    for event in sorted(known, key=lambda event: event.time_range.end):
        if event.allocated_bytes != before:
            before = event.allocated_bytes
            yield {
                "ph": "C", "name": "memory in use", "pid": process, "tid": event.thread, "ts": event.time_range.end,
                "args": {"bytes": before},
            }  # fmt: skip
