"""Operators on numbers, strings, lists, dicts, tuples and objects, as C++.

In: nodes without tensors. Out: statements. Operators on known values are folded.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.scalars import SCALAR_OPERATORS
from rushlight.core.algebra import as_expr
from rushlight.deploy.direct import tables
from rushlight.deploy.direct.flow import UNDEFINED
from rushlight.deploy.direct.typed import Typed
from rushlight.deploy.direct.values import PLAIN, Kind, Operand, holds_tensors, representation, size_of, unboxed, with_size
from rushlight.deploy.spelling import c_string
from rushlight.inductor.codegen.cpp.structured_parts import SCALARS
from rushlight.inductor.codegen.cpp.structured_scalars import FAILURES, result_kind, spelled
from rushlight.inductor.structured import BOOL, FLOAT, INT, Scalar, Var
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import operator_of, writes
from rushlight.jit.types import kinds as types

_SCALARS = {types.INT: INT, types.FLOAT: FLOAT, types.BOOL: BOOL}
_TYPES = {"int": types.INT, "float": types.FLOAT, "bool": types.BOOL}
_SIZED = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "remainder": operator.mod,
}
_GRAD_MODES = ("no_grad", "enable_grad", "inference_mode", "set_grad_enabled")


class Language(Typed):
    """Writes nodes that involve no tensors."""

    has_writers: Callable
    settle: Callable

    def write_language(self, node: Node) -> None:
        """Write a node that involves no tensors."""
        if self._fold_constant(node):
            return
        first = node.input().type if node.inputs else None
        first = first.element if isinstance(first, types.OptionalType) else first
        if node.kind in ("aten::__getitem__", "aten::len") and self._fold_on_known_items(node):
            return
        if node.kind in tables.COMPARING:
            self._refuse_comparison(node)
        special = SPECIAL.get(node.kind)
        if special is not None and special(self, node):
            return
        if first is types.STRING and node.kind in tables.STRINGS:
            self._write_from_table(node, tables.STRINGS[node.kind])
        elif isinstance(first, types.ListType) and node.kind in tables.LISTS:
            self._container(node, tables.LISTS[node.kind])
        elif isinstance(first, types.DictType) and node.kind in tables.DICTS:
            self._container(node, tables.DICTS[node.kind])
        else:
            self._write_number_operator(node)

    @staticmethod
    def _refuse_comparison(node: Node) -> None:
        """Raise Unsupported for comparisons that depend on the items' classes or elements."""
        for value in node.inputs:
            parts = value.type.contained()
            if any(holds_tensors(part) for part in parts):
                raise Unsupported(f"{node.kind} of a {value.type}, whose items are compared")

    def _fold_constant(self, node: Node) -> bool:
        """Constant-fold an operator. Return False if it must run later, which includes operators that raise an error now."""
        if len(node.outputs) != 1 or not node.inputs or not all(self.operand(value).is_known for value in node.inputs):
            return False
        found = operator_of(node) if "::" in node.kind else None
        if found is None or not found.is_pure or found.has_side_effects or writes(node):
            return False
        if any(self.has_writers(value) for value in (*node.inputs, *node.outputs)):
            return False
        try:
            result = found.function(*[self.operand(value).value for value in node.inputs])
        except Exception:  # the error is raised at run time
            return False
        if not isinstance(result, bool | int | float | str | list | tuple) and result is not None:
            return False
        self.set_known(node.output, result)
        return True

    def _fold_on_known_items(self, node: Node) -> bool:
        items = self.operand(node.input()).list
        if items is None or isinstance(node.input().type, types.DictType):
            return False
        if node.kind == "aten::len":
            self.set_known(node.output, len(items))
            return True
        index = self.operand(node.input(1))
        if not index.is_known or not -len(items) <= index.value < len(items):
            return False
        self.values[node.output] = items[index.value]
        return True

    # Tables

    def _call(self, node: Node, row: str) -> tuple[str, bool]:
        """Return the C++ text of a table row's call, and whether it may fail."""

        def text(found: re.Match) -> str:
            value = node.input(int(found[1]))
            return self.spelled(self.operand(value), _TYPES.get(found[2], types.ANY))

        fails = row.endswith("!")
        return re.sub(r"\{(\d)(?::(\w+))?\}", text, row.removesuffix("!")), fails

    def _write_from_table(self, node: Node, row: str, kind: Kind | None = None) -> None:
        text, fails = self._call(node, row)
        if len(node.outputs) > 1:
            self._bind_parts(node, text)
        elif not node.outputs:
            self.emit(f"{text};")
        else:
            is_number = representation(node.output.type) != "any" and self._returns_any(text)
            self.bind(node.output, unboxed(text, node.output.type) if is_number else text, kind)
        if fails:
            self.check(node)

    def _bind_parts(self, node: Node, text: str, kinds: Sequence[Kind] = ()) -> None:
        """Bind the results of a node to the elements of a tuple."""
        whole = self.name("parts")
        self.emit(f"const any {whole} = {text};")
        self.check(node)
        for position, value in enumerate(node.outputs):
            part = f"{whole}.as.list->items[{position}]"
            self.bind(value, unboxed(part, value.type), kinds[position] if kinds else None)

    @staticmethod
    def _returns_any(text: str) -> bool:
        calls = ("at_index", "pop", "lookup", "get", "put_default", "taken", "extreme", "sum")
        return any(text.startswith(f"run.{name}(") for name in calls)

    def _container(self, node: Node, row: str) -> None:
        """Write an operator on a list or dict, and record its effect on the items."""
        kind = self._container_kind(node)
        if node.kind in ("aten::append", "aten::add_", "aten::_set_item", "aten::setdefault", "aten::mul_") and node.outputs:
            if node.kind != "aten::setdefault":  # setdefault returns the container itself
                text, fails = self._call(node, row)
                self.emit(f"{text};")
                self.values[node.output] = self.operand(node.input())
                if fails:
                    self.check(node)
                return
        self._write_from_table(node, row, kind)

    def _container_kind(self, node: Node) -> Kind | None:
        own = self.operand(node.input()).kind
        if node.kind in tables.GROWING and own.items is not None:
            item = self.operand(node.input(tables.GROWING[node.kind]))
            self.plan.put(own.items, self._item_kind(item), node)
        other = self.operand(node.input(1)).kind if node.input_count > 1 else PLAIN
        if node.kind in ("aten::extend", "aten::add_", "aten::add", "aten::update") and own.items is not None:
            if other.items is not None:
                self.plan.unify(own.items, other.items)
        if not node.outputs:
            return None
        if node.kind in tables.SHOWING or node.kind in ("prim::min", "prim::max"):
            return self.item_of(own)
        if node.kind in tables.ALIKE or node.kind == "aten::add":
            return Kind(items=own.items) if own.items is not None else None
        if node.kind == "aten::values":
            return Kind(items=own.items)
        if node.kind == "aten::items" and own.items is not None:
            cell = self.plan.cell((node, "pairs"))
            self.plan.put(cell, Kind(parts=(PLAIN, self.item_of(own))), node)
            return Kind(items=cell)
        if node.kind == "aten::popitem":
            return Kind(parts=(PLAIN, self.item_of(own)))
        return None

    def _item_kind(self, item: Operand) -> Kind:
        return item.kind

    @staticmethod
    def item_of(kind: Kind) -> Kind:
        """Return the kind of a container's items."""
        found = None if kind.items is None else kind.items.root().kind
        return PLAIN if found is None else found

    # Numbers

    def _write_number_operator(self, node: Node) -> None:
        operands = [self.operand(value) for value in node.inputs]
        if node.kind in _CONVERSIONS and operands[0].type is types.NUMBER:
            self.bind(node.output, f"run.{_CONVERSIONS[node.kind]}({self.boxed(operands[0])})")
            self.check(node)
            return
        if node.kind in tables.NUMBERS:
            self._write_from_table(node, tables.NUMBERS[node.kind])
            return
        kinds = [_SCALARS.get(each.type) for each in operands]
        op = SCALAR_OPERATORS.get(node.kind)
        if op is None or None in kinds or len(node.outputs) != 1:
            raise Unsupported(f"{node.kind} on {', '.join(str(value.type) for value in node.inputs) or 'nothing'}")
        op = op([Var("", kind) for kind in kinds]) if callable(op) else op
        if op is None:
            raise Unsupported(f"{node.kind} on {', '.join(str(value.type) for value in node.inputs)}")
        self._calculate(node, node.output, op, operands)

    def _calculate(self, node: Node, result: Value, op: str, operands: Sequence[Operand]) -> None:
        """Bind a value to the result of an operation on numbers."""
        variables = [Var(self.spelled(each, each.type), _SCALARS[each.type]) for each in operands]

        def text(operand: Var, wanted: Scalar | None) -> str:
            return f"({SCALARS[wanted.name]}){operand}" if wanted is not None and operand.kind != wanted else str(operand)

        value, stops = spelled(op, variables, text)
        if stops is not None:
            said = c_string(FAILURES[op])
            self.emit(f"if ({stops}) run.fail(failed, {said});")
            self.check(node)
        if _SCALARS.get(result.type) != result_kind(op, variables):
            raise Unsupported(f"{node.kind} with a result of type {result.type}")
        self.bind(result, value, self._size_of_result(node, result, op, operands))

    def _size_of_result(self, node: Node, result: Value, op: str, operands: Sequence[Operand]) -> Kind | None:
        """Return the kind of an int result with its size expression; None if it has none."""
        sizes = [each.kind.size for each in operands]
        known = _SIZED.get(op)
        if result.type is not types.INT or known is None or len(sizes) != 2 or None in sizes:
            return None
        if op in ("floordiv", "remainder") and not (isinstance(sizes[1], int) and sizes[1] > 0):
            return None
        return with_size(PLAIN, size_of(known(as_expr(sizes[0]), sizes[1])))

    # Special nodes

    def _construct_list(self, node: Node) -> bool:
        items = [self.operand(value) for value in node.inputs]
        if self.has_writers(node.output) or not self._is_only_read(node):
            kind = self.list_kind(items, node)
            text = self.new_items("LIST", [self.boxed(each) for each in self.settle(*node.inputs)])
            self.values[node.output] = Operand(node.output.type, kind, text)
            return True
        known = all(each.is_known and not hasattr(each.value, "_impl") for each in items)
        made = Operand(node.output.type, self.known_list_kind(items, node), list=items)
        if known:
            made.value = [each.value for each in items]
        self.values[node.output] = made
        return True

    @staticmethod
    def _is_only_read(node: Node) -> bool:
        """Return whether a new list is only read, so that the program can't distinguish it from another list with the same
        items."""
        return all(use.user.kind.startswith(("aten::", "prim::ListUnpack", "prim::Print")) for use in node.output.uses)

    def _construct_tuple(self, node: Node) -> bool:
        items = [self.operand(value) for value in node.inputs]
        made = Operand(node.output.type, Kind(parts=tuple(each.kind for each in items)), list=items)
        if all(each.is_known and not hasattr(each.value, "_impl") for each in items):
            made.value = tuple(each.value for each in items)
        self.values[node.output] = made
        return True

    def _construct_dict(self, node: Node) -> bool:
        cell = self.plan.cell(node)
        made = self.name("dict")
        self.emit(f"const any {made} = run.new_items(RL_CONSTANT(DICT), 0);")
        for position in range(0, node.input_count, 2):
            key, item = self.operand(node.input(position)), self.operand(node.input(position + 1))
            self.plan.put(cell, item.kind, node)
            parts = f"{self.boxed(key)}, {self.boxed(item)}"
            self.emit(f"if (!run.status) run.put({made}, {parts});")
        self.check(node)
        self.values[node.output] = Operand(node.output.type, Kind(items=cell), made)
        return True

    def _unpack(self, node: Node) -> bool:
        given = self.operand(node.input())
        if given.list is not None:
            if len(given.list) != len(node.outputs):
                raise Unsupported("a list of another length than is unpacked")
            self.values.update(zip(node.outputs, given.list, strict=True))
            return True
        text = self.boxed(given)
        if node.kind == "prim::ListUnpack":
            self.emit(
                f'if ({text}.as.list->count != {len(node.outputs)}) run.fail(failed, "ValueError: a list of another length");'
            )
            self.check(node)
        for position, value in enumerate(node.outputs):
            kind = given.kind.parts[position] if given.kind.parts is not None else self.item_of(given.kind)
            part = f"{text}.as.list->items[{position}]"
            self.bind(value, unboxed(part, value.type), kind)
        return True

    def _index_tuple(self, node: Node) -> bool:
        given, index = self.operand(node.input()), self.operand(node.input(1))
        if not index.is_known:
            raise Unsupported("an item of a tuple by a number that only a run knows")
        if given.list is not None:
            self.values[node.output] = given.list[index.value]
            return True
        count = len(given.type.elements)
        position = index.value % count
        part = f"{self.boxed(given)}.as.list->items[{position}]"
        kind = given.kind.parts[position] if given.kind.parts is not None else PLAIN
        self.bind(node.output, unboxed(part, node.output.type), kind)
        return True

    def _slice_tuple(self, node: Node) -> bool:
        given, begin, end = self.operand(node.input()), node["beg"], node["end"]
        if given.list is not None:
            self.values[node.output] = Operand(
                node.output.type, Kind(parts=given.kind.parts[begin:end]), list=given.list[begin:end]
            )
            return True
        parts = Kind(parts=given.kind.parts[begin:end]) if given.kind.parts is not None else PLAIN
        self.bind(node.output, f"run.slice({self.boxed(given)}, any_of((int64_t){begin}), any_of((int64_t){end}), 1)", parts)
        self.check(node)
        return True

    def _bind_uninitialized(self, node: Node) -> bool:
        self.values[node.output] = Operand(node.output.type, PLAIN, value=UNDEFINED)
        return True

    def _min_or_max_of_lists(self, node: Node) -> bool:
        """Compare two lists, and bind the lesser or greater one."""
        if node.input_count != 2 or not isinstance(node.input().type, types.ListType):
            return False
        one, other = (self.boxed(self.operand(value)) for value in node.inputs)
        sign = "<=" if node.kind == "prim::min" else ">="
        self.bind(node.output, f"(order({one}, {other}) {sign} 0 ? {one} : {other})", self.operand(node.input()).kind)
        return True

    def _sum(self, node: Node) -> bool:
        if not isinstance(node.input().type, types.ListType):
            return False
        zero = "any_of(0.0)" if node.output.type is types.FLOAT else "any_of((int64_t)0)"
        text = f"run.sum({self.boxed(self.operand(node.input()))}, {zero})"
        self.bind(node.output, unboxed(text, node.output.type))
        return True

    def _sort(self, node: Node) -> bool:
        down = self.spelled(self.operand(node.input(1)), types.BOOL) if node.input_count > 1 else "false"
        self.emit(f"run.sort({self.boxed(self.operand(node.input()))}, {down});")
        self.check(node)
        return True

    def _get(self, node: Node) -> bool:
        given = [self.operand(value) for value in node.inputs]
        otherwise = self.boxed(given[2]) if len(given) > 2 else "any{}"
        kind = self.item_of(given[0].kind)
        if len(given) > 2:
            kind = self.plan.note((node, "got"), self.plan.join(kind, given[2].kind, node))
        text = f"run.get({self.boxed(given[0])}, {self.boxed(given[1])}, {otherwise})"
        self.bind(node.output, unboxed(text, node.output.type), kind)
        return True

    def _pop(self, node: Node) -> bool:
        given = [self.operand(value) for value in node.inputs]
        if not isinstance(node.input().type, types.DictType):
            return False
        text = f"run.taken({', '.join(self.boxed(each) for each in given)})"
        self.bind(node.output, unboxed(text, node.output.type), self.item_of(given[0].kind))
        self.check(node)
        return True

    def _write_dict(self, node: Node) -> bool:
        if not node.inputs:
            return self._construct_dict(node)
        if not isinstance(node.input().type, types.ListType):
            return False
        pair = self.item_of(self.operand(node.input()).kind)
        cell = self.plan.cell(node)
        if pair.parts is not None:
            self.plan.put(cell, pair.parts[1], node)
        self.bind(node.output, f"run.dict_of({self.boxed(self.operand(node.input()))})", Kind(items=cell))
        self.check(node)
        return True

    def _write_range(self, node: Node) -> bool:
        self.bind(node.output, f"run.range({self.spelled(self.operand(node.input()), types.INT)})")
        self.check(node)
        return True

    def _write_equality(self, node: Node) -> bool:
        kinds = [value.type for value in node.inputs]
        if all(each in _SCALARS for each in kinds):
            return False
        texts = [self.boxed(self.operand(value)) for value in node.inputs]
        self.bind(node.output, f"{'!' * (node.kind == 'aten::ne')}equal({', '.join(texts)})")
        return True

    def _skip_grad_mode(self, node: Node) -> bool:
        """Ignore managers of the grad mode, which have no effect here."""
        kind = node.input().type
        if node.kind != "aten::set_grad_enabled" and str(getattr(kind, "name", "")).rpartition(".")[2] not in _GRAD_MODES:
            raise Unsupported(f"{node.kind} on {kind}")
        for value in node.outputs:
            self.values[value] = self.constant(None, value.type)
        return True

    def _write_grad_mode(self, node: Node) -> bool:
        self.set_known(node.output, False)
        return True

    def _write_divmod(self, node: Node) -> bool:
        for value, kind in zip(node.outputs, ("floordiv", "remainder"), strict=True):
            operands = [self.operand(each) for each in node.inputs]
            self._calculate(node, value, kind, operands)
        return True


_CONVERSIONS = {"aten::Int": "integer_in", "aten::Float": "real_in_item", "aten::Bool": "truth_in"}
SPECIAL = {
    "prim::ListConstruct": Language._construct_list,
    "prim::TupleConstruct": Language._construct_tuple,
    "prim::DictConstruct": Language._construct_dict,
    "prim::ListUnpack": Language._unpack,
    "prim::TupleUnpack": Language._unpack,
    "prim::TupleIndex": Language._index_tuple,
    "prim::TupleSlice": Language._slice_tuple,
    "prim::unchecked_cast": Language._cast,
    "aten::__is__": Language._write_identity_test,
    "aten::__isnot__": Language._write_identity_test,
    "prim::isinstance": Language._is_instance,
    "prim::RaiseException": Language._raise,
    "prim::Uninitialized": Language._bind_uninitialized,
    "aten::format": Language._format,
    "aten::percentFormat": Language._write_percent,
    "prim::min": Language._min_or_max_of_lists,
    "prim::max": Language._min_or_max_of_lists,
    "prim::Print": Language._print,
    "aten::str": Language._write_conversion,
    "aten::strip": Language._write_strip,
    "aten::lstrip": Language._write_strip,
    "aten::rstrip": Language._write_strip,
    **dict.fromkeys(tables.ENDS, Language._write_affix_test),
    "aten::sum": Language._sum,
    "aten::sort": Language._sort,
    "aten::get": Language._get,
    "aten::pop": Language._pop,
    "aten::dict": Language._write_dict,
    "prim::rangelist": Language._write_range,
    "aten::eq": Language._write_equality,
    "aten::ne": Language._write_equality,
    "prim::CreateObject": Language._create,
    "prim::EnumName": Language._write_enum_member,
    "prim::EnumValue": Language._write_enum_member,
    "aten::_unwrap_optional": Language._unwrap,
    "prim::Enter": Language._skip_grad_mode,
    "prim::Exit": Language._skip_grad_mode,
    "aten::set_grad_enabled": Language._skip_grad_mode,
    "aten::warn": Language._warn,
    "aten::divmod": Language._write_divmod,
    "aten::is_grad_enabled": Language._write_grad_mode,
}
"""Nodes that are written by functions of their own; False leaves them to the tables."""
