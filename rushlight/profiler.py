"""`torch.profiler`: the names that programs import. Nothing watches yet: making a `profile` raises."""

from __future__ import annotations

import enum

from rushlight.autograd.profiler import record_function
from rushlight.core.absent import absent_class, absent_function

_HINT = "RUSHLIGHT_LOGS and `rushlight bench` say where time goes"
__all__ = [
    "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function",
    "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


class ProfilerActivity(enum.Enum):
    """What a profiler watches."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Whether Kineto, which PyTorch's profiler writes with, is there: never."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """What can be watched: nothing yet."""
    return set()


profile = absent_class("torch.profiler.profile", _HINT)
_KinetoProfile = absent_class("torch.profiler._KinetoProfile", _HINT)
ExecutionTraceObserver = absent_class("torch.profiler.ExecutionTraceObserver", _HINT)
schedule = absent_function("torch.profiler.schedule", _HINT)
tensorboard_trace_handler = absent_function("torch.profiler.tensorboard_trace_handler", _HINT)
