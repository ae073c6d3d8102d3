"""Expressions to graph values. Part of the emitter."""

from __future__ import annotations

from rushlight.jit.emit.conditions import ConditionEmitter
from rushlight.jit.emit.subscripts import SubscriptEmitter
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue, TupleOfSugared
from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Value
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import (
    Apply,
    BinOp,
    Const,
    DictComp,
    DictLiteral,
    Dots,
    FalseLiteral,
    ListComp,
    ListLiteral,
    NoneLiteral,
    Select,
    Starred,
    StringLiteral,
    Subscript,
    TernaryIf,
    Tree,
    TrueLiteral,
    TupleLiteral,
    UnaryOp,
    Var,
)
from rushlight.jit.types.kinds import (
    ANY,
    BOOL,
    NONE,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from rushlight.jit.types.relations import is_subtype, optional, unify, unshaped

OPERATORS = {
    "+": "aten::add", "-": "aten::sub", "*": "aten::mul", "/": "aten::div", "%": "aten::remainder", "//": "aten::floordiv",
    "**": "aten::pow", "@": "aten::matmul", "&": "aten::__and__", "|": "aten::__or__", "^": "aten::__xor__",
    "<<": "aten::__lshift__", ">>": "aten::__rshift__", "<": "aten::lt", ">": "aten::gt", "<=": "aten::le", ">=": "aten::ge",
    "==": "aten::eq", "!=": "aten::ne", "is": "aten::__is__", "is not": "aten::__isnot__",
}  # fmt: skip
MAGIC = {
    "+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__", "%": "__mod__", "//": "__floordiv__", "**": "__pow__",
    "@": "__matmul__", "&": "__and__", "|": "__or__", "^": "__xor__", "<<": "__lshift__", ">>": "__rshift__", "<": "__lt__",
    ">": "__gt__", "<=": "__le__", ">=": "__ge__", "==": "__eq__", "!=": "__ne__",
}  # fmt: skip
_UNARY = {"-": ("aten::neg", "__neg__"), "~": ("aten::bitwise_not", "__invert__")}


class ExpressionEmitter(ConditionEmitter, SubscriptEmitter):
    """The emitter's rules for expressions."""

    def emit_expression(self, tree: Tree, hint: Type | None = None) -> Value:
        """Return the graph value of an expression; `hint` is the expected type of an empty list or dict."""
        return self.emit_sugared(tree, hint).as_value(tree.range, self)

    def emit_sugared(self, tree: Tree, hint: Type | None = None) -> SugaredValue:
        """Return the sugared value of an expression."""
        with self.graph.source(tree.range):
            if isinstance(tree, Var):
                return self.environment.get(tree.name, tree.range)
            if isinstance(tree, Select):
                return self.emit_sugared(tree.value).attribute(tree.range, self, tree.selector.name)
            if isinstance(tree, Apply):
                return self.emit_apply(tree, hint)
            if isinstance(tree, Subscript):
                return self.emit_subscript(tree, hint)
            if isinstance(tree, TupleLiteral):
                return TupleOfSugared(self.emit_elements(tree.items))
            return SimpleValue(self._emit_simple(tree, hint))

    def emit_elements(self, trees: list[Tree]) -> list[SugaredValue]:
        """Return the elements of a literal, with starred ones unpacked."""
        found: list[SugaredValue] = []
        for tree in trees:
            if isinstance(tree, Starred):
                found += self.emit_sugared(tree.value).as_tuple(tree.range, self)
            else:
                found.append(self.emit_sugared(tree))
        return found

    def _emit_simple(self, tree: Tree, hint: Type | None) -> Value:
        where = tree.range
        if isinstance(tree, Const):
            return self.constant(tree.number, where)
        if isinstance(tree, StringLiteral):
            return self.constant(tree.text, where)
        if isinstance(tree, TrueLiteral | FalseLiteral):
            return self.constant(isinstance(tree, TrueLiteral), where)
        if isinstance(tree, NoneLiteral):
            return self.constant(None, where)
        if isinstance(tree, BinOp):
            return self._emit_binary(tree)
        if isinstance(tree, UnaryOp):
            return self._emit_unary(tree)
        if isinstance(tree, TernaryIf):
            return self.emit_ternary(tree, hint)
        if isinstance(tree, ListLiteral):
            return self._emit_list_literal(tree, hint)
        if isinstance(tree, DictLiteral):
            return self._emit_dict_literal(tree, hint)
        if isinstance(tree, ListComp):
            return self.emit_list_comprehension(tree, hint)
        if isinstance(tree, DictComp):
            return self.emit_dict_comprehension(tree, hint)
        if isinstance(tree, Dots):
            raise ErrorReport(where, "'...' can only stand in a subscript")
        raise ErrorReport(where, f"Cannot emit expr for: {tree}")

    # Emit operators

    def _emit_unary(self, tree: UnaryOp) -> Value:
        if tree.operator == "not":
            return self.condition_value(tree)
        if tree.operator == "-" and isinstance(tree.value, Const):
            return self.constant(-tree.value.number, tree.range)
        operator, magic = _UNARY[tree.operator]
        value = self.emit_expression(tree.value)
        return self._operate(tree.range, operator, magic, [value])

    def _emit_binary(self, tree: BinOp) -> Value:
        operator = tree.operator
        if operator in ("and", "or", "in", "is", "is not"):
            return self.condition_value(tree)
        left = self.emit_expression(tree.left)
        right = self.emit_expression(tree.right)
        if operator == "+" and isinstance(left.type, TupleType) and isinstance(right.type, TupleType):
            parts = [SimpleValue(value).as_tuple(tree.range, self) for value in (left, right)]
            return self.make_tuple([each.as_value(tree.range, self) for part in parts for each in part], tree.range)
        return self.emit_operation(tree.range, operator, left, right)

    def emit_operation(self, where: SourceRange, operator: str, left: Value, right: Value) -> Value:
        """Emit `left operator right`."""
        name = OPERATORS[operator]
        if operator == "%" and left.type == STRING:
            return self._percent_format(where, left, right)
        if operator == "//" and TENSOR in (unshaped(left.type), unshaped(right.type)):
            name = "aten::floor_divide"
        return self._operate(where, name, MAGIC.get(operator, ""), [left, right])

    def _percent_format(self, where: SourceRange, text: Value, values: Value) -> Value:
        return self.insert("aten::percentFormat", [text, values], STRING, where)

    def _operate(self, where: SourceRange, name: str, magic: str, values: list[Value]) -> Value:
        if isinstance(values[0].type, ClassType) and magic:
            method = self.simple.attribute(where, values[0], magic)
            return method.call(where, self, [NamedValue(where, value) for value in values[1:]], []).as_value(where, self)
        return self.call_operator(name, where, values).as_value(where, self)

    # Emit literals

    def _emit_list_literal(self, tree: ListLiteral, hint: Type | None) -> Value:
        values = [each.as_value(tree.range, self) for each in self.emit_elements(tree.items)]
        wanted = hint.element if isinstance(hint, OptionalType) else hint
        element = wanted.element if isinstance(wanted, ListType) else None
        return self.insert("prim::ListConstruct", values, ListType(self._element_type(tree, values, element)), tree.range)

    def _element_type(self, tree: Tree, values: list[Value], wanted: Type | None) -> Type:
        if wanted is not None:
            wrong = next((value for value in values if not is_subtype(value.type, wanted)), None)
            if wrong is None:
                return wanted
            raise ErrorReport(tree.range, f"List type annotation `List[{wanted}]` did not match the types of the given list "
                                          f"elements, which include {wrong.type}")  # fmt: skip
        return self._unify_types(tree, [value.type for value in values], "list elements")

    def _unify_types(self, tree: Tree, kinds: list[Type], what: str) -> Type:
        joined = unshaped(kinds[0]) if kinds else TENSOR
        for kind in kinds[1:]:
            found = unify(joined, unshaped(kind), default_to_union=what != "dict keys")
            if found is None or found is ANY:
                raise ErrorReport(
                    tree.range, f"{what} have different types: {joined} and {kind}; annotate the type that is meant"
                )
            joined = found
        return joined

    def _emit_dict_literal(self, tree: DictLiteral, hint: Type | None) -> Value:
        keys = [self.emit_expression(key) for key in tree.keys]
        values = [self.emit_expression(value) for value in tree.values]
        wanted = hint.element if isinstance(hint, OptionalType) else hint
        if isinstance(wanted, DictType):
            kind = wanted
        else:
            key = self._unify_types(tree, [each.type for each in keys], "dict keys") if keys else STRING
            kind = DictType(key, self._unify_types(tree, [each.type for each in values], "dict values"))
        pairs = [each for pair in zip(keys, values, strict=True) for each in pair]
        return self.insert("prim::DictConstruct", pairs, kind, tree.range)

    # Emit conditional expressions

    def emit_ternary(self, tree: TernaryIf, hint: Type | None) -> Value:
        """Emit `a if condition else b`: only one of them is evaluated."""
        condition = self.emit_condition(tree.condition)
        if condition.static is not None:
            chosen = tree.true_value if condition.static else tree.false_value
            return self.emit_expression(chosen, hint)
        node = self.graph.insert("prim::If", [condition.value], 0)
        node.source_range = tree.range
        values = []
        for branch, refinements in ((tree.true_value, condition.when_true), (tree.false_value, condition.when_false)):
            self.push(node.add_block())
            self.refine(refinements, branch.range)
            values.append(self.emit_expression(branch, hint))
            node.blocks[-1].add_output(values[-1])
            self.pop(self._after(node))
        kind = unify(unshaped(values[0].type), unshaped(values[1].type))
        if kind is None:
            kind = optional(values[0].type) if values[1].type is NONE else hint
        if kind is None:
            raise ErrorReport(tree.range, f"if-expression's true branch has type {values[0].type} but false branch has type "
                                          f"{values[1].type}")  # fmt: skip
        return node.add_output(kind)

    def _after(self, node):
        return lambda: self.graph.set_insert_point(node.next)

    def truth(self, value: Value, where: SourceRange) -> Value:
        """Emit `bool(value)`."""
        if value.type == BOOL:
            return value
        if isinstance(value.type, ClassType) and value.type.find_method("__bool__") is not None:
            return self.simple.attribute(where, value, "__bool__").call(where, self, [], []).as_value(where, self)
        if isinstance(value.type, TensorType) or str(value.type) in ("int", "float"):
            return self.call_operator("aten::Bool", where, [value]).as_value(where, self)
        if isinstance(value.type, ListType | DictType) or value.type == STRING:
            length = self.call_operator("aten::len", where, [value]).as_value(where, self)
            return self.call_operator("aten::gt", where, [length, self.constant(0, where)]).as_value(where, self)
        raise ErrorReport(where, f"Could not cast value of type {value.type} to bool")
