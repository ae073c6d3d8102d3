"""nn.Modules: parameters, buffers and submodules are attributes; a call runs `forward` and the hooks.

The tensors become attributes of the graph, guarded by identity. A tensor that the program replaces on every run becomes a graph
input instead.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import GraphBreak, Restart
from rushlight.dynamo.sources import Attribute, Global, Held, Item, Local, OwnDict, Source
from rushlight.dynamo.stability import MISSING, look_up
from rushlight.dynamo.values.base import PendingValue, Value, realized
from rushlight.dynamo.values.constant import NONE, ConstantValue, raised
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.nn.modules.global_hooks import call_hooks
from rushlight.nn.modules.lazy import LazyModuleMixin, _initialize_from_input
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

GROUPS = ("_parameters", "_buffers", "_modules")
_MEMBERS = (Tensor, Module, type(None))
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

# Module -> names of the tensors that the program replaces.
_replaced: weakref.WeakKeyDictionary[Module, set[str]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


class ModuleValue(ObjectValue):
    """An nn.Module. `path` is the prefix of its tensors' names in the graph."""

    def __init__(self, kind: type, real: object = None, source: Source | None = None) -> None:
        super().__init__(kind, real, source)
        self.replaced: dict[str, Value] = {}  # members replaced during a functional_call
        self.path = kind.__name__ if source is None else _path_of(source) or kind.__name__

    def own_attribute(self, tx: Following, name: str) -> Value | None:
        if name in self.written:
            return self.written[name]
        if name in GROUPS and self.real is not None and name in self.real.__dict__:
            return self._group_of_members(tx, name)
        return super().own_attribute(tx, name)

    def attribute(self, tx: Following, name: str) -> Value:
        own = self.real.__dict__ if self.real is not None else {}
        if name not in own and name not in self.written and look_up(self.kind, name) is MISSING:
            found = self.member(tx, name)
            if found is not None:
                return found
        return super().attribute(tx, name)

    def member(self, tx: Following, name: str) -> Value | None:
        """Return a parameter, buffer or submodule; None if there is none of that name."""
        if name in self.replaced:
            return self.replaced[name]
        for group in GROUPS:
            held = self.written.get(group) if self.real is None else self._group_with(tx, group, name)
            if isinstance(held, DictValue) and name in held.held:
                return realized(held.held[name])
        return None

    def _group_with(self, tx: Following, group: str, name: str) -> Value | None:
        """Return the group that may contain a member of that name. None if the real dict lacks it and the program cannot have
        changed the dict."""
        real = self.real.__dict__.get(group, ())
        return self._group_of_members(tx, group) if name in real or tx.session.known(real) is not None else None

    def _group_of_members(self, tx: Following, name: str) -> Value | None:
        real = self.real.__dict__.get(name)
        if type(real) is not dict:
            return None
        known = tx.session.known(real)
        if known is None:
            known = MembersValue(tx, self, name, real)
            tx.session.remember(real, known)
        return known

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        kind = value.python_type()
        is_registered = any(name in self.real.__dict__.get(group, ()) for group in GROUPS) if self.real is not None else (
            self.member(tx, name) is not None)  # fmt: skip
        if (is_registered or issubclass(kind, Module | Parameter | Buffer)) and look_up(self.kind, "__setattr__") is (
            Module.__setattr__
        ):
            setter = tx.class_member(self.kind, "__setattr__", Module.__setattr__)
            setter.call(tx, [self, ConstantValue(name), value], {})
        else:
            super().set_attribute(tx, name, value)

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.kind.__call__ is not Module.__call__ or self.real is None:
            return super().call(tx, args, kwargs)
        if isinstance(self.real, LazyModuleMixin) and "_initialize_hook" in self.real.__dict__:
            self._initialize(tx, args, kwargs)
        if self._has_hooks(tx):
            if self.real._backward_hooks and self.real._is_full_backward_hook is False:
                raise GraphBreak(f"module {self.kind.__name__} has hooks of register_backward_hook()")
            return self.method(tx, "_call_with_hooks", [SequenceValue(list(args), tuple), DictValue(dict(kwargs), dict)], {})
        return self.method(tx, "forward", args, kwargs)

    def _initialize(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> None:
        """Initialize the parameters of a lazy module, as its call would do, and capture anew, now with an ordinary module.

        The module reads the sizes of its inputs only, so that it may get fake ones.
        """
        if tx.session.sizes.any or self.written:
            return
        given = [_stand_in(value) for value in args], {name: _stand_in(value) for name, value in kwargs.items()}
        try:
            _initialize_from_input(self.real, *given)
        except (RuntimeError, TypeError, ValueError) as error:
            raise GraphBreak(f"the parameters of {self} could not be initialized: {error}") from None
        raise Restart

    def _has_hooks(self, tx: Following) -> bool:
        held = self.real.__dict__
        if not call_hooks:
            tx.guards.empty(Held(tx.guards.name(call_hooks, "hooks_of_all_modules")), "no hooks on all modules")
        groups = tuple([name for name in _HOOKS if name in held])
        for name in groups:
            known = tx.session.known(held[name])
            if known is not None and tx.effects.is_changed(known):
                raise GraphBreak(f"a call of module {self.kind.__name__}, whose hooks changed")
        empty = tuple([name for name in groups if not held[name]])
        tx.guards.no_hooks(self.source, empty)
        return bool(call_hooks) or len(empty) < len(groups)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__getattr__" and look_up(self.kind, name) is Module.__getattr__:
            return self.missing_attribute(tx, *args)
        return super().method(tx, name, args, kwargs)

    def missing_attribute(self, tx: Following, name: Value) -> Value:
        """Evaluate `Module.__getattr__`."""
        found = self.member(tx, name.constant())
        if found is None:
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name.constant()}'"))
        return found


def _stand_in(value: Value) -> Any:
    """Return a value of which tensors have sizes only."""
    if isinstance(value, TensorValue):
        return value.fake
    if isinstance(value, SequenceValue):
        parts = [_stand_in(item) for item in value.items]
        return value.kind(*parts) if hasattr(value.kind, "_fields") else value.kind(parts)
    if isinstance(value, DictValue):
        return {key: _stand_in(item) for key, item in value.items.items()}
    return value.snapshot()


class MembersValue(DictValue):
    """The dict of a module's parameters, buffers or submodules."""

    def __init__(self, tx: Following, owner: ModuleValue, group: str, real: dict[str, Any]) -> None:
        source = Attribute(owner.source, group)
        keys = list(real)
        own = Item(OwnDict(owner.source), group)  # the instance's own `__dict__`: a faster source
        items = {name: _pending_member(tx, owner, own, value, Item(source, name)) for name, value in real.items()}
        super().__init__(items, dict, source, None, lambda: tx.guards.same_items(source, keys, "keys", dict))
        self.owner = owner
        self.group = group

    def find(self, tx: Following, key: Any) -> Value | None:
        found = self.owner.replaced.get(key) or self.held.get(key)
        return super().find(tx, key) if found is None else realized(found)

    def store(self, tx: Following, key: Any, value: Value) -> None:
        self._record_replacement(key)
        super().store(tx, key, value)

    def _record_replacement(self, key: Any) -> None:
        if not isinstance(self.owner.real.__dict__[self.group].get(key), Tensor):
            return
        with _lock:
            names = _replaced.setdefault(self.owner.real, set())
            is_new = key not in names
            names.add(key)
        if is_new:
            raise Restart


def _pending_member(tx: Following, owner: ModuleValue, own: Item, value: Any, source: Item) -> Value:
    return PendingValue(lambda: _wrap_member(tx, owner, own, value, source), source, type(value))


def _wrap_member(tx: Following, owner: ModuleValue, own: Item, found: Any, source: Item) -> Value:
    """Track a parameter, buffer or submodule."""
    name = source.key
    is_replaced = found is not None and name in _replaced.get(owner.real, ())
    if is_replaced or not isinstance(found, _MEMBERS):
        return tx.wrap(found, source)
    held = tx.guards.member(owner.source, source, Item(own, name), found)
    if found is None:
        return NONE
    tx.session.names.add_member(held, source)
    path = f"{owner.path}.{name}"
    if isinstance(found, Module):
        is_known = tx.session.known(found) is not None
        made = tx.wrap(found, held)
        if not is_known and isinstance(made, ModuleValue):
            made.path = path
        return made
    node = tx.graph.known(found) or tx.graph.attribute(found, path, source)
    return tx.tensor_value(node, held, type(found))


def _path_of(source: Source) -> str:
    """Return the dotted path of a source in the program; "" if it has none."""
    if isinstance(source, Local | Global):
        return source.key
    if isinstance(source, Attribute | Item) and _path_of(source.base):
        return f"{_path_of(source.base)}.{source.key}"
    return ""
