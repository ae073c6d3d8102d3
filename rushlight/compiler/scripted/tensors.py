"""Tensors of the jit's IR in structured programs: nodes are collected into straight-line pieces, which become regions."""

from __future__ import annotations

from rushlight.compiler.scripted.lists import Lists
from rushlight.compiler.scripted.regions import Piece, Unsupported, example_of, function_of, make_region
from rushlight.compiler.scripted.values import Plain, is_tensor, is_tensor_list
from rushlight.inductor.structured import BOOL, INT, Compute, Element, ListOf, Literal, Run, Scalar, Statement, TensorOf, Var
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import operator_of

_MIXING = frozenset(f"aten::{name}" for name in ("add", "sub", "mul", "div", "rsub", "eq", "ne", "lt", "le", "gt", "ge"))
"""Operators on a tensor that may take a number which is known only when the program runs."""
_QUESTIONS = frozenset(
    "aten::size aten::dim aten::numel aten::len aten::stride aten::is_contiguous aten::is_floating_point aten::is_complex "
    "prim::dtype prim::device prim::layout prim::shape prim::is_cpu prim::is_cuda prim::is_meta prim::is_sparse "
    "aten::element_size prim::itemsize prim::nbytes".split()
)
"""What depends on the size and dtype of a tensor only."""


class Tensors(Lists):
    """Translates nodes on tensors."""

    def _tensor_node(self, node: Node, body: list[Statement]) -> None:
        if any(is_tensor_list(value) for value in node.inputs) and self._on_tensor_list(node, body):
            return
        if node.kind == "aten::select" and self._select(node, body):
            return
        if not any(is_tensor(value) or is_tensor_list(value) for value in node.outputs):
            self._question(node, body)
            return
        operator = operator_of(node) if node.kind.startswith("aten::") else None
        if operator is not None and not operator.is_pure:
            raise Unsupported(f"{node.kind}, which writes or draws random numbers")
        self._into_piece(node, body)

    def _into_piece(self, node: Node, body: list[Statement]) -> None:
        """Add a node to the open piece."""
        piece = self.piece = self.piece or Piece()
        for value in node.inputs:
            if piece.makes(value) or value in piece.inputs or value in piece.plain:
                continue
            found = self._value(value)
            if isinstance(found, Plain | Literal):
                piece.plain[value] = found.value
            elif isinstance(found, Var) and isinstance(found.kind, TensorOf):
                piece.inputs[value] = found
            elif isinstance(found, Var) and isinstance(found.kind, Scalar):
                self._check_mixing(node, found)
                piece.inputs[value] = found
            else:
                raise Unsupported(f"{node.kind} of a value that only the program knows")
        piece.nodes.append(node)

    def _check_mixing(self, node: Node, number: Var) -> None:
        if node.kind not in _MIXING or number.kind == BOOL:
            raise Unsupported(f"{node.kind} with a number that only the program knows")

    def _question(self, node: Node, body: list[Statement]) -> None:
        """What only depends on a tensor's size and dtype is known now."""
        if node.kind == "aten::size" and node.input_count == 2 and isinstance(self._value(node.input(1)), Var):
            self._size_of_some_dimension(node, body)
            return
        arguments = []
        for value in node.inputs:
            if self.piece is not None and self.piece.makes(value):
                self._flush(body)
            found = self._value(value)
            if isinstance(found, Var) and isinstance(found.kind, TensorOf):
                arguments.append(example_of(found))
            elif isinstance(found, Plain | Literal):
                arguments.append(found.value)
            else:
                raise Unsupported(f"{node.kind} of a value that only the program knows")
        if node.kind not in _QUESTIONS:
            raise Unsupported(f"{node.kind} with a result that is no tensor")
        result = function_of(node)(*arguments)
        self.values[node.output] = Literal(result) if isinstance(result, bool | int | float) else Plain(result)

    def _size_of_some_dimension(self, node: Node, body: list[Statement]) -> None:
        sizes = self._var("list", ListOf(INT))
        target = self._var("n", INT)
        body.append(Compute(sizes, "list", [Literal(size) for size in self._operand(node.input(), body).kind.size]))
        body.append(Compute(target, "getitem", [sizes, self._value(node.input(1))]))
        self.values[node.output] = target

    def _select(self, node: Node, body: list[Statement]) -> bool:
        """A row of a tensor whose number only the program knows, along the first dimension."""
        index = self._value(node.input(2))
        if not isinstance(index, Var):
            return False
        source = self._operand(node.input(), body)
        dim = self._value(node.input(1))
        if not isinstance(dim, Literal) or dim.value not in (0, -len(source.kind.size)):
            raise Unsupported("a row along another than the first dimension")
        target = self._var("t", TensorOf(source.kind.dtype, source.kind.size[1:]))
        body.append(Element(target, source, index))
        self.values[node.output] = target
        return True

    def _flush(self, body: list[Statement]) -> None:
        """Close the open piece: it runs here."""
        if self.piece is not None:
            self._flush_as(body, None)

    def _flush_as(self, body: list[Statement], renamed: dict[Value, Value] | None) -> None:
        piece, self.piece = self.piece, None
        inside = set(piece.nodes)
        made = [value for node in piece.nodes for value in node.outputs]
        needed = list(renamed) if renamed else [
            value for value in made
            if not is_tensor_list(value) and any(use.user not in inside for use in value.uses)
        ]  # fmt: skip
        if any(is_tensor_list(value) and any(use.user not in inside for use in value.uses) for value in made) and not renamed:
            raise Unsupported("a list of tensors that leaves straight-line code")
        if not needed:
            return
        fixed = {var for var in self.inputs.values() if isinstance(var.kind, TensorOf)} if self.depth else set()
        region, inputs, kinds = make_region(piece, needed, fixed, self.threads)
        outputs = [self._var("t", kind) for kind in kinds]
        body.append(Run(len(self.regions), inputs, outputs))
        self.regions.append(region)
        for value, var in zip(needed, outputs, strict=True):
            self.values[renamed[value] if renamed else value] = var
