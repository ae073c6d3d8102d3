"""Named tuples for operators with several named results: `torch.max(x, 0).values`.

One class per operator name, created lazily from the names of the results in its schema.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from rushlight.ops.packet import OpOverloadPacket, namespaces

_made: dict[str, type] = {}


def has_named_results(packet: OpOverloadPacket) -> bool:
    """Return whether the public function of an operator returns a named tuple, by the texts of its schemas."""
    for op in packet._declared:
        _, several, results = op.declaration.rpartition("-> (")
        if several and all(" " in result.strip() for result in results.split(",")):
            return True
    return False


def return_type_of(packet: OpOverloadPacket) -> type | None:
    """Return the named tuple of an operator's public function; None where its results have no names."""
    found = _made.get(packet.__name__)
    if found is not None:
        return found
    for op in packet._overloads:
        names = tuple(result.name for result in op._schema.returns)
        if len(names) > 1 and all(names):
            return _named_tuple(packet.__name__, names)
    return None


def _named_tuple(name: str, fields: tuple[str, ...]) -> type:
    base = namedtuple(name, fields)
    body = {"__slots__": (), "__new__": _new, "__repr__": _repr, "__module__": __name__}
    body["__doc__"] = f"What {name} returns: {fields}."
    return _made.setdefault(name, type(name, (base,), body))  # another thread may have created it first


def _new(cls: type, *values: Any) -> tuple:
    """Make a tuple of the results, which are given as one sequence or one by one."""
    parts = tuple(values[0]) if len(values) == 1 else values
    if len(parts) != len(cls._fields):
        raise TypeError(f"{cls.__name__}() takes a {len(cls._fields)}-sequence ({len(parts)}-sequence given)")
    return tuple.__new__(cls, parts)


def is_return_type(kind: type) -> bool:
    """Return whether a class was made here."""
    return _made.get(kind.__name__) is kind


def _repr(self: tuple) -> str:
    rows = [f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)]
    return f"torch.return_types.{type(self).__name__}(\n" + ",\n".join(rows) + ")"


def __getattr__(name: str) -> type:
    packet = getattr(namespaces.namespace("aten"), name, None)
    found = return_type_of(packet) if isinstance(packet, OpOverloadPacket) else None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
