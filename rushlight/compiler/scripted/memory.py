"""Translate views of tensors, and writes into them, for structured programs.


A view is part of a tensor's memory. Its strides and offset come from running the operator on an example; numbers that only the
program knows are added to the offset. An in-place operator computes what it would write as a new tensor, in a straight-line
piece, and a Write copies that into the memory. Later reads of the memory, through any alias, see the new contents.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.scripted.external import is_random
from rushlight.compiler.scripted.lists import Lists
from rushlight.compiler.scripted.regions import Unsupported, example_of, function_of
from rushlight.compiler.scripted.scalars import READS
from rushlight.compiler.scripted.values import Plain, is_tensor
from rushlight.core.dtype import bfloat16, float16
from rushlight.core.tensor import Tensor
from rushlight.inductor.structured import Literal, Operand, Scalar, Statement, TensorOf, Term, Var, View, Write, tensor_of
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.operators.registry import RANDOM
from rushlight.jit.passes.alias_analysis import MAY_PASS_ON

_NOT_FILLABLE = frozenset((float16, bfloat16))


class Memory(Lists):
    """Translates nodes that return views and nodes that write."""

    # Translate views

    def _is_view(self, node: Node) -> bool:
        """Return whether a node may return a view of memory that something writes to."""
        return is_view(node) and not is_random(node) and self.plan.aliases.has_writers(node.output)

    def _translate_view(self, node: Node, body: list[Statement]) -> bool:
        """Translate a view; return False if the operator returns a new tensor."""
        source = self._operand(node.input(), body)
        if not isinstance(source, Var) or not isinstance(source.kind, TensorOf):
            raise Unsupported(f"{node.kind} of what is no tensor")
        arguments, terms = self._view_arguments(node, source)
        base = example_of(source)
        result = function_of(node)(base, *arguments)
        if not isinstance(result, Tensor) or result._impl.storage is not base._impl.storage:
            return False
        self._add_view(node, source, result, terms, body)
        return True

    def _add_view(self, node: Node, source: Var, result: Tensor, terms: list[Term], body: list[Statement]) -> None:
        """Add a View statement for a result that shares memory with `source`."""
        impl = result._impl
        target = self._new_variable(tensor_of(impl.dtype, impl.sizes, impl.strides))
        body.append(View(target, source, terms, impl.storage_offset))
        self.makers[target] = self.makers.get(source, frozenset())
        self.values[node.output] = target

    def _view_arguments(self, node: Node, source: Var) -> tuple[list[object], list[Term]]:
        """Return the arguments after the tensor, and offset terms for the arguments that only the program knows."""
        found = [self._value(value) for value in node.inputs[1:]]
        if any(isinstance(each, Var) for each in found):
            if node.kind == "aten::select" and isinstance(found[0], Literal):
                return [found[0].value, 0], [self._view_offset(source, found[0].value, found[1], 1)]
            if node.kind == "aten::slice" and isinstance(found[0], Literal) and isinstance(found[1], Var):
                return self._slice_arguments(node, source, found)
            for value in node.inputs[1:]:
                self._specialize(value)
        if not all(isinstance(each, Plain | Literal | Var) for each in found):
            raise Unsupported(f"{node.kind} of a value that only the program knows")
        return [self._argument(each) for each in found], []

    def _argument(self, found: object) -> object:
        """Return an example value for an operand."""
        if isinstance(found, Plain | Literal):
            return found.value
        if isinstance(found.kind, TensorOf):
            return example_of(found)
        raise Unsupported("a view by a number that only the program knows")

    def _view_offset(self, source: Var, dim: int, index: Operand, length: int, wraps: bool = True) -> Term:
        """Return the offset that an index adds to a view along a dimension."""
        size = source.kind.size
        if not -len(size) <= dim < len(size) or length > size[dim]:
            raise Unsupported("a dimension or a length that is out of range")
        return Term(index, example_of(source).stride(dim), size[dim] - length + 1, wraps)

    def _slice_arguments(self, node: Node, source: Var, found: list) -> tuple[list[object], list[Term]]:
        """Translate `x[i : i + 3]`: its length does not depend on i. The program stops if it does not lie in the tensor."""
        dim, start, _, step = found
        length = self._constant_difference(node.input(2), node.input(3))
        if length is None or length < 0 or not isinstance(step, Literal) or step.value != 1:
            for value in (*node.inputs[2:4], *node.input(2).node.inputs, *node.input(3).node.inputs):
                self._specialize(value)
            raise Unsupported("a slice whose length only the program knows")
        return [dim.value, 0, length, 1], [self._view_offset(source, dim.value, start, length, wraps=False)]

    def _constant_difference(self, start: Value, end: Value) -> int | None:
        """Return the difference of two ints if it is always the same, else None."""
        (one, first), (other, second) = self._split(start), self._split(end)
        return second - first if one is other or one == other else None

    def _split(self, value: Value) -> tuple[object, int]:
        """Split an int into a part that only the program knows and a constant."""
        rest = 0
        while value.node.kind in ("aten::add", "aten::sub") and value.node.input_count == 2:
            sign = 1 if value.node.kind == "aten::add" else -1
            parts = [self._value(each) for each in value.node.inputs]
            if isinstance(parts[1], Literal):
                rest, value = rest + sign * parts[1].value, value.node.input(0)
            elif isinstance(parts[0], Literal) and sign == 1:
                rest, value = rest + parts[0].value, value.node.input(1)
            else:
                break
        return self._value(value), rest

    def _select(self, node: Node, body: list[Statement]) -> bool:
        """Translate a row whose index only the program knows, or an element that is only read as a number. Neither needs a
        piece."""
        index, dim = self._value(node.input(2)), self._value(node.input(1))
        if self._is_open(node.input()) and not isinstance(index, Var):
            return False
        if not isinstance(index, Var):
            source = self._value(node.input())
            is_element = isinstance(source, Var) and isinstance(source.kind, TensorOf) and len(source.kind.size) == 1
            if not is_element or not all(use.user.kind in READS for use in node.output.uses):
                return False
        if not isinstance(dim, Literal):
            self._specialize(node.input(1))
            raise Unsupported("a row along a dimension that only the program knows")
        return self._translate_view(node, body)

    def _translate_slice(self, node: Node, body: list[Statement]) -> bool:
        """Translate a slice whose start only the program knows."""
        if self._is_open(node.input()):
            return isinstance(self._value(node.input(2)), Var) and self._translate_view(node, body)
        found = [self._value(value) for value in node.inputs]
        if isinstance(found[0], Var) and all(isinstance(each, Plain | Literal) for each in found[1:]) and _is_whole(found[2:]):
            self.values[node.output] = found[0]
            return True
        return isinstance(found[2], Var) and self._translate_view(node, body)

    # Translate writes

    def _write_node(self, node: Node, body: list[Statement]) -> bool:
        """Translate an in-place operator; return False for nodes that write to no tensor."""
        if not self.plan.aliases.writes(node) or not is_tensor(node.input()):
            return False
        if node.kind.removeprefix("aten::").removesuffix("_") in RANDOM:
            raise Unsupported(f"{node.kind}, which writes random numbers")
        target = self._operand(node.input(), body)
        if not isinstance(target, Var) or not isinstance(target.kind, TensorOf):
            raise Unsupported(f"{node.kind} on what is no tensor")
        self._note_write(target)
        number = self._number_written(node)
        if number is not None and target.kind.dtype not in _NOT_FILLABLE and not target.kind.dtype.is_complex:
            self._flush(body)
            body.append(Write(target, number))
        else:
            self._write_result(node, target, body)
        for value in node.outputs:
            self.values[value] = target
        return True

    def _note_write(self, target: Var) -> None:
        """Record in the plan that memory is written to."""
        makers = self.makers.get(target, frozenset())
        if any(isinstance(maker, tuple) for maker in makers):
            raise Unsupported("a write to a tensor of a list")
        if not makers.isdisjoint(self.stored) or 0 in (target.kind.strides or ()):
            raise Unsupported("a write to a tensor that a list holds, or to an expanded one")
        self.plan.write(makers)

    def _number_written(self, node: Node) -> Operand | None:
        """Return the number that a node fills its tensor with, or None."""
        if node.kind == "aten::zero_":
            return Literal(0)
        if node.kind == "aten::fill_" and not is_tensor(node.input(1)):
            found = self._value(node.input(1))
            return found if isinstance(found, Var | Literal) else None
        if node.kind == "aten::copy_" and node.input(1).node.kind == "aten::tensor":
            return self.pending.get(node.input(1))
        return None

    def _defer_number(self, node: Node) -> bool:
        """Defer `aten::tensor` of a number that is only copied into other tensors: no tensor is made."""
        number = self._value(node.input())
        if not isinstance(number, Var | Literal) or not isinstance(number.kind, Scalar):
            return False
        if not all(use.user.kind == "aten::copy_" and use.offset == 1 for use in node.output.uses):
            return False
        self.pending[node.output] = number
        return True

    def _write_result(self, node: Node, target: Var, body: list[Statement]) -> None:
        """Compute what the node would write, and write it."""
        if node.kind == "aten::copy_" and self._copy_memory(node, target, body):
            return
        self._add_to_piece(node, body)
        self.piece.wanted.add(node.output)
        source = self._operand(node.output, body)
        if source.kind != TensorOf(target.kind.dtype, target.kind.size):
            raise Unsupported(f"{node.kind} with a result of another size or dtype")
        body.append(Write(target, source))

    def _copy_memory(self, node: Node, target: Var, body: list[Statement]) -> bool:
        """Translate `copy_` from a tensor of the same dtype and size in other memory; return False for other copies."""
        if not is_tensor(node.input(1)) or node.input(1) in self.pending:
            return False
        source = self._operand(node.input(1), body)
        if not isinstance(source, Var) or (source.kind.dtype, source.kind.size) != (target.kind.dtype, target.kind.size):
            return False
        if not self.makers.get(source, frozenset()).isdisjoint(self.makers.get(target, frozenset())):
            return False
        self._flush(body)
        body.append(Write(target, source))
        return True


def is_view(node: Node) -> bool:
    """Return whether a node may return its first argument or a view of it."""
    operator = operator_of(node) if node.kind.startswith("aten::") else None
    if operator is None or len(node.outputs) != 1 or not node.inputs:
        return False
    if not is_tensor(node.output) or not is_tensor(node.input()):
        return False
    return bool(operator.schema.returns[0].alias) or node.kind in MAY_PASS_ON


def _is_whole(bounds: Sequence[Plain | Literal]) -> bool:
    """Return whether a slice with these bounds covers the whole dimension."""
    start, end, step = (each.value for each in bounds)
    return start in (None, 0) and end in (None, (1 << 63) - 1) and step == 1
