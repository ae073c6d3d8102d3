"""Composite indexing: stacking, masks, index and scatter families."""

from __future__ import annotations

from rushlight.core.strides import broadcast_shapes, wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("stack(Tensor[] tensors, int dim=0) -> Tensor")
def stack(tensors, dim=0):
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].shape
    for index, tensor in enumerate(tensors):
        if tensor.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and {list(tensor.shape)} at "
                f"entry {index}"
            )
    dim = wrap_dim(dim, len(first) + 1)
    return aten.cat.default([aten.unsqueeze.default(tensor, dim) for tensor in tensors], dim)


@composite("concat(Tensor[] tensors, int dim=0) -> Tensor", "concatenate(Tensor[] tensors, int dim=0) -> Tensor")
def concat(tensors, dim=0):
    return aten.cat.default(tensors, dim)


@composite("vstack(Tensor[] tensors) -> Tensor")
def vstack(tensors):
    return aten.cat.default([tensor.view(1, -1) if tensor.dim() < 2 else tensor for tensor in tensors], 0)


@composite("hstack(Tensor[] tensors) -> Tensor")
def hstack(tensors):
    rows = [aten.reshape.default(tensor, (1,)) if tensor.dim() == 0 else tensor for tensor in tensors]
    return aten.cat.default(rows, min(1, rows[0].dim() - 1))


@composite("masked_select(Tensor self, Tensor mask) -> Tensor")
def masked_select(self, mask):
    shape = aten.broadcast_tensors([self, mask])
    return aten.index.Tensor(shape[0], [shape[1]])


@composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]")
def broadcast_tensors(tensors):
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return tuple(aten.expand.default(tensor, shape) for tensor in tensors)


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
def take_along_dim(self, indices, dim=None):
    if dim is None:
        return aten.gather.default(aten.reshape.default(self, (-1,)), 0, aten.reshape.default(indices, (-1,)))
    return aten.gather.default(self, dim, indices)


def _spread(self: Tensor, dim: int, index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A 1-D index along `dim` as the full-shape index that scatter and gather take."""
    view = [1] * self.dim()
    view[dim] = index.numel()
    return aten.expand.default(aten.view.default(index, view), shape)


@composite("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor")
def index_add(self, dim, index, source, *, alpha=1):
    dim = wrap_dim(dim, self.dim())
    values = source if alpha == 1 else source * alpha
    return aten.scatter_add.default(self, dim, _spread(self, dim, index, source.shape), values)


@composite("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor")
def index_copy(self, dim, index, source):
    dim = wrap_dim(dim, self.dim())
    return aten.scatter.src(self, dim, _spread(self, dim, index, source.shape), source)


@composite("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
def index_fill(self, dim, index, value):
    dim = wrap_dim(dim, self.dim())
    shape = (*self.shape[:dim], index.numel(), *self.shape[dim + 1 :])
    source = aten.full.default(shape, value, dtype=self.dtype, device=self.device)
    return aten.scatter.src(self, dim, _spread(self, dim, index, shape), source)


@composite("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
def scatter_value(self, dim, index, value):
    source = aten.full.default(index.shape, value, dtype=self.dtype, device=self.device)
    return aten.scatter.src(self, dim, index, source)


@composite("scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)")
def scatter_value_(self, dim, index, value):
    return aten.copy_.default(self, scatter_value(self, dim, index, value))


@composite("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
def select_scatter(self, src, dim, index):
    made = aten.clone.default(self)
    aten.copy_.default(aten.select.int(made, dim, index), src)
    return made


@composite(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor"
)
def slice_scatter(self, src, dim=0, start=None, end=None, step=1):
    made = aten.clone.default(self)
    aten.copy_.default(aten.slice.Tensor(made, dim, start, end, step), src)
    return made


@composite("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
def repeat_interleave(self, repeats, dim=None, *, output_size=None):
    source = aten.reshape.default(self, (-1,)) if dim is None else self
    dim = wrap_dim(0 if dim is None else dim, source.dim())
    spread = aten.unsqueeze.default(source, dim + 1)
    shape = list(spread.shape)
    shape[dim + 1] = repeats
    return aten.flatten.using_ints(aten.expand.default(spread, shape), dim, dim + 1)
