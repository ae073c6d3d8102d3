"""Composite statistics: sums and means without NaN, both extrema at once, standard deviations."""

from __future__ import annotations

from rushlight.ops.meta.common import reduced_dims
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
def nansum(self, dim=None, keepdim=False, *, dtype=None):
    if self.dtype.is_complex:
        raise RuntimeError(f"nansum on CPU does not support complex inputs, but got {self.dtype}")
    numbers = self if self.dtype.is_integral else aten.masked_fill(self, aten.isnan.default(self), 0)
    return aten.sum.dim_IntList(numbers, dim, keepdim, dtype=dtype)


@composite("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
def nanmean(self, dim=None, keepdim=False, *, dtype=None):
    if self.dtype.is_integral:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype.scalar_name}"
        )
    if self.dtype.is_complex:
        raise RuntimeError(f"nansum on CPU does not support complex inputs, but nanmean got {self.dtype}")
    if dtype is not None and dtype.is_integral:
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {dtype.scalar_name}"
        )
    nothing = aten.isnan.default(self)
    total = aten.sum.dim_IntList(aten.masked_fill(self, nothing, 0), dim, keepdim, dtype=dtype)
    return total / aten.sum.dim_IntList(aten.logical_not.default(nothing), dim, keepdim)


@composite("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)")
def aminmax(self, *, dim=None, keepdim=False):
    if dim is None and not self.numel():
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity: got an input of "
            f"shape {list(self.shape)}"
        )
    dims = () if dim is None else (dim,)
    for axis in reduced_dims(self.dim(), dims):
        if not self.size(axis):
            raise IndexError(f"aminmax(): Expected reduction dim {axis} to have non-zero size.")
    return aten.amin.default(self, dims, keepdim), aten.amax.default(self, dims, keepdim)
