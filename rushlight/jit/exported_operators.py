"""`export_opnames`: the operators that a scripted module needs, for builds of a runtime with selected operators."""

from __future__ import annotations

from rushlight.jit.function import Function
from rushlight.jit.module import ScriptModule
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.passes.constant_propagation import constant_propagation_immutable_types
from rushlight.jit.passes.helpers import full_name
from rushlight.jit.passes.inline import inline


def export_opnames(m: ScriptModule) -> list[str]:
    """Return the operators of all methods of a scripted module and its submodules, and of everything they call: each once with
    its overload ("aten::add.Tensor"), in order."""
    names: set[str] = set()
    for module in m.modules():
        if isinstance(module, ScriptModule):
            for function in module._c.type.methods.values():
                names |= _operators(function)
    return sorted(names)


def _operators(function: Function) -> set[str]:
    graph = function.graph.copy()
    inline(graph)
    constant_propagation_immutable_types(graph)  # removes branches that depend on modules' constants
    return {full_name(node) for node in graph.all_nodes() if operator_of(node) is not None}
