"""Services of the followed frame for tracked values: other values, keys, iterators, modes.

In: tracked values and real objects with their sources. Out: tracked values; their assumptions are guarded in the session.
"""

from __future__ import annotations

import linecache
import types
from collections.abc import Iterator
from typing import Any, NoReturn

from rushlight._C import skip_code
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.effects import SideEffects
from rushlight.dynamo.errors import FrameNeeded, GraphBreak
from rushlight.dynamo.graph_builder import GraphBuilder
from rushlight.dynamo.guards import Guards
from rushlight.dynamo.instructions import PYTHON
from rushlight.dynamo.process_facts import note
from rushlight.dynamo.session import Session, is_hashed_by_identity
from rushlight.dynamo.sources import STACK_PARAMETER, Attribute, Content, Held, Item, Local, Source
from rushlight.dynamo.stability import is_stable
from rushlight.dynamo.values import builtin, operators
from rushlight.dynamo.values.base import Raised, Value
from rushlight.dynamo.values.classes import ClassValue, PythonModuleValue
from rushlight.dynamo.values.constant import ConstantValue, constant_of, is_constant_value, raised
from rushlight.dynamo.values.contexts import set_grad_enabled
from rushlight.dynamo.values.function import BoundMethodValue, CellValue, NamedMethodValue
from rushlight.dynamo.values.generators import GeneratorValue
from rushlight.dynamo.values.identities import Identity, IdValue, identity_of
from rushlight.dynamo.values.iterators import IteratorValue, iterate
from rushlight.dynamo.values.modules import ModuleValue
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.tensor import TensorValue, wrap_result

_METHODS = (types.FunctionType, staticmethod, classmethod)
_CONSTANT_KINDS = (types.FunctionType, type, types.ModuleType, types.BuiltinFunctionType)


class Services:
    """The operations that every followed frame offers to values. `Translator` inherits them; they use its session's graph,
    guards and side effects."""

    session: Session
    graph: GraphBuilder
    guards: Guards
    effects: SideEffects

    @property
    def python(self) -> tuple[int, int]:
        """Return the Python version; the texts of its errors differ."""
        return PYTHON

    def wrap(self, value: Any, source: Source | None) -> Value:
        """Return the tracked value of a real object."""
        return self.session.wrap(self, value, source)

    def later(self, value: Any, source: Source | None) -> Value:
        """Return a lazy tracked value, guarded when something first uses it."""
        return self.session.later(self, value, source)

    def wrap_constant(self, value: Any) -> Value:
        """Return the tracked value of an object that is the same on every run."""
        if is_constant_value(value):
            return constant_of(value)
        if isinstance(value, _CONSTANT_KINDS) or builtin.is_builtin(value):
            return self.wrap(value, None)
        return self.wrap(value, self.session.hold(value))

    def wrap_class(self, kind: type) -> Value:
        """Return a class as value."""
        return self.wrap(kind, None)

    def wrap_constant_attribute(self, owner: Any, name: str, source: Source | None = None) -> Value:
        """Return an attribute of a function or builtin."""
        try:
            found = getattr(owner, name)
        except AttributeError as error:
            if source is not None:
                self.guards.no_attribute(source, name)
            raise raised(error) from None
        if source is not None:
            return self.wrap(found, Attribute(source, name))
        return self.wrap_constant(found)

    def wrap_class_attribute(self, owner: ClassValue, name: str) -> Value:
        """Return an attribute of a class that is neither a method nor a descriptor of a known kind."""
        found = getattr(owner.kind, name)
        if is_stable(owner.kind) or builtin.is_builtin(found):
            return self.wrap_constant(found)
        return self.wrap(found, Attribute(self.class_source(owner.kind), name))

    def wrap_module_attribute(self, owner: PythonModuleValue, name: str, found: Any) -> Value:
        """Return an attribute of a module."""
        if is_stable(owner.module):
            return self.wrap_constant(found)
        return self.wrap(found, Attribute(owner.source or self.held(owner.module), name))

    def class_member(self, kind: type, name: str, found: Any) -> Value | None:
        """Return the function of a class's method, guarded to stay there; None for an attribute that is no method."""
        if not isinstance(found, _METHODS):
            return None
        known = self.session.methods.get((id(kind), name))
        if known is None:
            self.guard_member(kind, name, found)
            made = self.wrap_constant(found if isinstance(found, types.FunctionType) else found.__func__)
            known = self.session.methods[id(kind), name] = (kind, made)
        return known[1]

    def guard_member(self, kind: type, name: str, found: Any) -> None:
        """Guard that a class keeps its attribute of this name."""
        owner = next(base for base in kind.__mro__ if name in base.__dict__)
        if is_stable(owner):
            return
        self.guards.class_member(kind, name, found)

    def method_of(self, owner: Value, function: Value) -> Value:
        """Bind a method to its object."""
        return BoundMethodValue(owner, function)

    def tensor_value(self, node: Any, source: Source | None, kind: type) -> Value:
        """Return the tracked value of a tensor node."""
        made = wrap_result(self, node, node.meta["example_value"])
        made.source = source
        made.kind = kind
        return made

    def wrap_cell(self, cell: types.CellType, source: Source, name: str) -> CellValue:
        """Return the tracked value of a real cell."""
        known = self.session.known(cell)
        if known is not None:
            self.session.same_place(known, cell, source)
            return known
        try:
            content = self.later(cell.cell_contents, Content(source))
        except ValueError:
            content = None
        made = CellValue(content, source, name)
        self.session.remember(cell, made)
        self.session.cells.append(source)
        return made

    def held(self, value: Any) -> Held:
        """Return a source for an object that generated code holds."""
        return self.session.hold(value)

    def class_source(self, kind: type) -> Source:
        """Return a source for a class."""
        return self.session.hold(kind)

    def bound_method(self, owner: Value, name: str) -> Value:
        """Return a method of a value with a built-in type; AttributeError if the type has none of that name."""
        if name == "__class__":
            return self.wrap_class(owner.python_type())
        if not hasattr(owner.python_type(), name):
            raise raised(AttributeError(f"'{owner.python_type().__name__}' object has no attribute '{name}'"))
        return NamedMethodValue(owner, name)

    def key(self, value: Value) -> Any:
        """Return the key that a value makes in a dict or set."""
        if not value.is_constant():
            held = self.held_object(value)
            if held is not None:
                return held
            if self._is_told_by_identity(value):
                return identity_of(value)
            if value.python_type().__hash__ is None:
                raise raised(TypeError(f"unhashable type: '{value.python_type().__name__}'"))
            raise GraphBreak(f"{value} as a key")
        found = value.constant()
        try:
            hash(found)
        except TypeError as error:
            raise raised(error) from None
        return found

    def _is_told_by_identity(self, value: Value) -> bool:
        if isinstance(value, TensorValue):
            return value.source is None or not self.session.has_tensor_keys
        return type(value) is ObjectValue and is_hashed_by_identity(value.kind)

    def identity(self, value: Value) -> Value:
        """Evaluate `id(value)`, for an object that the captured program made."""
        if not self._is_told_by_identity(value):
            raise GraphBreak(f"the id of {value}")
        return IdValue(identity_of(value))

    def known_id(self, value: Value) -> Value:
        """An `id` as a number, to compare with one that is no `id` of this program: its object is guarded by identity. Other
        values as they are. GraphBreak for an object that the program made."""
        if not isinstance(value, IdValue):
            return value
        owner = value.value.value
        real = self.graph.real(owner.graph_node) if isinstance(owner, TensorValue) else getattr(owner, "real", None)
        if owner.source is None or real is None:
            raise GraphBreak(f"a comparison of the id of {owner}, which the program made, with a number")
        self.guards.same_object(owner.source, real)
        note()
        return ConstantValue(id(real))

    def held_object(self, value: Value) -> Any:
        """Return the real module, parameter or buffer if the value is guarded by identity and so may be a key; else None."""
        if isinstance(value, ModuleValue) and is_hashed_by_identity(value.kind):
            return value.real
        if isinstance(value, TensorValue) and isinstance(value.source, Held):
            return self.graph.real(value.graph_node)
        return self._parameter_from_outside(value) if isinstance(value, TensorValue) else None

    def _parameter_from_outside(self, value: TensorValue) -> Tensor | None:
        """Return the real tensor if it is a trained leaf or belongs to a module, now guarded by identity, too. None for other
        tensors, which change from call to call."""
        real = self.graph.real(value.graph_node) if value.source is not None else None
        if real is None or not (real.requires_grad and real.is_leaf or _is_of_module(value.source)):
            return None
        self.guards.same_object(value.source, real)
        return real

    def key_value(self, key: Any) -> Value:
        """Return the tracked value of a key."""
        if type(key) is Identity:
            return key.value
        if type(key) in (tuple, Size):
            return SequenceValue([self.key_value(item) for item in key], type(key))
        return self.wrap_constant(key)

    def compare(self, symbol: str, left: Value, right: Value) -> Value:
        """Return a comparison."""
        return operators.compare(self, symbol, left, right)

    def contains(self, values: Value, wanted: Value) -> Value:
        """Evaluate `wanted in values`."""
        return operators.contains(self, values, wanted)

    def item(self, owner: Value, key: Value) -> Value:
        """Evaluate `owner[key]`."""
        return owner.item(self, key)

    def next(self, iterator: Value) -> Value | None:
        """Return the next value of an iterator, None at its end."""
        if isinstance(iterator, IteratorValue):
            return iterator.next(self)
        if isinstance(iterator, ObjectValue):
            try:
                return iterator.method(self, "__next__", [], {})
            except Raised as error:
                if issubclass(error.value.python_type(), StopIteration):
                    return None
                raise
        source = getattr(iterator, "source", None)
        if isinstance(source, Local) and source.key.startswith(STACK_PARAMETER):  # `source` is the iterator on a loop's stack
            file, line, _ = self.user_places()[-1]
            raise GraphBreak(
                f"the loop goes on in Python after the graph break inside it: {linecache.getline(file, line).strip()}",
                "its body is one graph for each part between breaks; without the break in the body the loop is captured whole",
            )
        raise GraphBreak(f"next() of {iterator}")

    def next_or_raise(self, iterator: Value) -> Value:
        """Evaluate `next(iterator)`."""
        found = self.next(iterator)
        if found is None:
            raise iterator.stop() if isinstance(iterator, GeneratorValue) else raised(StopIteration())
        return found

    def lazily(self, values: Value) -> Iterator[Value]:
        """Iterate over a value lazily."""
        return self.drain(iterate(self, values))

    def drain(self, iterator: Value) -> Iterator[Value]:
        """Yield the remaining values of an iterator."""
        if isinstance(iterator, IteratorValue):
            yield from iterator.items
            return
        while (found := self.next(iterator)) is not None:
            yield found

    def leave_to_python(self, reason: str, hint: str) -> NoReturn:
        """Break the graph before the call being followed, and never capture the functions on the way to it, nor any callee of
        the innermost one. If the captured frame itself makes the call, it runs in eager from now on."""
        frame = self
        while frame.parent is not None:
            skip_code(frame.code, frame is self)
            frame = frame.parent
        raise (FrameNeeded if frame is self else GraphBreak)(reason, hint)

    def set_grad_mode(self, enabled: bool) -> None:
        """Switch grad mode in the graph and for the rest of the capture."""
        self.session.asked_grad_mode = True
        if state.grad_enabled == enabled:
            return
        node = self.graph.graph.create_node("call_function", set_grad_enabled, (enabled,))
        node.meta["example_value"] = None
        state.grad_enabled = enabled


def _is_of_module(source: Source) -> bool:
    """Return whether a tensor was found among the parameters or buffers of a module."""
    return isinstance(source, Item) and isinstance(source.base, Source) and source.base.key in ("_parameters", "_buffers")
