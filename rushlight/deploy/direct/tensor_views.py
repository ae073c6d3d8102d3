"""Views of tensors in direct programs, and writes to tensors.

In: nodes whose results share memory that something writes to, or whose positions only a run knows. Out: calls of
`include/rushlight/deployed_tensors.h`.
"""

from __future__ import annotations

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.deploy.direct.open_piece import OpenPiece
from rushlight.deploy.direct.values import MISSING, Kind, Shape
from rushlight.jit.ir.graph import Node
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.types import kinds as types

VIEWS = {
    "aten::select": "select({0}, {1:int}, {2:int})", "aten::slice": "tensor_slice({0}, {1:int}, {2}, {3}, {4:int})",
    "aten::narrow": "narrow({0}, {1:int}, {2:int}, {3:int})", "aten::unsqueeze": "unsqueeze({0}, {1:int})",
    "aten::transpose": "transpose({0}, {1:int}, {2:int})", "aten::permute": "permute({0}, {1})",
    "aten::expand": "expand({0}, {1})", "aten::view": "reshape({0}, {1})", "aten::reshape": "reshape({0}, {1})",
    "aten::chunk": "chunk({0}, {1:int}, {2:int})", "aten::split": "tensor_split({0}, {1}, {2:int})",
    "aten::split_with_sizes": "tensor_split({0}, {1}, {2:int})", "aten::unbind": "unbind({0}, {1:int})",
    "aten::contiguous": "contiguous({0})", "aten::unsafe_chunk": "chunk({0}, {1:int}, {2:int})",
}  # fmt: skip
"""Views that share memory, and what they are in C++."""
_ALWAYS = frozenset(("aten::select", "aten::slice", "aten::narrow"))
"""Views whose places may be numbers that only a run knows: those are no part of a piece then."""
_PARTS = frozenset(("aten::chunk", "aten::split", "aten::split_with_sizes", "aten::unbind", "aten::unsafe_chunk"))


class TensorViews(OpenPiece):
    """Writes views and in-place operators."""

    def must_be_view(self, node: Node) -> bool:
        """Return whether a node must be a real view, because something writes to it, or because its position is known only at
        run time."""
        if any(self.has_writers(value) for value in node.outputs):
            return True
        if node.kind in _ALWAYS:
            return any(not self.operand(value).is_known for value in node.inputs[1:])
        if node.kind in _PARTS:
            return not all(use.user.kind == "prim::ListUnpack" for use in node.output.uses) or not self._has_known_parts(node)
        return False

    def _has_known_parts(self, node: Node) -> bool:
        return all(isinstance(each, list) for each in self.kinds_of_results(node, self.operator_arguments(node)))

    def write_view(self, node: Node) -> None:
        """Write a view that shares memory."""
        self.settle(*node.inputs)
        kinds = self._view_kind(node)
        row = VIEWS[node.kind]
        text, _ = self._call(node, row)
        self.bind(node.output, f"run.{text}", kinds)
        self.check(node)

    def _view_kind(self, node: Node) -> Kind:
        shape = self.operand(node.input()).kind.shape
        if shape is None:
            raise Unsupported(f"{node.kind} of a tensor of unknown dtype")
        if node.kind in _ALWAYS:
            return self._kind_of_run_time_part(node, shape)
        if node.kind in _PARTS:
            return self._kind_of_parts(node, shape)
        found = self.kinds_of_results(node, self.operator_arguments(node))[0]
        if not isinstance(found, Kind):
            raise Unsupported(f"{node.kind} with a result that is no tensor")
        return found

    def _kind_of_run_time_part(self, node: Node, shape: Shape) -> Kind:
        """Return the kind of a part at a position known only at run time."""
        dim = self.known(node.input(1))
        if dim is MISSING or not -len(shape.sizes) <= dim < len(shape.sizes):
            raise Unsupported(f"{node.kind} along a dimension that only a run knows")
        dim %= len(shape.sizes)
        rest = list(shape.sizes)
        if node.kind == "aten::select":
            del rest[dim]
            return Kind(Shape(shape.dtype, tuple(rest)))
        if node.kind == "aten::narrow":
            length = self.operand(node.input(3)).kind.size
        else:
            length = self._slice_length(node, rest[dim])
        rest[dim] = self.plan.symbol((node, "length"), None, (0, 1)) if length is None else length
        return Kind(Shape(shape.dtype, tuple(rest)))

    def _slice_length(self, node: Node, size: object) -> object:
        """Return the length of a slice if it is the same in every run, else None."""
        start, end, step = (self.operand(value) for value in node.inputs[2:])
        if all(each.is_known for each in (start, end, step)) and isinstance(size, int):
            return len(range(size)[start.value : end.value : step.value])
        is_whole = start.is_known and start.value in (None, 0) and step.is_known and step.value == 1
        if is_whole and end.is_known and (end.value is None or end.value >= 1 << 62):
            return size
        return None

    def _kind_of_parts(self, node: Node, shape: Shape) -> Kind:
        cell, rest = self.plan.cell((node, "parts")), list(shape.sizes)
        dim = self.known(node.inputs[-1])
        if dim is MISSING:
            raise Unsupported(f"{node.kind} along a dimension that only a run knows")
        dim %= max(len(rest), 1)
        if node.kind == "aten::unbind":
            del rest[dim]
        else:
            rest[dim] = self.plan.symbol((node, "length"), None, (0, 1))
        self.plan.put(cell, Kind(Shape(shape.dtype, tuple(rest))), node)
        return Kind(items=cell)

    @staticmethod
    def writes_in_place(node: Node) -> bool:
        """Return whether a node is an in-place operator."""
        operator = operator_of(node) if node.kind.startswith("aten::") else None
        return operator is not None and any(argument.is_write for argument in operator.schema.arguments)

    def write_in_place(self, node: Node) -> None:
        """Write an in-place operator: a piece computes the result, which is then copied into the memory."""
        if not isinstance(node.input().type, types.TensorType):
            raise Unsupported(f"{node.kind}, which writes to what is no tensor")
        (target,) = self.settle(node.input())
        text = self.boxed(target)
        if target.is_known:
            raise Unsupported(f"{node.kind}, which writes to a constant")
        self.flush()
        self.add_to_piece(node)
        made = self.operand(node.output)
        made.text = made.text or self.name("t")
        self.flush(wanted=[made])
        self.emit(f"run.write({text}, {made.text});")
        self.check(node)
        self.values[node.output] = target
