"""Operators of sparse tensors: two primitives that connect a tensor and its values for autograd, and kernels.

All other functions are written with these and dense operators, in `functions`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

from rushlight.autograd.derivative_table import derivative
from rushlight.core.device import require_host
from rushlight.core.dtype import promote_types
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor, wrap
from rushlight.ops.dispatcher import define
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import cpu
from rushlight.sparse.functions import coalesce, mm, to_dense
from rushlight.sparse.kernels import sparse
from rushlight.sparse.layout import compressed_parts, is_sparse, make_sparse, parts

aten = namespaces.namespace("aten")

REFUSED = ("as_strided", "view", "expand", "slice.Tensor", "squeeze.dims", "view.dtype")
"""Views of dense tensors that sparse ones do not have."""

for _schema in (
    "_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None, bool? is_coalesced=None) -> Tensor",
    "values(Tensor(a) self) -> Tensor(a)",
):
    namespaces.add(define("aten", _schema))


@cpu("_sparse_coo_tensor_unsafe")
def sparse_coo_tensor_unsafe(
    indices, values, size, *, dtype=None, layout=None, device=None, pin_memory=None, is_coalesced=None
):
    return make_sparse(indices, values, size, bool(is_coalesced))


@sparse("values")
def values_of(self):
    stored = parts(self).values._impl
    made = stored.alias(stored.sizes, stored.strides, stored.storage_offset)
    made.version = self._impl.version
    return wrap(made)


def _values_gradient(grad: Tensor, indices: Tensor) -> Tensor:
    return aten.index.Tensor(to_dense(grad), list(indices.unbind(0))) if indices.size(0) else to_dense(grad).unsqueeze(0)


derivative("_sparse_coo_tensor_unsafe", values=_values_gradient)


def _of_values(grad: Tensor, self: Tensor) -> Tensor:
    """Return a tensor of the values `grad` with the indices of `self`."""
    if is_sparse(self):
        return aten._sparse_coo_tensor_unsafe(parts(self).indices, grad, self.shape)
    own = compressed_parts(self)
    return aten._sparse_compressed_tensor_unsafe(own.compressed, own.plain, grad, self.shape, layout=own.layout)


derivative("values", self=_of_values)


@sparse("clone")
def clone(self, *, memory_format=None):
    own = parts(self)
    return make_sparse(own.indices.clone(), own.values.clone(), self.shape, own.coalesced)


@sparse("_to_copy")
def to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    require_host(device, "sparse")
    own = parts(self)
    return make_sparse(own.indices, own.values.to(dtype=dtype, device=device, copy=True), self.shape, own.coalesced)


@sparse("permute")
def permute(self, dims):
    order = [dim % self.dim() for dim in dims]
    own = parts(self)
    count = own.indices.size(0)
    if sorted(order[:count]) != list(range(count)):
        raise RuntimeError(f"permute of a sparse tensor must not mix its {count} sparse dimensions with dense ones, got {dims}")
    values = own.values.permute([0, *(dim - count + 1 for dim in order[count:])])
    return make_sparse(own.indices[order[:count]], values, [self.size(dim) for dim in order])


def _with_values(self: Tensor, values: Tensor) -> Tensor:
    own = parts(self)
    return make_sparse(own.indices, values, self.shape, own.coalesced)


def _at_indices(dense: Tensor, like: Tensor) -> Tensor:
    return aten.index.Tensor(dense.expand(like.shape), list(parts(like).indices.unbind(0)))


@sparse("mul.Tensor")
def mul(self, other):
    first, second = (self, other) if isinstance(self, Tensor) and is_sparse(self) else (other, self)
    if isinstance(second, Tensor) and is_sparse(second):
        return mul(coalesce(first), to_dense(second))
    if isinstance(second, Tensor) and second.dim():
        return _with_values(first, parts(first).values * _at_indices(second, first))
    return _with_values(first, parts(first).values * second)


@sparse("div.Tensor")
def div(self, other):
    if not isinstance(self, Tensor) or not is_sparse(self) or (isinstance(other, Tensor) and other.dim()):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor and a sparse dividend")
    return _with_values(self, parts(self).values / other)


@sparse("neg")
def neg(self):
    return _with_values(self, -parts(self).values)


@sparse("add.Tensor")
def add(self, other, *, alpha=1):
    _check_shapes(self, other)
    if not is_sparse(self) or not is_sparse(other):
        # The sum with a dense tensor is dense.
        return aten.add.Tensor(to_dense(self), to_dense(other), alpha=alpha)
    first, second = parts(self), parts(other)
    if first.indices.size(0) != second.indices.size(0):
        raise RuntimeError(
            f"cannot add tensors with different sparse dimensions: {first.indices.size(0)} and {second.indices.size(0)}"
        )
    addend = second.values if alpha == 1 else second.values * alpha
    indices, values = aten.cat([first.indices, second.indices], 1), aten.cat([first.values, addend], 0)
    made = make_sparse(indices, values, self.shape)
    return coalesce(made) if first.coalesced and second.coalesced else made


def _check_shapes(self: Tensor, other: Tensor) -> None:
    if not isinstance(other, Tensor) or not isinstance(self, Tensor):
        raise RuntimeError("add: a sparse tensor can be added to a tensor only, not to a number")
    if self.shape != other.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}"
        )


@sparse("sub.Tensor")
def sub(self, other, *, alpha=1):
    return add(self, other, alpha=-alpha)


def _writes(function: Callable) -> Callable:
    """Return the in-place variant of a kernel."""

    def write(self, *args, **kwargs):
        result = function(self, *args, **kwargs)
        if is_sparse(self) and is_sparse(result):
            parts(self).replace(parts(result))
        elif is_sparse(self):
            raise RuntimeError("the result of this in-place operation on a sparse tensor would be dense: use the other form")
        else:
            aten.copy_(self, result)
        return self

    return write


for _name, _function in (("add_", add), ("sub_", sub), ("mul_", mul), ("div_", div)):
    sparse(f"{_name}.Tensor")(_writes(_function))
sparse("neg_")(_writes(neg))


@sparse("fill_.Scalar")
def fill_(self, value):
    if value != 0:
        raise NotImplementedError("fill_ of a sparse tensor is possible with 0 only; use to_dense() first")
    own = parts(self)
    own.indices, own.values, own.coalesced = own.indices[:, :0], own.values[:0], True
    return self


@sparse("copy_")
def copy_(self, src, non_blocking=False):
    if is_sparse(self) != is_sparse(src):
        return self.copy_(to_dense(src)) if not is_sparse(self) else _refuse_dense_source(self)
    source = parts(src)
    values = source.values.to(self.dtype, copy=True)
    parts(self).replace(parts(make_sparse(source.indices.clone(), values, src.shape, source.coalesced)))
    return self


def _refuse_dense_source(self: Tensor) -> None:
    raise RuntimeError(
        f"copy_() between dense and sparse Tensors is not implemented! Found a sparse self of shape {list(self.shape)} and a "
        "strided src; use src.to_sparse()"
    )


@sparse("mm")
def mm_kernel(self, mat2):
    return mm(self, mat2)


@sparse("sum.dim_IntList")
def sum_kernel(self, dim, keepdim=False, *, dtype=None):
    return aten.sum.dim_IntList(to_dense(self), dim, keepdim, dtype=dtype)


@sparse(*REFUSED)
def refuse(self, *args, **kwargs):
    raise NotImplementedError(
        f"this view is not available for tensors of layout {self.layout} (shape {list(self.shape)}); use to_dense() first"
    )


@sparse("unsqueeze")
def unsqueeze(self, dim):
    own, dim = parts(self), wrap_dim(dim, self.dim() + 1)
    size = [*self.shape[:dim], 1, *self.shape[dim:]]
    sparse_dims = own.indices.size(0)
    if dim > sparse_dims:
        return make_sparse(own.indices, own.values.unsqueeze(dim - sparse_dims + 1), size, own.coalesced)
    zeros = own.indices.new_zeros((1, own.indices.size(1)))
    indices = aten.cat([own.indices[:dim], zeros, own.indices[dim:]], 0)
    return make_sparse(indices, own.values, size, own.coalesced)


@sparse("cat")
def cat(tensors, dim=0):
    for position, tensor in enumerate(tensors):
        if not is_sparse(tensor):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a tensor of layout {tensor.layout} was found at position {position}; use "
                "to_sparse() or to_dense() first"
            )
    sizes = _concatenated_sizes(tensors, dim := wrap_dim(dim, tensors[0].dim()))
    dtype = functools.reduce(promote_types, (tensor.dtype for tensor in tensors))
    starts = itertools.accumulate((tensor.size(dim) for tensor in tensors), initial=0)
    sparse_dims = parts(tensors[0]).indices.size(0)
    indices, values = [], []
    for tensor, start in zip(tensors, starts, strict=False):
        own = parts(tensor)
        if dim < sparse_dims:
            shifts = own.indices.new_zeros((sparse_dims, 1))
            shifts[dim] = start
            indices.append(own.indices + shifts)
            values.append(own.values.to(dtype))
        else:
            among = own.values.new_zeros((own.values.size(0), *sizes[sparse_dims:]), dtype=dtype)
            among.narrow(dim - sparse_dims + 1, start, tensor.size(dim)).copy_(own.values)
            indices.append(own.indices)
            values.append(among)
    return make_sparse(aten.cat(indices, 1), aten.cat(values, 0), sizes)


def _concatenated_sizes(tensors: Sequence[Tensor], dim: int) -> list[int]:
    """Return the sizes of sparse tensors that are joined along `dim`.

    Raises RuntimeError unless all have as many sparse dimensions as the first, and its sizes except along `dim`.
    """
    first = tensors[0]
    sparse_dims = parts(first).indices.size(0)
    expected = [size for axis, size in enumerate(first.shape) if axis != dim]
    for position, tensor in enumerate(tensors):
        if parts(tensor).indices.size(0) != sparse_dims or tensor.dim() != first.dim():
            raise RuntimeError(
                f"All tensors must have the same: sparse_dim and dense_dim, but tensor at position 0 has {sparse_dims}, "
                f"{first.dim() - sparse_dims}, and tensor at position {position} has {parts(tensor).indices.size(0)}, "
                f"{tensor.dim() - parts(tensor).indices.size(0)}"
            )
        if [size for axis, size in enumerate(tensor.shape) if axis != dim] != expected:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {dim}. Expected those of the first, {list(first.shape)}, but "
                f"got {list(tensor.shape)} for tensor at position {position}"
            )
    return [sum(tensor.size(dim) for tensor in tensors) if axis == dim else size for axis, size in enumerate(first.shape)]


@sparse("select.int")
def select(self, dim, index):
    own, dim = parts(self), dim % self.dim()
    index = index + self.size(dim) if index < 0 else index
    size = [length for axis, length in enumerate(self.shape) if axis != dim]
    if dim >= own.indices.size(0):
        return make_sparse(own.indices, own.values.select(dim - own.indices.size(0) + 1, index), size, own.coalesced)
    chosen = own.indices[dim] == index
    kept = [axis for axis in range(own.indices.size(0)) if axis != dim]
    if not kept:
        return own.values[chosen].sum(0)
    return make_sparse(own.indices[kept][:, chosen], own.values[chosen], size, own.coalesced)
