"""Composite operators that rearrange elements into a new tensor: repeating, flipping, rolling, rotating, diagonals."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.layout import contiguous_format
from rushlight.core.strides import outermost_first, wrap_dim, wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("repeat(Tensor self, SymInt[] repeats) -> Tensor")
def repeat(self, repeats):
    extra = len(repeats) - self.dim()
    if extra < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor "
            f"(got {list(repeats)} for a tensor of shape {list(self.shape)})"
        )
    if any(count < 0 for count in repeats):
        raise RuntimeError(f"Number of repeats can not be negative, but got {list(repeats)}")
    sizes = (1,) * extra + tuple(self.shape)
    spread = [part for count in zip((1,) * len(sizes), sizes, strict=True) for part in count]
    target = [part for count in zip(repeats, sizes, strict=True) for part in count]
    whole = aten.expand.default(aten.view.default(aten.contiguous.default(self), spread), target)
    return aten.view.default(
        aten.clone.default(whole, memory_format=contiguous_format),
        [count * size for count, size in zip(repeats, sizes, strict=True)],
    )


@composite("tile(Tensor self, SymInt[] dims) -> Tensor")
def tile(self, dims):
    return repeat(self, (1,) * (self.dim() - len(dims)) + tuple(dims))


@composite("flip(Tensor self, int[] dims) -> Tensor")
def flip(self, dims):
    wrapped = wrap_dims(dims, max(self.dim(), 1))
    if not self.dim() or not wrapped:
        return aten.clone.default(self)
    # Selecting gives row-major tensors, so permute first to keep the memory order of `self`.
    order = outermost_first(self._impl.sizes, [self._impl.strides])
    if order == list(range(self.dim())):
        return _flip(self, wrapped)
    flipped = _flip(aten.permute.default(self, order), [order.index(dim) for dim in wrapped])
    return aten.permute.default(flipped, [order.index(dim) for dim in range(self.dim())])


def _flip(self: Tensor, dims: Sequence[int]) -> Tensor:
    for dim in dims:
        backwards = aten.arange.start_step(self.size(dim) - 1, -1, -1, device=self.device)
        self = aten.index_select.default(self, dim, backwards)
    return self


@composite("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor")
def roll(self, shifts, dims=()):
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return roll(aten.reshape.default(self, (-1,)), shifts, (0,)).view(self.shape)
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not self.dim():
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    result = self
    for shift, dim in zip(shifts, dims, strict=True):
        size = self.size(dim)
        cut = size - shift % size if size else 0
        result = aten.cat.default([aten.slice.Tensor(result, dim, cut, size), aten.slice.Tensor(result, dim, 0, cut)], dim)
    return result


@composite("fliplr(Tensor self) -> Tensor")
def fliplr(self):
    if self.dim() < 2:
        raise RuntimeError(f"Input must be >= 2-d. (fliplr got {self.dim()} dimensions)")
    return flip(self, (1,))


@composite("flipud(Tensor self) -> Tensor")
def flipud(self):
    if self.dim() < 1:
        raise RuntimeError("Input must be >= 1-d. (flipud got 0 dimensions)")
    return flip(self, (0,))


@composite("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor")
def rot90(self, k=1, dims=(0, 1)):
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.dim()}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == self.dim():
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    first, second = (wrap_dim(dim, self.dim()) for dim in dims)
    turns = k % 4
    if turns == 1:
        return aten.transpose.int(flip(self, (second,)), first, second)
    if turns == 2:
        return flip(self, (first, second))
    if turns == 3:
        return aten.transpose.int(flip(self, (first,)), first, second)
    return aten.clone.default(self, memory_format=contiguous_format)


@composite("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
def diag_embed(self, offset=0, dim1=-2, dim2=-1):
    rank = self.dim() + 1
    first, second = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if not self.dim():
        raise IndexError("Dimension out of range: diag_embed needs a tensor of at least 1 dimension, got a 0-dim one")
    side = self.size(-1) + abs(offset)
    sizes = list(self.shape[:-1])
    for dim in sorted((first, second)):
        sizes.insert(dim, side)
    whole = aten.new_zeros.default(self, sizes)  # like `self` it is mapped over by vmap
    return aten.diagonal_scatter.default(whole, self, offset, first, second)


@composite("diag(Tensor self, int diagonal=0) -> Tensor")
def diag(self, diagonal=0):
    if self.dim() == 1:
        return aten.diag_embed.default(self, diagonal)
    if self.dim() == 2:
        return aten.diagonal_copy.default(self, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.dim()}D")


@composite("diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(self, offset=0):
    return aten.diag_embed.default(aten.reshape.default(aten.contiguous.default(self), (-1,)), offset)


@composite("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)")
def fill_diagonal_(self, fill_value, wrap=False):
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if self.dim() == 2 and wrap and self.size(0) > self.size(1) + 1:
        for start in range(0, self.size(0), self.size(1) + 1):
            block = aten.slice.Tensor(self, 0, start, start + self.size(1))
            aten.fill_.Scalar(aten.diagonal.default(block), fill_value)
        return self
    length = min(self.shape)
    diagonal = aten.as_strided.default(self, (length,), (sum(self.stride()),), self.storage_offset())
    aten.fill_.Scalar(diagonal, fill_value)
    return self
