"""Handles: proxies of the IR's objects that expose their parts as methods with torch's names."""

from __future__ import annotations

_HANDLES: dict[type, type] = {}
"""The kind of handle for each kind of object."""


class Handle:
    """A proxy of an IR object; equal to other handles of it."""

    __slots__ = ("raw",)

    def __init_subclass__(cls, of: type) -> None:
        _HANDLES[of] = cls

    def __init__(self, raw: object):
        self.raw = raw

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and self.raw is other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") or name == "raw":
            raise AttributeError(name)
        return getattr(self.raw, name)

    def __str__(self) -> str:
        return str(self.raw)

    def __repr__(self) -> str:
        return str(self.raw)


def unwrapped(item: object) -> object:
    """Return the object behind a handle; anything else as it is."""
    return item.raw if isinstance(item, Handle) else item


def wrapped(raw: object) -> object:
    """Return the handle of an object of the IR; anything else as it is."""
    kind = _HANDLES.get(type(raw))
    return raw if kind is None else kind(raw)
