"""`run_pass(name, graph)`: one pass on one graph.

In: a graph, and a pass's name: torch's, such as `_jit_pass_dce`, or the pass's own, such as `EliminateDeadCode`. Out: the
changed graph. This module knows every pass.
"""

from __future__ import annotations

from rushlight.jit.ir.graph import Graph
from rushlight.jit.passes import (  # noqa: F401 (each registers its passes)
    bailout_graph,
    batch_mm,
    canonicalize,
    canonicalize_modified_loops,
    canonicalize_ops,
    canonicalize_outputs,
    check_inplace,
    cleanup,
    clear_profiling,
    clear_undefinedness,
    common_subexpression_elimination,
    constant_pooling,
    constant_propagation,
    convert_to_ssa,
    create_autodiff_subgraphs,
    dead_code_elimination,
    decompose_ops,
    differentiate,
    erase_number_types,
    fold_frozen_layers,
    freeze_module,
    functional_activations,
    functional_graphs,
    fuse_addmm,
    fuse_linear,
    graph_fuser,
    guard_differentiable_graphs,
    guard_elimination,
    guard_fusion_groups,
    inline,
    inline_autodiff_subgraphs,
    inline_fork_wait,
    insert_guards,
    instrument_graph,
    integer_value_refinement,
    lift_closures,
    lint,
    loop_unrolling,
    lower_grad_of,
    lower_tuples,
    normalize_ops,
    peephole,
    peephole_alias_sensitive,
    peephole_dict_idioms,
    peephole_list_idioms,
    peephole_non_tensor,
    refine_tuple_types,
    remove_dropout,
    remove_expands,
    remove_inplace_ops,
    remove_mutation,
    remove_type_specializations,
    requires_grad_analysis,
    shape_analysis,
    size_arithmetic,
    specialize_autogradzero,
    specialize_profiled_types,
    strict_fusion,
    subgraph_rewrite,
    upgraders,
)
from rushlight.jit.passes.registry import PASSES


def pass_names() -> list[str]:
    """Return all names that `run_pass` knows."""
    return sorted(PASSES)


def run_pass(name: str, graph: Graph, *args: object, **kwargs: object) -> object:
    """Run a pass on a graph, in place; returns the pass's result. ValueError for an unknown name."""
    found = PASSES.get(name)
    if found is None:
        close = [each for each in PASSES if name.lower().removeprefix("_jit_pass_") in each.lower()]
        hint = f"; do you mean {', '.join(sorted(close))}?" if close else f"; passes are {', '.join(pass_names())}"
        raise ValueError(f"there is no pass {name!r}{hint}")
    return found(graph, *args, **kwargs)
