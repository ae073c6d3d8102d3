"""Context managers that the library knows: grad modes. They change the thread's state while the graph is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.autograd.grad_mode import enable_grad, no_grad
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue

if TYPE_CHECKING:
    from rushlight.dynamo.program import ProgramWriter
    from rushlight.dynamo.translator import Translator


def set_grad_enabled(enabled: bool) -> None:
    """Set the thread's grad mode: the node that a graph holds where the program switches it."""
    state.grad_enabled = enabled


set_grad_enabled._is_impure = True  # its node stays, though nothing uses its result


def entered(manager: no_grad, previous: bool) -> no_grad:
    """`manager` as it is inside its block: what a resumed function finds on its stack."""
    manager.previous = previous
    return manager


class ThreadStateValue(Value):
    """The record of the thread's modes. They are guarded from the start."""

    def __init__(self, source: Source | None) -> None:
        self.source = source

    def python_type(self) -> type:
        return type(state)

    def attribute(self, tx: Translator, name: str) -> Value:
        if name == "autocast":
            return tx.wrap_constant(state.autocast) if state.autocast and state.autocast.enabled else ConstantValue(None)
        if name in ("grad_enabled", "inference"):
            return ConstantValue(getattr(state, name))
        return super().attribute(tx, name)


class GradModeValue(Value):
    """`no_grad()` or `enable_grad()`."""

    KINDS = {no_grad: False, enable_grad: True}

    def __init__(self, kind: type, source: Source | None = None) -> None:
        self.kind = kind
        self.source = source
        self.previous: list[bool] = []

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Translator) -> bool:
        return True

    def attribute(self, tx: Translator, name: str) -> Value:
        if name not in ("__enter__", "__exit__"):
            raise GraphBreak(f"attribute {name!r} of {self}")
        return tx.bound_method(self, name)

    def method(self, tx: Translator, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__enter__":
            self.previous.append(state.grad_enabled)
            tx.set_grad_mode(self.KINDS[self.kind])
            return ConstantValue(None)
        if name == "__exit__":
            tx.set_grad_mode(self.previous.pop())
            return ConstantValue(False)
        raise GraphBreak(f"method {name!r} of {self.kind.__name__}")

    def write(self, writer: ProgramWriter) -> str:
        kind = writer.name_of(self.kind, self.kind.__name__)
        if not self.previous:
            return f"{kind}()"
        return f"{writer.name_of(entered, 'entered')}({kind}(), {self.previous[-1]})"

    def __str__(self) -> str:
        return f"{self.kind.__name__}()"
