"""Composite order statistics: kthvalue, medians along a dimension, quantiles."""

from __future__ import annotations

from rushlight.core.dtype import bool_, float32, float64, int64
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.common import values_of
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.order_statistics import check_median, check_selection
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _at_rank(self: Tensor, rank: Tensor | int, axis: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return the values of a rank along `axis` and their indices. The rank is one for all rows, or a tensor with one per
    row."""
    if not self.dim():
        return aten.clone.default(self), aten.zeros.default((), dtype=int64, device=self.device)
    order = aten.sort.stable(self.detach(), stable=True, dim=axis)[1]
    if isinstance(rank, int):
        position = aten.narrow.default(order, axis, rank, 1)
    else:
        position = aten.gather.default(order, axis, rank)
    values = aten.gather.default(self, axis, position)
    if keepdim:
        return values, aten.contiguous.default(position)
    return aten.squeeze.dims(values, [axis]), aten.contiguous.default(aten.squeeze.dims(position, [axis]))


@composite("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)")
def kthvalue(self, k, dim=-1, keepdim=False):
    axis = wrap_dim(dim, self.dim())
    size = self.size(axis) if self.dim() else 1
    if not 1 <= k <= size:
        if self.dim() and not size:
            raise IndexError(f"kthvalue(): Expected reduction dim {axis} to have non-zero size.")
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {axis}: got k={k} for {size} values"
        )
    check_selection(self, dim, "kthvalue")
    if self.dtype is bool_ and self.dim():
        raise not_implemented("kthvalue_cpu", self.dtype)
    return _at_rank(self, k - 1, axis, keepdim)


def _numbers_per_row(self: Tensor, axis: int) -> Tensor:
    """Return the number of non-NaN values along `axis`, keeping that dimension."""
    return aten.sum.dim_IntList(aten.logical_not.default(aten.isnan.default(self)), (axis,), True)


@composite("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
def median_dim(self, dim, keepdim=False):
    axis = check_selection(self, dim, "median")
    check_median(self, "median")
    if not self.dim() or not self.dtype.is_floating_point:
        return _at_rank(self, (self.size(axis) - 1) // 2 if self.dim() else 0, axis, keepdim)
    size, numbers = self.size(axis), _numbers_per_row(self, axis)
    # NaN sort last, so the first NaN, if any, stands right behind all numbers.
    return _at_rank(self, aten.where.self(numbers == size, (size - 1) // 2, numbers), axis, keepdim)


@composite("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
def nanmedian_dim(self, dim, keepdim=False):
    axis = check_selection(self, dim, "nanmedian")
    if not self.dim() or not self.dtype.is_floating_point:
        return median_dim(self, dim, keepdim)
    last = aten.clamp.default(_numbers_per_row(self, axis) - 1, 0)
    return _at_rank(self, aten.div.Tensor_mode(last, 2, rounding_mode="floor"), axis, keepdim)


@composite("msort(Tensor self) -> Tensor")
def msort(self):
    return aten.sort.default(self, 0)[0]


def _check_quantile(self: Tensor, q: Tensor, interpolation: str, name: str) -> None:
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor, but got {q.dim()} dimensions")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if not self.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if self.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype, but got {self.dtype}")
    if q.dtype is not self.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor, but got {q.dtype} and {self.dtype}")
    if q.device != self.device:
        raise RuntimeError(f"{name}() q tensor must be on the same device as the input tensor, but got {q.device}")
    levels = values_of(q)
    if levels is not None and not ((levels >= 0) & (levels <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _quantile(self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    name = "nanquantile" if ignore_nan else "quantile"
    _check_quantile(self, q, interpolation, name)
    rank = self.dim()
    axis = 0 if dim is None else wrap_dim(dim, rank)
    rows = aten.reshape.default(self, (-1,)) if dim is None or not rank else aten.movedim.int(self, axis, -1)
    ordered = aten.sort.default(rows, -1)[0]
    position = _places(ordered, q, ignore_nan)
    found = _interpolate(ordered, position, interpolation)
    if q.dim():
        found = aten.movedim.int(found, -1, 0)
    else:
        found = aten.squeeze.dims(found, [-1])
    return _restore(found, q.dim(), None if dim is None else axis, rank) if keepdim else found


def _restore(found: Tensor, leading: int, axis: int | None, rank: int) -> Tensor:
    """Restore the reduced dimension (or all `rank` of them) with size 1, behind the dimension of `q` if there is one."""
    if axis is not None:
        return aten.unsqueeze.default(found, leading + axis) if rank else found
    return aten.reshape.default(found, (*found.shape, *(1,) * rank))


def _places(ordered: Tensor, q: Tensor, ignore_nan: bool) -> Tensor:
    """Return the fractional ranks of the quantiles in each row. Rows with NaN get the last rank, where a NaN is."""
    levels = aten.reshape.default(q, (-1,))
    last = ordered.size(-1) - 1
    numbers = _numbers_per_row(ordered.detach(), -1)
    if ignore_nan:
        return levels * aten.clamp.default(numbers - 1, 0).to(ordered.dtype)
    return aten.where.self(numbers == last + 1, levels * last, float(last))


def _interpolate(ordered: Tensor, position: Tensor, interpolation: str) -> Tensor:
    rounding = {"lower": aten.floor, "higher": aten.ceil, "nearest": aten.round}.get(interpolation, aten.floor).default
    below = rounding(position)
    lower = aten.gather.default(ordered, -1, below.to(int64))
    if interpolation in ("lower", "higher", "nearest"):
        return lower
    upper_place = aten.ceil.default(position)
    upper = aten.gather.default(ordered, -1, upper_place.to(int64))
    weight = 0.5 if interpolation == "midpoint" else position - below
    return aten.lerp(lower, upper, weight)


@composite(
    'quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor',
    'quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor',
)
def quantile(self, q, dim=None, keepdim=False, *, interpolation="linear"):
    return _quantile(self, _level(self, q, "quantile"), dim, keepdim, interpolation, False)


@composite(
    'nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor',
    'nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor',
)
def nanquantile(self, q, dim=None, keepdim=False, *, interpolation="linear"):
    return _quantile(self, _level(self, q, "nanquantile"), dim, keepdim, interpolation, True)


def _level(self: Tensor, q: Tensor | float, name: str) -> Tensor:
    if isinstance(q, Tensor):
        return q
    if not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    return aten.full.default((), q, dtype=self.dtype, device=self.device)
