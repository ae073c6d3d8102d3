"""Side effects: the program's changes to objects that exist outside the captured frame. Generated code replays them after the
graph has run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.values.base import Value

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Writer


class SideEffects:
    """Changed values in the order of their first change, and writes to globals and class attributes."""

    def __init__(self) -> None:
        self._changed: dict[int, Value] = {}
        self._globals: dict[tuple[int, str], tuple[dict, Value | None]] = {}
        self._classes: dict[tuple[type, str], tuple[Value, Value]] = {}
        self._calls: list[tuple[Callable, tuple]] = []
        self._apart: list[Value] | None = None

    @contextmanager
    def apart(self) -> Iterator[list[Value]]:
        """Follow code that runs later, such as a backward pass. In the block, changing an outside object breaks the graph;
        yields the list of the program's own values changed there."""
        around, self._apart = self._apart, []
        try:
            yield self._apart
        finally:
            self._apart = around

    def mutates(self, value: Value) -> None:
        """Record that the program changes a value. Values that the program made need no replay."""
        if value.is_of_library:
            raise GraphBreak("a change of the library's own settings")
        if self._apart is not None:
            self._check_apart(value.source is None, value)
            self._apart.append(value)
        if value.source is not None:
            self._changed.setdefault(id(value), value)

    def _check_apart(self, is_own: bool, what: object) -> None:
        if self._apart is not None and not is_own:
            raise GraphBreak(f"a change of {what}, which is not its own")

    def forget(self) -> None:
        """Drop all values."""
        self._changed.clear()
        self._globals.clear()
        self._classes.clear()
        self._calls.clear()

    def is_changed(self, value: Value) -> bool:
        """Return whether the program changed an outside value."""
        return id(value) in self._changed

    def store_global(self, namespace: dict, name: str, value: Value | None) -> None:
        """Record that the program sets a global variable, or with None deletes it."""
        self._check_apart(False, f"the global variable {name!r}")
        self._globals[id(namespace), name] = (namespace, value)

    def global_value(self, namespace: dict, name: str) -> tuple[bool, Value | None]:
        """Return whether the program wrote a global variable, and its current value."""
        found = self._globals.get((id(namespace), name))
        return (False, None) if found is None else (True, found[1])

    def store_class_attribute(self, owner: Value, kind: type, name: str, value: Value) -> None:
        """Record that the program sets an attribute of the class `kind`, tracked as `owner`."""
        self._check_apart(False, f"attribute {name!r} of class {kind.__name__}")
        self._classes[kind, name] = (owner, value)

    def class_attribute(self, kind: type, name: str) -> Value | None:
        """Return the value that the program wrote to a class attribute during capture; None if it wrote none."""
        for base in kind.__mro__ if self._classes else ():
            if (base, name) in self._classes:
                return self._classes[base, name][1]
            if name in base.__dict__:
                break
        return None

    def call_later(self, function: Callable, *arguments: object) -> None:
        """Call a function after the graph has run; calls keep their order. The graph must not depend on them."""
        self._check_apart(False, "what others see")
        self._calls.append((function, arguments))

    def any(self) -> bool:
        """Return whether there is anything to replay."""
        return bool(self._changed or self._globals or self._classes or self._calls)

    def write(self, writer: Writer) -> None:
        """Append the statements that replay the effects. All values are read before anything is written."""
        lines: list[str] = []
        for value in self._changed.values():
            target = writer.keep(value.source.expression())
            lines += value.write_back(writer, target)
        for (_, name), (namespace, value) in self._globals.items():
            target = f"{writer.globals_of(namespace)}[{name!r}]"
            if value is not None:
                lines.append(f"{target} = {writer.expression(value)}")
            elif name in namespace:
                lines.append(f"del {target}")
        for (kind, name), (_, value) in self._classes.items():
            lines.append(f"{writer.name_of(kind, kind.__name__)}.{name} = {writer.expression(value)}")
        for function, arguments in self._calls:
            given = ", ".join(map(writer.literal, arguments))
            lines.append(f"{writer.name_of(function, function.__name__)}({given})")
        writer.lines += lines


