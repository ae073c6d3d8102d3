"""Composite operators that cut a tensor into several views: unbind, split, chunk, tensor_split and their relatives.

Views that one call returns together may not be written to in place while autograd records, as in torch: `unbind`, `split` and
`chunk` mark theirs. The parts of `tensor_split` are slices like any other. The parts of the `unsafe_` forms share memory
with their source, but neither its version counter nor a base.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import VersionCounter
from rushlight.core.thread_state import state
from rushlight.core.view_origin import MULTIPLE_VIEWS
from rushlight.ops.composite.views import stand_alone
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


def _mark_multiple_views(views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Mark the views of one call, so that autograd forbids recorded in-place writes to them."""
    if state.grad_enabled and not state.inference:
        for view in views:
            if view._impl.view is not None:
                view._impl.view.origin = MULTIPLE_VIEWS
    return tuple(views)


def _detach_from_base(views: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Detach the views of one call from their base, with a version counter each."""
    for view in views:
        stand_alone(view)
        view._impl.version = VersionCounter()
    return tuple(views)


@composite("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
def unbind(self, dim=0):
    if not self.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return _mark_multiple_views([aten.select.int(self, dim, index) for index in range(self.size(dim))])


def _pieces(self: Tensor, sizes: Sequence[int], dim: int) -> list[Tensor]:
    start, parts = 0, []
    for size in sizes:
        parts.append(aten.slice.Tensor(self, dim, start, start + size))
        start += size
    return parts


def _check_sizes(self: Tensor, sizes: Sequence[int], dim: int) -> None:
    if not self.dim():
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    size = self.size(dim)
    if any(part < 0 for part in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but "
            f"got split_sizes={list(sizes)}"
        )


def _equal_sizes(self: Tensor, split_size: int, dim: int) -> list[int]:
    """Return the sizes of parts of `split_size` along `dim`; the last may be smaller."""
    if not self.dim():
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    size = self.size(dim)
    if not split_size and size:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    parts, rest = [], size
    while rest > split_size:  # for a symbolic size, this loop adds guards on the number of parts, not on the size
        parts.append(split_size)
        rest = rest - split_size
    return [*parts, rest]


def _chunk_sizes(self: Tensor, chunks: int, dim: int) -> list[int]:
    if not self.dim():
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self.size(dim)
    if size % chunks == 0:
        return [size // chunks] * chunks
    return _equal_sizes(self, -(-size // chunks), dim)


@composite("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
def split_with_sizes(self, split_sizes, dim=0):
    _check_sizes(self, split_sizes, dim)
    return _mark_multiple_views(_pieces(self, split_sizes, dim))


@composite("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
def split(self, split_size, dim=0):
    return _mark_multiple_views(_pieces(self, _equal_sizes(self, split_size, dim), dim))


@composite("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
def split_sizes(self, split_size, dim=0):
    return split_with_sizes(self, split_size, dim)


@composite("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
def chunk(self, chunks, dim=0):
    return _mark_multiple_views(_pieces(self, _chunk_sizes(self, chunks, dim), dim))


@composite("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
def unsafe_split(self, split_size, dim=0):
    return _detach_from_base(_pieces(self, _equal_sizes(self, split_size, dim), dim))


@composite("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
def unsafe_split_with_sizes(self, split_sizes, dim=0):
    _check_sizes(self, split_sizes, dim)
    return _detach_from_base(_pieces(self, split_sizes, dim))


@composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
def unsafe_chunk(self, chunks, dim=0):
    return _detach_from_base(_pieces(self, _chunk_sizes(self, chunks, dim), dim))


def _check_can_be_cut(self: Tensor) -> None:
    if not self.dim():
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")


@composite("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
def tensor_split(self, sections, dim=0):
    _check_can_be_cut(self)
    axis = wrap_dim(dim, self.dim())
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    small, extra = divmod(self.size(axis), sections)
    return tuple(_pieces(self, [small + 1] * extra + [small] * (sections - extra), axis))


@composite("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
def tensor_split_indices(self, indices, dim=0):
    _check_can_be_cut(self)
    axis = wrap_dim(dim, self.dim())
    bounds = [0, *indices, self.size(axis)]
    return tuple(aten.slice.Tensor(self, axis, first, last) for first, last in zip(bounds, bounds[1:], strict=False))


@composite(
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]"
)
def tensor_split_tensor(self, tensor_indices_or_sections, dim=0):
    where = tensor_indices_or_sections
    _check_can_be_cut(self)
    if where.dtype is not int64:
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {where.dtype.scalar_name}"
        )
    if where.dim() > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a "
            f"tensor with {where.dim()} dims"
        )
    positions = where.tolist()
    return tensor_split_indices(self, positions, dim) if where.dim() else tensor_split(self, positions, dim)


def _define_stacked_split(name: str, least_rank: int, dim: int) -> None:
    """Define `hsplit`, `vsplit` or `dsplit`: tensor_split along a fixed dimension, into equal parts if given a number."""

    def dimension(self: Tensor) -> int:
        if self.dim() < least_rank:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least_rank} dimension, but got a tensor with {self.dim()} "
                "dimensions!"
            )
        return 0 if name == "hsplit" and self.dim() == 1 else dim

    @composite(f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
    def by_sections(self, sections):
        along = dimension(self)
        if sections == 0 or self.size(along) % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {along}, but the size of the dimension {self.size(along)} "
                f"is not divisible by the split_size {sections}!"
            )
        return tensor_split(self, sections, along)

    @composite(f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
    def by_indices(self, indices):
        return tensor_split_indices(self, indices, dimension(self))


_define_stacked_split("hsplit", 1, 1)
_define_stacked_split("vsplit", 2, 0)
_define_stacked_split("dsplit", 3, 2)
