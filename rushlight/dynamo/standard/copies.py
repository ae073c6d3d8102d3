"""`copy.copy` and `copy.deepcopy` of tracked values."""

from __future__ import annotations

import copy
import types
from typing import TYPE_CHECKING

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.stability import MISSING, look_up
from rushlight.dynamo.values.base import Value, realized
from rushlight.dynamo.values.builtin import handles
from rushlight.dynamo.values.constant import NONE, is_none
from rushlight.dynamo.values.function import FunctionValue
from rushlight.dynamo.values.inheriting import InheritingValue
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.modules import ModuleValue
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.sets import SetValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

_PICKLING = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")


@handles(copy.copy)
def _copy(tx: Following, value: Value) -> Value:
    if value.is_constant():
        return value
    if isinstance(value, ObjectValue):
        own = look_up(value.kind, "__copy__")
        if isinstance(own, types.FunctionType):
            return value.method(tx, "__copy__", [], {})
        made = _empty_like(value)
        if isinstance(value, InheritingValue):
            made.contents = _copy(tx, value.contents)
        made.written = {name: value.own_attribute(tx, name) for name in value.own_names(tx)}
        return made
    if isinstance(value, SequenceValue | DictValue | SetValue):
        return value.method(tx, "copy", [], {})
    raise GraphBreak(f"a copy of {value}")


@handles(copy.deepcopy)
def _deepcopy(tx: Following, value: Value, memo: Value = NONE) -> Value:
    if not is_none(memo) and not (isinstance(memo, DictValue) and not memo.held):
        raise GraphBreak("deepcopy with a memo")
    return _Copier(tx).copied(value)


class _Copier:
    """One deep copy. `made` maps ids of copied values to (value, copy); holding the value keeps its id unique."""

    def __init__(self, tx: Following) -> None:
        self.tx = tx
        self.made: dict[int, tuple[Value, Value]] = {}

    def copied(self, value: Value) -> Value:
        value = realized(value)
        known = self.made.get(id(value))
        if known is not None:
            return known[1]
        if value.is_constant() or isinstance(value, FunctionValue):
            return value
        if isinstance(value, ModuleValue):
            raise GraphBreak(f"a deep copy of {value}")
        if isinstance(value, ObjectValue):
            return self._object(value)
        return self._container(value)

    def _container(self, value: Value) -> Value:
        if isinstance(value, SequenceValue):
            made = SequenceValue([], value.kind)
            self.made[id(value)] = value, made
            made.items = [self.copied(item) for item in value.items]
            made.limit = value.limit
        elif isinstance(value, DictValue):
            made = DictValue({}, value.kind, None, value.default_factory)
            self.made[id(value)] = value, made
            made.held.update({key: self.copied(item) for key, item in value.as_dict(self.tx).items.items()})
        elif isinstance(value, SetValue):
            made = value.method(self.tx, "copy", [], {})
        else:
            raise GraphBreak(f"a deep copy of {value}")
        return made

    def _object(self, value: ObjectValue) -> Value:
        own = look_up(value.kind, "__deepcopy__")
        if isinstance(own, types.FunctionType):
            return value.method(self.tx, "__deepcopy__", [DictValue({}, dict)], {})
        made = _empty_like(value)
        self.made[id(value)] = value, made
        if isinstance(value, InheritingValue) and not value.contents.is_constant():
            made.contents = self._container(value.contents)
        for name in value.own_names(self.tx):
            made.written[name] = self.copied(value.own_attribute(self.tx, name))
        return made


def _empty_like(value: ObjectValue) -> ObjectValue:
    """Return a new object of the same class without attributes. GraphBreak for classes that customize copying or use slots."""
    kind = value.kind
    says_how = any(isinstance(look_up(kind, name), types.FunctionType) for name in _PICKLING)
    if isinstance(value, ModuleValue) or says_how or look_up(kind, "__slots__") not in (MISSING, ()):
        raise GraphBreak(f"a copy of {value}")
    return InheritingValue(kind, value.contents) if isinstance(value, InheritingValue) else ObjectValue(kind)
