"""`torch._dynamo`: the names under which programs look into the capture of Python functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight._dynamo import eval_frame, exc
from rushlight.compiler.backends import list_backends, register_backend
from rushlight.compiler.compile import OptimizedModule, compile
from rushlight.compiler.control import (
    allow_in_graph,
    disable,
    graph_break,
    is_compiling,
    reset,
    set_stance,
    substitute_in_graph,
)
from rushlight.compiler.explain import explain
from rushlight.dynamo.dynamic import mark_dynamic, mark_static, maybe_mark_dynamic

__all__ = [
    "OptimizedModule", "allow_in_graph", "disable", "eval_frame", "exc", "explain", "graph_break", "is_compiling",
    "list_backends", "mark_dynamic", "mark_static", "maybe_mark_dynamic", "optimize", "register_backend", "reset",
    "set_stance", "substitute_in_graph",
]  # fmt: skip


def optimize(backend: str | Callable = "inductor", *, nopython: bool = False, **options: Any) -> Callable:
    """A decorator that compiles with a backend; `nopython` is `compile`'s `fullgraph`, the rest is passed on."""
    return compile(backend=backend, fullgraph=nopython, **options)
