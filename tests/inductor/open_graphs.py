"""Graphs of aten operators with dynamic input sizes, and their native code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import rushlight as torch
from rushlight.compiler.passes import PIPELINE
from rushlight.core.symbolic import ShapeEnv, SymInt
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.proxy_tensor import capture
from rushlight.fx.symbolic_sizes import Geometry, open_sizes
from rushlight.inductor.compile_fx import compile_fx
from rushlight.inductor.options import Options

THREADS = 2
Dims = Sequence[Collection[int] | bool]


def open_graph(
    function: Callable, inputs: Sequence[object], dims: Dims, environment: ShapeEnv | None = None, names: dict | None = None
) -> GraphModule:
    """The graph of `function` with dynamic sizes: `dims` names the dynamic dimensions of each tensor, and whether an int is
    dynamic."""
    environment = environment or ShapeEnv()
    given = enumerate(zip(inputs, dims, strict=True))
    opened = [_open(environment, value, chosen, position) for position, (value, chosen) in given]
    with torch.no_grad():
        module = capture(function, tuple(inputs), open_leaves=opened, names=names).module
    for graph_pass in PIPELINE:
        graph_pass(module)
    return module


def _open(environment: ShapeEnv, value: object, chosen: Collection[int] | bool, position: int) -> Geometry | SymInt | None:
    source = f"arg{position}_1"
    if isinstance(value, torch.Tensor):
        return open_sizes(environment, value._impl, chosen, source)
    return environment.create_symbol(value, source) if chosen else None


def compile_open(
    function: Callable, inputs: Sequence[object], dims: Dims, stages: dict[str, str] | None = None, threads: int = THREADS,
    environment: ShapeEnv | None = None,
) -> Callable[..., tuple]:  # fmt: skip
    """Native code for `open_graph`; `stages` collects the text of every stage."""

    def observe(stage: str, text: Callable[[], str], *more: object) -> None:
        if stages is not None:
            stages[stage] = text()

    return compile_fx(open_graph(function, inputs, dims, environment), Options(threads), observe)
