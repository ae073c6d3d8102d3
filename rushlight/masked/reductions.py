"""Reductions over the elements that a mask chooses. `dim` is a dimension, several, or None for all of them."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dtype import dtype as element_type
from rushlight.core.dtype import float64, get_default_dtype, int64
from rushlight.core.strides import wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.masked.common import Dims, aten, counts, filled, full_mask, highest, listed, lowest


def _sum_type(input: Tensor, dtype: element_type | None) -> element_type:
    return dtype or (int64 if input.dtype.is_integral else input.dtype)


def _mean_type(input: Tensor, dtype: element_type | None, name: str) -> element_type:
    kind = dtype or input.dtype
    if kind.is_integral:
        raise ValueError(
            f"{name}(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {kind}"
        )
    return kind


def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the sum over `dim`; 0 where nothing is chosen. Integers are summed in int64 unless `dtype` is given."""
    kind = _sum_type(input, dtype)
    return aten.sum.dim_IntList(filled(input.to(kind), mask, 0), listed(dim), keepdim, dtype=kind)


def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the product over `dim`; 1 where nothing is chosen. IndexError and RuntimeError for wrong dimensions."""
    result = filled(input.to(_sum_type(input, dtype)), mask, 1)
    for axis in sorted(wrap_dims(range(result.dim()) if dim is None else listed(dim), result.dim()), reverse=True):
        result = aten.prod.dim_int(result, axis, keepdim)
    return result


def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the maximum over `dim`; -inf (the least integer) where nothing is chosen."""
    value = input.to(dtype or input.dtype)
    return aten.amax.default(filled(value, mask, lowest(value.dtype, "amax")), listed(dim) or (), keepdim)


def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the minimum over `dim`; inf (the greatest integer) where nothing is chosen."""
    value = input.to(dtype or input.dtype)
    return aten.amin.default(filled(value, mask, highest(value.dtype, "amin")), listed(dim) or (), keepdim)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the index of the maximum (in the flattened input for dim=None), in `dtype` or the input's dtype."""
    return _position(aten.argmax.default, lowest, input, dim, keepdim, dtype, mask)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the index of the minimum (in the flattened input for dim=None), in `dtype` or the input's dtype."""
    return _position(aten.argmin.default, highest, input, dim, keepdim, dtype, mask)


def _position(search: Callable, neutral: Callable, input: Tensor, dim, keepdim, dtype, mask) -> Tensor:
    kind = dtype or input.dtype
    return search(filled(input, mask, neutral(input.dtype, "argmax")), dim, bool(keepdim)).to(kind)


def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the mean over `dim`; NaN where nothing is chosen. ValueError for integers without a floating `dtype`."""
    kind = _mean_type(input, dtype, "mean")
    total = sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask)
    return total / counts(input, mask, dim, keepdim)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the lower median along `dim`; NaN where nothing is chosen, for integers a ValueError."""
    kind = dtype or input.dtype
    value = input.to(kind)
    if mask is None:
        return aten.nanmedian.dim(value, dim, keepdim)[0]
    if not kind.is_floating_point:
        if not bool(aten.any.dim(full_mask(input, mask), dim).all()):
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        value = value.to(float64)
    return aten.nanmedian.dim(filled(value, mask, float("nan")), dim, keepdim)[0].to(kind)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the vector norm of order `ord` over `dim`."""
    order = 2.0 if ord is None else ord
    value = input.to(_mean_type(input, dtype, "norm"))
    return aten.linalg_vector_norm(filled(value, mask, float("inf") if order < 0 else 0), order, listed(dim), keepdim)


def _variance(input: Tensor, dim: Dims, unbiased, correction, keepdim: bool, dtype, mask) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    kind = dtype or (get_default_dtype() if input.dtype.is_integral else input.dtype)
    value = input.to(kind)
    deviation = filled(value - mean(value, dim, keepdim=True, mask=mask), mask, 0)
    squares = deviation * (deviation.conj() if kind.is_complex else deviation)
    total = aten.sum.dim_IntList(squares, listed(dim), keepdim)
    degrees = aten.clamp.default(counts(input, mask, dim, keepdim) - correction, 0)
    return ((total.real if kind.is_complex else total) / degrees).to(kind)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance over `dim`: squared deviations over the number of elements less `correction` (1 by default)."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the square root of `var`."""
    return aten.sqrt.default(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))


def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """log(sum(exp(input))) over `dim`; -inf where nothing is chosen."""
    kind = dtype or input.dtype
    value = input.to(get_default_dtype() if kind.is_integral else kind)
    dims = listed(dim) or list(range(input.dim()))
    return aten.logsumexp.default(filled(value, mask, -float("inf")), dims, keepdim).to(kind)
