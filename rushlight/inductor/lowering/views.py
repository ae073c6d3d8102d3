"""Lowering of view operators to index maps, without copies. Views that are no index map are copied."""

from __future__ import annotations

from rushlight.core.algebra import as_expr, flatten_index, unflatten_index
from rushlight.core.strides import expand_strides, infer_size, wrap_dim, wrap_dims
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.lowering.slices import slice_bounds
from rushlight.inductor.sizes import as_sizes


@lowering("alias", "detach", "lift_fresh")
def alias(graph, self):
    return self


@lowering("contiguous")
def contiguous(graph, self, *, memory_format=None):
    """Return a no-op: only outputs have a layout, which is chosen when they are lowered."""
    return self


@lowering("view")
def view(graph, self, size):
    numel = 1
    for extent in self.size:
        numel *= extent
    return self.reshape(infer_size(tuple(size), numel))


@lowering("permute")
def permute(graph, self, dims):
    order = wrap_dims(dims, len(self.size))
    positions = sorted(range(len(order)), key=order.__getitem__)
    return self.view([self.size[dim] for dim in order], lambda index: [index[position] for position in positions])


@lowering("expand")
def expand(graph, self, size, *, implicit=False):
    target, _ = expand_strides(self.size, (0,) * len(self.size), tuple(size))
    graph.prepare(self, target)
    extra, own = len(target) - len(self.size), self.size
    zero = as_expr(0)

    def reindex(index):
        return [zero if extent == 1 else index[extra + dim] for dim, extent in enumerate(own)]

    return self.view(target, reindex)


@lowering("select.int")
def select(graph, self, dim, index):
    dim = wrap_dim(dim, len(self.size))
    chosen = as_expr(index + self.size[dim] if index < 0 else index)
    size = (*self.size[:dim], *self.size[dim + 1 :])
    return self.view(size, lambda rest: [*rest[:dim], chosen, *rest[dim:]])


@lowering("slice.Tensor")
def slice_(graph, self, dim=0, start=None, end=None, step=1):
    dim = wrap_dim(dim, len(self.size))
    first, last = slice_bounds(start, end, self.size[dim])
    length = max(0, -(-(last - first) // step))
    size = (*self.size[:dim], length, *self.size[dim + 1 :])
    return self.view(size, lambda index: [*index[:dim], index[dim] * step + first, *index[dim + 1 :]])


@lowering("unsqueeze")
def unsqueeze(graph, self, dim):
    dim = wrap_dim(dim, len(self.size) + 1)
    return self.view((*self.size[:dim], 1, *self.size[dim:]), lambda index: [*index[:dim], *index[dim + 1 :]])


@lowering("squeeze.dims")
def squeeze(graph, self, dim):
    dropped = {d for d in wrap_dims(dim, len(self.size)) if self.size and self.size[d] == 1}
    kept = [d for d in range(len(self.size)) if d not in dropped]
    zero = as_expr(0)

    def reindex(index):
        full = [zero] * (len(kept) + len(dropped))
        for position, dimension in enumerate(kept):
            full[dimension] = index[position]
        return full

    return self.view([self.size[d] for d in kept], reindex)


@lowering("as_strided")
def as_strided(graph, self, size, stride, storage_offset=None):
    """Support views of a row-major tensor that starts at its storage's beginning; `support.py` rejects others."""
    base = graph.copy(self) if graph.row_major_operand(self) is None else self

    def reindex(index):
        return unflatten_index(flatten_index(index, stride, storage_offset or 0), as_sizes(base.size))

    return base.view(tuple(size), reindex)
