"""Plans of the profiling executor: the passes for instrumented graphs, and for graphs specialized to observations.

In: an inlined graph, and the same one after profiling some runs (`InstrumentGraph`). Out: a graph in which operators are
grouped behind checks of their inputs. Where a check fails, a fallback function runs, which profiles again and may make one plan
less. With gradients, groups are differentiated as a whole. The legacy fuser uses guards instead, and bails out of the graph
where one fails.
"""

from __future__ import annotations

from rushlight.jit.constants import insert_constant
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes.bailout_graph import insert_bailouts
from rushlight.jit.passes.canonicalize_ops import canonicalize_ops
from rushlight.jit.passes.check_inplace import check_inplace
from rushlight.jit.passes.clear_profiling import clear_profiling_information
from rushlight.jit.passes.clear_undefinedness import clear_undefinedness
from rushlight.jit.passes.common_subexpression_elimination import eliminate_common_subexpression
from rushlight.jit.passes.constant_pooling import constant_pooling
from rushlight.jit.passes.constant_propagation import constant_propagation
from rushlight.jit.passes.create_autodiff_subgraphs import create_autodiff_subgraphs
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.decompose_ops import decompose_ops
from rushlight.jit.passes.graph_fuser import fuse_graph, fuse_tensor_exprs
from rushlight.jit.passes.guard_differentiable_graphs import guard_differentiable_graphs
from rushlight.jit.passes.guard_elimination import eliminate_redundant_guards
from rushlight.jit.passes.guard_fusion_groups import guard_fusion_groups
from rushlight.jit.passes.guarding import FALLBACK
from rushlight.jit.passes.inline import inline
from rushlight.jit.passes.inline_autodiff_subgraphs import inline_autodiff_subgraphs
from rushlight.jit.passes.insert_guards import insert_guards
from rushlight.jit.passes.instrument_graph import instrument_graph
from rushlight.jit.passes.loop_unrolling import unroll_constant_loops
from rushlight.jit.passes.lower_grad_of import lower_grad_of
from rushlight.jit.passes.lower_tuples import lower_simple_tuples
from rushlight.jit.passes.peephole import peephole_optimize
from rushlight.jit.passes.remove_expands import remove_expands
from rushlight.jit.passes.remove_mutation import remove_list_mutation
from rushlight.jit.passes.remove_type_specializations import remove_type_specializations
from rushlight.jit.passes.requires_grad_analysis import propagate_requires_grad
from rushlight.jit.passes.reshaping import has_reshaping
from rushlight.jit.passes.shape_analysis import propagate_input_shapes
from rushlight.jit.passes.specialize_profiled_types import specialize_profiled_types
from rushlight.jit.passes.strict_fusion import check_strict_fusion
from rushlight.jit.runtime.modes import Modes
from rushlight.jit.types.kinds import TensorType, TupleType
from rushlight.jit.types.relations import unshaped

_INSENSITIVE = (
    inline, clear_profiling_information, lower_grad_of, clear_undefinedness, remove_expands, canonicalize_ops,
    eliminate_dead_code, decompose_ops, constant_propagation, eliminate_dead_code, eliminate_common_subexpression,
    constant_pooling, peephole_optimize, eliminate_dead_code, lower_simple_tuples, check_inplace,
)  # fmt: skip

_BEFORE_SPECIALIZING = (
    unroll_constant_loops, remove_list_mutation, peephole_optimize, constant_propagation, eliminate_common_subexpression,
)  # fmt: skip
"""While the profiling nodes are there, and no value has a type that was only observed."""


def profiling_insensitive(graph: Graph) -> Graph:
    """Return a copy of a graph after the passes without assumptions about arguments."""
    copied = graph.copy()
    for each in _INSENSITIVE:
        each(copied)
    return copied


def instrumented(graph: Graph) -> Graph:
    """Return a copy of a graph with profiling nodes."""
    copied = graph.copy()
    instrument_graph(copied)
    return copied


def specialized(profiled: Graph, modes: Modes, depth: int) -> Graph:
    """Return a graph specialized to the tensors that an instrumented one observed. `depth` counts the plans that may be made,
    including this one."""
    graph = profiled.copy()
    for each in _BEFORE_SPECIALIZING:
        each(graph)
    if modes.tensor_exprs or not modes.fuses or has_reshaping(graph):
        _with_checked_groups(graph, modes, depth)
    else:
        _optimize_with_guards(graph, modes, depth)
    eliminate_dead_code(graph)
    check_strict_fusion(graph)
    return graph


def _with_checked_groups(graph: Graph, modes: Modes, depth: int) -> None:
    specialize_profiled_types(graph)
    if _needs_gradients(graph):
        create_autodiff_subgraphs(graph, min(2, modes.autodiff_threshold))
        inline_autodiff_subgraphs(graph, modes.autodiff_threshold)
        guard_differentiable_graphs(graph)
    if modes.fuses:
        fuse = fuse_tensor_exprs if modes.tensor_exprs else fuse_graph
        fuse(graph, profiled=True, fewest=_min_group_size(modes))
        guard_fusion_groups(graph, dynamic=modes.strategy_at(depth) == "DYNAMIC")
    remove_type_specializations(graph)
    _replace_fallbacks(graph, depth - 1)


def _optimize_with_guards(graph: Graph, modes: Modes, depth: int) -> None:
    """Optimize a graph with guards: code after a guard may rely on it, including queries of sizes."""
    insert_guards(graph)
    eliminate_redundant_guards(graph)
    insert_bailouts(graph)
    propagate_input_shapes(graph)
    peephole_optimize(graph)
    constant_propagation(graph)
    eliminate_common_subexpression(graph)
    propagate_requires_grad(graph)
    if _needs_gradients(graph):
        create_autodiff_subgraphs(graph, min(2, modes.autodiff_threshold))
        inline_autodiff_subgraphs(graph, modes.autodiff_threshold)
        guard_differentiable_graphs(graph)
        _replace_fallbacks(graph, depth - 1)
    else:
        fuse_graph(graph, profiled=True, fewest=_min_group_size(modes))


def _min_group_size(modes: Modes) -> int:
    return 2 if modes.inlines_fusion_groups else 1


def _needs_gradients(graph: Graph) -> bool:
    """Return whether profiling saw a tensor that needs gradients."""
    return any(
        isinstance(value.type, TensorType) and value.type.requires_grad for node in graph.all_nodes() for value in node.inputs
    )


def _replace_fallbacks(graph: Graph, depth: int) -> None:
    """Replace the fallback graphs by calls of functions."""
    for node in graph.find_all_nodes(FALLBACK):
        function = Function("fallback_function", _return_tuple(node["Subgraph"]))
        function.depth = max(depth, 0)
        with graph.inserting(before=node), graph.source(node.source_range):
            constant = insert_constant(graph, function)
            constant.node.set("fallback", 1)
            call = graph.insert("prim::CallFunction", [constant, *node.inputs])
            call.output.set_type(TupleType(tuple(unshaped(value.type) for value in node.outputs)))
            unpacked = graph.insert("prim::TupleUnpack", [call.output], 0)
        for value in node.outputs:
            value.replace_all_uses_with(unpacked.add_output(value.type))
        node.destroy()


def _return_tuple(graph: Graph) -> Graph:
    results = graph.outputs
    with graph.inserting(at_end_of=graph.block):
        made = graph.insert("prim::TupleConstruct", results).output
    made.set_type(TupleType(tuple(unshaped(value.type) for value in results)))
    for _ in results:
        graph.block.erase_output(0)
    graph.register_output(made)
    return graph
