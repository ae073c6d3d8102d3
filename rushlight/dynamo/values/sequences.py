"""Sequences: lists, tuples, named tuples, sizes, deques, ranges, slices, and iterators over them.

Their items are tracked values. Generated code writes changes back to lists and deques from outside.
"""

from __future__ import annotations

import collections
import math
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rushlight.core.size import Size
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source
from rushlight.dynamo.values.base import MAKERS, Value, realize_all, realized
from rushlight.dynamo.values.constant import NONE, ConstantValue, fold, from_python, raised
from rushlight.dynamo.values.iterators import IteratorValue, call_handler, special_method
from rushlight.dynamo.values.symbolic import SymbolicValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


class SequenceValue(Value):
    """A list, tuple, Size, named tuple or deque.

    A sequence from outside may have pending items. Its length is guarded (by `assume`) when something depends on it.
    """

    def __init__(self, items: list[Value], kind: type, source: Source | None = None,
                 assume: Callable[[], None] | None = None) -> None:  # fmt: skip
        self.held = items
        self.kind = kind
        self.source = source
        self.assume = assume
        self.limit: int | None = None  # maxlen of a deque
        self.is_part = False  # True for the built-in part of an instance of a user's subclass

    @property
    def items(self) -> list[Value]:
        """Return all items, realized and thereby guarded."""
        return realize_all(self.counted())

    @items.setter
    def items(self, items: list[Value]) -> None:
        self.held = items

    def counted(self) -> list[Value]:
        """Return the items, possibly pending, with only their number guarded."""
        if self.assume is not None:
            self.assume()
            self.assume = None
        return self.held

    @property
    def is_mutable(self) -> bool:
        """Return whether items may change in place."""
        return not issubclass(self.kind, tuple)

    def python_type(self) -> type:
        return self.kind

    def is_constant(self) -> bool:
        return not self.is_mutable and all(item.is_constant() for item in self.items)

    def is_open(self) -> bool:
        """Return whether an item is an open integer: using the sequence as a constant would specialize it."""
        return any(type(item) is SymbolicValue or isinstance(item, SequenceValue) and item.is_open() for item in self.items)

    def constant(self) -> Any:
        if self.is_mutable:
            raise GraphBreak(f"{self} may change, so it is no constant")
        values = [item.constant() for item in self.items]
        return self.kind(*values) if hasattr(self.kind, "_fields") else self.kind(values)

    def snapshot(self) -> Any:
        items = [item.snapshot() for item in self.items]
        return self.kind(*items) if hasattr(self.kind, "_fields") else self.kind(items)

    def truth(self, tx: Following) -> bool:
        return bool(self.counted())

    def length(self, tx: Following) -> Value:
        return ConstantValue(len(self.counted()))

    def items_of(self, tx: Following) -> list[Value]:
        return list(self.items)

    def same_as(self, other: Value) -> bool:
        return self is other

    def iterator(self, tx: Following) -> Value | None:
        return SequenceIteratorValue(self) if self.kind in (list, tuple) else None

    def item(self, tx: Following, key: Value) -> Value:
        index = self._index_of(tx, key)
        if isinstance(index, slice):
            kind = tuple if hasattr(self.kind, "_fields") else self.kind
            if kind is collections.deque:
                raise raised(TypeError("sequence index must be integer, not 'slice'"))
            try:
                return SequenceValue(self.counted()[index], kind)
            except (TypeError, ValueError) as error:
                raise raised(error) from None
        held = self.held if type(index) is int and 0 <= index < len(self.held) else self.counted()
        try:
            return realized(held[index])
        except IndexError:
            name = "deque" if self.kind is collections.deque else f"{'list' if self.kind is list else 'tuple'} index"
            raise raised(IndexError(f"{name} {'index ' if name == 'deque' else ''}out of range")) from None
        except TypeError as error:
            raise raised(TypeError(str(error).replace("list", self.kind.__name__))) from None

    def _index_of(self, tx: Following, key: Value) -> Any:
        """Return an index as a number or slice; `__index__` converts objects."""
        if not key.is_constant() and not isinstance(key, SliceValue):
            kind = key.python_type()
            if not hasattr(kind, "__index__"):
                name = self.kind.__name__ if self.kind in (list, collections.deque) else "tuple"
                raise raised(TypeError(f"{name} indices must be integers or slices, not {kind.__name__}"))
            key = key.method(tx, "__index__", [], {})
        return key.constant()

    def set_item(self, tx: Following, key: Value, value: Value) -> None:
        self._check_mutable("assignment")
        index = self._index_of(tx, key)
        added = value.items_of(tx) if isinstance(index, slice) else value
        tx.effects.mutates(self)
        try:
            self.counted()[index] = added
        except (IndexError, ValueError, TypeError) as error:
            raise raised(self._as_deque_error(error)) from None

    def delete_item(self, tx: Following, key: Value) -> None:
        self._check_mutable("deletion")
        index = self._index_of(tx, key)
        tx.effects.mutates(self)
        try:
            del self.counted()[index]
        except (IndexError, TypeError) as error:
            raise raised(self._as_deque_error(error)) from None

    def _as_deque_error(self, error: Exception) -> Exception:
        """Convert a list's error to the text of a deque's."""
        return IndexError("deque index out of range") if self.kind is not list and isinstance(error, IndexError) else error

    def _check_mutable(self, what: str) -> None:
        if not self.is_mutable:
            verb = "doesn't" if what == "deletion" else "does not"
            raise raised(TypeError(f"'{self.kind.__name__}' object {verb} support item {what}"))

    def attribute(self, tx: Following, name: str) -> Value:
        fields = getattr(self.kind, "_fields", ())
        if name in fields:
            return realized(self.held[fields.index(name)])
        member = getattr(self.kind, name, None)
        if fields and name not in ("_asdict", "_replace", "_make") and isinstance(member, types.FunctionType | property):
            if isinstance(member, property):
                return tx.wrap_constant(member.fget).call(tx, [self], {})
            return tx.method_of(self, tx.wrap_constant(member))
        if name == "maxlen" and self.kind is collections.deque:
            return ConstantValue(self.limit)
        return tx.bound_method(self, name)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = _SEQUENCE_METHODS.get(name)
        if handler is not None and (self.is_mutable or name in ("index", "count", "__contains__")) and hasattr(self.kind, name):
            return call_handler(handler, self, tx, args, kwargs)
        if name == "numel" and self.kind is Size:
            return from_python(math.prod(item.operand() for item in self.items))
        if name == "_asdict" and hasattr(self.kind, "_fields"):
            return MAKERS[dict](dict(zip(self.kind._fields, self.items, strict=True)))
        if name == "_replace" and hasattr(self.kind, "_fields"):
            items = [kwargs.get(field, item) for field, item in zip(self.kind._fields, self.items, strict=True)]
            return SequenceValue(items, self.kind)
        if not hasattr(self.kind, name):
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        if name.startswith("__") or not hasattr(self.kind, "_fields"):
            return special_method(self, tx, name, args)
        return self.attribute(tx, name).call(tx, args, kwargs)

    def node(self, tx: Following) -> Any:
        items = [item.node(tx) for item in self.items]
        if hasattr(self.kind, "_fields"):
            return self.kind(*items)
        return items if self.is_mutable else tuple(items)

    def write(self, writer: Writer) -> str:
        items = ", ".join(writer.expression(item) for item in self.counted())
        if self.kind is list:
            return f"[{items}]"
        if self.kind is tuple:
            return f"({items},)" if len(self.items) == 1 else f"({items})"
        name = writer.name_of(self.kind, self.kind.__name__)
        if self.limit is not None:
            return f"{name}([{items}], {self.limit})"
        return f"{name}({items})" if hasattr(self.kind, "_fields") else f"{name}([{items}])"

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Return statements that write these items to the object `target`."""
        items = ", ".join(writer.expression(item) for item in self.counted())
        kind = writer.name_of(self.kind, self.kind.__name__)
        if self.kind is list:
            return [f"{kind}.__setitem__({target}, slice(None), [{items}])" if self.is_part else f"{target}[:] = [{items}]"]
        if self.is_part:
            return [f"{kind}.clear({target})", f"{kind}.extend({target}, [{items}])"]
        return [f"{target}.clear()", f"{target}.extend([{items}])"]


def _find(self: SequenceValue, tx: Following, wanted: Value) -> Iterator[int]:
    for index, item in enumerate(self.items):
        if item is wanted or tx.compare("==", item, wanted).truth(tx):
            yield index


def _append(self: SequenceValue, tx: Following, value: Value) -> Value:
    tx.effects.mutates(self)
    self.items.append(value)
    return _drop_beyond_limit(self)


def _drop_beyond_limit(self: SequenceValue, at_end: bool = False) -> Value:
    """Drop items beyond a deque's maxlen, at its start or at its end."""
    if self.limit is not None and len(self.held) > self.limit:
        self.held[:] = self.held[: self.limit] if at_end else self.held[len(self.held) - self.limit :]
    return NONE


def _appendleft(self: SequenceValue, tx: Following, value: Value) -> Value:
    tx.effects.mutates(self)
    self.items.insert(0, value)
    return _drop_beyond_limit(self, at_end=True)


def _extend(self: SequenceValue, tx: Following, values: Value) -> Value:
    added = values.items_of(tx)
    tx.effects.mutates(self)
    self.items.extend(added)
    return _drop_beyond_limit(self)


def _extendleft(self: SequenceValue, tx: Following, values: Value) -> Value:
    added = values.items_of(tx)
    tx.effects.mutates(self)
    self.items[:0] = added[::-1]
    return _drop_beyond_limit(self, at_end=True)


def _rotate(self: SequenceValue, tx: Following, steps: Value = ConstantValue(1)) -> Value:  # noqa: B008
    tx.effects.mutates(self)
    rotated = collections.deque(self.items)
    rotated.rotate(steps.constant())
    self.items[:] = rotated
    return NONE


def _insert(self: SequenceValue, tx: Following, index: Value, value: Value) -> Value:
    if self.limit is not None and len(self.items) >= self.limit:
        raise raised(IndexError("deque already at its maximum size"))
    tx.effects.mutates(self)
    self.items.insert(index.constant(), value)
    return NONE


def _pop(self: SequenceValue, tx: Following, index: Value | None = None) -> Value:
    tx.effects.mutates(self)
    try:
        return self.items.pop(-1 if index is None else index.constant())
    except IndexError as error:
        raise raised(error) from None


def _popleft(self: SequenceValue, tx: Following) -> Value:
    return _pop(self, tx, ConstantValue(0))


def _remove(self: SequenceValue, tx: Following, value: Value) -> Value:
    index = next(_find(self, tx, value), None)
    if index is None:
        raise raised(ValueError("list.remove(x): x not in list"))
    tx.effects.mutates(self)
    del self.items[index]
    return NONE


def _clear(self: SequenceValue, tx: Following) -> Value:
    tx.effects.mutates(self)
    self.items.clear()
    return NONE


def _reverse(self: SequenceValue, tx: Following) -> Value:
    tx.effects.mutates(self)
    self.items.reverse()
    return NONE


def _sort(self: SequenceValue, tx: Following, key: Value = NONE, reverse: Value = ConstantValue(False)) -> Value:  # noqa: B008
    ordered = sort_values(tx, self.items, key, reverse)
    tx.effects.mutates(self)
    self.items[:] = ordered
    return NONE


def _copy(self: SequenceValue, tx: Following) -> Value:
    made = SequenceValue(list(self.items), self.kind)
    made.limit = self.limit
    return made


def _index(self: SequenceValue, tx: Following, value: Value, start: Value | None = None, stop: Value | None = None) -> Value:
    bounds = [None if bound is None else bound.constant() for bound in (start, stop)]
    inside = range(len(self.items))[slice(*bounds)]
    index = next((place for place in _find(self, tx, value) if place in inside), None)
    if index is None:
        text = f"{value} is not in {self.kind.__name__}" if self.is_mutable else "tuple.index(x): x not in tuple"
        raise raised(ValueError(text))
    return ConstantValue(index)


def _count(self: SequenceValue, tx: Following, value: Value) -> Value:
    return ConstantValue(sum(1 for _ in _find(self, tx, value)))


def _contains(self: SequenceValue, tx: Following, value: Value) -> Value:
    return ConstantValue(next(_find(self, tx, value), None) is not None)


_SEQUENCE_METHODS: dict[str, Callable] = {
    "append": _append, "appendleft": _appendleft, "extend": _extend, "insert": _insert, "pop": _pop, "popleft": _popleft,
    "remove": _remove, "clear": _clear, "reverse": _reverse, "sort": _sort, "copy": _copy, "index": _index,
    "count": _count, "extendleft": _extendleft, "rotate": _rotate, "__contains__": _contains,
}  # fmt: skip


class _Compared:
    """A sort key whose comparisons are followed."""

    def __init__(self, tx: Following, value: Value) -> None:
        self.tx = tx
        self.value = value

    def __lt__(self, other: _Compared) -> bool:
        return self.tx.compare("<", self.value, other.value).truth(self.tx)


def sort_values(tx: Following, values: list[Value], key: Value, reverse: Value) -> list[Value]:
    """Sort values like `sorted`."""
    is_plain = key.is_constant() and key.constant() is None
    keyed = values if is_plain else [key.call(tx, [value], {}) for value in values]
    order = [_Compared(tx, value) for value in keyed]
    positions = sorted(range(len(values)), key=order.__getitem__, reverse=reverse.truth(tx))
    return [values[position] for position in positions]


class RangeValue(ConstantValue):
    """A range of known numbers."""

    def length(self, tx: Following) -> Value:
        return ConstantValue(len(self.value))

    def items_of(self, tx: Following) -> list[Value]:
        self.check_length()
        return [ConstantValue(number) for number in self.value]

    def iterator(self, tx: Following) -> Value:
        self.check_length()
        return SequenceIteratorValue(self)

    def check_length(self) -> None:
        """Break the graph at a range that is too long to unroll."""
        if len(self.value) > 100_000:
            hint = "loop inside a function that is not compiled"
            raise GraphBreak(f"a loop over {len(self.value)} numbers would be unrolled", hint)

    def same_as(self, other: Value) -> bool:
        return self is other


class SliceValue(Value):
    """A slice."""

    def __init__(self, parts: list[Value]) -> None:
        self.parts = parts

    def python_type(self) -> type:
        return slice

    def is_constant(self) -> bool:
        return all(part.is_constant() for part in self.parts)

    def constant(self) -> Any:
        return slice(*[part.constant() for part in self.parts])

    def attribute(self, tx: Following, name: str) -> Value:
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return tx.bound_method(self, name)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return fold(getattr(self.constant(), name), *args, **kwargs)

    def node(self, tx: Following) -> Any:
        return slice(*[part.node(tx) for part in self.parts])

    def write(self, writer: Writer) -> str:
        return f"slice({', '.join(writer.expression(part) for part in self.parts)})"


class SequenceIteratorValue(IteratorValue):
    """An iterator over a list, tuple or range that may change during iteration. `index` is -1 at its end."""

    def __init__(self, owner: SequenceValue | RangeValue) -> None:
        super().__init__(self._iterate(), type(iter(owner.python_type()(()) if isinstance(owner, SequenceValue) else range(0))))
        self.owner = owner
        self.index = 0

    def _iterate(self) -> Iterator[Value]:
        while self.index < self._count():
            self.index += 1
            if isinstance(self.owner, RangeValue):
                yield ConstantValue(self.owner.value[self.index - 1])
            else:
                yield realized(self.owner.held[self.index - 1])
        self.index = -1

    def _count(self) -> int:
        return len(self.owner.value if isinstance(self.owner, RangeValue) else self.owner.counted())

    def write(self, writer: Writer) -> str:
        if self.index < 0:
            return "iter(())"
        made = writer.keep(f"iter({writer.expression(self.owner)})")
        if self.index:
            writer.statement(f"{made}.__setstate__({self.index})")
        return made


def _sequence_maker(kind: type) -> Callable[[Any], Value]:
    return lambda value: SequenceValue([from_python(item) for item in value], kind)


MAKERS.update({kind: _sequence_maker(kind) for kind in (list, tuple, Size)})
MAKERS[range] = RangeValue
MAKERS[slice] = lambda value: SliceValue([from_python(part) for part in (value.start, value.stop, value.step)])
