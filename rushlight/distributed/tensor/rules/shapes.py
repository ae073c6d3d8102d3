"""Rules of operators that change the form: a cut follows its dimension to where that goes."""

from __future__ import annotations

import math

from rushlight.core.strides import wrap_dim
from rushlight.distributed.tensor.placement_types import Shard
from rushlight.distributed.tensor.rules.strategies import Call, P, R, Strategy, everywhere, rule, same, shards


def _following(call: Call, goes: dict[int, int]) -> list[Strategy]:
    """Return the strategies in which dimension `a` of the input is cut, which is dimension `goes[a]` of all outputs."""
    cuts = [Strategy((Shard(old),), (Shard(new),) * len(call.outputs)) for old, new in goes.items()]
    return [everywhere(call), *cuts, same(call, P)]


@rule("view", "_unsafe_view", "reshape")
def view(call: Call) -> list[Strategy]:
    """A cut stays on the first of the dimensions that are joined or split, if all ranks have equal parts of it."""
    shape, result = call.specs[0].shape, call.outputs[0]
    ranks = math.lcm(*call.specs[0].mesh.shape)
    goes = {
        old[0]: new[0]
        for old, new in _joined(shape, result)
        if old and new and (len(old) == len(new) == 1 or shape[old[0]] % ranks == result[new[0]] % ranks == 0)
    }
    return _following(call, goes)


def _joined(before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return which dimensions of one shape hold the elements of which of another; those of length 1 are skipped."""
    olds = [dim for dim, size in enumerate(before) if size != 1]
    news = [dim for dim, size in enumerate(after) if size != 1]
    groups = []
    while olds and news:
        old, new = [olds.pop(0)], [news.pop(0)]
        while (left := math.prod(before[dim] for dim in old)) != (right := math.prod(after[dim] for dim in new)):
            side, rest = (old, olds) if left < right else (new, news)
            if not rest:
                return groups
            side.append(rest.pop(0))
        groups.append((old, new))
    return groups


@rule("permute")
def permute(call: Call) -> list[Strategy]:
    """Dimensions in another order."""
    ndim = len(call.outputs[0])
    return _following(call, {wrap_dim(old, ndim): new for new, old in enumerate(call.argument(1))})


@rule("transpose")
def transpose(call: Call) -> list[Strategy]:
    """Two dimensions exchanged."""
    ndim = len(call.outputs[0])
    a, b = wrap_dim(call.argument(1), ndim), wrap_dim(call.argument(2), ndim)
    return _following(call, {dim: {a: b, b: a}.get(dim, dim) for dim in range(ndim)})


@rule("t")
def t(call: Call) -> list[Strategy]:
    """A matrix transposed."""
    return _following(call, {0: 1, 1: 0} if len(call.outputs[0]) == 2 else {0: 0})


@rule("unsqueeze")
def unsqueeze(call: Call) -> list[Strategy]:
    """A dimension of length 1 more."""
    at = wrap_dim(call.argument(1), len(call.outputs[0]))
    return _following(call, {dim: dim + (dim >= at) for dim in range(len(call.specs[0].shape))})


@rule("squeeze")
def squeeze(call: Call) -> list[Strategy]:
    """Dimensions of length 1 left out."""
    shape = call.specs[0].shape
    dims = call.argument(1)
    chosen = range(len(shape)) if dims is None else [dims] if isinstance(dims, int) else dims
    gone = [dim for dim in (wrap_dim(dim, len(shape)) for dim in chosen) if shape[dim] == 1]
    return _following(call, {dim: dim - sum(other < dim for other in gone) for dim in range(len(shape)) if dim not in gone})


@rule("expand")
def expand(call: Call) -> list[Strategy]:
    """Dimensions of length 1 repeated."""
    shape, result = call.specs[0].shape, call.outputs[0]
    more = len(result) - len(shape)
    return _following(call, {dim: dim + more for dim, size in enumerate(shape) if size == result[dim + more]})


@rule("slice", "narrow", "split", "split_with_sizes", "chunk", "flip", "roll", "index_select")
def along_whole_dim(call: Call) -> list[Strategy]:
    """Parts along a dimension, which must be whole."""
    ndim = len(call.specs[0].shape)
    position = 2 if call.op._opname in ("split", "split_with_sizes", "chunk") else 1
    given = call.argument(position, 0)
    if call.op._opname in ("flip", "roll"):
        return [everywhere(call)]
    cuts = shards(ndim, [wrap_dim(given, ndim)])
    rest = (R,) * (len(call.specs) - 1)
    return [everywhere(call)] + [Strategy((cut, *rest), (cut,) * len(call.outputs)) for cut in [*cuts, P]]


@rule("gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce")
def by_index(call: Call) -> list[Strategy]:
    """Elements at places along a dimension, which must be whole; other dimensions are cut where all tensors have the same."""
    shapes = [spec.shape for spec in call.specs]
    ndim = len(shapes[0])
    whole = [wrap_dim(call.argument(1, 0), ndim)] if ndim else []
    cuts = [cut for cut in shards(ndim, whole) if len({shape[cut.dim] for shape in shapes}) == 1]
    return [everywhere(call), *(same(call, cut) for cut in cuts)]


@rule("index")
def index(call: Call) -> list[Strategy]:
    """Elements by tensors of places: the tensor is cut along dimensions without places, or the places are cut."""
    indices, places = call.argument(1), call.specs[1:]
    indexed = [dim for dim, each in enumerate(indices) if each is not None]
    together = indexed == list(range(indexed[0], indexed[-1] + 1))
    start = indexed[0] if together else 0
    width = len(call.outputs[0]) - (len(call.specs[0].shape) - len(indexed))
    kept = [dim for dim in range(len(call.specs[0].shape)) if dim not in indexed]
    rest = (R,) * len(places)
    found = [everywhere(call), Strategy((P, *rest), (P,))]
    for number, dim in enumerate(kept):
        found.append(Strategy((Shard(dim), *rest), (Shard(number if number < start else number + width),)))
    if len(places) == len(indexed) and len({spec.shape for spec in places}) == 1:
        found += [Strategy((R, *(cut for _ in places)), (Shard(start + cut.dim),)) for cut in shards(width)]
    return found


@rule("select", "unbind")
def select(call: Call) -> list[Strategy]:
    """Parts along a dimension, which must be whole, and which then is missing."""
    ndim = len(call.specs[0].shape)
    at = wrap_dim(call.argument(1, 0), ndim)
    return _following(call, {dim: dim - (dim > at) for dim in range(ndim) if dim != at})


@rule("cat", "stack")
def cat(call: Call) -> list[Strategy]:
    """Tensors joined along a dimension, which must be whole."""
    ndim = len(call.outputs[0])
    at = wrap_dim(call.argument(1, 0), ndim)
    if call.op._opname == "cat":
        return [everywhere(call), *(same(call, cut) for cut in shards(ndim, [at])), same(call, P)]
    cuts = [Strategy((Shard(dim),) * len(call.specs), (Shard(dim + (dim >= at)),)) for dim in range(ndim - 1)]
    return [everywhere(call), *cuts, same(call, P)]


@rule("constant_pad_nd")
def pad(call: Call) -> list[Strategy]:
    """Values around a tensor, along dimensions that must be whole; zeros can be added before a sum."""
    ndim, pads = len(call.outputs[0]), call.argument(1)
    padded = [ndim - 1 - place // 2 for place, size in enumerate(pads) if size]
    found = [everywhere(call), *(same(call, cut) for cut in shards(ndim, padded))]
    return found if call.argument(2, 0) else [*found, same(call, P)]
