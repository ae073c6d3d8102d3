"""Guards: what one capture assumed of the frame, as readable Python that is checked before its code runs again.

In: assumptions, in the order in which they were made. Out: a function of the frame's locals that tells whether all hold, the
text of that function, and, for one that does not hold, which it was and the value found.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rushlight._C import AttributeChecks
from rushlight.core.dtype import get_default_dtype
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.sources import Attribute, Held, Source, parameter_text

# An object, None or the name of a dict among its attributes, a name there, what kind of check, and what is expected.
Check = tuple[object, str | None, str, int, object]
SAME, EQUAL, EMPTY, MISSING, TENSOR = range(5)  # the kinds, as _C.AttributeChecks numbers them


@dataclass(frozen=True)
class Guard:
    """One assumption: an expression that must be true, and where its value comes from."""

    expression: str
    source: Source | None
    reason: str
    check: Check | None = None  # the same for native code, which then tests it


@dataclass
class Guards:
    """The assumptions of one capture. `names` are the objects that their expressions mention."""

    parameters: tuple[str, ...]
    names: dict[str, Any] = field(default_factory=dict)
    guards: dict[str, Guard] = field(default_factory=dict)

    def add(self, expression: str, source: Source | None, reason: str, check: Check | None = None) -> None:
        """Assume that `expression` is true; said twice it is checked once."""
        self.guards.setdefault(expression, Guard(expression, source, reason, check))

    def check_of(self, owner: Source, name: str, kind: int, expected: object = None, group: str | None = None) -> Check | None:
        """The native form of a guard on an attribute of an object that the guards hold; None for others."""
        if not isinstance(owner, Held):
            return None
        held = self.names[owner.name]
        return (held, group, name, kind, expected) if isinstance(getattr(held, "__dict__", None), dict) else None

    def _value_check(self, source: Source, value: object, kind: int) -> Check | None:
        check = self.check_of(source.base, source.name, kind, value) if isinstance(source, Attribute) else None
        return check if check is not None and check[0].__dict__.get(source.name, self) is value else None

    def name(self, value: object, hint: str) -> str:
        """A name under which expressions may mention an object."""
        for known, held in self.names.items():
            if held is value:
                return known
        name = f"__{hint}_{len(self.names)}"
        self.names[name] = value
        return name

    # The kinds of assumption

    def same_type(self, source: Source, value: object, check: Check | None = None) -> None:
        """The type is exactly that of `value`."""
        kind = type(value)
        name = kind.__name__ if getattr(builtins, kind.__name__, None) is kind else self.name(kind, kind.__name__)
        self.add(f"type({source}) is {name}", source, "type", check)

    def same_object(self, source: Source, value: object) -> None:
        """The very object."""
        if isinstance(source, Held):
            return
        check = self._value_check(source, value, SAME)
        if value is None or value is True or value is False or value is ...:
            self.add(f"{source} is {value!r}", source, "identity", check)
        else:
            hint = getattr(value, "__name__", type(value).__name__)
            self.add(f"{source} is {self.name(value, hint if hint.isidentifier() else 'object')}", source, "identity", check)

    def same_value(self, source: Source, value: object) -> None:
        """The same type and value; NaN is equal to itself and -0.0 differs from 0.0."""
        if value is None or isinstance(value, bool):
            return self.same_object(source, value)
        check = self._value_check(source, value, EQUAL) if type(value) in (int, float, str, bytes) else None
        self.same_type(source, value, check)
        if isinstance(value, float | complex):
            self.add(f"repr({source}) == {repr(value)!r}", source, "value", check)
        elif isinstance(value, int | str | bytes):
            self.add(f"{source} == {value!r}", source, "value", check)
        elif isinstance(value, range):
            self.add(f"repr({source}) == {repr(value)!r}", source, "value")
        else:
            self.add(f"{source} == {self.name(value, 'value')}", source, "value")

    def same_length(self, source: Source, value: Any) -> None:
        """As many items."""
        self.add(f"len({source}) == {len(value)}", source, "length")

    def same_items(self, source: Source, values: list, reason: str) -> None:
        """The same keys of a dict, or items of a set, in the same order; 1, 1.0 and True differ."""
        if all(type(value) is str for value in values):
            self.add(f"list({source}) == {values!r}", source, reason)
        else:
            self.add(f"{self.name(equal_items, 'equal_items')}({source}, {self.name(values, reason)})", source, reason)

    def tensor(self, source: Source, value: Tensor) -> None:
        """Type, dtype, device, sizes, strides and requires_grad."""
        self.same_type(source, value)
        self.add(self._tensor_text(source, value), source, "tensor")

    def _tensor_text(self, source: Source, value: Tensor) -> str:
        impl = value._impl
        matches = self.name(tensor_matches, "tensor")
        dtype = self.name(impl.dtype, impl.dtype.name)
        device = self.name(impl.device, "device")
        return f"{matches}({source}, {impl.sizes}, {impl.strides}, {dtype}, {device}, {value.requires_grad})"

    def member(self, owner: Source, group: str, name: str, value: object) -> None:
        """The very parameter, buffer or submodule of a module; a tensor that looks as it did."""
        is_tensor = isinstance(value, Tensor)
        check = self.check_of(owner, name, TENSOR if is_tensor else SAME, value, group)
        held = self.name(value, name if name.isidentifier() else "member")
        self.add(f"{owner}.{group}[{name!r}] is {held}", owner, "the same member of a module", check)
        if is_tensor:
            self.add(self._tensor_text(Held(held), value), Held(held), "a tensor of a module", check)

    def different_objects(self, sources: list[Source]) -> None:
        """No two of the values are one object."""
        if len(sources) > 1:
            listed = ", ".join(f"id({source})" for source in sources)
            self.add(f"len({{{listed}}}) == {len(sources)}", None, "aliasing")

    def ambient(self) -> None:
        """Grad mode, autocast and default dtype of the thread."""
        found = ambient_state()
        self.add(f"{self.name(ambient_state, 'ambient')}() == {self.name(found, 'ambient_then')}", None, "mode of the thread")

    # What comes out

    def text(self) -> str:
        """The guards as a Python function."""
        return self._function(list(self.guards))

    def _function(self, expressions: list[str]) -> str:
        tests = "\n        and ".join(expressions) or "True"
        parameters = ", ".join((*map(parameter_text, self.parameters), "__globals", "__closure"))
        return f"def guard({parameters}):\n    return (\n        {tests}\n    )\n"

    def build(self) -> Callable[..., bool]:
        """A function that answers as the one of `text` does, over the frame's values; native code tests what modules hold."""
        namespace = dict(self.names)
        tests = [guard.expression for guard in self.guards.values() if guard.check is None]
        found = [guard.check for guard in self.guards.values() if guard.check is not None]
        checks = {(id(check[0]), check[1] or "", *check[2:4]): check for check in found}
        if checks:
            namespace["__attributes_hold"] = AttributeChecks([checks[key] for key in sorted(checks)])
            tests.append("__attributes_hold()")
        exec(compile(self._function(tests), "<guards>", "exec"), namespace)
        return namespace["guard"]

    def explain(self, values: dict[str, Any]) -> str:
        """The first assumption that does not hold for a frame's values, and what was found instead."""
        values = {parameter_text(name): value for name, value in values.items()}
        for guard in self.guards.values():
            try:
                holds, found = eval(guard.expression, dict(self.names), values), ""
                if not holds and guard.source is not None:
                    found = f", found {_short(eval(guard.source.expression(), dict(self.names), values))}"
            except Exception as error:  # the path to the value is gone
                holds, found = False, f", found {type(error).__name__}: {error}"
            if not holds:
                return f"{guard.expression} ({guard.reason}){found}"
        return "all hold"


def tensor_matches(value: Tensor, sizes: tuple, strides: tuple, dtype: object, device: object, requires_grad: bool) -> bool:
    """Whether a tensor looks as it did."""
    impl = value._impl
    return (
        impl.sizes == sizes
        and impl.strides == strides
        and impl.dtype is dtype
        and impl.device == device
        and impl.requires_grad == requires_grad
    )


def equal_items(values: Iterable, wanted: list) -> bool:
    """Whether iterating yields values of the same types and equal to the wanted ones."""
    found = list(values)
    return found == wanted and all(type(one) is type(other) for one, other in zip(found, wanted, strict=True))


def ambient_state() -> tuple:
    """What the thread's state makes operators do."""
    cast = state.autocast
    return (state.grad_enabled, state.inference, get_default_dtype(), cast if cast is not None and cast.enabled else None)


def _short(value: object) -> str:
    if isinstance(value, Tensor):
        shape = f"shape {list(value.shape)}, strides {list(value.stride())}"
        return f"a tensor of {shape}, {value.dtype}, requires_grad={value.requires_grad}"
    text = repr(value)
    return text if len(text) < 80 else text[:77] + "..."
