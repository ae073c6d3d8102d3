"""Layouts and memory formats: names that callers pass; every dense tensor here is `strided`."""

from __future__ import annotations


class layout:
    """The storage layout of a tensor: `strided`, `sparse_coo`, `sparse_csr` or `sparse_csc`; the others are names only."""

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
sparse_csr, sparse_csc = layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")
jagged, _mkldnn = layout("jagged"), layout("_mkldnn")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
CHANNELS_LAST_RANKS = {channels_last: 4, channels_last_3d: 5}
"""The channels-last formats, with the rank of tensors that each is for."""

LAYOUTS = (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged, _mkldnn)
"""All layouts that have a name."""
_ALL = {
    value.name: value for value in (*LAYOUTS, contiguous_format, preserve_format, channels_last, channels_last_3d)
}


def _named(name: str) -> layout | memory_format:
    return _ALL[name]
