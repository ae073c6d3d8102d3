"""Constructors of containers, and copies of containers."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import TYPE_CHECKING

from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.builtin import handles
from rushlight.dynamo.values.constant import NONE, fold, raised
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.sequences import RangeValue, SequenceValue, SliceValue
from rushlight.dynamo.values.sets import SetValue, operand

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


@handles(list)
def _list(tx: Following, values: Value | None = None) -> Value:
    return SequenceValue([] if values is None else values.items_of(tx), list)


@handles(tuple)
def _tuple(tx: Following, values: Value | None = None) -> Value:
    return SequenceValue([] if values is None else values.items_of(tx), tuple)


@handles(collections.deque)
def _deque(tx: Following, iterable: Value | None = None, maxlen: Value = NONE) -> Value:
    made = SequenceValue([], collections.deque)
    made.limit = maxlen.constant()
    if iterable is not None:
        made.method(tx, "extend", [iterable], {})
    return made


@handles(dict)
def _dict(tx: Following, values: Value | None = None, /, **named: Value) -> Value:
    made = DictValue({}, dict)
    made.method(tx, "update", [] if values is None else [values], named)
    return made


@handles(collections.OrderedDict)
def _ordered_dict(tx: Following, values: Value | None = None, /, **named: Value) -> Value:
    made = DictValue({}, collections.OrderedDict)
    made.method(tx, "update", [] if values is None else [values], named)
    return made


@handles(collections.defaultdict)
def _defaultdict(tx: Following, factory: Value = NONE, values: Value | None = None, /, **named: Value) -> Value:
    made = DictValue({}, collections.defaultdict, None, factory)
    made.method(tx, "update", [] if values is None else [values], named)
    return made


@handles(collections.namedtuple)
def _named_tuple_class(tx: Following, *args: Value, **kwargs: Value) -> Value:
    """Make the class once, at capture: each run gets the same."""
    options = {"module": tx.module_globals.get("__name__"), **{name: value.snapshot() for name, value in kwargs.items()}}
    try:
        kind = collections.namedtuple(*[value.snapshot() for value in args], **options)
    except (TypeError, ValueError) as error:
        raise raised(error) from None
    tx.guards.name(kind, kind.__name__, is_owned=True)
    return tx.wrap_class(kind)


@handles(set, frozenset)
def _set(tx: Following, values: Value | None = None) -> Value:
    return SetValue([] if values is None else operand(tx, values), set)


HANDLERS[frozenset] = lambda tx, values=None: SetValue([] if values is None else operand(tx, values), frozenset)


@handles(range)
def _range(tx: Following, *bounds: Value) -> Value:
    found = fold(range, *bounds)
    return RangeValue(found.constant())


@handles(slice)
def _slice(tx: Following, *parts: Value) -> Value:
    padded = [NONE, *parts, NONE] if len(parts) == 1 else [*parts, *[NONE] * (3 - len(parts))]
    return SliceValue(padded)


def _from_keys(kind: type) -> Callable:
    factory = NONE if kind is collections.defaultdict else None
    return lambda tx, keys, value=NONE: DictValue({tx.key(key): value for key in keys.items_of(tx)}, kind, None, factory)


for _kind in (dict, collections.OrderedDict, collections.defaultdict):
    HANDLERS[_kind.fromkeys] = _from_keys(_kind)
