"""The meaning of names at a point of a function: typed variables, and names of things that are no graph values.

In: definitions and assignments in source order. Out: loads and stores in the graph (`prim::Load`, `prim::Store`), which
`control_flow.py` turns into SSA. Stage: jit, emission.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.jit.emit.sugared import SimpleValue, SugaredValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Block, Graph, Value
from rushlight.jit.ir.names import is_meaningful
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import Type
from rushlight.jit.types.relations import is_subtype, unshaped


class Environment:
    """The names of one block; `parent` is the environment of the enclosing block."""

    def __init__(
        self, graph: Graph, block: Block, parent: Environment | None, resolve: Callable[[str, SourceRange], SugaredValue | None]
    ):
        self.graph = graph
        self.block = block
        self.parent = parent
        self.resolve = resolve
        self.types: dict[str, Type] = {}
        self.sugared: dict[str, SugaredValue] = {}
        self.undefined: dict[str, str] = {}
        self.stored_names: dict[str, str] = {}
        """The names under which variables of a comprehension are stored: others than those of the function's variables."""

    def for_comprehension(self, names: list[str], number: int) -> Environment:
        """Return an environment of the same block in which `names` are variables of their own."""
        made = Environment(self.graph, self.block, self, self.resolve)
        made.stored_names = {name: f"{name}.comprehension{number}" for name in names}
        return made

    def _stored_name(self, name: str) -> str:
        environment: Environment | None = self
        while environment is not None:
            if name in environment.stored_names:
                return environment.stored_names[name]
            environment = environment.parent
        return name

    def find(self, name: str) -> Environment | None:
        """Return the innermost environment with a variable of this name."""
        name = self._stored_name(name)
        environment: Environment | None = self
        while environment is not None:
            if name in environment.types or name in environment.sugared:
                return environment
            if name in environment.undefined:
                return None
            environment = environment.parent
        return None

    def why_undefined(self, name: str) -> str:
        """Return the reason why a name is undefined."""
        name = self._stored_name(name)
        environment: Environment | None = self
        while environment is not None:
            if name in environment.undefined:
                return environment.undefined[name]
            environment = environment.parent
        return f"undefined value {name}"

    def get(self, name: str, where: SourceRange, required: bool = True) -> SugaredValue | None:
        """Return the meaning of a name. For an undefined name ErrorReport, or None if it is not `required`."""
        found = self.find(name)
        if found is not None:
            stored = self._stored_name(name)
            if stored in found.sugared:
                return found.sugared[stored]
            return SimpleValue(self.load(name, found.types[stored], where))
        if not self._is_marked(name):
            resolved = self.resolve(name, where)
            if resolved is not None:
                return resolved
        if required:
            raise ErrorReport(where, self.why_undefined(name))
        return None

    def _is_marked(self, name: str) -> bool:
        name = self._stored_name(name)
        environment: Environment | None = self
        while environment is not None:
            if name in environment.undefined:
                return True
            environment = environment.parent
        return False

    def load(self, name: str, kind: Type, where: SourceRange) -> Value:
        """Return the current value of a variable."""
        with self.graph.source(where):
            value = self.graph.insert("prim::Load").set("name", self._stored_name(name)).output.set_type(kind)
        if is_meaningful(name):
            value.take_name(name)
        return value

    def type_of(self, name: str) -> Type | None:
        """Return the type of a variable."""
        found = self.find(name)
        return None if found is None else found.types.get(self._stored_name(name))

    def set(self, name: str, value: SugaredValue, where: SourceRange, declared: Type | None = None) -> None:
        """Assign a variable. Once assigned in an outer block, or declared, its type stays."""
        simple = value.simple_value()
        if simple is None:
            self._set_sugared(name, value, where)
            return
        outer = self.outer_type(name)
        kind = declared or simple.type
        if outer is not None and not is_subtype(unshaped(simple.type), unshaped(outer)):
            raise ErrorReport(
                where,
                f"Variable '{name}' previously had type {outer} but is now being assigned to a value of type {simple.type}",
            )
        if not simple.has_debug_name and is_meaningful(name):
            simple.take_name(name)
        name = self._stored_name(name)
        with self.graph.source(where):
            self.graph.insert("prim::Store", [simple], 0).set("name", name).set("type", kind)
        self.sugared.pop(name, None)
        self.undefined.pop(name, None)
        self.types[name] = kind

    def outer_type(self, name: str) -> Type | None:
        """Return the type of a variable of an outer block."""
        return None if self.parent is None else self.parent.type_of(self._stored_name(name))

    def _set_sugared(self, name: str, value: SugaredValue, where: SourceRange) -> None:
        name = self._stored_name(name)
        outer = self.parent.find(name) if self.parent is not None else None
        if outer is not None and name not in self.sugared:
            raise ErrorReport(where, f"Cannot re-assign '{name}' to a value of type {value.kind()} in an inner block, "
                                     "because it is a variable of an outer one")  # fmt: skip
        self.types.pop(name, None)
        self.undefined.pop(name, None)
        self.sugared[name] = value

    def declare(self, name: str, kind: Type) -> None:
        """Declare a variable's type here; inner blocks have stored its value."""
        name = self._stored_name(name)
        self.types[name] = kind
        self.sugared.pop(name, None)
        self.undefined.pop(name, None)

    def undefine(self, name: str, reason: str) -> None:
        """Make a name undefined here, with the reason."""
        name = self._stored_name(name)
        self.types.pop(name, None)
        self.sugared.pop(name, None)
        self.undefined[name] = reason
