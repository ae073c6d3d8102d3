"""Profiling: which tensors a graph meets, and a plan for such tensors.

In: an inlined graph. Out: `instrument`, a graph that looks at its tensors with `prim::profile` nodes; `specialize`, a graph
that first checks (`prim::TypeCheck`) that its inputs are as they were when they were watched, and calls the unchanged graph
where they are not:

    %3 : Float(2, 3, ...), %4 : bool = prim::TypeCheck[types=[Float(2, 3, ...)]](%x)
    %5 : Tensor = prim::If(%4)
      block0(): what holds for such inputs
      block1(): a call of fallback_function
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.jit.constants import insert_constant
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.common_subexpression_elimination import eliminate_common_subexpression
from rushlight.jit.passes.constant_propagation import constant_propagation
from rushlight.jit.passes.create_autodiff_subgraphs import create_autodiff_subgraphs
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.inline import insert_graph
from rushlight.jit.passes.inline_autodiff_subgraphs import inline_autodiff_subgraphs
from rushlight.jit.passes.peephole import peephole_optimize
from rushlight.jit.passes.requires_grad_analysis import propagate_requires_grad
from rushlight.jit.passes.shape_analysis import propagate_input_shapes
from rushlight.jit.types.kinds import BOOL, TENSOR, TensorType
from rushlight.jit.types.relations import unshaped


def instrument(graph: Graph) -> Graph:
    """A copy of the graph in which every tensor that a node reads goes through a `prim::profile` node."""
    copied = graph.copy()
    _instrument(copied.block)
    return copied


def _instrument(block: Block) -> None:
    for node in [*block.nodes, block.result]:
        if node.kind in ("prim::Constant", "prim::profile"):
            continue
        for inner in node.blocks:
            _instrument(inner)
        for index, value in enumerate(node.inputs):
            if isinstance(value.type, TensorType) and not value.is_constant:
                node.replace_input(index, _profiled(node, value))


def _profiled(before: Node, value: Value) -> Value:
    graph = before.graph
    node = graph.create("prim::profile", [value]).insert_before(before)
    node.set("profiled_type", TENSOR).set("seen_none", 0)
    node.output.set_type(value.type)
    return node.output


def input_types(instrumented: Graph) -> list[TensorType | None]:
    """What was seen of each input; None for those that are no tensors, or that nothing read."""
    found = []
    for value in instrumented.inputs:
        kinds = [use.user["profiled_type"] for use in value.uses if use.user.kind == "prim::profile"]
        kinds = [kind for kind in kinds if kind != TENSOR]
        found.append(kinds[0] if kinds else None)
    return found


_RESHAPING = frozenset(
    f"aten::{name}_" for name in ("resize", "resize_as", "set", "t", "transpose", "swapaxes", "swapdims", "squeeze",
                                  "unsqueeze", "as_strided", "requires_grad", "detach")
)  # fmt: skip
"""Operators that change in place what the check has found out."""


def specialize(graph: Graph, kinds: Sequence[TensorType | None], name: str) -> Graph:
    """A graph with a body for inputs of these types, and a call of the graph as it was for all others."""
    checked = [index for index, kind in enumerate(kinds) if kind is not None]
    if not checked or any(node.kind in _RESHAPING for node in graph.all_nodes()):
        return graph
    body = graph.copy()
    for index in checked:
        body.inputs[index].set_type(kinds[index])
    _optimize(body)
    made = Graph()
    inputs = [made.add_input(_name(value), unshaped(value.type)) for value in graph.inputs]
    check = made.insert("prim::TypeCheck", [inputs[index] for index in checked], 0)
    check.set("types", [kinds[index] for index in checked])
    typed = list(inputs)
    for index in checked:
        typed[index] = check.add_output(kinds[index])
    choice = made.insert("prim::If", [check.add_output(BOOL)], 0)
    for block, values in ((choice.add_block(), typed), (choice.add_block(), inputs)):
        if values is typed:
            results = insert_graph(block.result, body, values)
        else:
            results = _call_fallback(made, block, graph, inputs, name)
        for value in results:
            block.add_output(value)
    for value in graph.outputs:
        made.register_output(choice.add_output(unshaped(value.type)))
    return made


def _name(value: Value) -> str | None:
    return value.debug_name if value.has_debug_name else None


def _optimize(graph: Graph) -> None:
    """What known sizes of the inputs make possible; what needs gradients is collected into differentiable graphs."""
    propagate_input_shapes(graph)
    peephole_optimize(graph)
    constant_propagation(graph)
    eliminate_common_subexpression(graph)
    if any(isinstance(value.type, TensorType) and value.type.requires_grad for value in graph.inputs):
        propagate_requires_grad(graph)
        create_autodiff_subgraphs(graph)
        inline_autodiff_subgraphs(graph)
    eliminate_dead_code(graph)


def _call_fallback(made: Graph, block: Block, graph: Graph, inputs: list[Value], name: str) -> list[Value]:
    function = Function(f"{name}.fallback_function", graph.copy())
    with made.inserting(at_end_of=block):
        constant = insert_constant(made, function)
        node = made.insert("prim::CallFunction", [constant, *inputs], 0)
    return [node.add_output(unshaped(value.type)) for value in graph.outputs]
