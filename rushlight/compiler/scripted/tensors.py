"""Translate nodes on tensors for structured programs: collect them into straight-line pieces, which become regions."""

from __future__ import annotations

from rushlight.compiler.scripted.external import external_call, is_random, may_be_external
from rushlight.compiler.scripted.lists import needs_list
from rushlight.compiler.scripted.memory import Memory
from rushlight.compiler.scripted.regions import (
    NoNativeForm,
    OutputIsConstant,
    Piece,
    Unsupported,
    example_of,
    function_of,
    make_region,
)
from rushlight.compiler.scripted.typed import takes_number
from rushlight.compiler.scripted.values import Fixed, Plain, is_tensor, is_tensor_list
from rushlight.core.tensor import Tensor
from rushlight.inductor.structured import INT, Call, Compute, ListOf, Literal, Run, Scalar, Statement, TensorOf, Var
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.types import kinds as types

_METADATA_OPERATORS = frozenset(
    "aten::size aten::dim aten::numel aten::len aten::stride aten::is_contiguous aten::is_floating_point aten::is_complex "
    "prim::dtype prim::device prim::layout prim::shape prim::is_cpu prim::is_cuda prim::is_meta prim::is_sparse "
    "aten::element_size prim::itemsize prim::nbytes".split()
)
"""Operators whose result depends on the size and dtype of a tensor only."""


class Tensors(Memory):
    """Translates nodes on tensors."""

    def _tensor_node(self, node: Node, body: list[Statement]) -> None:
        """Translate a node on tensors by the first rule that applies."""
        if node.kind == "aten::tensor" and self._defer_number(node):
            return
        if any(is_tensor_list(value) for value in node.inputs) and self._translate_tensor_list(node, body):
            return
        if node.kind == "aten::select" and self._select(node, body):
            return
        if node.kind == "aten::slice" and self._translate_slice(node, body):
            return
        if self._write_node(node, body):
            return
        if self._is_view(node) and self._translate_view(node, body):
            return
        if not any(is_tensor(value) or is_tensor_list(value) for value in node.outputs):
            self._evaluate_property(node, body)
            return
        operator = operator_of(node) if node.kind.startswith("aten::") else None
        if node in self.plan.external or is_random(node):
            self._call_external(node, body)
            return
        if operator is not None and not operator.is_pure:
            raise Unsupported(f"{node.kind}, which has effects")
        lists = [value for value in node.outputs if is_tensor_list(value)]
        if node.kind.startswith("aten::") and any(self.plan.aliases.has_writers(value) for value in lists):
            raise Unsupported(f"{node.kind}, which gives views of what is written to")
        if len(lists) == len(node.outputs) == 1 and needs_list(lists[0]):
            self._list_of_results(node, body)
            return
        self._add_to_piece(node, body)

    def _list_of_results(self, node: Node, body: list[Statement]) -> None:
        """Translate an operator that returns tensors into a list of the program."""
        self._flush(body)
        self._add_to_piece(node, body)
        examples = {value: example_of(found) for value, found in self.piece.inputs.items()} | self.piece.plain
        count = len(function_of(node)(*[examples[value] for value in node.inputs]))
        unpack = node.graph.create("prim::ListUnpack", [node.output], count)
        for value in unpack.outputs:
            value.set_type(types.TENSOR)
        self.piece.nodes.append(unpack)
        self.piece.wanted.update((node.output, *unpack.outputs))
        operands = [self._operand(value, body) for value in unpack.outputs]
        unpack.destroy()
        self.values[node.output] = self._make_list(operands, self._tensor_list_kind(node.output, operands), body)

    def _add_to_piece(self, node: Node, body: list[Statement]) -> None:
        """Add a node to the open piece."""
        if node in self.plan.separate:
            self._flush(body)
        piece = self.piece = self.piece or Piece()
        for place, value in enumerate(node.inputs):
            if piece.makes(value) or value in piece.inputs or value in piece.plain:
                continue
            found = self._value(value)
            if isinstance(found, Plain | Literal):
                piece.plain[value] = found.value
            elif isinstance(found, Var) and isinstance(found.kind, TensorOf):
                piece.inputs[value] = found
            elif isinstance(found, Var) and isinstance(found.kind, Scalar) and takes_number(node, place):
                piece.inputs[value] = found
            else:
                self._specialize(value)
                raise Unsupported(f"{node.kind} of a value that only the program knows")
        piece.nodes.append(node)
        if node in self.plan.separate:
            self._flush(body)

    def _call_external(self, node: Node, body: list[Statement]) -> None:
        """Let Python run an operator."""
        found = []
        for value in node.inputs:
            if self._is_open(value):
                self._flush(body)
            each = self._value(value)
            if isinstance(each, Var) and isinstance(each.kind, TensorOf | Scalar):
                each = self._contiguous(each, body)
            elif not isinstance(each, Plain | Literal):
                self._specialize(value)
                raise Unsupported(f"{node.kind} of a value that only the program knows")
            found.append(each)
        call = external_call(node, found)
        outputs = [self._new_variable(kind) for kind in call.outputs]
        self.draws = self.draws or is_random(node)
        body.append(Call(len(self.calls), [each for each in found if isinstance(each, Var)], outputs))
        self.calls.append(call)
        for value, var in zip(node.outputs, outputs, strict=True):
            self.values[value] = var
            self._record_maker(var, value)

    def _evaluate_property(self, node: Node, body: list[Statement]) -> None:
        """Evaluate an operator that depends on a tensor's size and dtype only."""
        if node.kind == "aten::size" and node.input_count == 2 and isinstance(self._value(node.input(1)), Var):
            self._size_of_some_dimension(node, body)
            return
        arguments = []
        for value in node.inputs:
            if self._is_open(value):
                self._flush(body)
            found = self._value(value)
            if isinstance(found, Var) and isinstance(found.kind, TensorOf):
                arguments.append(example_of(found))
            elif isinstance(found, Plain | Literal):
                arguments.append(found.value)
            else:
                raise Unsupported(f"{node.kind} of a value that only the program knows")
        if node.kind not in _METADATA_OPERATORS:
            raise Unsupported(f"{node.kind} with a result that is no tensor")
        result = function_of(node)(*arguments)
        self.values[node.output] = Literal(result) if isinstance(result, bool | int | float) else Plain(result)

    def _size_of_some_dimension(self, node: Node, body: list[Statement]) -> None:
        """Translate a size whose dimension only the program knows."""
        sizes = self._var("list", ListOf(INT))
        target = self._var("n", INT)
        body.append(Compute(sizes, "list", [Literal(size) for size in self._operand(node.input(), body).kind.size]))
        body.append(Compute(target, "getitem", [sizes, self._value(node.input(1))]))
        self.values[node.output] = target

    def _stack_list(self, node: Node, values: Var, count: int, body: list[Statement]) -> None:
        """Translate `stack` or `cat` of a list of `count` tensors: they lie in memory one after the other, as one tensor."""
        element, dim = values.kind.element, self._value(node.input(1))
        if not isinstance(dim, Literal):
            self._specialize(node.input(1))
            raise Unsupported(f"{node.kind} along a dimension that only the program knows")
        is_cat = node.kind == "aten::cat"
        rank = len(element.size) + (not is_cat)
        if not -rank <= dim.value < rank:
            raise Unsupported(f"{node.kind} along a dimension that there is not")
        place = dim.value % rank
        size = (count * element.size[0], *element.size[1:]) if is_cat and place == 0 else (count, *element.size)
        whole = self._var("t", TensorOf(element.dtype, size))
        body.append(Compute(whole, "stacked", [values, Literal(count)]))
        self._record_maker(whole, node.output)
        if place == 0:
            self.values[node.output] = whole
            return
        graph = node.graph
        source = graph.create("prim::Constant").output.set_type(types.TENSOR)  # placeholder input for the whole tensor
        numbers = [
            graph.create("prim::Constant").set("value", each).output.set_type(types.INT) for each in (0, place, place + 1)
        ]
        last = graph.create("aten::movedim", [source, *numbers[:2]]).output
        self.piece = Piece([last.node], {source: whole}, {value: value.constant() for value in numbers})
        if is_cat:
            last = graph.create("aten::flatten", [last, *numbers[1:]]).output
            self.piece.nodes.append(last.node)
        self._flush_as(body, {last: node.output})

    def _flush(self, body: list[Statement]) -> None:
        """Close the open piece: it runs here."""
        if self.piece is not None:
            self._flush_as(body, None)

    def _flush_as(self, body: list[Statement], renamed: dict[Value, Value] | None) -> None:
        """Close the open piece; `renamed` maps its results to existing variables."""
        piece, self.piece = self.piece, None
        inside = set(piece.nodes)
        made = [value for node in piece.nodes for value in node.outputs]
        needed = list(renamed) if renamed else [
            value for value in made
            if not is_tensor_list(value) and (value in piece.wanted or any(use.user not in inside for use in value.uses))
        ]  # fmt: skip
        lists = [value for value in made if is_tensor_list(value) and value not in piece.wanted]
        if any(use.user not in inside for value in lists for use in value.uses):
            raise Unsupported("a list of tensors that leaves straight-line code")
        if not needed:
            return
        try:
            region, inputs, kinds = make_region(piece, needed, self._fixed_inputs(), self.threads, self._constant)
        except OutputIsConstant:
            region, inputs, kinds = make_region(piece, needed, set(), self.threads, self._constant)
        except NoNativeForm as reason:
            self.plan.look_among(list(filter(may_be_external, piece.nodes)), reason)
        outputs = [self._var("t", kind) for kind in kinds]
        body.append(Run(len(self.regions), inputs, outputs))
        self.regions.append(region)
        for value, var in zip(needed, outputs, strict=True):
            found = renamed[value] if renamed else value
            self.values[found] = var
            self._record_maker(var, found)

    def _constant(self, tensor: Tensor) -> Var:
        return self._input(Fixed(tensor.contiguous()))

    def _fixed_inputs(self) -> set[Var]:
        """Return the inputs that never change; a piece in a loop prepares them once."""
        if not self.depth:
            return set()
        own = {var for var, _ in self.written}
        return {var for var in self.inputs.values() if isinstance(var.kind, TensorOf)} - own
