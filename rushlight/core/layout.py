"""Layouts and memory formats: names that callers pass; every dense tensor here is `strided`."""

from __future__ import annotations


class layout:
    """How a tensor's elements are kept: `strided` or `sparse_coo`."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (_named, (self.name,))


class memory_format:
    """The order of a result's strides: contiguous_format, preserve_format, channels_last, channels_last_3d."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (_named, (self.name,))


strided = layout("strided")
sparse_coo = layout("sparse_coo")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
CHANNELS_LAST_RANKS = {channels_last: 4, channels_last_3d: 5}
"""The formats that put channels innermost, with the number of dimensions that each is for."""

_ALL = {
    value.name: value
    for value in (strided, sparse_coo, contiguous_format, preserve_format, channels_last, channels_last_3d)
}


def _named(name: str) -> layout | memory_format:
    return _ALL[name]
