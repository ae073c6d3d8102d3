"""Subscripts: reading and writing elements of tensors, lists, dicts, tuples and strings. Part of the emitter."""

from __future__ import annotations

from rushlight.core.dtype import int64
from rushlight.jit.emit.callables import ConstantValue
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue, TupleOfSugared
from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Value
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import Apply, Dots, NoneLiteral, SliceExpr, Subscript, Tree, TupleLiteral, Var
from rushlight.jit.types.kinds import (
    BOOL,
    INT,
    NONE,
    STRING,
    TENSOR,
    ClassType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from rushlight.jit.types.relations import optional


class SubscriptEmitter:
    """The emitter's rules for subscripts."""

    def emit_subscript(self, tree: Subscript, hint: Type | None = None) -> SugaredValue:
        """Emit `value[subscripts]`; `hint` is the interface expected of a module selected at run time."""
        sugared = self.emit_sugared(tree.value)
        value = sugared.simple_value()
        if value is None and isinstance(sugared, ConstantValue):
            value = sugared.as_value(tree.range, self)
        if value is None:
            return self._subscript_sugared(tree, sugared, hint)
        subscripts = self._subscripts(tree)
        if isinstance(value.type, TensorType):
            return SimpleValue(self.index_tensor(tree.range, value, subscripts))
        if len(subscripts) != 1:
            raise ErrorReport(tree.range, f"'{value.type}' takes one subscript, got {len(subscripts)}")
        only = subscripts[0]
        if isinstance(only, SliceExpr):
            return self._slice_of(tree, value, only)
        return self.simple.item(tree.range, value, self.emit_expression(only), hint)

    def index_by_value(self, where: SourceRange, value: Value, index: Value) -> Value:
        """Emit `value[index]` for a tensor and an index that is a value."""
        if index.type == INT:
            return self.simple.item(where, value, index).as_value(where, self)
        if not isinstance(index.type, TensorType):
            raise ErrorReport(where, f"a tensor can be indexed by an int or a tensor here, got {index.type}")
        return self.insert("aten::index", [value, self._index_list(where, [index])], TENSOR, where)

    def _subscripts(self, tree: Subscript) -> list[Tree]:
        """Return the subscripts: those of a tuple one by one, and calls of `slice` as slices."""
        subscripts = tree.subscripts
        if len(subscripts) == 1 and isinstance(subscripts[0], TupleLiteral):
            subscripts = subscripts[0].items
        return [self._as_slice(each) for each in subscripts]

    def _as_slice(self, tree: Tree) -> Tree:
        if not isinstance(tree, Apply) or not isinstance(tree.callee, Var) or tree.callee.name != "slice":
            return tree
        if tree.attributes:
            raise ErrorReport(tree.range, "Slice does not accept any keyword arguments")
        if self.environment.find("slice") is not None or self.is_shadowed("slice") or not 1 <= len(tree.inputs) <= 3:
            return tree
        parts = [None if isinstance(each, NoneLiteral) else each for each in tree.inputs]
        start, stop, step = (None, *parts, None) if len(parts) == 1 else (*parts, None)[:3]
        return SliceExpr(tree.range, start, stop, step)

    def _subscript_sugared(self, tree: Subscript, sugared: SugaredValue, hint: Type | None) -> SugaredValue:
        only = self._as_slice(tree.subscripts[0])
        if len(tree.subscripts) != 1:
            raise ErrorReport(tree.range, f"{sugared.kind()} takes one subscript, got {len(tree.subscripts)}")
        if isinstance(only, SliceExpr):
            elements = sugared.as_tuple(tree.range, self)
            return TupleOfSugared(elements[slice(*self._static_slice(only))])
        index = self.emit_expression(only)
        return sugared.item(tree.range, self, index, hint)

    def _static_slice(self, tree: SliceExpr) -> list[int | None]:
        found = []
        for part in (tree.start, tree.stop, tree.step):
            number = None if part is None else self.emit_expression(part).constant(NotImplemented)
            if number is not None and not isinstance(number, int):
                raise ErrorReport(tree.range, "slices of tuples must have constant bounds")
            found.append(number)
        return found

    def _slice_of(self, tree: Subscript, value: Value, part: SliceExpr) -> SugaredValue:
        if isinstance(value.type, TupleType):
            bounds = self._static_slice(part)
            places = range(len(value.type.elements))[slice(*bounds)]
            chosen = [self.simple.element(tree.range, value, index) for index in places]
            return SimpleValue(self.make_tuple(chosen, tree.range))
        bounds = [self._slice_bound(each, tree.range) for each in (part.start, part.stop)]
        step = self.emit_expression(part.step) if part.step is not None else self.constant(1, tree.range)
        return self.call_operator("aten::slice", tree.range, [value, *bounds, step])

    def _slice_bound(self, tree: Tree | None, where: SourceRange) -> Value:
        return self.constant(None, where) if tree is None else self.emit_expression(tree)

    # Subscripts of tensors

    def index_tensor(self, where: SourceRange, value: Value, subscripts: list[Tree]) -> Value:
        """Return a tensor with ints, slices, None, `...` and tensors as subscripts."""
        sliced, indices = self._select_and_slice(where, value, subscripts)
        if not indices:
            return sliced if sliced is not value else self.insert("aten::alias", [value], TENSOR, where)
        return self.insert("aten::index", [sliced, self._index_list(where, indices)], TENSOR, where)

    def _index_list(self, where: SourceRange, indices: list[Value]) -> Value:
        kind = ListType(optional(TENSOR))
        return self.insert("prim::ListConstruct", indices, kind, where)

    def _select_and_slice(self, where: SourceRange, value: Value, subscripts: list[Tree]) -> tuple[Value, list[Value]]:
        """Apply the selects and slices; returns the rest and the index tensors, None for whole dimensions."""
        values = [each if isinstance(each, Dots | SliceExpr) else self._subscript_value(each) for each in subscripts]
        after = self._count_after_dots(values)
        dim, passed_dots = 0, False
        tensors: dict[int, Value] = {}
        for position, each in enumerate(values):
            if isinstance(each, Dots):
                dim, passed_dots = -after, True
                continue
            if isinstance(each, SliceExpr):
                value = self._slice_dim(where, value, dim, each)
            elif each.type is NONE:
                value = self._unsqueeze(where, value, dim if not passed_dots else dim - self._nones_from(values, position))
                if passed_dots:
                    continue
            elif each.type == INT:
                value = self.insert("aten::select", [value, self.constant(dim, where), each], TENSOR, where)
                if not passed_dots:
                    continue
            else:
                tensors[dim] = each if isinstance(each.type, TensorType | OptionalType) else self._as_index(where, each)
            dim += 1
        return value, self._indices_by_dim(where, tensors)

    def _indices_by_dim(self, where: SourceRange, tensors: dict[int, Value]) -> list[Value]:
        if not tensors:
            return []
        if min(tensors) < 0:
            raise ErrorReport(
                where, "tensors after '...' in a subscript are not supported; index the last dimensions with movedim"
            )
        return [tensors[dim] if dim in tensors else self.constant(None, where) for dim in range(max(tensors) + 1)]

    def _count_after_dots(self, values: list) -> int:
        found = next((index for index, each in enumerate(values) if isinstance(each, Dots)), None)
        if found is None:
            return 0
        return sum(isinstance(each, SliceExpr) or each.type is not NONE for each in values[found + 1 :])

    def _nones_from(self, values: list, position: int) -> int:
        return 1

    def _subscript_value(self, tree: Tree) -> Value:
        if isinstance(tree, NoneLiteral):
            return self.constant(None, tree.range)
        value = self.emit_expression(tree)
        if isinstance(value.type, ListType | TupleType):
            return self._as_index(tree.range, value)
        if isinstance(value.type, TensorType | OptionalType) or value.type in (INT, NONE, BOOL):
            return value
        raise ErrorReport(tree.range, "Unsupported operation: indexing tensor with unsupported index type "
                                      f"'{value.type}'. Only ints, slices, lists and tensors are supported")  # fmt: skip

    def _as_index(self, where: SourceRange, value: Value) -> Value:
        if isinstance(value.type, TupleType):
            parts = [each.as_value(where, self) for each in self.simple.unpack(where, value, None)]
            value = self.insert("prim::ListConstruct", parts, ListType(INT), where)
        keywords = []
        if isinstance(value.type, ListType) and value.type.element == INT:
            keywords = [NamedValue(where, self.constant(int64, where), "dtype")]
        return self.emit_operator("aten::tensor", where, [NamedValue(where, value)], keywords).as_value(where, self)

    def _slice_dim(self, where: SourceRange, value: Value, dim: int, tree: SliceExpr) -> Value:
        bounds = [self._slice_bound(each, where) for each in (tree.start, tree.stop)]
        step = self.emit_expression(tree.step) if tree.step is not None else self.constant(1, where)
        return self.call_operator("aten::slice", where, [value, self.constant(dim, where), *bounds, step]).as_value(where, self)

    def _unsqueeze(self, where: SourceRange, value: Value, dim: int) -> Value:
        return self.insert("aten::unsqueeze", [value, self.constant(dim, where)], TENSOR, where)

    # Assign to subscripts

    def assign_subscript(self, target: Subscript, right: Value, where: SourceRange) -> None:
        """Emit `value[subscripts] = right`."""
        value = self.emit_expression(target.value)
        subscripts = self._subscripts(target)
        if isinstance(value.type, TensorType):
            self._assign_tensor(where, value, subscripts, right)
        elif isinstance(value.type, ClassType):
            index = self.emit_expression(subscripts[0])
            method = self.simple.attribute(where, value, "__setitem__")
            method.call(where, self, [NamedValue(where, index), NamedValue(where, right)], [])
        elif isinstance(value.type, TupleType) or value.type == STRING:
            raise ErrorReport(where, f"'{value.type}' object does not support subscripted assignment")
        elif isinstance(subscripts[0], SliceExpr):
            problem = "Sliced expression not yet supported for subscripted assignment; assign the elements one by one"
            raise ErrorReport(where, problem)
        else:
            index = self.emit_expression(subscripts[0])
            if isinstance(value.type, ListType):
                right = self.matcher.convert_value(right, value.type.element, False)
            self.call_operator("aten::_set_item", where, [value, index, right])

    def _assign_tensor(self, where: SourceRange, value: Value, subscripts: list[Tree], right: Value) -> None:
        sliced, indices = self._select_and_slice(where, value, subscripts)
        tensor = self._as_tensor(where, right, sliced)
        if indices:
            arguments = [sliced, self._index_list(where, indices), tensor, self.constant(False, where)]
            self.insert("aten::index_put_", arguments, TENSOR, where)
        else:
            self.insert("aten::copy_", [sliced, tensor, self.constant(False, where)], TENSOR, where)

    def _as_tensor(self, where: SourceRange, value: Value, like: Value) -> Value:
        if isinstance(value.type, TensorType):
            return value
        kind = self.insert("prim::dtype", [like], INT, where)
        place = self.simple.attribute(where, like, "device").as_value(where, self)
        keywords = [NamedValue(where, kind, "dtype"), NamedValue(where, place, "device")]
        return self.emit_operator("aten::tensor", where, [NamedValue(where, value)], keywords).as_value(where, self)

    def augment_subscript(self, target: Subscript, operator: str, tree: Tree, where: SourceRange) -> None:
        """Emit `value[subscripts] += right`: the container and its subscript are evaluated once, before the right side."""
        value = self.emit_expression(target.value)
        subscripts = self._subscripts(target)
        if isinstance(value.type, TensorType):
            sliced, indices = self._select_and_slice(where, value, subscripts)
            right = self.emit_expression(tree)
            if not indices:
                self.in_place(where, operator, sliced, right)
                return
            listed = self._index_list(where, indices)
            old = self.insert("aten::index", [sliced, listed], TENSOR, where)
            new = self._as_tensor(where, self.emit_operation(where, operator, old, right), value)
            self.insert("aten::index_put_", [sliced, listed, new, self.constant(False, where)], TENSOR, where)
            return
        if isinstance(value.type, TupleType) or value.type == STRING:
            raise ErrorReport(where, f"'{value.type}' object does not support augmented assignment")
        if isinstance(subscripts[0], SliceExpr):
            raise ErrorReport(where, "augmented assignment to a slice of a list is not supported")
        index = self.emit_expression(subscripts[0])
        old = self.simple.item(where, value, index).as_value(where, self)
        right = self.emit_expression(tree)
        new = self.emit_operation(where, operator, old, right)
        self.call_operator("aten::_set_item", where, [value, index, new])
