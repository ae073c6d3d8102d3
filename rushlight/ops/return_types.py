"""Named tuples for operators with several named results: `torch.max(x, 0).values`.

One class per operator name, made from the names of the results in its schema.
"""

from __future__ import annotations

from collections import namedtuple

from rushlight.ops.packet import OpOverloadPacket

_made: dict[str, type] = {}


def return_type_of(packet: OpOverloadPacket) -> type | None:
    """The named tuple that the public function of an operator returns; None where its results have no names."""
    for op in packet._overloads:
        names = tuple(result.name for result in op._schema.returns)
        if len(names) > 1 and all(names):
            return _named_tuple(packet.__name__, names)
    return None


def _named_tuple(name: str, fields: tuple[str, ...]) -> type:
    found = _made.get(name)
    if found is None:
        base = namedtuple(name, fields)
        body = {"__slots__": (), "__repr__": _repr, "__module__": __name__, "__doc__": f"What {name} returns: {fields}."}
        found = _made[name] = type(name, (base,), body)
        globals()[name] = found
    return found


def _repr(self: tuple) -> str:
    rows = [f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True)]
    return f"torch.return_types.{type(self).__name__}(\n" + ",\n".join(rows) + ")"
