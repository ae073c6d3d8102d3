"""Composite view operators: transpose, reshape, split and their relatives, by way of the view primitives."""

from __future__ import annotations

import math

from rushlight.core.layout import contiguous_format, preserve_format
from rushlight.core.strides import (
    infer_size,
    view_strides,
    wrap_dim,
    wrap_dims,
)
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
)
def transpose(self, dim0, dim1):
    rank = self.dim()
    a, b = wrap_dim(dim0, rank), wrap_dim(dim1, rank)
    if rank == 0:
        return aten.alias(self)
    order = list(range(rank))
    order[a], order[b] = b, a
    return aten.permute.default(self, order)


@composite("t(Tensor(a) self) -> Tensor(a)")
def t(self):
    if self.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
    return aten.permute.default(self, list(reversed(range(self.dim()))))


@composite("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)")
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
    sources, targets = wrap_dims(source, rank), wrap_dims(destination, rank)
    rest = iter(dim for dim in range(rank) if dim not in sources)
    placed = dict(zip(targets, sources, strict=True))
    return aten.permute.default(self, [placed[dim] if dim in placed else next(rest) for dim in range(rank)])


@composite("mH(Tensor(a) self) -> Tensor(a)")
def mh(self):
    if self.is_complex():
        raise NotImplementedError("Tensor.mH of complex tensors is not supported: conjugation is missing")
    return matrix_transpose(self)


@composite("numpy_T(Tensor(a) self) -> Tensor(a)")
def numpy_t(self):
    return aten.permute.default(self, list(reversed(range(self.dim()))))


@composite("mT(Tensor(a) self) -> Tensor(a)", "adjoint(Tensor(a) self) -> Tensor(a)")
def matrix_transpose(self):
    if self.dim() < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.dim()}-D tensor.")
    return transpose(self, -2, -1)


@composite("squeeze(Tensor(a) self) -> Tensor(a)")
def squeeze(self):
    return aten.squeeze.dims(self, [dim for dim, size in enumerate(self.shape) if size == 1])


@composite("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
def squeeze_dim(self, dim):
    return aten.squeeze.dims(self, [wrap_dim(dim, self.dim())] if self.dim() else [])


@composite("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
def narrow(self, dim, start, length):
    if self.dim() == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self.size(dim)
    if not -size <= start <= size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return aten.slice.Tensor(self, dim, start, start + length)


@composite("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
def unbind(self, dim=0):
    return tuple(aten.select.int(self, dim, index) for index in range(self.size(dim)))


@composite("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
def split_with_sizes(self, split_sizes, dim=0):
    size = self.size(dim)
    if sum(split_sizes) != size or any(part < 0 for part in split_sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but "
            f"got split_sizes={list(split_sizes)}"
        )
    start, parts = 0, []
    for part in split_sizes:
        parts.append(aten.slice.Tensor(self, dim, start, start + part))
        start += part
    return tuple(parts)


@composite("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
def split(self, split_size, dim=0):
    size = self.size(dim)
    if split_size < 0 or (split_size == 0 and size):
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if size == 0:
        return (aten.alias(self),)
    return tuple(
        aten.slice.Tensor(self, dim, start, min(start + split_size, size)) for start in range(0, size, split_size)
    )


@composite("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
def split_sizes(self, split_size, dim=0):
    return split_with_sizes(self, split_size, dim)


@composite("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
def chunk(self, chunks, dim=0):
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = self.size(dim)
    return split(self, -(-size // chunks) or 1, dim) if size else (aten.alias(self),) * chunks


@composite("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
def tensor_split(self, sections, dim=0):
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    small, extra = divmod(self.size(dim), sections)
    return split_with_sizes(self, [small + 1] * extra + [small] * (sections - extra), dim)


@composite(
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]"
)
def tensor_split_tensor(self, tensor_indices_or_sections, dim=0):
    where = tensor_indices_or_sections.tolist()
    return tensor_split_indices(self, where, dim) if isinstance(where, list) else tensor_split(self, where, dim)


@composite("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
def tensor_split_indices(self, indices, dim=0):
    bounds = [0, *indices, self.size(dim)]
    return tuple(aten.slice.Tensor(self, dim, first, last) for first, last in zip(bounds, bounds[1:], strict=False))


@composite("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)")
def reshape(self, shape):
    impl = self._impl
    sizes = infer_size(tuple(shape), impl.numel)
    if view_strides(impl.sizes, impl.strides, sizes) is not None:
        return aten.view.default(self, sizes)
    return aten.view.default(aten.clone.default(self, memory_format=contiguous_format), sizes)


@composite("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)")
def view_dtype(self, dtype):
    raise NotImplementedError(
        f"view(dtype): reading the memory of a tensor of {self.dtype} as {dtype} is not supported; convert values with .to()"
    )


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
    reduced = aten.sum.dim_IntList(self, dims, True) if dims else self
    return aten.view.default(reduced, size) if extra else reduced


@composite("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)")
def broadcast_to(self, size):
    return aten.expand.default(self, size)


@composite("ravel(Tensor(a) self) -> Tensor(a)")
def ravel(self):
    return reshape(self, (-1,))


@composite("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
def flatten(self, start_dim=0, end_dim=-1):
    rank = self.dim()
    start, end = wrap_dim(start_dim, rank), wrap_dim(end_dim, rank)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if rank == 0:
        return reshape(self, (1,))
    sizes = self.shape
    return reshape(self, (*sizes[:start], math.prod(sizes[start : end + 1]), *sizes[end + 1 :]))


@composite("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
def unflatten(self, dim, sizes):
    dim = wrap_dim(dim, self.dim())
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
    if not impl.sizes:
        return aten.as_strided.default(self, (size,), (1,), impl.storage_offset)
    dim = wrap_dim(dimension, self.dim())
    if not 0 <= size <= impl.sizes[dim]:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {impl.sizes[dim]} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    count = (impl.sizes[dim] - size) // step + 1
    sizes = [*impl.sizes[:dim], count, *impl.sizes[dim + 1 :], size]
    strides = [*impl.strides[:dim], impl.strides[dim] * step, *impl.strides[dim + 1 :], impl.strides[dim]]
    return aten.as_strided.default(self, sizes, strides, impl.storage_offset)


@composite("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)")
def contiguous(self, *, memory_format=None):
    wanted = memory_format or contiguous_format
    if self.is_contiguous(wanted) or wanted is preserve_format:
        return self
    return aten.clone.default(self, memory_format=wanted)


@composite("repeat(Tensor self, SymInt[] repeats) -> Tensor")
def repeat(self, repeats):
    extra = len(repeats) - self.dim()
    if extra < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor "
            f"(got {list(repeats)} for a tensor of shape {list(self.shape)})"
        )
    sizes = (1,) * extra + tuple(self.shape)
    spread = [part for count in zip((1,) * len(sizes), sizes, strict=True) for part in count]
    target = [part for count in zip(repeats, sizes, strict=True) for part in count]
    whole = aten.expand.default(aten.view.default(contiguous(self), spread), target)
    return aten.view.default(
        aten.clone.default(whole, memory_format=contiguous_format),
        [count * size for count, size in zip(repeats, sizes, strict=True)],
    )


@composite("tile(Tensor self, SymInt[] dims) -> Tensor")
def tile(self, dims):
    return repeat(self, (1,) * (self.dim() - len(dims)) + tuple(dims))


@composite("flip(Tensor self, int[] dims) -> Tensor")
def flip(self, dims):
    result = self
    for dim in wrap_dims(dims, self.dim()):
        size = self.size(dim)
        order = aten.arange.start_step(size - 1, -1, -1, device=self.device)
        result = aten.index_select.default(result, dim, order) if self.dim() else result
    return result if result is not self else aten.clone.default(self)


@composite("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor")
def roll(self, shifts, dims=()):
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return roll(flatten(self), shifts, (0,)).view(self.shape)
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    result = self
    for shift, dim in zip(shifts, dims, strict=True):
        size = self.size(dim)
        cut = size - shift % size if size else 0
        result = aten.cat.default(
            [aten.slice.Tensor(result, dim, cut, size), aten.slice.Tensor(result, dim, 0, cut)], dim
        )
    return result

