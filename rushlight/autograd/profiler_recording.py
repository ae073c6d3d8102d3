"""The profiler's record of a thread: operator calls, nodes of the backward pass, and sections that the program names.

While a recording is active the key Profiler is in every dispatch of its thread; its kernel notes when each call begins and
ends. Calls made by an operator are spans within its span. Out: `Recording.spans`, in the order in which they began, and
`Recording.beside`: what the thread began and other threads, or other processes, go on with.
"""

from __future__ import annotations

import math
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rushlight._C import allocator_statistics
from rushlight.autograd.node import AccumulateGrad, Edge
from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.batching.layout import tensors_in
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback

_PROFILER = 1 << DispatchKey.Profiler
_PACKAGE = str(Path(__file__).resolve().parents[1])


@dataclass(slots=True)
class Span:
    """A section of one thread's time, in nanoseconds of `time.perf_counter_ns`."""

    name: str
    start: int
    end: int = 0
    depth: int = 0
    shapes: list = field(default_factory=list)
    inputs: list = field(default_factory=list)  # for each argument its value if it is a number, else ""
    stack: list[str] = field(default_factory=list)
    flops: int = 0
    memory: int = 0  # the size of new storages among the results, in bytes
    allocated: int | None = None  # the bytes that all tensors hold at its end
    sequence_nr: int = -1  # The number of the autograd node that it creates or runs; -1 without one.
    is_backward: bool = False  # whether it runs a node of the tape
    annotation: bool = False
    is_call: bool = False  # whether this is a call of an operator
    overload: str = ""  # the name of the operator's overload, "" for the default one
    is_async: bool = False  # whether it runs beside the thread's calls
    facts: dict[str, Any] = field(default_factory=dict)  # more entries for a trace, under torch's names


@dataclass(frozen=True)
class RecordedFacts:
    """The facts to record of each call besides its time."""

    shapes: bool = False
    memory: bool = False
    stack: bool = False
    flops: bool = False


class Recording:
    """The spans of one thread between `start` and `stop`. A recording whose `gives_way` is true records nothing while another
    one does."""

    gives_way = False

    def __init__(self, wish: RecordedFacts):
        self.wish = wish
        self._waiting: Recording | None = None
        self.spans: list[Span] = []
        self.beside: list[Span] = []
        self.depth = 0
        self.paused = False
        self.thread, self.thread_name = threading.get_native_id(), threading.current_thread().name
        self._made: set[int] = set()  # the sequence numbers of the nodes that calls made

    def start(self) -> None:
        """Begin; RuntimeError where the thread is being recorded already."""
        if state.recording is not None and not state.recording.gives_way:
            raise RuntimeError("Can't start the profiler: it runs in this thread already. Leave the other `with` block first.")
        self._waiting, state.recording = state.recording, self
        self.thread, self.thread_name = threading.get_native_id(), threading.current_thread().name
        state.include |= _PROFILER

    def stop(self) -> None:
        """End. RuntimeError in another thread than the one that began."""
        if state.recording is not self:
            raise RuntimeError("Can't stop the profiler: it was not started in this thread.")
        for span in self.beside:
            self.finish_beside(span)
        state.recording, self._waiting = self._waiting, None
        if state.recording is None:
            state.include &= ~_PROFILER

    def pause(self, paused: bool) -> None:
        """Suspend or resume the recording of operators."""
        self.paused = paused

    def begin(self, name: str, annotation: bool = False) -> Span:
        """Begin a span now."""
        span = Span(name, time.perf_counter_ns(), depth=self.depth, annotation=annotation)
        self.spans.append(span)
        self.depth += 1
        if self.wish.stack:
            span.stack = _stack()
        return span

    def finish(self, span: Span) -> None:
        """End a span now, and the spans inside it that an exception left open."""
        span.end = time.perf_counter_ns()
        self.depth = span.depth
        if self.wish.memory:
            span.allocated = allocator_statistics()["allocated_bytes"]

    def begin_beside(self, name: str, facts: dict[str, Any]) -> Span:
        """Begin a span now that goes on while the thread does other things."""
        span = Span(name, time.perf_counter_ns(), is_async=True, facts=facts)
        self.beside.append(span)
        return span

    def finish_beside(self, span: Span) -> None:
        """End such a span now, in any thread, unless it has ended."""
        span.end = span.end or time.perf_counter_ns()

    @contextmanager
    def span(self, name: str, annotation: bool = False) -> Iterator[Span]:
        """Return a context that records a block as a span."""
        span = self.begin(name, annotation)
        try:
            yield span
        finally:
            self.finish(span)

    def call(self, op: OpOverload, below: int, function: Callable, args: tuple, kwargs: dict) -> Any:
        """Run an operator's kernel, `function` for the dispatch keys `below`, within a span."""
        if self.paused:
            return function(*args, **kwargs)
        wish, span = self.wish, self.begin(f"{op.namespace}::{op._opname}")
        span.is_call, span.overload = True, op._overloadname
        try:
            result = function(*args, **kwargs)
        finally:
            self.finish(span)
        self._note_node(span, result)
        if wish.shapes:
            span.shapes, span.inputs = _shapes(args), _numbers_of(args)
        if wish.memory:
            span.memory = _new_bytes(args, kwargs, result)
        if wish.flops:
            formula = _FLOPS.get(span.name)
            span.flops = int(formula(args, result)) if formula is not None else 0
        return result

    def _note_node(self, span: Span, result: object) -> None:
        """Note the node of the tape that a call made. Calls around it have the same result, but did not make the node."""
        for tensor in (result,) if isinstance(result, Tensor) else result if isinstance(result, tuple | list) else ():
            node = getattr(tensor._impl.autograd, "grad_fn", None) if isinstance(tensor, Tensor) else None
            if node is not None and node.sequence_nr not in self._made:
                self._made.add(node.sequence_nr)
                span.sequence_nr = node.sequence_nr
                return

    def backward(self, roots: Sequence[Edge]) -> None:
        """Begin a backward pass at these nodes."""

    def apply(self, node: Any, run: Callable[[], Any]) -> Any:
        """Run a node of the backward pass, by calling `run`, within spans named like those of torch's engine."""
        is_leaf = type(node) is AccumulateGrad  # a leaf comes from no call
        name = "torch::autograd::AccumulateGrad" if is_leaf else node.name()
        with self.span(f"autograd::engine::evaluate_function: {name}"), self.span(name) as span:
            if not is_leaf:
                span.sequence_nr, span.is_backward = int(node.sequence_nr), True
            return run()


def _stack() -> list[str]:
    """Return the program's own frames, innermost first."""
    frames = traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(2)), lookup_lines=False)
    return [f"{each.filename}({each.lineno}): {each.name}" for each in frames if not each.filename.startswith(_PACKAGE)]


def _shapes(args: Iterable[object]) -> list:
    return [_shape(value) for value in args]


def _shape(value: object) -> list:
    if isinstance(value, Tensor):
        return list(value.shape)
    if isinstance(value, list | tuple) and value and all(isinstance(each, Tensor) for each in value):
        return [list(each.shape) for each in value]
    return []


def _numbers_of(args: Iterable[object]) -> list:
    return [value if isinstance(value, bool | int | float) else "" for value in args]


def _new_bytes(args: tuple, kwargs: dict, result: object) -> int:
    known = {id(tensor._impl.storage) for tensor in tensors_in((*args, *kwargs.values()))}
    results = [tensor._impl for tensor in tensors_in([result])]
    found = {id(impl.storage): impl.storage for impl in results if not impl.fake and impl.device.type == "cpu"}
    return sum(storage.nbytes for key, storage in found.items() if key not in known and storage is not None)


def _make_product_counter(first: int, second: int) -> Callable[[tuple, Any], int]:
    def count(args: tuple, result: Any) -> int:
        return 2 * math.prod(args[first].shape) * args[second].shape[-1]

    return count


def _convolution_flops(args: tuple, result: Any) -> int:
    weight, transposed = args[1], len(args) > 6 and args[6]
    return 2 * math.prod((args[0] if transposed else result).shape) * math.prod(weight.shape[1:])


def _count_elements(args: tuple, result: Any) -> int:
    return math.prod(result.shape)


# The operators for which torch's profiler counts floating-point operations; a product and a sum are two.
_FLOPS: dict[str, Callable[[tuple, Any], int]] = {
    "aten::mm": _make_product_counter(0, 1), "aten::bmm": _make_product_counter(0, 1),
    "aten::addmm": _make_product_counter(1, 2), "aten::baddbmm": _make_product_counter(1, 2),
    "aten::convolution": _convolution_flops, "aten::mul": _count_elements, "aten::add": _count_elements,
}  # fmt: skip


def _make_recording_kernel(op: OpOverload, below: int) -> Callable:
    function = op.resolve(below)

    def run(*args: Any, **kwargs: Any) -> Any:
        recording = state.recording
        return function(*args, **kwargs) if recording is None else recording.call(op, below, function, args, kwargs)

    return run


register_fallback(DispatchKey.Profiler, Kernel(_make_recording_kernel, linked=True))
