"""`contextvars.ContextVar`: reads are guarded, and the program's writes happen after the graph has run."""

from __future__ import annotations

import contextvars
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Asked, Source
from rushlight.dynamo.stability import MISSING
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import NONE, ConstantValue, raised

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


def set_value(variable: ContextVar) -> Any:
    """Return the value of a context variable in this context; MISSING if it is not set."""
    return contextvars.copy_context().get(variable, MISSING)


class ContextVariableValue(Value):
    """A context variable. `current` is its value, None if it is not set."""

    def __init__(self, tx: Following, real: ContextVar, source: Source) -> None:
        self.real = real
        self.source = source
        place = Asked(source, tx.guards.name(set_value, "set_value", is_owned=True))
        found = set_value(real)
        if found is MISSING:
            tx.guards.same_object(place, MISSING)
        self.first = self.current = None if found is MISSING else tx.wrap(found, place)

    def python_type(self) -> type:
        return ContextVar

    def truth(self, tx: Following) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return self is other

    def attribute(self, tx: Following, name: str) -> Value:
        return ConstantValue(self.real.name) if name == "name" else tx.bound_method(self, name)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "get" and not kwargs:
            return self._get(tx, *args)
        if name == "set" and len(args) == 1:
            made = TokenValue(self, self.current)
            self._change(tx, args[0])
            return made
        if name == "reset" and len(args) == 1:
            self._reset(tx, args[0])
            return NONE
        return super().method(tx, name, args, kwargs)

    def _get(self, tx: Following, *default: Value) -> Value:
        if self.current is not None:
            return self.current
        if default:
            return default[0]
        try:  # an empty context returns the variable's own default
            return tx.wrap_constant(contextvars.Context().run(self.real.get))
        except LookupError as error:
            raise raised(error) from None

    def _change(self, tx: Following, value: Value | None) -> None:
        tx.effects.mutates(self)
        self.current = value

    def _reset(self, tx: Following, token: Value) -> None:
        if not isinstance(token, TokenValue):
            raise GraphBreak("a context variable is reset by a token from outside")
        if token.owner is not self:
            raise raised(ValueError("the token was created by a different ContextVar"))
        if token.is_used:
            raise raised(RuntimeError("the token has already been used once"))
        token.is_used = True
        self._change(tx, token.before)

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Return statements that set the variable `target`."""
        if self.current is self.first:
            return []
        if self.current is None:
            raise GraphBreak("a context variable that is no longer set")
        return [f"{target}.set({writer.expression(self.current)})"]


class TokenValue(Value):
    """The result of `set`: holds the variable's previous value, None if it was not set."""

    def __init__(self, owner: ContextVariableValue, before: Value | None) -> None:
        self.owner = owner
        self.before = before
        self.is_used = False

    def python_type(self) -> type:
        return contextvars.Token

    def truth(self, tx: Following) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return self is other

    def __str__(self) -> str:
        return "a token of a context variable"
