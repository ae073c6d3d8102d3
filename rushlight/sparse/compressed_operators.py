"""Operators of compressed sparse tensors: the constructor, and kernels."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.core.device import require_host
from rushlight.core.layout import sparse_csc, sparse_csr
from rushlight.core.tensor import Tensor, wrap
from rushlight.ops.dispatcher import define
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import cpu
from rushlight.sparse.compressed import coordinates, to_compressed, to_sparse_coo
from rushlight.sparse.functions import coalesce, mm, to_dense
from rushlight.sparse.kernels import compressed, sparse
from rushlight.sparse.layout import compressed_parts, is_compressed, is_sparse, make_compressed, make_sparse, parts
from rushlight.sparse.operators import REFUSED, refuse

aten = namespaces.namespace("aten")
namespaces.add(
    define(
        "aten",
        "_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, SymInt[] size, *, "
        "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    )
)


@cpu("_sparse_compressed_tensor_unsafe")
def sparse_compressed_tensor_unsafe(
    compressed_indices, plain_indices, values, size, *, dtype=None, layout=None, device=None, pin_memory=None
):
    return make_compressed(compressed_indices, plain_indices, values, size, layout)


def _values_gradient(grad: Tensor, result: Tensor) -> Tensor:
    """Return the gradient's elements at the tensor's indices."""
    return aten.index.Tensor(to_dense(grad), list(coordinates(result).unbind(0)))


derivative("_sparse_compressed_tensor_unsafe", values=_values_gradient)


def with_values(self: Tensor, values: Tensor) -> Tensor:
    """Return a tensor with other values at the same indices, outside of autograd."""
    own = compressed_parts(self)
    return make_compressed(own.compressed, own.plain, values, self.shape, own.layout)


@compressed("values")
def values_of(self):
    stored = compressed_parts(self).values._impl
    made = stored.alias(stored.sizes, stored.strides, stored.storage_offset)
    made.version = self._impl.version
    return wrap(made)


@compressed("clone")
def clone(self, *, memory_format=None):
    own = compressed_parts(self)
    return make_compressed(own.compressed.clone(), own.plain.clone(), own.values.clone(), self.shape, own.layout)


@compressed("_to_copy")
def to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    require_host(device, "sparse")
    return with_values(self, compressed_parts(self).values.to(dtype=dtype, device=device, copy=True))


@compressed("permute")
def permute(self, dims):
    order = [dim % self.dim() for dim in dims]
    if order == list(range(self.dim())):
        return with_values(self, compressed_parts(self).values)
    if order != [1, 0, *range(2, self.dim())]:
        raise RuntimeError(f"permute of a compressed sparse tensor can swap its two sparse dimensions only, got {dims}")
    own = compressed_parts(self)
    size = (self.size(1), self.size(0), *self.shape[2:])
    return make_compressed(own.compressed, own.plain, own.values, size, sparse_csc if own.by_rows else sparse_csr)


def _same_indices(first: Tensor, second: Tensor) -> bool:
    if not is_compressed(first) or not is_compressed(second):
        return False
    mine, other = compressed_parts(first), compressed_parts(second)
    return mine.layout is other.layout and all(
        a is b or (a.shape == b.shape and bool((a == b).all()))
        for a, b in ((mine.compressed, other.compressed), (mine.plain, other.plain))
    )


@compressed("mul.Tensor")
def mul(self, other):
    first, second = (self, other) if isinstance(self, Tensor) and is_compressed(self) else (other, self)
    if isinstance(second, Tensor) and second.dim():
        if _same_indices(first, second):
            return with_values(first, compressed_parts(first).values * compressed_parts(second).values)
        whole = to_dense(second).expand(first.shape)
        return with_values(first, compressed_parts(first).values * whole[tuple(coordinates(first).unbind(0))])
    return with_values(first, compressed_parts(first).values * second)


@compressed("div.Tensor")
def div(self, other):
    if not isinstance(self, Tensor) or not is_compressed(self) or (isinstance(other, Tensor) and other.dim()):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor and a sparse dividend")
    return with_values(self, compressed_parts(self).values / other)


@compressed("add.Tensor")
def add(self, other, *, alpha=1):
    if not isinstance(self, Tensor) or not isinstance(other, Tensor) or self.shape != other.shape:
        raise RuntimeError("add: a compressed sparse tensor can be added to a tensor of its own shape only")
    if _same_indices(self, other):
        return with_values(self, aten.add.Tensor(compressed_parts(self).values, compressed_parts(other).values, alpha=alpha))
    if not all(is_compressed(each) or is_sparse(each) for each in (self, other)):
        return aten.add.Tensor(to_dense(self), to_dense(other), alpha=alpha)
    kind = next(compressed_parts(each).layout for each in (self, other) if is_compressed(each))
    return to_compressed(aten.add.Tensor(to_sparse_coo(self), to_sparse_coo(other), alpha=alpha), kind)


@compressed("sub.Tensor")
def sub(self, other, *, alpha=1):
    return add(self, other, alpha=-alpha)


@sparse("addmm")
@compressed("addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    product = mm(mat1, mat2)
    return aten.add.Tensor(self if beta == 1 else self * beta, product if alpha == 1 else product * alpha)


@compressed("mm")
def mm_kernel(self, mat2):
    return mm(self, mat2)


@compressed("sum.dim_IntList")
def sum_kernel(self, dim, keepdim=False, *, dtype=None):
    return aten.sum.dim_IntList(to_dense(self), dim, keepdim, dtype=dtype)


@compressed("zeros_like")
def zeros_like(self, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    own = compressed_parts(self)
    values = aten.zeros([0, *own.values.shape[1:]], dtype=dtype or self.dtype)
    return make_compressed(aten.zeros_like(own.compressed), own.plain[:0], values, self.shape, own.layout)


@compressed("select.int")
def select(self, dim, index):
    return aten.select.int(to_sparse_coo(self), dim, index)


@compressed("mul_.Tensor")
def mul_(self, other):
    return _write(self, mul(self, other))


@compressed("div_.Tensor")
def div_(self, other):
    return _write(self, div(self, other))


@compressed("add_.Tensor")
def add_(self, other, *, alpha=1):
    return _write(self, add(self, other, alpha=alpha))


@compressed("neg_")
def neg_(self):
    return _write(self, with_values(self, -compressed_parts(self).values))


@compressed("fill_.Scalar")
def fill_(self, value):
    return _write(self, with_values(self, aten.full_like(compressed_parts(self).values, value)))


@compressed("copy_")
def copy_(self, src, non_blocking=False):
    return _write(self, clone(src) if is_compressed(src) else src)


compressed(*REFUSED)(refuse)


def _write(self: Tensor, result: Tensor) -> Tensor:
    """Write the result of an operation in place: elements for dense tensors, the parts for compressed ones."""
    if not is_compressed(self):
        return self.copy_(to_dense(result))
    if not is_compressed(result) or compressed_parts(result).layout is not compressed_parts(self).layout:
        raise RuntimeError("the result of this in-place operation on a compressed sparse tensor would have another layout")
    compressed_parts(self).replace(compressed_parts(result))
    return self


def _define_unary(name: str) -> None:
    """Define an operator with f(0) = 0, which works on the values alone."""

    def of_compressed(self):
        return with_values(self, getattr(aten, name)(compressed_parts(self).values))

    def of_coo(self):
        own = parts(coalesce(self))
        return make_sparse(own.indices, getattr(aten, name)(own.values), self.shape, own.coalesced)

    compressed(name)(of_compressed)
    if name != "neg":
        sparse(name)(of_coo)


for _name in (
    "neg", "abs", "relu", "sin", "sinh", "asin", "asinh", "tan", "tanh", "atan", "atanh", "sqrt", "sign", "expm1", "log1p",
    "floor", "ceil", "round", "trunc", "erf", "sgn", "isnan", "isinf",
):  # fmt: skip
    _define_unary(_name)


@sparse("pow.Tensor_Scalar")
def pow_of_coo(self, exponent):
    """Return powers of a COO tensor with positive exponents, which keep 0."""
    if exponent <= 0:
        raise RuntimeError(f"pow(): a sparse tensor takes a positive exponent, but got {exponent}: zeros would not stay zeros")
    own = parts(coalesce(self))
    return make_sparse(own.indices, aten.pow.Tensor_Scalar(own.values, exponent), self.shape, own.coalesced)
