"""Warnings of the tracer: values that leave the graph, and decisions that only hold for the example inputs."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from rushlight.jit.tracing.frames import is_library, user_frame

CONSTANT = (
    " might cause the trace to be incorrect. We can't record the data flow of Python values, so this value will be treated as "
    "a constant in the future. This means that the trace might not generalize to other inputs!"
)
ITERATION = (
    "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape won't change the "
    "number of iterations executed (and might lead to errors or silently give incorrect results)."
)
LENGTH = (
    "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be tensor.shape[0]. Passing "
    "a tensor of different shape might lead to errors or silently give incorrect results."
)
LITERAL = (
    " results are registered as constants in the trace. You can safely ignore this warning if you use this function to create "
    "tensors out of constant variables that would be the same every time you call this function. In any other case, this "
    "might cause the trace to be incorrect."
)
CONTAINER = (
    " at the output of the tracer might cause the trace to be incorrect, this is only valid if the container structure does "
    "not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` "
    "instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass "
    "strict=False to trace() to allow this behavior."
)


class TracerWarning(Warning):
    """A part of the program was traced that will not follow other inputs."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silence warnings issued at lines of this library, not of the program."""
        warnings.filterwarnings("ignore", category=TracerWarning, module=rf"{__name__.partition('.')[0]}\.(?!.*test)")


def warn(message: str) -> None:
    """Warn at the user's line."""
    frame = user_frame(sys._getframe(1))
    if frame is None:
        warnings.warn(message, TracerWarning, stacklevel=2)
        return
    scope = frame.f_globals
    registry = scope.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message, TracerWarning, frame.f_code.co_filename, frame.f_lineno, scope.get("__name__"), registry
    )


def warn_constant(what: str) -> None:
    """Warn that a tensor is converted to a Python value: `what` is "integer", "boolean" and so on."""
    warn(f"Converting a tensor to a {what}{CONSTANT}")


def warn_literal(frame: FrameType | None) -> None:
    """Warn that a tensor made from Python data is a constant, if the user's code made it."""
    name = "tensor"
    while frame is not None and is_library(frame):
        name = frame.f_code.co_name
        frame = frame.f_back
    if name in ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer"):
        warn(f"torch.{name}{LITERAL}")
