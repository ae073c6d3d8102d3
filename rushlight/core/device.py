"""Devices: where a tensor's memory lies. `cpu` holds data; `meta` holds sizes and strides only."""

from __future__ import annotations

_KNOWN = ("cpu", "meta")


class device:
    """`device("cpu")`, `device("cpu:0")`, `device("cpu", 0)`; RuntimeError for a type that does not exist here."""

    __slots__ = ("type", "index")

    def __init__(self, type: str | device, index: int | None = None):
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str or device, not {type.__class__.__name__}")
        name, colon, number = type.partition(":")
        if name not in _KNOWN or (colon and not number.isdigit()):
            raise RuntimeError(f"Expected one of {', '.join(_KNOWN)} device type at start of device string: {type}")
        self.type = name
        self.index = int(number) if colon else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        suffix = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{suffix})"

    def __reduce__(self):
        return (device, (self.type, self.index))


CPU = device("cpu")
META = device("meta")


def as_device(value: device | str | None) -> device:
    """`value` as a device; None means the CPU."""
    if value is None:
        return CPU
    if isinstance(value, device):
        return value
    return device(value)
