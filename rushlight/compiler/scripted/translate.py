"""A jit graph, for arguments of known sizes, as a structured program.

In: an inlined graph without tuples inside, and arguments. Out: a StructuredProgram, and where its inputs come from: arguments,
or attributes of objects among them. Unsupported says what has no native form. Numbers and lists of them become C++, nodes on
tensors are collected into straight-line pieces, as long as no numbers, branches or loops come between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.control_flow import ControlFlow
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.scalars import READS, SCALAR_OPERATORS
from rushlight.compiler.scripted.values import SCALARS, Fixed, Plain, Source, is_tensor, is_tensor_list
from rushlight.inductor.codegen.structured import result_kind
from rushlight.inductor.structured import BOOL, INT, Compute, Literal, Operand, Read, Statement, Stop, StructuredProgram, Var
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.types import kinds as types


@dataclass
class Translation:
    """A program, the sources of its inputs, and how its outputs make the graph's: indices, or tuples of them."""

    program: StructuredProgram
    sources: list[Source | Fixed]
    structure: list


def translate(graph: Graph, arguments: Sequence[object], threads: int = 1) -> Translation:
    """The program of a graph for arguments like these; pieces with enough to do share it among threads."""
    return _Translator(graph, arguments, threads).run()


class _Translator(ControlFlow):
    def run(self) -> Translation:
        """Translate the whole graph."""
        for index, value in enumerate(self.graph.inputs):
            self.values[value] = Source(index, ())
        body: list[Statement] = []
        self._block(self.graph.block, body)
        outputs: list[Operand] = []
        structure = [self._output(value, outputs, body) for value in self.graph.outputs]
        self._flush(body)
        if self.shares_lists and self.changes_lists:
            raise Unsupported("a list of an object, which may be written to")
        program = StructuredProgram(list(self.inputs.values()), outputs, body, self.regions)
        return Translation(program, list(self.inputs), structure)

    def _output(self, value: Value, outputs: list[Operand], body: list[Statement]) -> object:
        if value.node.kind == "prim::TupleConstruct":
            return tuple(self._output(each, outputs, body) for each in value.node.inputs)
        if value.is_none:
            return None
        outputs.append(self._operand(value, body))
        return len(outputs) - 1

    def _block(self, block: Block, body: list[Statement]) -> None:
        for node in block.nodes:
            self._node(node, body)
        for value in block.outputs:
            if self.piece is not None and self.piece.makes(value):
                self._flush(body)

    def _node(self, node: Node, body: list[Statement]) -> None:
        kind = node.kind
        if kind == "prim::Constant" or kind == "prim::TupleConstruct":
            return
        special = _SPECIAL.get(kind)
        if special is not None:
            special(self, node, body)
        elif kind in ("aten::Int", "aten::Float", "aten::Bool", *READS) and is_tensor(node.input()):
            self._read(node, body)
        elif any(is_tensor(value) or is_tensor_list(value) for value in (*node.inputs, *node.outputs)):
            self._tensor_node(node, body)
        elif any(isinstance(value.type, types.ListType) for value in (*node.inputs, *node.outputs)):
            self._list_node(node, body)
        else:
            self._scalar_node(node, body)

    def _scalar_node(self, node: Node, body: list[Statement]) -> None:
        known = [self._value(value) for value in node.inputs]
        if known and all(isinstance(each, Plain | Literal) for each in known) and len(node.outputs) == 1:
            result = self._fold(node, known)
            if result is not None:
                self.values[node.output] = result
                return
        op = SCALAR_OPERATORS.get(node.kind)
        if op is None or len(node.outputs) != 1 or node.output.type not in SCALARS:
            raise Unsupported(f"{node.kind} on numbers")
        operands = [self._operand(value, body) for value in node.inputs]
        op = op(operands) if callable(op) else op
        if op is None:
            raise Unsupported(f"{node.kind} on numbers of these types")
        target = self._var("n", SCALARS[node.output.type])
        if result_kind(op, operands) != target.kind:
            raise Unsupported(f"{node.kind} with a result of another type")
        body.append(Compute(target, op, operands))
        self.values[node.output] = target

    def _fold(self, node: Node, known: Sequence[object]) -> Plain | Literal | None:
        """The result of an operator on constants; None where it fails, which is the program's business."""
        operator = operator_of(node)
        if operator is None or not operator.is_pure:
            return None
        try:
            result = operator.function(*[each.value for each in known])
        except Exception:  # whatever an operator raises, it raises when the program runs
            return None
        return Literal(result) if isinstance(result, bool | int | float) else Plain(result)

    def _read(self, node: Node, body: list[Statement]) -> None:
        """The element of a tensor as a number."""
        source = self._operand(node.input(), body)
        kind = SCALARS.get(node.output.type)
        if not isinstance(source, Var) or source.kind.numel != 1 or kind is None:
            raise Unsupported(f"{node.kind} of a tensor of several elements")
        if source.kind.dtype.is_complex or (kind == INT and source.kind.dtype.is_floating_point):
            raise Unsupported(f"{node.kind} of a tensor of dtype {source.kind.dtype}")
        target = self._var("n", kind)
        body.append(Read(target, source))
        self.values[node.output] = target

    def _attribute(self, node: Node, body: list[Statement]) -> None:
        source = self._value(node.input())
        if not isinstance(source, Source):
            raise Unsupported("an attribute of an object that the program makes")
        self.values[node.output] = Source(source.argument, (*source.path, node["name"]))

    def _stop(self, node: Node, body: list[Statement]) -> None:
        self._flush(body)
        body.append(Stop())

    def _same(self, node: Node, body: list[Statement]) -> None:
        self.values[node.output] = self._operand(node.input(), body)

    def _uninitialized(self, node: Node, body: list[Statement]) -> None:
        kind = SCALARS.get(node.output.type)
        if kind is None:
            raise Unsupported("a value that is not initialized")
        self.values[node.output] = Literal(False if kind == BOOL else 0 if kind == INT else 0.0)


_SPECIAL = {
    "prim::If": _Translator._if, "prim::Loop": _Translator._loop, "prim::GetAttr": _Translator._attribute,
    "prim::RaiseException": _Translator._stop, "prim::unchecked_cast": _Translator._same,
    "prim::ListConstruct": _Translator._new_list, "prim::Uninitialized": _Translator._uninitialized,
}  # fmt: skip
