"""Whence buffers come: the nodes of the graph and the user's lines behind each.

In: what a node was lowered from and to. Out: the boxes and buffers that were made know the node, and those behind the loops
that became part of them. Stage: inductor, lowering.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rushlight.inductor.ir import Buffer, ComputedBuffer, TemplateBuffer

if TYPE_CHECKING:
    from rushlight.inductor.tensor_box import StorageBox


def note(name: str, lines: tuple[str, ...], given: list[StorageBox], made: list[StorageBox], added: Iterable[Buffer]) -> None:
    """Tell what a node of that name and those lines made, boxes and `added` buffers, where it comes from: from the node and,
    but for templates, from the loops among what it was `given` that no buffer holds, which are part of it."""
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
    """The nodes of the graph behind a buffer that is calculated, in order."""
    return buffer.origins or (buffer.data.origin if isinstance(buffer, ComputedBuffer) else buffer.origin,)


def union(*parts: Iterable[str]) -> tuple[str, ...]:
    """Each string once, in order."""
    return tuple(dict.fromkeys(each for part in parts for each in part))


def joined(buffer: Buffer, others: Iterable[Buffer]) -> dict[str, tuple[str, ...]]:
    """The origins and lines of a buffer that does the work of others, too, as fields."""
    every = [*others, buffer]
    return {"origins": union(*(each.origins for each in every)), "lines": union(*(each.lines for each in every))}
