"""Compile a graph of the jit's executor to native code.


In: a function's graph as the executor runs it, and arguments. Out: a callable over arguments like these, or None if there
is no native form.

A graph whose branches and loops are decided by sizes, attributes and numbers becomes one compiled graph (`whole.py`), any other
a structured program (`translate.py`). If the control flow depends on values, there are several of either. If a node prevents
both, the graph is cut around it (`segments.py`). It is also cut around operators on quantized tensors, which segments don't
exchange.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.logs import StageLog
from rushlight.compiler.scripted.execution import Cut
from rushlight.compiler.scripted.open_sizes import Dims
from rushlight.compiler.scripted.programs import NOT_NATIVE, Programs, guarded
from rushlight.compiler.scripted.segments import Segmented, quantized_nodes
from rushlight.compiler.settings import Settings, configured, from_environment
from rushlight.jit.ir.graph import Graph
from rushlight.jit.runtime.native import Native, set_native_compiler


def compile_native(graph: Graph, arguments: Sequence[object], name: str, dims: Dims | None = None) -> Native | None:
    """Compile a graph for arguments like these; None if it has no native form. `dims` are the dimensions to leave open; without
    them, all calls have arguments of these sizes and strides."""
    settings = configured(from_environment())
    log = StageLog(settings, name, graph)
    return guarded(lambda: _compile(graph, arguments, name, dims, settings, log), name, log)


def _compile(
    graph: Graph, arguments: Sequence[object], name: str, dims: Dims | None, settings: Settings, log: StageLog
) -> Native:  # fmt: skip
    programs = Programs(graph, name, settings, dims=dims)
    try:
        programs.programs.append(programs.make(arguments, log))
    except Cut as cut:
        return Segmented(graph, name, settings, cut)
    except NOT_NATIVE:
        if not quantized_nodes(graph):
            raise
        return Segmented(graph, name, settings)
    return programs


set_native_compiler(compile_native)
