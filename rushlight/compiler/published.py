"""Publishes compiled graphs in the globals of the program, as `__compiled_fn_1`, the name that generated code calls.

In: a capture, and the native graphs made for it. Out: a function in the captured function's globals, for inspection only;
generated code has its own reference. It disappears with the capture.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable
from typing import Any

from rushlight.dynamo.guarded_code import GuardedCode
from rushlight.dynamo.regions import only_calls_model
from rushlight.inductor.compiled import CompiledGraph
from rushlight.nn.modules.module import Module

_LAYERS = 4
"""The number of closures around a compiled program in PyTorch, which tools unwrap: those of dynamo, aot and inductor, and the
entry."""


class CompiledProgram:
    """A compiled graph. `source_code` is a Python program with its C++, or the graph's Python if it has no native code.

    It keeps nothing alive: RuntimeError once the capture is gone.
    """

    def __init__(self, found: GuardedCode, native: list[CompiledGraph]) -> None:
        self._found = weakref.ref(found)
        self._native = [weakref.ref(graph) for graph in native]

    def _capture(self) -> GuardedCode:
        """Return the capture of this graph; RuntimeError if it no longer exists."""
        found = self._found()
        if found is None:
            raise RuntimeError("the capture that this graph belongs to was removed")
        return found

    @property
    def source_code(self) -> str:
        """Return the text, made on demand."""
        found = self._capture()
        native = [graph.source_code for reference in self._native if (graph := reference()) is not None]
        return "\n\n".join(native) or found.graph.code

    def __call__(self, *inputs: Any) -> Any:
        found = self._capture()
        return found.globals[found.graph_name](*inputs)


def publish(frame: Any, found: GuardedCode, native: list[CompiledGraph]) -> None:
    """Put a capture's graph into the globals of the program's function, while the capture exists."""
    function = _function_of(frame)
    entry: Callable = CompiledProgram(found, native)
    for _ in range(_LAYERS):
        entry = _wrap_call(entry, found.graph_name)
    function.__globals__[found.graph_name] = entry
    # Hold the function weakly. Its code owns the capture, so a strong reference here would keep both alive forever.
    weakref.finalize(found, _remove, weakref.ref(function), found.graph_name).atexit = False


def _remove(function: weakref.ref, name: str) -> None:
    owner = function()
    if owner is not None:
        owner.__globals__.pop(name, None)


def _wrap_call(inner: Callable, name: str) -> Callable:
    """Return a function that only calls another one."""

    def call(*inputs: Any) -> Any:
        return inner(*inputs)

    call.__name__ = call.__qualname__ = name
    return call


def _function_of(frame: Any) -> types.FunctionType:
    """Return the frame's function, or the function of the model that it only calls."""
    if not only_calls_model(frame.f_code):
        return frame.f_func
    model = frame.closure[0].cell_contents
    function = inspect.unwrap(type(model).forward if isinstance(model, Module) else getattr(model, "__func__", model))
    return function if isinstance(function, types.FunctionType) else frame.f_func
