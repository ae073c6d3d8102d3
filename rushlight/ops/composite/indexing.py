"""Composite indexing: stacking, masks, index and scatter families."""

from __future__ import annotations

from rushlight.core.dtype import bool_, int32, int64
from rushlight.core.layout import contiguous_format
from rushlight.core.strides import broadcast_shapes, wrap_dim
from rushlight.ops.meta.checks import is_channels_last
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
    if dim < len(first) and all(map(is_channels_last, tensors)):
        sizes = [*first[:dim], len(tensors), *first[dim:]]
        return aten._unsafe_view.default(aten.cat.default(tensors, dim), sizes)
    return aten.cat.default([aten.unsqueeze.default(tensor, dim) for tensor in tensors], dim)


@composite("concat(Tensor[] tensors, int dim=0) -> Tensor", "concatenate(Tensor[] tensors, int dim=0) -> Tensor")
def concat(tensors, dim=0):
    return aten.cat.default(tensors, dim)


@composite("masked_select(Tensor self, Tensor mask) -> Tensor")
def masked_select(self, mask):
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, but got {mask.dtype}")
    if not self.dim() and not mask.dim():
        self = aten.unsqueeze.default(self, 0)
    values, chosen = broadcast_tensors([self, mask])
    return aten.index.Tensor(values, [chosen])


@composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]")
def broadcast_tensors(tensors):
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return tuple(aten.expand.default(tensor, shape) for tensor in tensors)


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
def take_along_dim(self, indices, dim=None):
    if dim is None:
        self, indices, dim = aten.reshape.default(self, (-1,)), aten.reshape.default(indices, (-1,)), 0
    if self.dim() != indices.dim():
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {self.dim()} "
            f"dimensions for input, and {indices.dim()} dimensions for indices"
        )
    if indices.dtype is not int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}")
    dim = wrap_dim(dim, self.dim())
    size = self.size(dim)
    others = [(*tensor.shape[:dim], 1, *tensor.shape[dim + 1 :]) for tensor in (self, indices)]
    common = broadcast_shapes(*others)
    values = aten.expand.default(self, (*common[:dim], size, *common[dim + 1 :]))
    positions = aten.expand.default(indices, (*common[:dim], indices.size(dim), *common[dim + 1 :]))
    return aten.gather.default(values, dim, aten.where.self(positions < 0, positions + size, positions))


@composite("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor")
def scatter_value(self, dim, index, value):
    source = aten.full.default(index.shape, value, dtype=self.dtype, device=self.device)
    return aten.scatter.src(self, dim, index, source)


@composite("scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)")
def scatter_value_(self, dim, index, value):
    return aten.copy_.default(self, scatter_value(self, dim, index, value))


@composite("repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor")
def repeat_interleave(self, repeats, dim=None, *, output_size=None):
    if isinstance(repeats, int) and repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    source = aten.reshape.default(self, (-1,)) if dim is None else self
    dim = wrap_dim(0 if dim is None else dim, source.dim())
    if output_size is not None and output_size != source.size(dim) * repeats:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {source.size(dim) * repeats} but got {output_size}"
        )
    spread = aten.unsqueeze.default(source, dim + 1)
    shape = list(spread.shape)
    shape[dim + 1] = repeats
    # Copy even if nothing is repeated.
    copied = aten.clone.default(aten.expand.default(spread, shape), memory_format=contiguous_format)
    return aten.flatten.using_ints(copied, dim, dim + 1)


@composite("repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor")
def repeated_positions(repeats, *, output_size=None):
    if repeats.dim() != 1 or repeats.dtype not in (int32, int64):
        raise RuntimeError(
            f"repeat_interleave: expected 1-D repeats of int32 or int64, got shape {list(repeats.shape)} and {repeats.dtype}"
        )
    if not repeats.numel():
        return aten.clone.default(repeats)
    if aten.amin.default(repeats).item() < 0:
        raise RuntimeError("repeats can not be negative")
    columns = aten.arange.default(aten.amax.default(repeats).item(), device=repeats.device)
    rows = aten.nonzero.default(columns < aten.unsqueeze.default(repeats, 1))
    if output_size is not None and output_size != rows.size(0):
        raise RuntimeError(
            f"repeat_interleave: allocated size does not match required size: the repeats add up to {rows.size(0)}, but got "
            f"output_size={output_size}"
        )
    return aten.select.int(rows, 1, 0).to(repeats.dtype)


@composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor"
)
def repeat_interleave_tensor(self, repeats, dim=None, *, output_size=None):
    source = aten.reshape.default(self, (-1,)) if dim is None else self
    dim = wrap_dim(0 if dim is None else dim, source.dim())
    counts = aten.reshape.default(repeats, (-1,)) if repeats.dim() == 0 else repeats
    if counts.numel() == 1:
        counts = aten.expand.default(counts, (source.size(dim),))
    if counts.size(0) != source.size(dim):
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size(0)} and "
            f"input.size({dim}) = {source.size(dim)}"
        )
    return aten.index_select.default(source, dim, repeated_positions(counts, output_size=output_size))
