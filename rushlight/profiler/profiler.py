"""`profile`, `schedule` and what they need.

Operators of the thread are recorded by `rushlight.autograd.profiler_recording`; a call of a compiled graph is an event, and
so is each of its kernels.
"""

from __future__ import annotations

import enum
import gzip
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rushlight.autograd.profiler import record_function
from rushlight.core.absent import absent_class
from rushlight.core.lazy_module import LazyModule

_recording = LazyModule("rushlight.autograd.profiler_recording")
_util = LazyModule("rushlight.autograd.profiler_util")
_graph_calls = LazyModule("rushlight.profiler.graph_calls")


class ProfilerActivity(enum.Enum):
    """The devices that a profiler can observe."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4


class ProfilerAction(enum.Enum):
    """The action of a profiler in one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Return whether Kineto, which PyTorch's profiler writes with, is there: never."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """Return the devices that can be observed: the CPU."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a function from the number of a step to the action of `profile`.

    After `skip_first` steps come `wait` steps without recording, `warmup` steps whose events are dropped, and `active` recorded
    steps; all this `repeat` times, or forever if `repeat` is 0. If `skip_first_wait` is not 0, the first round does not wait.
    ValueError for negative counts and for active=0.
    """
    counts = {"wait": wait, "warmup": warmup, "repeat": repeat, "skip_first": skip_first}
    wrong = {name: count for name, count in counts.items() if count < 0}
    if wrong or active <= 0:
        raise ValueError(f"schedule: counts must not be negative and active must be positive, got {counts}, active={active}")
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        round_, place = divmod(step, wait + warmup + active)
        if place < wait or repeat and round_ >= repeat:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == wait + warmup + active - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a function for `on_trace_ready` that writes each trace to a file of its own in `dir_name`. RuntimeError where that
    is no folder and can't be made one."""
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handle(finished: profile) -> None:
        try:
            Path(dir_name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        finished.export_chrome_trace(os.path.join(dir_name, name))

    return handle


def _check_activities(activities: Iterable[ProfilerActivity] | None) -> set[ProfilerActivity]:
    wanted = supported_activities() if activities is None else set(activities)
    for activity in wanted - supported_activities():
        name = getattr(activity, "name", activity)
        warnings.warn(f"{name} is not available, disabling {name} profiling", stacklevel=3)
    wanted &= supported_activities()
    if not wanted:
        raise ValueError("profile: no valid activities found; ProfilerActivity.CPU is what can be watched")
    return wanted


class profile:  # noqa: N801  (torch's name)
    """Records, as a context, what this thread does: operators with those they call, the backward pass, compiled graphs, and
    stretches named by `record_function`.

    `schedule` says for each step what to do, and `step()` ends a step; `on_trace_ready(self)` is called when a round of steps
    has been recorded, or at the end. Events have shapes with `record_shapes`, bytes of new memory with `profile_memory`, the
    program's frames with `with_stack`, floating-point operations with `with_flops`. `with_modules` and `experimental_config`
    have no effect and warn; so do activities other than the CPU.
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, experimental_config: Any = None, execution_trace_observer: Any = None,
        acc_events: bool = False, use_cuda: bool | None = None,
    ) -> None:  # fmt: skip
        ignored = {"with_modules": with_modules, "experimental_config": experimental_config, "use_cuda": use_cuda,
                   "execution_trace_observer": execution_trace_observer}  # fmt: skip
        for name in [name for name, value in ignored.items() if value]:
            warnings.warn(f"profile: {name} has no effect here", stacklevel=2)
        self.activities = _check_activities(activities)
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.with_flops = record_shapes, with_flops
        self.profile_memory, self.with_stack = profile_memory, with_stack
        self.acc_events = acc_events
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._metadata: dict[str, Any] = {}
        self._active: Any = None
        self._kept: list[Any] = []
        self._step: record_function | None = None
        self._graphs = _graph_calls.GraphCalls()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the action of the first step."""
        self._origin = time.perf_counter_ns()
        self._apply_action(self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """Stop; a recording that runs is a trace that is ready."""
        self._end_step()
        if self._active is not None:
            recorded = self.current_action is not ProfilerAction.WARMUP
            self._stop_recording(recorded)
            if recorded and self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def step(self) -> None:
        """End a step and begin the next one."""
        self._end_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._stop_recording(True)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before is ProfilerAction.WARMUP and self._active is not None:
            self._stop_recording(False)
        self._apply_action(self.current_action)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps and self._active is not None:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _apply_action(self, action: ProfilerAction) -> None:
        if action is ProfilerAction.NONE:
            if self._active is not None:
                self._stop_recording(True)
        elif self._active is None:
            wish = _recording.RecordedFacts(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops)
            self._active = _recording.Recording(wish)
            self._active.start()
            self._graphs.start()

    def _stop_recording(self, wanted: bool) -> None:
        self._graphs.stop()
        self._active.stop()
        if wanted:
            self._kept = [*(self._kept if self.acc_events else []), self._active]
        self._active = None

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Turn recording of operators off and on within a step."""
        if self._active is not None and ProfilerActivity.CPU in set(activities):
            self._active.pause(not enable)

    def events(self) -> Any:
        """Return the events of the last round, or of all with `acc_events`; RuntimeError where none has been recorded."""
        if not self._kept:
            raise RuntimeError("Profiler didn't finish running")
        return _util.events_of(self._kept, self._origin)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> Any:
        """Return the events added up by name, by their inputs' shapes and by the innermost frames; RuntimeError as for
        `events`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the events as JSON, compressed where the name ends in .gz, that chrome://tracing and Perfetto show."""
        name = os.fspath(path)
        wishes = {"record_shapes": self.record_shapes, "profile_memory": self.profile_memory, "with_stack": self.with_stack,
                  "with_flops": self.with_flops}  # fmt: skip
        content = {
            "schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms", "traceName": name,
            **{name: 1 for name, wished in wishes.items() if wished}, "traceEvents": _util.trace_events(self.events()),
            **self._metadata,
        }  # fmt: skip
        open_text = gzip.open if name.endswith(".gz") else open
        with open_text(name, "wt") as file:
            json.dump(content, file)

    def export_stacks(self, path: str | os.PathLike, metric: str = "self_cpu_time_total") -> None:
        """Write each event's stack with its microseconds. RuntimeError without `with_stack`."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        self.events().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a string into the trace."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, as JSON, into the trace; ValueError where it is none."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json


_KinetoProfile = profile
ExecutionTraceObserver = absent_class("torch.profiler.ExecutionTraceObserver", "`export_chrome_trace` writes a trace")
