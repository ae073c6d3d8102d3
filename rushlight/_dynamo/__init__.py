"""`torch._dynamo`: the names under which programs look into the capture of Python functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight._dynamo import backends, config, decorators, eval_frame, exc, testing, types, utils
from rushlight._dynamo.eval_frame import is_dynamo_supported
from rushlight._dynamo.exporting import export
from rushlight.compiler.backends import list_backends, register_backend
from rushlight.compiler.compile import OptimizedModule, compile
from rushlight.compiler.control import (
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    is_compiling,
    reset,
    set_stance,
    substitute_in_graph,
)
from rushlight.compiler.explain import explain
from rushlight.core.tensor import Tensor
from rushlight.dynamo.dynamic import mark_dynamic, mark_static, maybe_mark_dynamic

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "backends", "config", "decorators", "disable", "eval_frame",
    "exc", "explain", "export", "graph_break", "is_compiling", "is_dynamo_supported", "list_backends", "mark_dynamic",
    "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize", "optimize_assert", "register_backend", "reset",
    "run", "set_stance", "substitute_in_graph", "testing", "types", "utils",
]  # fmt: skip


def run(fn: Callable | None = None) -> Callable:
    """Wrap `fn` so that its calls use existing captures and make no new ones; everything else runs in eager."""
    return set_stance("eager_on_recompile")(fn) if fn is not None else run


def mark_static_address(t: Tensor, guard: bool = True) -> None:
    """Do nothing: compiled code gets the addresses of its inputs at each call. TypeError if `t` is no tensor."""
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t).__name__}")


def optimize_assert(backend: str | Callable = "inductor", **options: Any) -> Callable:
    """Return a decorator that compiles with a backend and makes a graph break an error."""
    return compile(backend=backend, fullgraph=True, **options)


def optimize(backend: str | Callable = "inductor", *, nopython: bool = False, **options: Any) -> Callable:
    """Return a decorator that compiles with a backend; `nopython` is `compile`'s `fullgraph`, the rest is passed on."""
    return compile(backend=backend, fullgraph=nopython, **options)
