"""Context managers of the library: grad modes, autocast, inference mode. They take effect while the graph is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rushlight.amp.autocast_mode import autocast, get_autocast_dtype
from rushlight.autograd.grad_mode import Mode, enable_grad, no_grad
from rushlight.autograd.grad_mode import set_grad_enabled as grad_switch
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import NONE, ConstantValue
from rushlight.fx.node import Node

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


def set_grad_enabled(enabled: bool) -> None:
    """Set the thread's grad mode. A graph calls this where the program switches it."""
    state.grad_enabled = enabled


set_grad_enabled._is_impure = True  # keeps dead code elimination from removing the call


def entered(manager: no_grad, previous: bool) -> no_grad:
    """Put `manager` into the state it has inside its block, for the stack of a resume function."""
    manager.previous = previous
    return manager


class ThreadStateValue(Value):
    """The record of the thread's modes. They are guarded from the start of the capture."""

    def __init__(self, source: Source | None) -> None:
        self.source = source

    def python_type(self) -> type:
        return type(state)

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "autocast":
            return tx.wrap_constant(state.autocast) if state.autocast and state.autocast.enabled else ConstantValue(None)
        if name == "default_device":
            return NONE  # every capture guards that the CPU is the default device
        if name == "recording":
            return NONE  # a profiler sees a graph as a whole: sections that the program names within it are left out
        if name == "exporting":
            return ConstantValue(state.exporting)  # calls never reuse captures made for export
        if name == "onnx_export":
            return ConstantValue(state.onnx_export)  # the exporter's captures are made for export, too
        if name == "batch_levels" and not tx.session.maps:
            return ConstantValue(())  # no frame is captured inside a running `vmap`
        if name in ("grad_enabled", "inference"):
            tx.session.asked_grad_mode = True
            return ConstantValue(getattr(state, name))
        return super().attribute(tx, name)


class ModeValue(Value):
    """A context manager of the library, which also decorates functions."""

    def __init__(self, kind: type, source: Source | None = None) -> None:
        self.kind = kind
        self.source = source

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Following) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        return self is other

    def attribute(self, tx: Following, name: str) -> Value:
        if name not in ("__enter__", "__exit__", "_fresh", "__call__"):
            raise GraphBreak(f"attribute {name!r} of {self}")
        return tx.bound_method(self, name)

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.wrap_constant(Mode.__call__).call(tx, [self, *args], kwargs)

    def __str__(self) -> str:
        return f"{self.kind.__name__}()"


class GradModeValue(ModeValue):
    """`no_grad()`, `enable_grad()` or `set_grad_enabled(...)`."""

    KINDS = {no_grad: False, enable_grad: True}

    def __init__(self, kind: type, source: Source | None = None, enabled: bool | None = None) -> None:
        super().__init__(kind, source)
        self.enabled = self.KINDS[kind] if enabled is None else enabled
        self.previous: list[bool] = []

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.kind is grad_switch:  # making the object has switched the mode already; a decorator must not
            tx.set_grad_mode(self.previous[-1])
        return super().call(tx, args, kwargs)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__enter__":
            if self.kind is not grad_switch:
                self.previous.append(state.grad_enabled)
            tx.set_grad_mode(self.enabled)
            return NONE
        if name == "__exit__":
            tx.set_grad_mode(self.previous[-1] if self.kind is grad_switch else self.previous.pop())
            return NONE
        if name == "_fresh":
            return switched(tx, self.enabled) if self.kind is grad_switch else GradModeValue(self.kind)
        if name == "__call__":
            return self.call(tx, args, kwargs)
        raise GraphBreak(f"method {name!r} of {self.kind.__name__}")

    def write(self, writer: Writer) -> str:
        kind = writer.name_of(self.kind, self.kind.__name__)
        if self.kind is grad_switch:
            return f"{writer.name_of(remade_switch, 'switch')}({self.enabled}, {self.previous[-1]})"
        if not self.previous:
            return f"{kind}()"
        return f"{writer.name_of(entered, 'entered')}({kind}(), {self.previous[-1]})"


def switched(tx: Following, enabled: bool) -> GradModeValue:
    """Return a call of `set_grad_enabled`, which takes effect at once."""
    made = GradModeValue(grad_switch, None, enabled)
    made.previous.append(state.grad_enabled)
    tx.set_grad_mode(enabled)
    return made


def remade_switch(enabled: bool, previous: bool) -> grad_switch:
    """Rebuild a `set_grad_enabled` that was made earlier, without switching."""
    made = object.__new__(grad_switch)
    made.mode, made.previous = enabled, previous
    return made


def enter_region(kind: type, *arguments: Any) -> Mode:
    """Enter `autocast` or `inference_mode`; graphs call this."""
    manager = kind(*arguments)
    manager.__enter__()
    return manager


def exit_region(manager: Mode) -> None:
    """Leave the region of `enter_region`; graphs call this."""
    manager.__exit__()


enter_region._is_impure = exit_region._is_impure = True


class RegionValue(ModeValue):
    """`autocast(...)` or `inference_mode(...)`. Nodes of the graph enter and leave its region.

    If the graph breaks inside, the graph leaves the region, and the generated code enters it again before it continues.
    """

    def __init__(self, kind: type, arguments: tuple, source: Source | None = None) -> None:
        super().__init__(kind, source)
        self.arguments = arguments
        self.regions: list[tuple[Mode, Node]] = []
        self.is_written = False

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__enter__":
            self._enter(tx)
            return self if self.kind is autocast else NONE
        if name == "__exit__":
            if tx.session.open_modes[-1:] != [self]:
                raise GraphBreak(f"regions of {self} that are left in another order")
            tx.session.open_modes.pop()
            self.leave(tx)
            return NONE
        if name == "_fresh":
            return RegionValue(self.kind, self.arguments)
        if name == "__call__":
            return self.call(tx, args, kwargs)
        raise GraphBreak(f"method {name!r} of {self.kind.__name__}")

    def _enter(self, tx: Following) -> None:
        if self.source is not None or self.regions:
            raise GraphBreak(f"{self}, an object that is entered more than once")
        if self.kind is autocast:
            self._guard_dtype(tx)
        node = tx.graph.graph.create_node("call_function", enter_region, (self.kind, *self.arguments))
        manager = node.meta["example_value"] = enter_region(self.kind, *self.arguments)
        self.regions.append((manager, node))
        tx.session.open_modes.append(self)

    def _guard_dtype(self, tx: Following) -> None:
        device, kind = self.arguments[:2]
        if kind is None:
            wanted = get_autocast_dtype(device)
            test = f"{tx.guards.name(get_autocast_dtype, 'autocast_dtype')}({device!r}) is {tx.guards.name(wanted, 'dtype')}"
            tx.guards.add(test, None, "dtype of autocast")

    def leave(self, tx: Following) -> None:
        """End the region, here and in the graph."""
        manager, entry = self.regions.pop()
        node = tx.graph.graph.create_node("call_function", exit_region, (entry,))
        node.meta["example_value"] = exit_region(manager)

    def write(self, writer: Writer) -> str:
        kind = writer.name_of(self.kind, self.kind.__name__)
        arguments = ", ".join(map(writer.literal, self.arguments))
        if not self.regions:
            return f"{kind}({arguments})"
        self.is_written = True
        return f"{writer.name_of(enter_region, 'enter_region')}({kind}, {arguments})"
