"""Composite operators that concatenate tensors: hstack, vstack, dstack, column_stack, and the `atleast` views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("atleast_1d(Tensor self) -> Tensor")
def atleast_1d(self):
    return self if self.dim() else aten.reshape.default(self, (1,))


@composite("atleast_2d(Tensor self) -> Tensor")
def atleast_2d(self):
    if self.dim() >= 2:
        return self
    return aten.unsqueeze.default(self, 0) if self.dim() else aten.reshape.default(self, (1, 1))


@composite("atleast_3d(Tensor self) -> Tensor")
def atleast_3d(self):
    if self.dim() >= 3:
        return self
    if not self.dim():
        return aten.reshape.default(self, (1, 1, 1))
    wide = self if self.dim() == 2 else aten.unsqueeze.default(self, 0)
    return aten.unsqueeze.default(wide, -1)


def _define_of_several(name: str, of_one: Callable) -> None:
    @composite(f"{name}.Sequence(Tensor[] tensors) -> Tensor[]")
    def of_several(tensors):
        return tuple(map(of_one, tensors))


for _name, _of_one in (("atleast_1d", atleast_1d), ("atleast_2d", atleast_2d), ("atleast_3d", atleast_3d)):
    _define_of_several(_name, _of_one)


def _some(tensors: Sequence[Tensor], name: str) -> Sequence[Tensor]:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


@composite("hstack(Tensor[] tensors) -> Tensor")
def hstack(tensors):
    rows = [atleast_1d(tensor) for tensor in _some(tensors, "hstack")]
    return aten.cat.default(rows, 0 if rows[0].dim() == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", "row_stack(Tensor[] tensors) -> Tensor")
def vstack(tensors):
    return aten.cat.default([atleast_2d(tensor) for tensor in _some(tensors, "vstack")], 0)


@composite("dstack(Tensor[] tensors) -> Tensor")
def dstack(tensors):
    return aten.cat.default([atleast_3d(tensor) for tensor in _some(tensors, "dstack")], 2)


@composite("column_stack(Tensor[] tensors) -> Tensor")
def column_stack(tensors):
    columns = _some(tensors, "column_stack")
    return aten.cat.default(
        [tensor if tensor.dim() > 1 else aten.reshape.default(tensor, (tensor.numel(), 1)) for tensor in columns], 1
    )


@composite("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor")
def chunk_cat(tensors, dim, num_chunks):
    axis = _check_chunk_cat(tensors, dim, num_chunks)
    rows = []
    for tensor in tensors:
        length = -(-tensor.size(axis) // num_chunks)
        missing = length * num_chunks - tensor.size(axis)
        padded = aten.constant_pad_nd.default(tensor, [0, 0] * (tensor.dim() - axis - 1) + [0, missing], 0)
        rows.append(aten.reshape.default(padded, (*tensor.shape[:axis], num_chunks, -1)))
    return aten.cat.default(rows, axis + 1)


def _check_chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> int:
    """Return the wrapped dimension; RuntimeError for tensors that cannot be chunked and concatenated along it."""
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    ranks = {tensor.dim() for tensor in tensors}
    if any(not tensor.numel() for tensor in tensors):
        raise RuntimeError("_chunk_cat expects non-empty tensor")
    if dim < 0 and len(ranks) > 1:
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    axis = dim + tensors[0].dim() if dim < 0 else dim
    if axis < 0 or axis >= min(ranks):
        raise RuntimeError(f"_chunk_cat expects dim < ndim for all input tensors, got dim {dim}")
    if len({tuple(tensor.shape[:axis]) for tensor in tensors}) > 1:
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    return axis
