"""Composite view operators: transpose, reshape, diagonal and their relatives, built on the view primitives."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.dtype import bool_
from rushlight.core.layout import contiguous_format, preserve_format
from rushlight.core.strides import infer_size, view_strides, wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
)
def transpose(self, dim0, dim1):
    rank = self.dim()
    a, b = wrap_dim(dim0, rank), wrap_dim(dim1, rank)
    if rank == 0:
        return aten.alias(self)
    order = list(range(rank))
    order[a], order[b] = b, a
    return aten.permute.default(self, order)


@composite("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
def swapaxes(self, axis0, axis1):
    return transpose(self, axis0, axis1)


@composite("sym_size.int(Tensor self, int dim) -> SymInt")
def sym_size(self, dim):
    return self.size(dim)


@composite("sym_stride.int(Tensor self, int dim) -> SymInt")
def sym_stride(self, dim):
    return self.stride(dim)


@composite("sym_numel(Tensor self) -> SymInt")
def sym_numel(self):
    return self.numel()


@composite("t(Tensor(a) self) -> Tensor(a)")
def t(self):
    if self.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
    return aten.permute.default(self, list(reversed(range(self.dim()))))


@composite(
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
)
def movedim_int(self, source, destination):
    return movedim(self, (source,), (destination,))


@composite(
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
)
def movedim(self, source, destination):
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of "
            f"dims as destination ({list(destination)} dims)"
        )
    rank = self.dim()
    sources, targets = _distinct(source, rank, "source"), _distinct(destination, rank, "destination")
    rest = iter(dim for dim in range(rank) if dim not in sources)
    placed = dict(zip(targets, sources, strict=True))
    return aten.permute.default(self, [placed[dim] if dim in placed else next(rest) for dim in range(rank)])


def _distinct(dims: Sequence[int], rank: int, role: str) -> tuple[int, ...]:
    wrapped = tuple(wrap_dim(dim, rank) for dim in dims)
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError(f"movedim: repeated dim in `{role}` ({list(dims)})")
    return wrapped


@composite("mT(Tensor(a) self) -> Tensor(a)")
def matrix_transpose(self):
    _check_matrices(self, "tensor.mT")
    return _last_two_exchanged(self)


@composite("mH(Tensor(a) self) -> Tensor(a)")
def matrix_conjugate_transpose(self):
    _check_matrices(self, "tensor.mH")
    return _conjugate(_last_two_exchanged(self))


@composite("adjoint(Tensor(a) self) -> Tensor(a)")
def adjoint(self):
    _check_matrices(self, "tensor.adjoint()")
    return _conjugate(_last_two_exchanged(self))


@composite("matrix_H(Tensor(a) self) -> Tensor(a)")
def matrix_h(self):
    if self.dim() not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor. For batches of matrices, "
            "consider using tensor.mH"
        )
    return _conjugate(numpy_t(self))


def _check_matrices(self: Tensor, name: str) -> None:
    if self.dim() == 1:
        raise RuntimeError(f"{name} is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor.")


def _last_two_exchanged(self: Tensor) -> Tensor:
    return transpose(self, -2, -1) if self.dim() else self


def _conjugate(self: Tensor) -> Tensor:
    return aten.conj(self) if self.is_complex() else self


@composite("numpy_T(Tensor(a) self) -> Tensor(a)")
def numpy_t(self):
    return aten.permute.default(self, list(reversed(range(self.dim()))))


@composite("squeeze(Tensor(a) self) -> Tensor(a)")
def squeeze(self):
    return aten.squeeze.dims(self, [dim for dim, size in enumerate(self.shape) if size == 1])


@composite("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
def squeeze_dim(self, dim):
    return aten.squeeze.dims(self, [wrap_dim(dim, self.dim())])


@composite("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
def narrow(self, dim, start, length):
    if not self.dim():
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self.size(dim)
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return aten.slice.Tensor(self, dim, start, start + length)


@composite("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)")
def narrow_tensor(self, dim, start, length):
    if start.dim() or not start.dtype.is_integral or start.dtype is bool_:
        raise RuntimeError(f"start must be an 0-dim integral Tensor. Got {start.dtype} of shape {list(start.shape)}")
    return narrow(self, dim, start.item(), length)


@composite("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)")
def reshape(self, shape):
    impl = self._impl
    sizes = infer_size(tuple(shape), impl.numel)
    if view_strides(impl.sizes, impl.strides, sizes) is not None:
        return aten.view.default(self, sizes)
    return unsafe_view(aten.clone.default(self, memory_format=contiguous_format), sizes)


@composite("_unsafe_view(Tensor self, SymInt[] size) -> Tensor")
def unsafe_view(self, size):
    # Nobody else holds the base, so the result need not be a view.
    made = aten.view.default(self, size)
    stand_alone(made)
    return made


def stand_alone(view: Tensor) -> None:
    """Turn a view whose base nobody else changes into an independent tensor, with its part of the base's tangents."""
    for level in state.dual_levels:
        level.settle(view)
    view._impl.view = None


@composite("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)")
def reshape_alias(self, size, stride):
    return aten.as_strided.default(self, size, stride)


@composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)")
def view_as(self, other):
    return aten.view.default(self, other.shape)


@composite("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)")
def reshape_as(self, other):
    return reshape(self, other.shape)


@composite("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)")
def expand_as(self, other):
    return aten.expand.default(self, other.shape)


@composite("sum_to_size(Tensor self, SymInt[] size) -> Tensor")
def sum_to_size(self, size):
    extra = self.dim() - len(size)
    if extra < 0 or any(want not in (1, have) for want, have in zip(size, self.shape[extra:], strict=True)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(self.shape)}}}.")
    dims = [*range(extra), *(extra + d for d, want in enumerate(size) if want == 1 and self.size(extra + d) != 1)]
    reduced = aten.sum.dim_IntList(self, dims, True) if dims or not size else self
    return aten.view.default(reduced, size) if extra else reduced


@composite("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)")
def broadcast_to(self, size):
    return aten.expand.default(self, size)


@composite("ravel(Tensor(a) self) -> Tensor(a)")
def ravel(self):
    return aten.view.default(contiguous(self), (-1,))


@composite("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
def flatten(self, start_dim=0, end_dim=-1):
    rank = self.dim()
    start, end = wrap_dim(start_dim, rank), wrap_dim(end_dim, rank)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if rank == 0:
        return reshape(self, (1,))
    if start == end:
        return self
    sizes = self.shape
    return reshape(self, (*sizes[:start], math.prod(sizes[start : end + 1]), *sizes[end + 1 :]))


@composite("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
def unflatten(self, dim, sizes):
    dim = wrap_dim(dim, self.dim())
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not self.dim():
        raise RuntimeError("unflatten got an unexpected error: Dimension specified as 0 but tensor has no dimensions")
    shape = self.shape
    try:
        parts = infer_size(tuple(sizes), shape[dim])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the input "
            "tensor"
        ) from None
    return aten.view.default(self, (*shape[:dim], *parts, *shape[dim + 1 :]))


@composite("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
def diagonal(self, offset=0, dim1=0, dim2=1):
    impl = self._impl
    first, second = wrap_dim(dim1, self.dim()), wrap_dim(dim2, self.dim())
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = impl.sizes[first], impl.sizes[second]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    skipped = (offset * impl.strides[second] if offset >= 0 else -offset * impl.strides[first]) if length else 0
    kept = [dim for dim in range(self.dim()) if dim not in (first, second)]
    sizes = [*(impl.sizes[dim] for dim in kept), length]
    strides = [*(impl.strides[dim] for dim in kept), impl.strides[first] + impl.strides[second]]
    return aten.as_strided.default(self, sizes, strides, impl.storage_offset + skipped)


@composite("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)")
def unfold(self, dimension, size, step):
    impl = self._impl
    dim = wrap_dim(dimension, self.dim())
    length = impl.sizes[dim] if impl.sizes else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not impl.sizes:
        return aten.as_strided.default(self, (size,), (1,), impl.storage_offset)
    count = (length - size) // step + 1
    sizes = [*impl.sizes[:dim], count, *impl.sizes[dim + 1 :], size]
    strides = [*impl.strides[:dim], impl.strides[dim] * step, *impl.strides[dim + 1 :], impl.strides[dim]]
    return aten.as_strided.default(self, sizes, strides, impl.storage_offset)


@composite("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
def contiguous(self, *, memory_format=None):
    wanted = memory_format or contiguous_format
    if self.is_contiguous(wanted) or wanted is preserve_format:
        return self
    return aten.clone.default(self, memory_format=wanted)
