"""Derivatives of indexing, gathering, scattering, concatenation and padding."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative, non_differentiable
from rushlight.autograd.derivatives.views import identity
from rushlight.core.dtype import int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

non_differentiable("nonzero", "hash_tensor")


def _differentiate_cat(grad, tensors_sizes, dim):
    axis = 0 if all(sizes == (0,) for sizes in tensors_sizes) else wrap_dim(dim, grad.dim())
    start, parts = 0, []
    for sizes in tensors_sizes:
        # cat accepts an empty 1-dimensional tensor among tensors of any rank.
        length = 0 if sizes == (0,) else sizes[axis]
        part = grad.new_zeros(sizes) if sizes == (0,) else grad.narrow(axis, start, length)
        parts.append(part)
        start += length
    return parts


derivative("cat", tensors=_differentiate_cat)
derivative(
    "index.Tensor",
    self=lambda grad, self_sizes, indices: aten.index_put(grad.new_zeros(self_sizes), indices, grad, True),
)


def _zero_overwritten(grad, indices, accumulate):
    return grad if accumulate else aten.index_put(grad, indices, grad.new_zeros(()))


for _name in ("index_put", "index_put_"):
    derivative(_name, self=_zero_overwritten, values=lambda grad, indices: aten.index.Tensor(grad, indices))



def _differentiate_index_select(grad, self_sizes, dim, index):
    return aten.index_add(grad.new_zeros(self_sizes), dim, index, grad) if self_sizes else grad


derivative("index_select", self=_differentiate_index_select)
derivative(
    "gather", self=lambda grad, self_sizes, dim, index: aten.scatter_add(grad.new_zeros(self_sizes), dim, index, grad)
)


def scattered_from(grad, src_sizes, dim, index) -> Tensor:
    taken = aten.gather(grad, dim, index)
    missing = [size - have for size, have in zip(src_sizes, taken.shape, strict=True)]
    pads = [amount for size in reversed(missing) for amount in (0, size)]
    return aten.constant_pad_nd(taken, pads, 0) if any(missing) else taken


derivative(
    "scatter.src",
    self=lambda grad, dim, index: aten.scatter.src(grad, dim, index, aten.zeros_like(index, dtype=grad.dtype)),
    src=scattered_from,
)
derivative("scatter_add", self=identity, src=scattered_from)


def _differentiate_embedding(grad, weight_sizes, indices, padding_idx, scale_grad_by_freq, sparse):
    if sparse:
        return _differentiate_embedding_rows(grad, weight_sizes, indices, padding_idx, scale_grad_by_freq)
    return aten.embedding_dense_backward(grad, indices, weight_sizes[0], padding_idx, scale_grad_by_freq)


def _differentiate_embedding_rows(grad, weight_sizes, indices, padding_idx, scale_grad_by_freq):
    """Return the gradient of the weight as a sparse tensor with one row per index."""
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    flat, rows = indices.reshape((-1,)), grad.reshape((-1, weight_sizes[1]))
    if padding_idx >= 0:
        kept = flat != padding_idx
        flat, rows = flat[kept], rows[kept]
    return aten._sparse_coo_tensor_unsafe(flat.unsqueeze(0).to(int64), rows, weight_sizes)


def _differentiate_embedding_twice(grad, indices, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        raise RuntimeError("double backward for embedding with scale_grad_by_freq=True is not implemented")
    rows = aten.embedding(grad, indices)
    return aten.where.self((indices == padding_idx).unsqueeze(-1), 0, rows) if padding_idx >= 0 else rows


derivative("embedding", weight=_differentiate_embedding)
derivative("embedding_dense_backward", grad_output=_differentiate_embedding_twice)
derivative("constant_pad_nd", self=lambda grad, pad: aten.constant_pad_nd(grad, [-amount for amount in pad], 0))
