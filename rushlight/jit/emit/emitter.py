"""The emitter: tree views to a typed graph.

In: a `Def`, the resolver of its names, and the signature that is wanted. Out: a Function's graph in SSA, cleaned up. The
graph is
emitted with loads, stores and exit statements, which `control_flow.py` then turns into outputs of ifs and loops.

`expressions.py`, `subscripts.py`, `statements.py` and `calls.py` are its parts. Stage: jit, after the frontend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rushlight.jit.annotations import broadcast_length, type_from_tree
from rushlight.jit.constants import insert_constant
from rushlight.jit.emit.calls import CallEmitter
from rushlight.jit.emit.control_flow import convert_to_ssa
from rushlight.jit.emit.environment import Environment
from rushlight.jit.emit.loops import Ends
from rushlight.jit.emit.matching import Matcher
from rushlight.jit.emit.simple_values import SimpleValues
from rushlight.jit.emit.statements import StatementEmitter
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Block, Graph, Value
from rushlight.jit.schema import NO_DEFAULT, Argument, FunctionSchema
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import Decl, Def, Param, Tree
from rushlight.jit.types.kinds import ANY, BOOL, FLOAT, INT, NONE, STRING, TENSOR, ClassType, OptionalType, TupleType, Type
from rushlight.jit.types.relations import is_subtype, unify, unshaped


class Resolver(Protocol):
    """Resolves names that are no variables."""

    def value(self, name: str, where: SourceRange, emitter: Emitter) -> SugaredValue | None:
        """Return the meaning of a name; None if it has none."""

    def type(self, name: str) -> Type | None:
        """Return the class that a dotted name denotes; None if it is no class."""

    def constant_value(self, value: object, where: SourceRange, emitter: Emitter) -> SugaredValue:
        """Return the sugared value of a Python object."""


@dataclass
class ReturnState:
    """The return type of a function: the declared one, or the type of the return statements so far."""

    declared: Type | None
    merged: Type | None = None
    ranges: list[SourceRange] = field(default_factory=list)


class Emitter(CallEmitter, StatementEmitter):
    """Emits one function into `graph`."""

    def __init__(self, resolver: Resolver, graph: Graph, owner: ClassType | None = None, name: str = ""):
        self.resolver = resolver
        self.graph = graph
        self.owner = owner
        self.name = name
        self.matcher = Matcher(graph, self.constant)
        self.simple = SimpleValues(self)
        self.environment = Environment(graph, graph.block, None, self._resolve)
        self.returned = ReturnState(None)
        self.loop_depth = 0
        self.nesting = 0
        self.comprehensions = 0

    @property
    def full_name(self) -> str:
        """Return the function's name, after that of its class for a method."""
        return self.name if self.owner is None else f"{self.owner.short_name}.{self.name}"

    def _resolve(self, name: str, where: SourceRange) -> SugaredValue | None:
        return self.resolver.value(name, where, self)

    # Helpers for all parts

    def constant(self, value: object, where: SourceRange) -> Value:
        """Insert a constant. ErrorReport for a value that can't be one."""
        made = insert_constant(self.graph, value, where)
        if made is None:
            raise ErrorReport(where, f"a {type(value).__name__} cannot be used as a value: {value!r}")
        return made

    def static(self, truth: bool, where: SourceRange) -> Value:
        """Insert a constant that selects the compiled branch of an if."""
        value = self.constant(truth, where)
        value.node.set("static", True)
        return value

    def insert(self, kind: str, inputs: Sequence[Value], result: Type, where: SourceRange) -> Value:
        """Insert a node with one result."""
        node = self.graph.insert(kind, inputs)
        node.source_range = where
        return node.output.set_type(result)

    def value_of(self, given: NamedValue) -> Value:
        """Return the graph value of an argument."""
        return given.value if isinstance(given.value, Value) else self.constant(given.value, given.range)

    def make_tuple(self, values: Sequence[Value], where: SourceRange) -> Value:
        """Return a tuple of values."""
        return self.insert("prim::TupleConstruct", values, TupleType(tuple(value.type for value in values)), where)

    def sugared_constant(self, value: object, where: SourceRange) -> SugaredValue:
        """Return the sugared value of a Python object."""
        return self.resolver.constant_value(value, where, self)

    def function_constant(self, function: Function, where: SourceRange) -> Value:
        """Return a function as a value."""
        return self.constant(function, where)

    def type_of_tree(self, tree: Tree) -> Type:
        """Return the type that a tree denotes."""
        return type_from_tree(tree, self.resolver.type)

    @property
    def in_control_flow(self) -> bool:
        """Return whether the current statement is inside an if or a loop."""
        return self.nesting > 0

    def is_initializer_of(self, kind: ClassType) -> bool:
        """Return whether this is the `__init__` of a class, which may add attributes to it."""
        return self.owner is kind and self.name == "__init__"

    # A whole function

    def emit_def(self, definition: Def, schema: FunctionSchema) -> FunctionSchema:
        """Emit the body; returns the schema, with the inferred return type if none was declared."""
        self.matcher.inferred = {argument.name for argument in schema.arguments if argument.is_inferred}
        for param, argument in zip(definition.decl.params, schema.arguments, strict=True):
            value = self.graph.block.add_input(param.ident.name, argument.type)
            with self.graph.source(param.range):
                self._bind_parameter(param, value, argument.type)
        self.returned = ReturnState(schema.returns[0].type if schema.returns else None)
        ends = self.emit_statements(definition.body)
        if ends is Ends.NOTHING:
            self._return_none_at_end(definition)
        kind = self.returned.declared or self.returned.merged or NONE
        result = self.graph.insert("prim::Uninitialized").output.set_type(kind)
        self.graph.register_output(result)
        convert_to_ssa(self.graph)
        return schema if schema.returns else schema.with_returns(kind)

    def _bind_parameter(self, param: Param, value: Value, kind: Type) -> None:
        name, concrete = param.ident.name, getattr(self.resolver, "concrete", None)
        is_first = len(self.graph.block.inputs) == 1
        if isinstance(kind, ClassType) and (name == "self" or (is_first and concrete is not None and concrete.type is kind)):
            self.environment.sugared[name] = (
                self.resolver.self_value(value) if hasattr(self.resolver, "self_value") else SimpleValue(value)
            )
            return
        self.environment.set(name, SimpleValue(value), param.range, kind)
        value.debug_name = name

    def _return_none_at_end(self, definition: Def) -> None:
        declared = self.returned.declared
        if declared not in (None, NONE):
            raise ErrorReport(
                definition.range,
                f"Function was not annotated as having type None, but does not return along all paths; it returns {declared}",
            )
        self.emit_return(self.constant(None, definition.range), definition.range)

    def emit_return(self, value: Value, where: SourceRange) -> None:
        """Emit `return value`."""
        state = self.returned
        if state.declared is not None:
            value = self.matcher.convert_value(value, state.declared, True)
            if not is_subtype(value.type, state.declared):
                raise ErrorReport(
                    where, f"Return value was annotated as having type {state.declared} but is actually of type {value.type}"
                )
            # The result has the declared type Any, even if the value's type is narrower.
            if state.declared is ANY and value.type is not ANY:
                value = self.insert("prim::unchecked_cast", [value], ANY, where)
        else:
            merged = unshaped(value.type) if state.merged is None else unify(state.merged, unshaped(value.type))
            if merged is None:
                raise ErrorReport(
                    where, f"Previous return statement returned a value of type {state.merged} but this return statement "
                           f"returns a value of type {value.type}"
                )  # fmt: skip
            state.merged = merged
        state.ranges.append(where)
        node = self.graph.insert("prim::ReturnStmt", [value], 0)
        node.source_range = where

    # Blocks and their environments

    def push(self, block: Block) -> Environment:
        """Start emitting into a block, with an environment of its own."""
        self.environment = Environment(self.graph, block, self.environment, self._resolve)
        self.graph.set_insert_point(block)
        self.nesting += 1
        return self.environment

    def pop(self, resume: Callable[[], None]) -> Environment:
        """Return to the enclosing block; `resume` sets the insertion point."""
        left = self.environment
        self.environment = left.parent
        self.nesting -= 1
        resume()
        return left


_OBJECTS = (list, tuple, type(None))
_UNFIT_DEFAULTS: dict[Type, tuple[type, ...]] = {
    INT: (str, float, *_OBJECTS), FLOAT: (str, *_OBJECTS), BOOL: (str, float, *_OBJECTS), STRING: (bool, int, float, *_OBJECTS),
}  # fmt: skip


def signature(
    declaration: Decl, name: str, find: Callable[[str], Type | None], defaults: dict[str, object], owner: Type | None = None,
    inferred: dict[str, Type] | None = None,
) -> FunctionSchema:  # fmt: skip
    """Return the schema of a declaration. Parameters without annotation have the types in `inferred`, else they are tensors;
    without a return type it has no returns.
    """
    arguments = []
    for index, param in enumerate(declaration.params):
        if index == 0 and owner is not None:
            kind = owner
        else:
            kind = (inferred or {}).get(param.ident.name, TENSOR)
            kind = kind if param.annotation is None else type_from_tree(param.annotation, find)
        default = defaults.get(param.ident.name, NO_DEFAULT)
        if isinstance(default, _UNFIT_DEFAULTS.get(kind, ())):
            problem = f'Expected a default value of type {kind} on parameter "{param.ident.name}", got {default!r}'
            raise ErrorReport(param.range, problem)
        if type(default) is int and kind in (FLOAT, OptionalType(FLOAT)):
            default = float(default)
        length = broadcast_length(param.annotation)
        if length is not None and isinstance(default, int | float):
            default = [default] * length
        is_inferred = param.annotation is None and kind is TENSOR and not (index == 0 and owner is not None)
        arguments.append(Argument(param.ident.name, kind, default, param.kwarg_only, length=length, is_inferred=is_inferred))
    returns = ()
    if declaration.return_type is not None:
        returns = (Argument("", type_from_tree(declaration.return_type, find)),)
    return FunctionSchema(name, "", tuple(arguments), returns)
