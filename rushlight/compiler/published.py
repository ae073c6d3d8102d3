"""What a captured graph became, among the globals of the program: `__compiled_fn_1`, by the name that generated code calls it.

In: a capture, and the native graphs that were made for it. Out: a function in the globals of the captured function, for those
who look; generated code has its own. It is gone when the capture is.
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
"""How many functions stand around a program, each closing over the next: those of dynamo, aot and inductor, and the entry."""


class CompiledProgram:
    """A graph as it runs. `source_code` is a Python program that holds its C++; of a graph that has none, its Python.

    It keeps nothing alive: RuntimeError once the capture is gone.
    """

    def __init__(self, found: GuardedCode, native: list[CompiledGraph]) -> None:
        self._found = weakref.ref(found)
        self._native = [weakref.ref(graph) for graph in native]

    def _capture(self) -> GuardedCode:
        found = self._found()
        if found is None:
            raise RuntimeError("the capture that this graph belongs to was removed")
        return found

    @property
    def source_code(self) -> str:
        """The text, made when it is asked for."""
        found = self._capture()
        native = [graph.source_code for reference in self._native if (graph := reference()) is not None]
        return "\n\n".join(native) or found.graph.code

    def __call__(self, *inputs: Any) -> Any:
        found = self._capture()
        return found.globals[found.graph_name](*inputs)


def publish(frame: Any, found: GuardedCode, native: list[CompiledGraph]) -> None:
    """Put a capture's graph into the globals that the program's function sees, for as long as the capture is kept."""
    function = _function_of(frame)
    entry: Callable = CompiledProgram(found, native)
    for _ in range(_LAYERS):
        entry = _around(entry, found.graph_name)
    function.__globals__[found.graph_name] = entry
    # The capture belongs to the function's code: a strong reference to the globals would keep both for ever.
    weakref.finalize(found, _remove, weakref.ref(function), found.graph_name).atexit = False


def _remove(function: weakref.ref, name: str) -> None:
    owner = function()
    if owner is not None:
        owner.__globals__.pop(name, None)


def _around(inner: Callable, name: str) -> Callable:
    """A function that only calls another one."""

    def call(*inputs: Any) -> Any:
        return inner(*inputs)

    call.__name__ = call.__qualname__ = name
    return call


def _function_of(frame: Any) -> types.FunctionType:
    """The function, or that of the model which it only calls."""
    if not only_calls_model(frame.f_code):
        return frame.f_func
    model = frame.closure[0].cell_contents
    function = inspect.unwrap(type(model).forward if isinstance(model, Module) else getattr(model, "__func__", model))
    return function if isinstance(function, types.FunctionType) else frame.f_func
