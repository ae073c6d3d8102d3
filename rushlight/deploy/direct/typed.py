"""Type tests, casts, objects and enumerations, as C++.

In: nodes. Out: statements. Tests that the static type decides are folded.
"""

from __future__ import annotations

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.deploy.direct.text import Text
from rushlight.deploy.direct.values import PLAIN, Operand, representation, unboxed
from rushlight.jit.ir.graph import Node
from rushlight.jit.types import kinds as types


class Typed(Text):
    """Writes nodes on types."""

    def _cast(self, node: Node) -> bool:
        given, target = self.operand(node.input()), node.output.type
        if given.is_known or given.list is not None or given.path is not None:
            self.values[node.output] = given
        elif representation(target) == representation(given.type):
            self.values[node.output] = Operand(target, given.kind, given.text)
        else:
            self.bind(node.output, unboxed(self.boxed(given), target), given.kind)
        return True

    def _write_identity_test(self, node: Node) -> bool:
        one, other = (self.operand(value) for value in node.inputs)
        negated = node.kind.endswith("isnot__")
        for given, against in ((one, other), (other, one)):
            if against.is_known and against.value is None:
                if given.is_known:
                    self.set_known(node.output, (given.value is None) is not negated)
                    return True
                if not _may_be_none(given.type):
                    self.set_known(node.output, negated)
                    return True
                sign = "!=" if negated else "=="
                self.bind(node.output, f"{self.boxed(given)}.kind {sign} RL_CONSTANT(NONE)")
                return True
        self.bind(node.output, f"{'!' * negated}same({self.boxed(one)}, {self.boxed(other)})")
        return True

    def _is_instance(self, node: Node) -> bool:
        given = self.operand(node.input())
        tests = [self.type_test(kind, "a") for kind in node["types"]]
        text = self.name("tested")
        self.emit(f"const any {text} = {self.boxed(given)};")
        self.bind(node.output, f"[](const any& a) {{ (void)a; return {' || '.join(tests)}; }}({text})")
        return True

    def type_test(self, kind: types.Type, name: str) -> str:
        """Return a C++ test of whether a value has a type."""
        simple = {types.INT: "INT", types.FLOAT: "FLOAT", types.BOOL: "BOOL", types.STRING: "STRING", types.NONE: "NONE",
                  types.ANY_LIST: "LIST", types.ANY_TUPLE: "TUPLE"}  # fmt: skip
        if kind is types.ANY:
            return "true"
        if kind in simple:
            return f"{name}.kind == RL_CONSTANT({simple[kind]})"
        if isinstance(kind, types.TensorType):
            return f"{name}.kind == RL_CONSTANT(TENSOR)"
        if isinstance(kind, types.OptionalType):
            return f"({name}.kind == RL_CONSTANT(NONE) || {self.type_test(kind.element, name)})"
        if isinstance(kind, types.UnionType):
            return f"({' || '.join(self.type_test(each, name) for each in kind.members)})"
        if isinstance(kind, types.ListType):
            inner = f"[](const any& a) {{ return {self.type_test(kind.element, 'a')}; }}"
            return f"({name}.kind == RL_CONSTANT(LIST) && all_are({name}, {inner}))"
        if isinstance(kind, types.DictType):
            tests = f"{self.type_test(kind.key, 'key')} && {self.type_test(kind.value, 'item')}"
            inner = f"[](const any& key, const any& item) {{ (void)key, (void)item; return {tests}; }}"
            return f"({name}.kind == RL_CONSTANT(DICT) && {name}.as.list->count % 2 == 0 && all_pairs({name}, {inner}))"
        if isinstance(kind, types.TupleType):
            parts = [self.type_test(each, f"{name}.as.list->items[{position}]") for position, each in enumerate(kind.elements)]
            return f"({' && '.join([f'{name}.kind == RL_CONSTANT(TUPLE)', f'{name}.as.list->count == {len(parts)}', *parts])})"
        if isinstance(kind, types.ClassType | types.EnumType):
            return f"({name}.kind >= OBJECT && {name}.type == {self.class_number(kind)})"
        raise Unsupported(f"isinstance of {kind}")

    def _unwrap(self, node: Node) -> bool:
        given = self.operand(node.input())
        if not given.is_known and given.list is None:
            self.emit(
                f'if ({self.boxed(given)}.kind == RL_CONSTANT(NONE)) run.fail(failed, "ValueError: Unwrapping null optional");'
            )
            self.check(node)
        return self._cast(node)

    def _write_enum_member(self, node: Node) -> bool:
        given = self.operand(node.input())
        kind, wants_name = given.type, node.kind == "prim::EnumName"
        parts = [name if wants_name else value for name, value in kind.members]
        texts = [self.spelled(self.constant(each, node.output.type), node.output.type) for each in parts]
        chosen = texts[-1]
        number = f"{self.boxed(given)}.as.integer"
        for position in reversed(range(len(texts) - 1)):
            chosen = f"{number} == {position} ? {texts[position]} : {chosen}"
        self.bind(node.output, f"({chosen})")
        return True

    def _create(self, node: Node) -> bool:
        kind = node.output.type
        text = self.new_items("OBJECT", ["any{}"] * len(kind.attributes), self.class_number(kind))
        self.values[node.output] = Operand(kind, PLAIN, text)
        return True


def _may_be_none(kind: types.Type) -> bool:
    if isinstance(kind, types.UnionType):
        return types.NONE in kind.members
    return isinstance(kind, types.OptionalType) or kind in (types.ANY, types.NONE)
