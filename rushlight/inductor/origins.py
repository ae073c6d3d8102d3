"""Origins of buffers: the graph's nodes and the user's lines that they come from.

In: the arguments and results of a node's lowering. Out: origins on the boxes and buffers that were made, including those of
inlined loops. Stage: inductor, lowering.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rushlight.inductor.ir import Buffer, ComputedBuffer, TemplateBuffer

if TYPE_CHECKING:
    from rushlight.inductor.tensor_box import StorageBox


def note(name: str, lines: tuple[str, ...], given: list[StorageBox], made: list[StorageBox], added: Iterable[Buffer]) -> None:
    """Record the origin of the boxes and buffers that were made by lowering a node. Their origins are the node and, except for
    templates, those of arguments without a buffer, because such loops are inlined."""
    inlined = [storage for storage in given if storage.buffer is None]
    behind = union(*(storage.origins for storage in inlined), (name,)), union(*(storage.lines for storage in inlined), lines)
    loops = [storage for storage in made if storage.buffer is None] + [b for b in added if isinstance(b, ComputedBuffer)]
    for each in loops:
        if not each.origins:
            each.origins, each.lines = behind
    for each in added:
        if isinstance(each, TemplateBuffer):
            each.origins = (name,)


def origins_of(buffer: ComputedBuffer | TemplateBuffer) -> tuple[str, ...]:
    """Return the graph's nodes that a computed buffer comes from, in order."""
    return buffer.origins or (buffer.data.origin if isinstance(buffer, ComputedBuffer) else buffer.origin,)


def union(*parts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct strings of all parts, in order."""
    return tuple(dict.fromkeys(each for part in parts for each in part))


def joined(buffer: Buffer, others: Iterable[Buffer]) -> dict[str, tuple[str, ...]]:
    """Merge the origins and lines of a buffer with those of the buffers that it replaces; returns them as fields."""
    every = [*others, buffer]
    return {"origins": union(*(each.origins for each in every)), "lines": union(*(each.lines for each in every))}
