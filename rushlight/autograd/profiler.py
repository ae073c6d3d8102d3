"""`torch.autograd.profiler`: the time that a thread spends by operator, and names for sections of a program."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rushlight.core.absent import absent_class
from rushlight.core.lazy_module import LazyModule, lazy_names
from rushlight.core.thread_state import state

_recording = LazyModule("rushlight.autograd.profiler_recording")
_util = LazyModule("rushlight.autograd.profiler_util")
_HINT = "it marks a program for NVIDIA's and Intel's own profilers"


class record_function:  # noqa: N801  (torch's name)
    """Names a section of the program for an active profiler, as a context or a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: list[tuple[Any, Any]] = []

    def __enter__(self) -> record_function:
        recording = state.recording
        self._open.append((recording, None if recording is None else recording.begin(self.name, annotation=True)))
        return self

    def __exit__(self, *error: object) -> None:
        recording, span = self._open.pop()
        if recording is not None:
            recording.finish(span)

    def __call__(self, function: Callable) -> Callable:
        """Wrap the function so that each call is a section of this name."""

        @functools.wraps(function)
        def named(*args: object, **kwargs: object) -> object:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return named


def section(name: str) -> AbstractContextManager:
    """Return a context that names a section for the active profiler, and costs little where there is none."""
    return nullcontext() if state.recording is None else record_function(name)


def compile_stage(name: str) -> Callable[[Callable], Callable]:
    """Return a decorator for a stage of a compiler: an active profiler shows its calls under this name, which is torch's where
    its compiler has the same stage."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def staged(*args: Any, **kwargs: Any) -> Any:
            if state.recording is None:
                return function(*args, **kwargs)
            with state.recording.span(name):
                return function(*args, **kwargs)

        return staged

    return decorate


class profile:  # noqa: N801  (torch's name)
    """Records, as a context, every operator that this thread calls, those of the backward pass too.

    Afterwards it has `function_events`, `key_averages()`, `table()`, `total_average()` and `export_chrome_trace(path)`. With
    `record_shapes`, `with_stack`, `profile_memory` and `with_flops` events have their inputs' shapes, the program's frames, the
    bytes of new memory among results, and the floating-point operations of products. `use_cpu=False` is a ValueError, and so is
    a `use_device` that is not there; `use_cuda` is an older name of the device "cuda". `use_kineto` chooses between two
    recorders of PyTorch, of which Kineto is not there: RuntimeError if it is True.
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None, record_shapes: bool = False,
        with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False, use_kineto: bool = False,
        use_cpu: bool = True,
    ) -> None:  # fmt: skip
        if not use_cpu:
            raise ValueError("profile: only the CPU is there to be watched, got use_cpu=False")
        if use_cuda:  # an older name for use_device="cuda"
            use_device = "cuda"
        if use_device not in (None, "cpu"):
            raise ValueError(f"profile: only the CPU is there to be watched, got use_device={use_device!r}")
        if use_kineto:
            raise RuntimeError("profile: Kineto is not there, which kineto_available() tells; got use_kineto=True")
        self.enabled = enabled
        self.function_events: Any = None
        self._wish = (record_shapes, profile_memory, with_stack, with_flops)
        self._active: Any = None

    def __enter__(self) -> profile:
        if self.enabled:
            self._active = _recording.Recording(_recording.RecordedFacts(*self._wish))
            self._origin = time.perf_counter_ns()
            self._active.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._active is not None:
            self._active.stop()
            self.function_events = _util.events_of([self._active], self._origin)
            self._active = None

    def _finished_events(self) -> Any:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> Any:
        """Return the events added up by name; RuntimeError before the end."""
        return self._finished_events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> Any:
        """Return all events added up; RuntimeError before the end."""
        return self._finished_events().total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Return the events as text, as `EventList.table` makes it; RuntimeError before the end."""
        return self._finished_events().table(*args, **kwargs)

    @property
    def self_cpu_time_total(self) -> float:
        """The microseconds of all events; RuntimeError before the end."""
        return self._finished_events().self_cpu_time_total

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the events as JSON that chrome://tracing and Perfetto show; RuntimeError before the end."""
        self._finished_events().export_chrome_trace(path)

    def export_stacks(self, path: str | os.PathLike, metric: str = "self_cpu_time_total") -> None:
        """Write each event's stack with its microseconds; RuntimeError before the end and without `with_stack`."""
        if not self._wish[2]:
            raise RuntimeError("export_stacks() requires with_stack=True")
        self._finished_events().export_stacks(path, metric)

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)

    __str__ = __repr__


def kineto_available() -> bool:
    """Return False: PyTorch's recorder for several devices is not part of this library, whose profiler watches the CPU."""
    return False


def _is_profiler_enabled() -> bool:
    """Return whether a profiler records this thread."""
    return state.recording is not None


emit_nvtx = absent_class("torch.autograd.profiler.emit_nvtx", _HINT)
emit_itt = absent_class("torch.autograd.profiler.emit_itt", _HINT)
__getattr__, __dir__ = lazy_names(
    globals(), {"rushlight.autograd.profiler_util": ("EventList", "FunctionEvent", "FunctionEventAvg")}
)
