"""Statements to nodes: assignments, ifs, loops, exits. Part of the emitter."""

from __future__ import annotations

from rushlight.jit.emit.callables import ClosureValue
from rushlight.jit.emit.expressions import MAGIC, ExpressionEmitter
from rushlight.jit.emit.loops import Ends, LoopEmitter
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Block, Node, Value
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import (
    Apply,
    Assert,
    Assign,
    AugAssign,
    Break,
    Closure,
    Continue,
    Delete,
    ExprStmt,
    For,
    If,
    ListLiteral,
    Pass,
    Raise,
    Return,
    Select,
    SliceExpr,
    Starred,
    StringLiteral,
    Subscript,
    Tree,
    TupleLiteral,
    Var,
    While,
    With,
)
from rushlight.jit.types.kinds import STRING, ClassType, ListType, TensorType, Type, UnionType
from rushlight.jit.types.relations import is_subtype, unify, unshaped

_IN_PLACE = {"+": "add_", "-": "sub_", "*": "mul_", "/": "div_", "%": "remainder_", "**": "pow_", "//": "floor_divide_",
             "&": "__iand__", "|": "__ior__", "^": "__ixor__", "<<": "__ilshift__", ">>": "__irshift__"}  # fmt: skip


_LONE_STAR = "A Starred expression may only appear on the lhs within the presence of another non-starred expression"


class StatementEmitter(LoopEmitter, ExpressionEmitter):
    """The emitter's rules for statements."""

    def emit_statements(self, trees: list[Tree]) -> Ends:
        """Emit a block's statements; returns whether its end is unreachable."""
        ends = Ends.NOTHING
        for tree in trees:
            with self.graph.source(tree.range):
                ends = max(ends, self._emit_statement(tree))
            if ends is Ends.ALL:
                break
        return ends

    def _emit_statement(self, tree: Tree) -> Ends:
        if isinstance(tree, Return):
            self.emit_return(self.emit_expression(tree.value, self.returned.declared), tree.range)
            return Ends.ALL
        if isinstance(tree, Raise):
            self._emit_raise(tree)
            return Ends.ALL
        if isinstance(tree, Break | Continue):
            return self._emit_exit_of_loop(tree)
        if isinstance(tree, If):
            return self.emit_if(tree)
        if isinstance(tree, With):
            return self.emit_with(tree)
        if isinstance(tree, For):
            return self.emit_for(tree)
        if isinstance(tree, While):
            self.emit_while(tree)
        elif isinstance(tree, Assign):
            self._emit_assign(tree)
        elif isinstance(tree, AugAssign):
            self._emit_augmented(tree)
        elif isinstance(tree, ExprStmt):
            if not isinstance(tree.expr, StringLiteral):
                self._emit_dropped(tree)
        elif isinstance(tree, Assert):
            self._emit_assert(tree)
        elif isinstance(tree, Delete):
            self._emit_delete(tree)
        elif isinstance(tree, Closure):
            self.environment.set(tree.ident.name, ClosureValue(tree.body), tree.range)
        elif not isinstance(tree, Pass):
            raise ErrorReport(tree.range, "this kind of statement is not supported")
        return Ends.NOTHING

    def _emit_dropped(self, tree: ExprStmt) -> None:
        sugared = self.emit_sugared(tree.expr)
        if sugared.simple_value() is None and not isinstance(tree.expr, Apply):
            sugared.as_value(tree.range, self)

    def _emit_exit_of_loop(self, tree: Break | Continue) -> Ends:
        word = "break" if isinstance(tree, Break) else "continue"
        if self.loop_depth == 0:
            raise ErrorReport(tree.range, f"SyntaxError: '{word}' outside loop")
        self.graph.insert("prim::BreakStmt" if word == "break" else "prim::ContinueStmt", (), 0)
        return Ends.ROUND

    # Emit ifs

    def emit_if(self, tree: If) -> Ends:
        """Return an if; returns the exit that both branches share."""
        condition = self.emit_condition(tree.condition)
        if condition.static is not None:
            return self.emit_statements(tree.true_branch if condition.static else tree.false_branch)
        node = self.graph.insert("prim::If", [condition.value], 0)
        node.source_range = tree.range
        branches = ((tree.true_branch, condition.when_true), (tree.false_branch, condition.when_false))
        return self.emit_branches(node, [(lambda body=body: self.emit_statements(body), known) for body, known in branches])

    def emit_branches(self, node: Node, branches: list) -> Ends:
        """Emit both branches of an if node, each given as (emitting function, refined types); returns the exit that both
        share."""
        environments: list = []
        ends: list[Ends] = []
        for emit, refinements in branches:
            block: Block = node.add_block()
            self.push(block)
            self.refine(refinements, node.source_range)
            ends.append(emit())
            environments.append(self.pop(lambda: self.graph.set_insert_point(node.next)))
        self._join(environments, ends, node.source_range)
        return min(ends)

    def _join(self, environments: list, ends: list[Ends], where: SourceRange) -> None:
        """Merge the variables of both branches after an if."""
        if min(ends) is Ends.ALL:
            return
        # If both branches end, the code after the if is unreachable, and any values do.
        exits = [each > min(ends) for each in ends]
        names = dict.fromkeys(name for environment in environments for name in environment.types)
        for name in names:
            kinds = [
                None if leaves else environment.type_of(name) for environment, leaves in zip(environments, exits, strict=True)
            ]
            reaching = [kind for kind, leaves in zip(kinds, exits, strict=True) if not leaves]
            if None in reaching:
                if self.environment.find(name) is None:
                    missing = "true" if kinds[0] is None and not exits[0] else "false"
                    self.environment.undefine(name, f"{name} is not defined in the {missing} branch")
                continue
            self._join_types(name, reaching, where)

    def _join_types(self, name: str, kinds: list[Type], where: SourceRange) -> None:
        outer = self.environment.type_of(name)
        joined = unshaped(kinds[0])
        for kind in kinds[1:]:
            found = unify(
                joined, unshaped(kind), default_to_union=outer is not None and is_subtype(unshaped(kind), unshaped(outer))
            )
            if found is None:
                self.environment.undefine(
                    name,
                    f"Type mismatch: {name} is set to type {kinds[0]} in the true branch and type {kind} in the false branch",
                )
                return
            joined = found
        self.environment.declare(name, joined)

    # Emit assignments

    def _emit_assign(self, tree: Assign) -> None:
        declared = None if tree.annotation is None else self.type_of_tree(tree.annotation)
        if tree.value is None:
            return
        right = self.emit_sugared(tree.value, declared)
        for target in tree.targets:
            self.assign(target, right, tree.range, declared)

    def assign(self, target: Tree, right: SugaredValue, where: SourceRange, declared: Type | None = None) -> None:
        """Emit `target = right`."""
        if isinstance(target, Var):
            self._assign_variable(target, right, where, declared)
        elif isinstance(target, TupleLiteral | ListLiteral):
            self._assign_tuple(target, right, where)
        elif isinstance(target, Subscript):
            self.assign_subscript(target, right.as_value(where, self), where)
        elif isinstance(target, Select):
            value = right.as_value(where, self)
            if declared is not None:
                value = self._as_declared(target.selector.name, value, declared, where)
            self.emit_sugared(target.value).set_attribute(where, self, target.selector.name, value)
        elif isinstance(target, Starred):
            raise ErrorReport(target.range, _LONE_STAR)
        else:
            raise ErrorReport(target.range, "unexpected expression on left-hand side of assignment")

    def _assign_variable(self, target: Var, right: SugaredValue, where: SourceRange, declared: Type | None) -> None:
        if declared is not None and self.environment.outer_type(target.name) is not None:
            problem = f"Attempting to declare and annotate the type of variable '{target.name}' that is already defined"
            raise ErrorReport(where, f"{problem} in an outer block")
        if target.name == "self" and self.owner is not None and self.owner.is_module:
            raise ErrorReport(where, "Cannot re-assign 'self' because it has the methods' module")
        if declared is not None:
            right = SimpleValue(self._as_declared(target.name, right.as_value(where, self), declared, where))
        elif right.has_value():
            right = SimpleValue(right.as_value(where, self))
        outer = self.environment.outer_type(target.name)
        if outer is not None and right.simple_value() is not None:
            right = SimpleValue(self.matcher.convert_value(right.simple_value(), unshaped(outer), False))
        self.environment.set(target.name, right, where, declared)

    def _as_declared(self, name: str, value: Value, declared: Type, where: SourceRange) -> Value:
        value = self.matcher.convert_value(value, declared, False)
        if not is_subtype(value.type, declared):
            if value.node.kind in ("prim::ListConstruct", "prim::DictConstruct"):
                family = "List" if value.node.kind == "prim::ListConstruct" else "Dict"
                if isinstance(declared, UnionType):
                    raise ErrorReport(where, f"Expected an Union type annotation with an inner {family} type, got {declared}")
                raise ErrorReport(where, f"Expected an annotation of type {family} for '{name}', got {declared}")
            raise ErrorReport(
                where,
                f"Variable '{name}' is annotated with type {declared} but is being assigned to a value of type {value.type}",
            )
        return value

    def _assign_tuple(self, target: TupleLiteral | ListLiteral, right: SugaredValue, where: SourceRange) -> None:
        stars = [index for index, item in enumerate(target.items) if isinstance(item, Starred)]
        if len(stars) > 1:
            raise ErrorReport(where, "Only one starred expression is allowed on the lhs")
        if stars and len(target.items) == 1:
            raise ErrorReport(where, _LONE_STAR)
        count = len(target.items)
        parts = right.as_tuple(where, self, None if stars else count)
        if not stars and len(parts) != count or len(parts) < count - len(stars):
            wanted, found = count - len(stars), len(parts)
            few = f"need {wanted} values to unpack but found only {found}"
            raise ErrorReport(where, few if found < wanted else f"too many values to unpack: need {wanted} but found {found}")
        if stars:
            star, extra = stars[0], len(parts) - count + 1
            listed = self.make_tuple([part.as_value(where, self) for part in parts[star : star + extra]], where)
            parts = [*parts[:star], SimpleValue(listed), *parts[star + extra :]]
        for item, part in zip(target.items, parts, strict=True):
            self.assign(item.value if isinstance(item, Starred) else item, part, where)

    def _emit_augmented(self, tree: AugAssign) -> None:
        target, where = tree.target, tree.range
        if isinstance(target, Subscript):
            self.augment_subscript(target, tree.operator, tree.value, where)
            return
        if isinstance(target, TupleLiteral | ListLiteral):
            raise ErrorReport(where, "augmented assignment can only have one LHS expression")
        old = self.emit_expression(target)
        hint = old.type if isinstance(old.type, ListType) else None
        right = self.emit_expression(tree.value, hint)
        new = self.in_place(where, tree.operator, old, right)
        if isinstance(target, Select) and isinstance(old.type, TensorType):
            return  # the tensor was changed in place, so the attribute need not be set
        self.assign(target, SimpleValue(new), where)

    def in_place(self, where: SourceRange, operator: str, old: Value, right: Value) -> Value:
        """Emit `old operator= right`: in place for tensors and lists; returns the new value."""
        if isinstance(old.type, ClassType):
            magic = {"+": "__iadd__", "-": "__isub__", "*": "__imul__", "/": "__itruediv__"}.get(operator, "")
            if old.type.find_method(magic) is not None:
                method = self.simple.attribute(where, old, magic)
                return method.call(where, self, [NamedValue(where, right)], []).as_value(where, self)
            if old.type.find_method(MAGIC.get(operator, "")) is None:
                raise ErrorReport(where, f"Cannot emit inplace op on {old.type}: it defines neither {magic} nor the operator")
        name = f"aten::{_IN_PLACE[operator]}"
        if isinstance(old.type, TensorType | ListType) and operators_named(name):
            return self.call_operator(name, where, [old, right]).as_value(where, self)
        return self.emit_operation(where, operator, old, right)

    def _emit_delete(self, tree: Delete) -> None:
        for target in tree.targets:
            if isinstance(target, Var):
                if self.environment.find(target.name) is None:
                    raise ErrorReport(target.range, f"undefined value {target.name}")
                self.environment.undefine(target.name, f"undefined value {target.name}: it was deleted")
            elif isinstance(target, Subscript) and any(isinstance(each, SliceExpr) for each in target.subscripts):
                raise ErrorReport(target.range, "del statements only support deletion at a single index, not at a slice")
            elif isinstance(target, Subscript) and len(target.subscripts) == 1:
                value, index = self.emit_expression(target.value), self.emit_expression(target.subscripts[0])
                if isinstance(value.type, ClassType):
                    if value.type.find_method("__delitem__") is None:
                        raise ErrorReport(target.range, f"Class does not define __delitem__: {value.type}")
                    method = self.simple.attribute(tree.range, value, "__delitem__")
                    method.call(tree.range, self, [NamedValue(tree.range, index)], [])
                else:
                    self.call_operator("aten::Delete", tree.range, [value, index])
            else:
                raise ErrorReport(target.range, "del statements are only supported for deleting list and dict items")

    # Emit raise and assert

    def _emit_raise(self, tree: Raise) -> None:
        sugared = self.emit_sugared(tree.value)
        name, message = self.exception_parts(tree, sugared)
        arguments = [message] if name is None else [message, name]
        self.graph.insert("prim::RaiseException", arguments, 0).source_range = tree.range

    def exception_parts(self, tree: Raise, sugared: SugaredValue) -> tuple[Value | None, Value]:
        """Return the name of an exception's class and its message, as values."""
        parts = getattr(sugared, "exception", None)
        if parts is None:
            raise ErrorReport(tree.range, f"exceptions must derive from BaseException, got {sugared.kind()}")
        name, message = parts
        if message is None:
            message = self.constant("", tree.range)
        if message.type != STRING:
            message = self.insert("aten::str", [message], STRING, tree.range)
        return self.constant(name, tree.range), message

    def _emit_assert(self, tree: Assert) -> None:
        condition = self.emit_condition(tree.condition)
        if condition.static is True:
            return
        node = self.graph.insert("prim::If", [condition.value], 0)
        node.source_range = tree.range

        def fail() -> Ends:
            message = self.constant("AssertionError: ", tree.range)
            if tree.message is not None:
                said = self.emit_expression(tree.message)
                if said.type != STRING:
                    said = self.insert("aten::str", [said], STRING, tree.range)
                message = self.emit_operation(tree.range, "+", message, said)
            arguments = [message, self.constant(None, tree.range)]
            self.graph.insert("prim::RaiseException", arguments, 0).source_range = tree.range
            return Ends.ALL

        self.emit_branches(node, [(lambda: Ends.NOTHING, condition.when_true), (fail, condition.when_false)])

    # Emit with statements

    def emit_with(self, tree: With) -> Ends:
        """Return a with statement: each item is entered before the body and left after it, last first."""
        entered: list[Value] = []
        for item in tree.items:
            manager = self.emit_sugared(item.target)
            result = manager.enter(item.range, self)
            if item.variable is not None:
                self.assign(item.variable, result, item.range)
            entered.append(manager.as_value(item.range, self))
        node = self.graph.insert("prim::With", (), 0)
        node.source_range = tree.range
        body = node.add_block()
        self.push(body)
        leaves = self.emit_statements(tree.body)
        environment = self.pop(lambda: self.graph.set_insert_point(node.next))
        cleanup = node.add_block()
        with self.graph.inserting(at_end_of=cleanup):
            for value in reversed(entered):
                self.graph.insert("prim::Exit", [value])
        for name, kind in environment.types.items():
            self.environment.declare(name, kind)
        return leaves
