"""specializeAutogradZero: decide run-time tests of absent gradients statically.

Requires: SSA, LowerGradOf. Graph inputs may have types whose `undefined` is known. Guarantees: the branches of every decided
`prim::AutogradAnyNonZero` are resolved, and a `prim::AutogradAdd` with an absent operand is gone; one of two present operands
is an `aten::add`.
"""

from __future__ import annotations

from enum import Enum

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.helpers import constant_before, insert_before, replace_with, splice_block
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TensorType

_LOG = PassLog(__file__)


class State(Enum):
    """The static state of a gradient."""

    ZERO = 0
    NONZERO = 1
    UNKNOWN = 2


_DEFINED = frozenset(("aten::add", "aten::mul", "aten::sum", "prim::Constant", "aten::_grad_sum_to_size"))


@graph_pass("specializeAutogradZero", "_jit_pass_specialize_autogradzero")
def specialize_autogradzero(graph: Graph) -> None:
    """Resolve tests of absent gradients."""
    states: dict[Value, State] = {}
    for value in graph.inputs:
        if isinstance(value.type, TensorType):
            undefined = value.type.undefined
            states[value] = State.UNKNOWN if undefined is None else State.ZERO if undefined else State.NONZERO
    _Specializer(states).block(graph.block)


class _Specializer:
    def __init__(self, states: dict[Value, State]):
        self.states = states

    def block(self, block: Block) -> None:
        """Specialize the nodes of a block."""
        for node in block.nodes:
            if node.kind == "prim::AutogradZero":
                self.states[node.output] = State.ZERO
            elif node.kind == "prim::AutogradAdd":
                self._specialize_add(node)
            elif node.kind == "prim::If":
                self._specialize_if(node)
            elif node.kind in ("prim::profile", "prim::BailOut"):
                self._specialize_passed_on(node)
            else:
                self._specialize_other(node)

    def _state(self, value: Value) -> State:
        return self.states.get(value, State.UNKNOWN)

    def _specialize_other(self, node: Node) -> None:
        for inner in node.blocks:
            self.block(inner)
        defined = node.kind not in ("prim::GradOf", "prim::Loop") and (node.kind.startswith("aten::") or node.kind in _DEFINED)
        for value in node.outputs:
            if isinstance(value.type, TensorType):
                self.states[value] = State.NONZERO if defined else State.UNKNOWN

    def _specialize_passed_on(self, node: Node) -> None:
        if node.inputs and node.outputs:
            self.states[node.output] = self._state(node.input())

    def _specialize_add(self, node: Node) -> None:
        first, second = node.inputs
        states = self._state(first), self._state(second)
        if State.ZERO in states:
            kept = second if states[0] is State.ZERO else first
            if _LOG.permits("{} adds an absent gradient and is replaced by %{}", node, kept.debug_name):
                replace_with(node, kept)
                return
        elif states == (State.NONZERO, State.NONZERO) and _LOG.permits("{} becomes a plain sum", node):
            total = insert_before(node, "aten::add", [first, second, constant_before(node, 1)], node.output.type)
            self.states[total] = State.NONZERO
            replace_with(node, total)
            return
        self.states[node.output] = State.NONZERO if State.NONZERO in states else State.UNKNOWN

    def _specialize_if(self, node: Node) -> None:
        check = node.input().node
        if check.kind == "prim::AutogradAnyNonZero":
            states = [self._state(value) for value in check.inputs]
            taken = 0 if State.NONZERO in states else 1 if all(each is State.ZERO for each in states) else None
            if taken is not None and _LOG.permits("branch {} of {} is always taken", taken, node):
                self._take_branch(node, taken)
                return
        for inner in node.blocks:
            self.block(inner)
        for value, *ends in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
            known = {self._state(end) for end in ends}
            self.states[value] = known.pop() if len(known) == 1 else State.UNKNOWN

    def _take_branch(self, node: Node, index: int) -> None:
        block = node.blocks[index]
        self.block(block)
        check = node.input().node
        splice_block(node, block)
        node.destroy()
        if not check.has_uses:
            check.destroy()
