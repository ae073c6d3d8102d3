"""Operators on tensors in direct programs: dispatch to pieces, views and writes; queries and single elements.

In: nodes on tensors. Out: nodes collected into pieces, which run as graphs, and calls of
`include/rushlight/deployed_tensors.h`.
"""

from __future__ import annotations

from rushlight.compiler.scripted.execution import OF_AUTOGRAD
from rushlight.compiler.scripted.regions import Unsupported, function_of
from rushlight.compiler.scripted.scalars import READS
from rushlight.core.dtype import bool_, get_default_dtype, int64
from rushlight.deploy.direct.statements import dtype_named
from rushlight.deploy.direct.tensor_views import VIEWS, TensorViews
from rushlight.deploy.direct.values import MISSING, Kind, Operand, Shape, size_of, unboxed
from rushlight.deploy.spelling import c_constant
from rushlight.jit.ir.graph import Node
from rushlight.jit.types import kinds as types
from rushlight.ops.registry import aten

_QUESTIONS = {"aten::dim": "rank", "aten::len": "length", "aten::size": "size", "aten::numel": "count"}
_OF_KIND = frozenset(
    "prim::dtype prim::device prim::layout aten::is_floating_point aten::is_complex prim::is_cuda prim::is_cpu prim::is_meta "
    "prim::is_sparse prim::is_quantized prim::is_nested aten::element_size prim::itemsize aten::get_device "
    "prim::is_mkldnn prim::is_mps prim::is_xpu prim::is_xla prim::is_ipu prim::is_vulkan prim::is_maia".split()
)
"""Operators whose result depends only on a tensor's dtype or device."""
_PASSED = frozenset(("aten::detach", "aten::alias", "aten::detach_", "aten::requires_grad_", "prim::data", "aten::data"))
"""Operators that return their argument."""


class Tensors(TensorViews):
    """Writes nodes on tensors."""

    def write_tensors(self, node: Node) -> None:
        """Write a node with tensor inputs or results."""
        kind = node.kind
        if kind in OF_AUTOGRAD - _PASSED:
            raise Unsupported(f"{kind}, which asks what autograd has recorded")
        if kind in _PASSED:
            self.values[node.output] = self.operand(node.input())
        elif kind in READS or kind == "aten::ScalarImplicit":
            self._emit_item(node)
        elif self._write_query(node):
            return
        elif kind in ("aten::cat", "aten::stack", "aten::concat") and self._concatenate(node):
            return
        elif kind in ("aten::tensor", "aten::as_tensor") and self._make_tensor_of_numbers(node):
            return
        elif kind == "prim::tolist":
            self._write_tolist(node)
        elif kind in ("aten::index", "aten::masked_select", "aten::nonzero") and self._data_dependent(node):
            return
        elif self.writes_in_place(node):
            self.write_in_place(node)
        elif kind in VIEWS and self.must_be_view(node):
            self.write_view(node)
        else:
            self.add_to_piece(node)

    # Queries

    def _write_query(self, node: Node) -> bool:
        if not node.inputs or not isinstance(node.input().type, types.TensorType | types.OptionalType):
            return False
        given = self.operand(node.input())
        shape = given.kind.shape
        if shape is None or len(node.outputs) != 1 or isinstance(node.output.type, types.TensorType):
            return False
        if node.kind in _OF_KIND:
            from_example = function_of(node)
            self.set_known(node.output, from_example(_empty_tensor(shape)))
            return True
        if node.kind not in _QUESTIONS:
            return False
        if node.kind == "aten::dim":
            self.set_known(node.output, len(shape.sizes))
            return True
        sizes = shape.sizes
        if node.kind == "aten::size" and node.input_count == 1:
            self._bind_all_sizes(node, given, shape)
            return True
        if node.kind == "aten::numel":
            found = 1
            for size in sizes:
                found = size * found
            self._bind_size(node, size_of(found), lambda text: f"count_of(*{text}.as.held)")
            return True
        dim = self.operand(node.input(1)) if node.kind == "aten::size" else self.constant(0, types.INT)
        if dim.is_known and -len(sizes) <= dim.value < len(sizes):
            position = dim.value % len(sizes)
            self._bind_size(node, sizes[position], lambda text: f"{text}.as.held->sizes[{position}]")
            return True
        (given,) = self.settle(node.input())
        call = f"run.size({self.boxed(given)}, {self.spelled(dim, types.INT)})" if node.kind == "aten::size" else \
            f"run.tensor_length({self.boxed(given)})"  # fmt: skip
        self.bind(node.output, call)
        self.check(node)
        return True

    def _bind_size(self, node: Node, size: object, read) -> None:
        if isinstance(size, int):
            self.set_known(node.output, size)
            return
        (given,) = self.settle(node.input())
        self.bind(node.output, read(self.boxed(given)), Kind(size=size))

    def _bind_all_sizes(self, node: Node, given: Operand, shape: Shape) -> None:
        if all(isinstance(size, int) for size in shape.sizes) and not self.has_writers(node.output):
            self.set_known(node.output, list(shape.sizes))
            return
        (given,) = self.settle(node.input())
        items = []
        for position, size in enumerate(shape.sizes):
            variable = self.name("n")
            self.emit(f"const int64_t {variable} = {self.boxed(given)}.as.held->sizes[{position}];")
            items.append(Operand(types.INT, Kind(size=size), variable))
        kind = self.list_kind(items, node)
        if self.has_writers(node.output):
            text = self.new_items("LIST", [self.boxed(each) for each in items])
            self.values[node.output] = Operand(node.output.type, kind, text)
        else:
            self.values[node.output] = Operand(node.output.type, kind, list=items)

    # Elements

    def _emit_item(self, node: Node) -> None:
        (given,) = self.settle(node.input())
        kind = node.output.type
        word = {types.INT: "integer_in", types.FLOAT: "real_in_item", types.BOOL: "truth_in"}.get(kind, "item")
        self.bind(node.output, f"run.{word}({self.boxed(given)})", None)
        self.check(node)

    def _make_tensor_of_numbers(self, node: Node) -> bool:
        given = self.operand(node.input())
        if given.is_known or isinstance(node.input().type, types.TensorType):
            return False
        if given.type in (types.INT, types.FLOAT, types.BOOL):
            return False
        if given.kind.shape is not None:
            return False
        (given,) = self.settle(node.input())
        kind = self.known(node.input(1))
        if kind is MISSING:
            raise Unsupported(f"{node.kind} of a dtype that only a run knows")
        depth, element = 0, given.type
        while isinstance(element, types.ListType):
            depth, element = depth + 1, element.element
        natural = {types.INT: int64, types.BOOL: bool_, types.FLOAT: get_default_dtype()}.get(element)
        if natural is None:
            raise Unsupported(f"{node.kind} of {given.type}")
        found = dtype_named(kind) if kind is not None else natural
        sizes, at = [], given
        for position in range(depth):
            known = at.list is not None
            sizes.append(len(at.list) if known else self.plan.symbol((node, position), None, (0, 1)))
            at = at.list[0] if known and at.list else Operand(types.ANY)
        self.bind(node.output, f"run.tensor_from({self.boxed(given)}, {c_constant(found)})", Kind(Shape(found, tuple(sizes))))
        self.check(node)
        return True

    def _write_tolist(self, node: Node) -> None:
        (given,) = self.settle(node.input())
        depth, kind = 0, node.output.type
        while isinstance(kind, types.ListType):
            depth, kind = depth + 1, kind.element
        text = f"run.numbers_in({self.boxed(given)}, {depth})"
        self.bind(node.output, text if depth else unboxed(text, node.output.type))
        self.check(node)

    def _data_dependent(self, node: Node) -> bool:
        """Write an operator whose result size depends on elements: `x[mask]`, `masked_select` or `nonzero`. Return False for
        other indices."""
        given = self.operand(node.input())
        if given.kind.shape is None:
            return False
        count = self.plan.symbol((node, "count"), None, (0, 1))
        if node.kind == "aten::nonzero":
            (given,) = self.settle(node.input())
            kind = Kind(Shape(int64, (count, len(given.kind.shape.sizes))))
            self.bind(node.output, f"run.nonzero({self.boxed(given)})", kind)
            self.check(node)
            return True
        indices = self.operand(node.input(1))
        masks = [indices] if node.kind == "aten::masked_select" else list(indices.list or ())
        if len(masks) != 1 or masks[0].kind.shape is None or masks[0].kind.shape.dtype is not bool_:
            return False
        lead, sizes = len(masks[0].kind.shape.sizes), given.kind.shape.sizes
        if lead == 0 or lead > len(sizes) or (node.kind == "aten::masked_select" and lead != len(sizes)):
            return False
        self.settle(*node.inputs)
        text = f"run.masked({self.boxed(given)}, {self.boxed(masks[0])})"
        self.bind(node.output, text, Kind(Shape(given.kind.shape.dtype, (count, *sizes[lead:]))))
        self.check(node)
        return True

    def _concatenate(self, node: Node) -> bool:
        """Write `cat` or `stack` of a list whose length is known only at run time."""
        given = self.operand(node.input())
        if given.list is not None:
            return False
        given, dim = self.settle(*node.inputs)
        item = self.item_of(given.kind).shape
        if item is None:
            raise Unsupported(f"{node.kind} of a list of tensors whose sizes are never found")
        if not dim.is_known:
            raise Unsupported(f"{node.kind} along a dimension that only a run knows")
        is_stack = node.kind == "aten::stack"
        rank = len(item.sizes) + is_stack
        sizes, position = list(item.sizes), dim.value % max(rank, 1)
        whole = self.plan.symbol((node, "whole"), None, (0, 1))
        if is_stack:
            sizes.insert(position, whole)
        else:
            sizes[position] = whole
        text = f"run.{'stack' if is_stack else 'cat'}({self.boxed(given)}, {dim.value})"
        self.bind(node.output, text, Kind(Shape(item.dtype, tuple(sizes))))
        self.check(node)
        return True


def _empty_tensor(shape: Shape):
    return aten("empty.memory_format")([1] * len(shape.sizes), dtype=shape.dtype)
