"""differentiate: turn a graph into one that also returns what the gradients need, and one that calculates them.

Requires: SSA, straight code of operators that `gradient_formulas.py` knows. Guarantees: `f` computes the graph's results, and
further outputs; `df` computes the gradients of the inputs that need them, each operator's formula in a `prim::GradOf` block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.gradient_formulas import FORMULAS, Formula, formula_of
from rushlight.jit.passes.helpers import full_name
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TensorType

_LOG = PassLog(__file__)


@dataclass
class Gradient:
    """A differentiated graph.

    `f` has the first `f_real_outputs` outputs of the original. The inputs of `df` are the gradients of the outputs of `f`
    listed in `df_input_vjps`, then the inputs of `f` listed in `df_input_captured_inputs`, then its outputs
    `df_input_captured_outputs`. It returns the gradients of the inputs listed in `df_output_vjps`.
    """

    f: Graph
    df: Graph
    f_real_outputs: int
    df_input_vjps: list[int] = field(default_factory=list)
    df_input_captured_inputs: list[int] = field(default_factory=list)
    df_input_captured_outputs: list[int] = field(default_factory=list)
    df_output_vjps: list[int] = field(default_factory=list)


def is_differentiable(node: Node) -> bool:
    """Return whether a node has a formula, is a constant, or has only results without gradients."""
    if node.kind == "prim::Constant":
        return True
    return not node.blocks and full_name(node) in FORMULAS and all(isinstance(each.type, TensorType) for each in node.outputs)


@graph_pass("Differentiate", "_jit_differentiate")
def differentiate(graph: Graph) -> Gradient:
    """Differentiate a copy of a graph. RuntimeError names a node without a formula."""
    f = graph.copy()
    for node in f.nodes:
        if not (is_differentiable(node) or node.kind == "prim::ListConstruct"):
            raise RuntimeError(f"{node!r} can't be differentiated: it has no formula in gradient_formulas.FORMULAS")
    maker = _Differentiator(f)
    maker.run()
    eliminate_dead_code(maker.df)
    maker.capture()
    _LOG.permits("{} nodes have {} nodes of gradients", len(list(f.nodes)), len(list(maker.df.nodes)))
    return maker.gradient


def needs_gradient(value: Value) -> bool:
    """Return whether a value is a tensor that may need a gradient."""
    kind = value.type
    if not isinstance(kind, TensorType) or kind.requires_grad is False:
        return False
    return kind.dtype is None or kind.dtype.is_floating_point or kind.dtype.is_complex


class _Differentiator:
    """Walks a graph backwards, and writes the reverse graph."""

    def __init__(self, f: Graph):
        self.f = f
        self.df = Graph()
        self.gradient = Gradient(f, self.df, len(f.outputs))
        self.grads: dict[Value, Value] = {}
        self.captured: dict[Value, Value] = {}
        self.needs: set[Value] = set()

    def run(self) -> None:
        """Write the whole reverse graph."""
        self._find_needs()
        for index, value in enumerate(self.f.outputs):
            if value in self.needs:
                self.gradient.df_input_vjps.append(index)
                self._accumulate(value, self.df.add_input(None, _gradient_type(value)))
        for node in self.f.block.reversed_nodes:
            if any(value in self.grads for value in node.outputs) and full_name(node) in FORMULAS:
                self._differentiate_node(node)
        for index, value in enumerate(self.f.inputs):
            if value in self.needs:
                grad = self.grads.get(value)
                self.df.register_output(self._zero_gradient() if grad is None else grad)
                self.gradient.df_output_vjps.append(index)

    def _find_needs(self) -> None:
        self.needs.update(filter(needs_gradient, self.f.inputs))
        for node in self.f.nodes:
            if any(value in self.needs for value in node.inputs):
                self.needs.update(filter(needs_gradient, node.outputs))

    def _zero_gradient(self) -> Value:
        return self.df.insert("prim::AutogradZero").output.set_type(TensorType(undefined=True))

    def _accumulate(self, value: Value, grad: Value) -> None:
        known = self.grads.get(value)
        self.grads[value] = grad if known is None else self.df.insert("prim::AutogradAdd", [known, grad]).output

    def _differentiate_node(self, node: Node) -> None:
        names = tuple(argument.name for argument in operator_of(node).schema.arguments)
        formula = formula_of(full_name(node), names)
        inputs = dict(zip(names, node.inputs, strict=True))
        targets = [name for name in formula.targets if inputs[name] in self.needs]
        made = self.df.insert("prim::GradOf", [self.grads[node.output]], 0).set("name", node.kind)
        block = made.add_block()
        values = {"grad": self.grads[node.output], "result": node.output, **inputs}
        results = self._write(block, formula, values, targets)
        for name in targets:
            block.add_output(results[name])
            self._accumulate(inputs[name], made.add_output().set_type(_gradient_type(inputs[name])))

    def _write(self, block: Block, formula: Formula, values: dict[str, Value], targets: list[str]) -> dict[str, Value]:
        """Copy a formula into a block; returns the gradients of the targets there."""
        copies: dict[Value, Value] = {}
        params = dict(zip(formula.graph.inputs, [values[key] for key in _parameters(values)], strict=True))
        wanted = _nodes_for(formula, targets)

        def inside(value: Value) -> Value:
            if value in copies:
                return copies[value]
            outer = params[value]
            return outer if outer is values["grad"] else self._from_forward(outer)

        for each in formula.graph.nodes:
            if each in wanted:
                copy = block.append(self.df.clone_node(each, inside))
                copies.update(zip(each.outputs, copy.outputs, strict=True))
        return {name: copies[formula.names[f"{name}_grad"]] for name in targets}

    def _from_forward(self, value: Value) -> Value:
        """Return the reverse graph's counterpart of a forward value: a captured value, or a constant."""
        if value not in self.captured:
            if value.is_constant:
                made = self.df.block.prepend(self.df.clone_node(value.node, lambda each: each)).output
            else:
                made = self.df.add_input(None, value.type)
            self.captured[value] = made
        return self.captured[value]

    def capture(self) -> None:
        """Number the captured values of the forward graph; add outputs for those that are none yet."""
        used = {value: made for value, made in self.captured.items() if not value.is_constant}
        order = [made for made in self.df.inputs[: len(self.gradient.df_input_vjps)]]
        inputs, outputs = [], []
        for value, made in used.items():
            if not made.uses:
                continue
            (inputs if value.node is self.f.block.param else outputs).append((value, made))
        for value, made in inputs:
            self.gradient.df_input_captured_inputs.append(value.offset)
            order.append(made)
        for value, made in outputs:
            if value not in self.f.outputs:
                self.f.register_output(value)
            self.gradient.df_input_captured_outputs.append(self.f.outputs.index(value))
            order.append(made)
        self._reorder(order)

    def _reorder(self, order: list[Value]) -> None:
        """Reorder the inputs, and drop all others."""
        block = self.df.block
        for index in range(len(block.inputs) - 1, -1, -1):
            if block.inputs[index] not in order:
                block.erase_input(index)
        block.inputs[:] = order
        for offset, value in enumerate(block.inputs):
            value.offset = offset


def _parameters(values: dict[str, Value]) -> list[str]:
    """Return the names of a formula's inputs, in order."""
    return ["grad", *(name for name in values if name not in ("grad", "result")), "result"]


def _nodes_for(formula: Formula, targets: list[str]) -> set[Node]:
    """Return the nodes of a formula that the gradients of some targets need."""
    found: set[Node] = set()
    pending = [formula.names[f"{name}_grad"] for name in targets]
    while pending:
        node = pending.pop().node
        if node not in found and node is not formula.graph.block.param:
            found.add(node)
            pending += node.inputs
    return found


def _gradient_type(value: Value) -> TensorType:
    """Return the type of a value's gradient, which may be absent."""
    kind = value.type
    return TensorType(kind.dtype, kind.sizes, None, None, kind.device)
