"""Sources: how a value was reached from the frame. Guards test there, and generated code reads from there.

In: the way the symbolic interpreter took to a value. Out: a Python expression over the frame's parameters, `__globals` (the
function's globals) and `__closure` (its cells).
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """Base of sources. Equal sources reach the same value."""

    def expression(self) -> str:
        """A Python expression for the value."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.expression()


def parameter_text(name: str) -> str:
    """A parameter's name in generated code, where it must not hide a builtin that the code needs."""
    return f"__of_{name}" if hasattr(builtins, name) else name


@dataclass(frozen=True)
class Local(Source):
    """A parameter of the frame."""

    name: str

    def expression(self) -> str:
        return parameter_text(self.name)


@dataclass(frozen=True)
class Global(Source):
    """A global variable of a module, given by an expression for its dict."""

    name: str
    namespace: str = "__globals"

    def expression(self) -> str:
        return f"{self.namespace}[{self.name!r}]"


@dataclass(frozen=True)
class FreeVariable(Source):
    """A cell of the called function's closure."""

    index: int

    def expression(self) -> str:
        return f"__closure[{self.index}]"


@dataclass(frozen=True)
class Attribute(Source):
    """An attribute."""

    base: Source
    name: str

    def expression(self) -> str:
        return f"{self.base.expression()}.{self.name}"


@dataclass(frozen=True)
class Item(Source):
    """An item by a constant index or key."""

    base: Source
    key: object

    def expression(self) -> str:
        return f"{self.base.expression()}[{self.key!r}]"


@dataclass(frozen=True)
class Key(Source):
    """The key at a position of a dict."""

    base: Source
    position: int

    def expression(self) -> str:
        return f"list({self.base.expression()})[{self.position}]"


@dataclass(frozen=True)
class Kind(Source):
    """The type of a value."""

    base: Source

    def expression(self) -> str:
        return f"type({self.base.expression()})"


@dataclass(frozen=True)
class Held(Source):
    """An object that the generated code holds under a name of its own."""

    name: str

    def expression(self) -> str:
        return self.name
