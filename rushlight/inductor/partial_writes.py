"""Partial writes to inputs: new elements are stored into the input, the others are not touched.

In: graphs in which `copy_` writes nested slice scatters of an input's old value back to it, as functionalization leaves
`cache[:, :, n : n + 1] = x`. Out: which nodes are such a value, and a Scatter that replaces them, which may run in place
(`write_backs.changed_in_place`). Stage: inductor, lowering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rushlight.core.algebra import Expr
from rushlight.core.strides import wrap_dim
from rushlight.fx.node import Node, map_arg
from rushlight.inductor.lowering.scatters import scatter_box
from rushlight.inductor.lowering.slices import slice_bounds
from rushlight.inductor.sizes import Size, as_size
from rushlight.inductor.tensor_box import TensorBox
from rushlight.inductor.write_backs import is_write_back
from rushlight.ops.registry import aten

# Scatter operator -> the view whose elements it replaces.
VIEWS = {aten("slice_scatter"): aten("slice.Tensor"), aten("select_scatter"): aten("select.int")}


@dataclass(frozen=True, slots=True)
class PartialWrite:
    """`source` replaces the elements of `root` selected by the views of `scatters`, the outermost first."""

    root: Node
    source: Node
    scatters: tuple[Node, ...]


def partial_writes(nodes: Iterable[Node]) -> dict[Node, PartialWrite]:
    """Return node of an input's new value -> the partial write that makes it."""
    calculated, writes = set(), []
    for node in nodes:
        if is_write_back(node):
            writes.append(node)
        elif not writes:  # after the first write, only views of the new values may follow
            calculated.add(node)
    found = (_find_partial_write(*node.args[:2], calculated) for node in writes)
    return {write.scatters[0]: write for write in found if write is not None}


def _find_partial_write(root: Node, value: Node, calculated: set[Node]) -> PartialWrite | None:
    scatters, views = [], {root}
    while value.target in VIEWS and value.args[0] in views and (not scatters or len(value.users) == 1):
        scatters.append(value)
        source = value.args[1]
        views = {node for node in value.args[0].users if _is_view_of(node, value)}
        value = source
    if not scatters or not root.meta["val"].is_contiguous():
        return None
    if any(node.op == "output" for node in scatters[0].users) or not _only_scattered_into(root, scatters, calculated):
        return None
    return PartialWrite(root, value, tuple(scatters))


def _is_view_of(node: Node, scatter: Node) -> bool:
    return node.target is VIEWS[scatter.target] and node.args[1:] == scatter.args[2:] and not node.kwargs and not scatter.kwargs


def _only_scattered_into(node: Node, scatters: list[Node], calculated: set[Node]) -> bool:
    """Return whether a node's old value is only read by scatters, and by views that only scatters read."""
    return all(
        user in scatters or user.target in VIEWS.values() and _only_scattered_into(user, scatters, calculated)
        for user in node.users
        if user in calculated
    )


@dataclass(frozen=True, slots=True)
class _ViewMap:
    """Maps a view's coordinates to those of its base: select index `first` of `dim`, or a slice from `first` by `step`."""

    dim: int
    first: Size
    step: int | None

    def to_base(self, at: list[Expr | Size]) -> list[Expr | Size]:
        if self.step is None:
            return [*at[: self.dim], self.first, *at[self.dim :]]
        return [*at[: self.dim], at[self.dim] * self.step + self.first, *at[self.dim + 1 :]]


def lower_partial_write(graph, write: PartialWrite, boxes: dict[Node, object]) -> TensorBox:
    """Return a Scatter of the source's elements into the root."""
    base, source = boxes[write.root], boxes[write.source]
    ways = [_view_map_of(scatter, boxes) for scatter in write.scatters]

    def coordinates(at: Sequence[Expr], known: dict[int, Expr]) -> list[Expr | Size]:
        for way in reversed(ways):
            at = way.to_base(list(at))
        return at

    return scatter_box(
        graph, base, source.size, lambda at: {}, coordinates, source.value, "store", wrap=False, distinct=True
    )  # fmt: skip


def _view_map_of(scatter: Node, boxes: dict[Node, object]) -> _ViewMap:
    size = scatter.meta["val"].shape
    dim, *bounds = map_arg(scatter.args[2:], boxes.__getitem__) or (0,)
    dim = wrap_dim(dim, len(size))
    if scatter.target is aten("select_scatter"):
        (position,) = bounds
        return _ViewMap(dim, as_size(position + size[dim] if position < 0 else position), None)
    start, end, step = (*bounds, *(None, None, 1)[len(bounds) :])
    return _ViewMap(dim, as_size(slice_bounds(start, end, size[dim])[0]), step)
