"""Anomaly mode: nodes remember the line of the program that made them, and backward checks their results for NaN.

While the mode is on, every dispatch includes the key Anomaly, whose kernel notes the stack on each node that an operator makes.
The engine then runs nodes through `checked_apply`. While the mode is off it costs nothing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence

from rushlight.autograd.grad_mode import Mode
from rushlight.autograd.node import Node
from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback

traceback = LazyModule("traceback")
_ANOMALY = bit(DispatchKey.Anomaly)
# Frames from these folders are hidden, because they don't help a user find the line that made a node.
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_INTERNAL = tuple(os.path.join(_PACKAGE, folder) for folder in ("autograd", "core", "ops"))
_STACK, _PARENT = "traceback_", "parent_"


class detect_anomaly(Mode):
    """Context manager: errors of backward nodes come with a warning that shows the line of the forward pass that made the node.

    With `check_nan`, a node that returns NaN raises RuntimeError. Slow; for debugging. Per thread.
    """

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )
        self.check_nan = check_nan

    @classmethod
    def _silent(cls, check_nan: bool) -> detect_anomaly:
        """Return the mode without the warning."""
        made = object.__new__(cls)
        made.check_nan = check_nan
        return made

    def _fresh(self) -> detect_anomaly:
        return self._silent(self.check_nan)

    def __enter__(self):
        self.previous = state.anomaly
        _set(self)

    def __exit__(self, *error: object):
        _set(self.previous)


class set_detect_anomaly(Mode):
    """Turn anomaly mode on or off: at once when called, and until the end of the block when used with `with`."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self.arguments = (mode, check_nan)
        self.previous = state.anomaly
        _set(detect_anomaly._silent(check_nan) if mode else None)

    def _fresh(self) -> set_detect_anomaly:
        return set_detect_anomaly(*self.arguments)

    def __call__(self, function: Callable) -> Callable:
        _set(self.previous)
        return super().__call__(function)

    def __enter__(self):
        pass

    def __exit__(self, *error: object):
        _set(self.previous)


def is_anomaly_enabled() -> bool:
    """Return whether anomaly mode is on."""
    return state.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly mode checks for NaN."""
    return state.anomaly is not None and state.anomaly.check_nan


def _set(mode: detect_anomaly | None) -> None:
    state.anomaly = mode
    state.include = state.include & ~_ANOMALY if mode is None else state.include | _ANOMALY


def note_origin(node: Node) -> None:
    """Remember the current stack on a new node, and the backward node that was running, if any."""
    metadata = node.metadata
    if _STACK not in metadata:
        frames = traceback.extract_stack()
        while len(frames) > 1 and frames[-1].filename.startswith(_INTERNAL):
            frames.pop()
        metadata[_STACK] = traceback.format_list(frames)
        running = getattr(state.backward_task, "running", None)
        if running is not None:
            metadata[_PARENT] = running


def checked_apply(node: Node, run: Callable[[], Sequence]) -> Sequence:
    """Run a node by calling `run`. An exception gets an explanation, and NaN in the results raises."""
    task = state.backward_task
    before, task.running = task.running, node
    try:
        results = run()
        if state.anomaly.check_nan:
            for index in _find_nan_outputs(results):
                raise RuntimeError(f"Function '{node.name()}' returned nan values in its {index}th output.")
    except Exception:
        warnings.warn(explanation(node), stacklevel=2)
        raise
    finally:
        task.running = before
    return results


def _find_nan_outputs(results: Sequence) -> Iterator[int]:
    for index, result in enumerate(results):
        if isinstance(result, Tensor) and (result != result).any():
            yield index


def explanation(node: Node) -> str:
    """Return the forward line that made a node. For a node made in a backward pass, also the forward line of the node that made
    it."""
    parts, current, failed = [], node, True
    while current is not None:
        stack = current.metadata.get(_STACK)
        if stack is None:
            where = "No forward pass information available. Enable detect anomaly during forward pass for more information."
        else:
            where = f"Traceback of forward call that {'caused the error' if failed else 'induced the previous calculation'}:\n"
            where += "".join(stack)
        parts.append(f"Error detected in {current.name()}. {where}" if failed else f"\nPrevious calculation was induced by "
                     f"{current.name()}. {where}")  # fmt: skip
        current, failed = current.metadata.get(_PARENT), False
    return "".join(parts)


def _make_noting_kernel(op: OpOverload, below: int) -> Callable:
    lower = op.resolve(below)

    def run(*args, **kwargs):
        result = lower(*args, **kwargs)
        for output in result if isinstance(result, tuple | list) else (result,):
            if isinstance(output, Tensor):
                meta = output._impl.autograd
                if meta is not None and meta.grad_fn is not None:
                    note_origin(meta.grad_fn)
        return result

    return run


register_fallback(DispatchKey.Anomaly, Kernel(_make_noting_kernel, linked=True))
