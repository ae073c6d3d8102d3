"""Compiled graphs of fixed sizes as native callables: one step in C from tensors to tensors.

In: a `CompiledGraph`. Out: a `GraphLaunch`, which checks inputs, takes memory, runs the entry and makes the results, and which
calls the graph itself for whatever is not as compiled for. Stage: inductor, calling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight._C import GraphLaunch
from rushlight.core.dtype import dtype
from rushlight.inductor.codegen.program import Program
from rushlight.inductor.graph import OutputView
from rushlight.inductor.sizes import product

if TYPE_CHECKING:
    from rushlight.inductor.compiled import CompiledGraph

# Steps of loops from which on other threads get the interpreter meanwhile: letting go of it costs what some thousand take.
LONG_WORK = 20_000


def reach(size: tuple[int, ...], stride: tuple[int, ...], kind: dtype) -> int:
    """The number of bytes from a tensor's first element to the end of its last."""
    if 0 in size:
        return 0
    return (sum((count - 1) * step for count, step in zip(size, stride, strict=True)) + 1) * kind.itemsize


def is_long(program: Program) -> bool:
    """Whether a program of fixed sizes runs so long that other threads should go on meanwhile."""
    groups = [group for group in program.groups if not group.constant]
    work = sum(product(group.domain or (group.numel,)) * len(group.members) for group in groups)
    return work > LONG_WORK or any(group.template is not None for group in groups)


def make_launch(graph: CompiledGraph) -> GraphLaunch | None:
    """The native callable for a graph; None where a result is a view of an input or of a constant."""
    names = {name: number for number, name in enumerate(graph.output_bytes)}
    inputs = {buffer.name: position for position, buffer in enumerate(graph.inputs)}
    results = []
    for view in graph.outputs:
        result = _result(view, graph, names, inputs)
        if result is None:
            return None
        results.append(result)
    expected = tuple((size, stride, kind, reach(size, stride, kind)) for size, stride, kind in graph.expected)
    pointers = graph.program.kept
    return GraphLaunch(
        graph.library.entry, expected, tuple(graph.output_bytes.values()), tuple(results), graph.library.arena_bytes, pointers,
        is_long(graph.program), graph, graph.reference,
    )  # fmt: skip


def _result(view: OutputView, graph: CompiledGraph, names: dict[str, int], inputs: dict[str, int]) -> tuple | int | None:
    """A result as GraphLaunch describes it: an input's position, an object, or a view of new memory."""
    if not view.buffer:
        return (view.value,)
    if view.buffer in names:
        return names[view.buffer], tuple(view.size), tuple(view.stride), view.offset, graph.dtypes[view.buffer]
    if not view.is_whole:
        return None
    return inputs[view.buffer] if view.buffer in inputs else (graph.by_name[view.buffer],)
