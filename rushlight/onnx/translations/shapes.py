"""Views, joins and indexing as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.core.dtype import int64
from rushlight.onnx.builder import GraphBuilder, Value
from rushlight.onnx.errors import OnnxExporterError
from rushlight.onnx.translations.table import translation

_END = (1 << 63) - 1


@translation("view", "_unsafe_view", "reshape", "_reshape_alias")
def view(g: GraphBuilder, x: Value, size: Sequence[Any], *_: Any) -> str:
    return g.reshape(x, list(size))


@translation("permute")
def permute(g: GraphBuilder, x: Value, dims: Sequence[int]) -> str:
    return g.op("Transpose", x, perm=[dim % len(x.shape) for dim in dims])


@translation("transpose", "t")
def transpose(g: GraphBuilder, x: Value, first: int = 0, second: int = 1) -> str:
    order = list(range(len(x.shape)))
    if order:
        order[first], order[second] = order[second], order[first]
    return g.op("Transpose", x, perm=order)


@translation("unsqueeze")
def unsqueeze(g: GraphBuilder, x: Value, dim: int) -> str:
    return g.op("Unsqueeze", x, g.ints([dim % (len(x.shape) + 1)]))


@translation("squeeze")
def squeeze(g: GraphBuilder, x: Value, dims: Any = None) -> str:
    chosen = range(len(x.shape)) if dims is None else [dims] if isinstance(dims, int) else dims
    single = [dim % len(x.shape) for dim in chosen if x.shape and x.shape[dim] == 1]
    return g.op("Squeeze", x, g.ints(single)) if single else g.op("Identity", x)


@translation("expand")
def expand(g: GraphBuilder, x: Value, size: Sequence[Any], *, implicit: bool = False) -> str:
    return g.op("Expand", x, g.shape([1 if type(each) is int and each == -1 else each for each in size]))


@translation("slice")
def slice(g: GraphBuilder, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> str:
    limits = [g.shape([0 if start is None else start]), g.shape([_END if end is None else end])]
    return g.op("Slice", x, *limits, g.ints([dim]), g.ints([step]))


@translation("select")
def select(g: GraphBuilder, x: Value, dim: int, index: Any) -> str:
    return g.op("Gather", x, g.tensor(index, int64), axis=dim)


@translation("cat")
def cat(g: GraphBuilder, tensors: Sequence[Value], dim: int = 0) -> str:
    kept = [each for each in tensors if each.shape != (0,)] or tensors[:1]
    return g.op("Concat", *(g.tensor(each, g.output.dtype) for each in kept), axis=dim)


@translation("constant_pad_nd")
def pad(g: GraphBuilder, x: Value, pad: Sequence[Any], value: Any = 0) -> str:
    before, after = [0] * len(x.shape), [0] * len(x.shape)
    for place in range(len(pad) // 2):
        before[-1 - place], after[-1 - place] = pad[2 * place], pad[2 * place + 1]
    return g.op("Pad", x, g.shape([*before, *after]), g.tensor(value, x.dtype), mode="constant")


@translation("index_select")
def index_select(g: GraphBuilder, x: Value, dim: int, index: Value) -> str:
    return g.op("Gather", x, index, axis=dim)


@translation("gather")
def gather(g: GraphBuilder, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> str:
    return g.op("GatherElements", x, index, axis=dim)


@translation("scatter")
def scatter(g: GraphBuilder, x: Value, dim: int, index: Value, source: Any, **options: Any) -> str:
    values = source if isinstance(source, Value) else g.op("Expand", g.scalar(source, x.dtype), g.op("Shape", index))
    return g.op("ScatterElements", x, index, values, axis=dim)


@translation("select_scatter")
def select_scatter(g: GraphBuilder, x: Value, source: Value, dim: int, index: int) -> str:
    """Concatenate the part before the index, the new values, and the part after the index."""
    dim %= len(x.shape)
    new = g.op("Unsqueeze", g.op("Expand", source, g.shape(_without(g, x, dim))), g.ints([dim]))
    start, end = (index, index + 1) if index != -1 else (-1, _END)
    parts = [g.op("Slice", x, g.ints([first]), g.ints([last]), g.ints([dim])) for first, last in ((0, start), (end, _END))]
    return g.op("Concat", parts[0], new, parts[1], axis=dim)


def _without(g: GraphBuilder, x: Value, dim: int) -> list[Any]:
    """Return the sizes of all dimensions but one, as values."""
    return [
        Value(g.op("Gather", g.op("Shape", x), g.scalar(other, int64), axis=0), None)
        for other in range(len(x.shape)) if other != dim
    ]  # fmt: skip


@translation("slice_scatter")
def slice_scatter(
    g: GraphBuilder, x: Value, source: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> str:  # fmt: skip
    """Values of the places that a slice has, by the numbers of the places."""
    dim %= len(x.shape)
    size = g.op("Gather", g.op("Shape", x), g.scalar(dim, int64), axis=0)
    places = g.op("Range", g.scalar(0, int64), size, g.scalar(1, int64))
    limits = [g.shape([0 if start is None else start]), g.shape([_END if end is None else end])]
    chosen = g.op("Slice", places, *limits, g.ints([0]), g.ints([step]))
    rank = len(x.shape)
    index = g.op("Expand", g.reshape(chosen, [1] * dim + [-1] + [1] * (rank - dim - 1)), g.op("Shape", source))
    return g.op("ScatterElements", x, index, source, axis=dim)


@translation("index")
def index(g: GraphBuilder, x: Value, indices: Sequence[Value | None]) -> str:
    """Indices of one dimension by Gather; of several that follow each other by GatherND, with them moved to the front."""
    dims = [dim for dim, each in enumerate(indices) if each is not None]
    if any(indices[dim].dtype is not int64 for dim in dims):
        raise OnnxExporterError("indexing by a mask has a result whose size depends on values, which is not translated")
    if len(dims) == 1:
        return g.op("Gather", x, indices[dims[0]], axis=dims[0])
    if dims != list(range(dims[0], dims[-1] + 1)):
        raise OnnxExporterError("indexing dimensions that do not follow each other by tensors is not translated")
    rank = max(len(indices[dim].shape) for dim in dims)
    shape = g.op("Shape", _broadcast(g, [indices[dim] for dim in dims]))
    places = g.op("Concat", *(g.op("Unsqueeze", g.op("Expand", indices[dim], shape), g.ints([-1])) for dim in dims), axis=-1)
    order = [*dims, *(dim for dim in range(len(x.shape)) if dim not in dims)]
    found = g.op("GatherND", g.op("Transpose", x, perm=order), places)
    count = dims[0]
    back = [*range(rank, rank + count), *range(rank), *range(rank + count, rank + len(x.shape) - len(dims))]
    return found if not count else g.op("Transpose", found, perm=back)


def _broadcast(g: GraphBuilder, values: Sequence[Value]) -> str:
    """Return a tensor of the shape that values have together."""
    found = values[0].name
    for other in values[1:]:
        found = g.op("Add", found, other)
    return found


@translation("embedding")
def embedding(g: GraphBuilder, weight: Value, indices: Value, *_: Any) -> str:
    return g.op("Gather", weight, indices, axis=0)


@translation("repeat")
def repeat(g: GraphBuilder, x: Value, repeats: Sequence[Any]) -> str:
    return g.op("Tile", g.reshape(x, [1] * (len(repeats) - len(x.shape)) + [0] * len(x.shape)), g.shape(repeats))
