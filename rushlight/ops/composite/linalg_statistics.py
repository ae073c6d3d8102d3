"""Covariance and correlation of variables, one per row."""

from __future__ import annotations

import warnings

from rushlight.core.dtype import bool_, get_default_dtype
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.linalg_common import adjoint, aten
from rushlight.ops.composite.network.common import checked_later, values_of
from rushlight.ops.registry import composite


def _checked_weights(kind: str, weights: Tensor, count: int, integral: bool) -> Tensor:
    """Return the weights of observations, which are checked to be of a fitting dtype and number, and not negative."""
    if weights.dim() > 1:
        raise RuntimeError(f"cov(): expected {kind} to have one or fewer dimensions but got {weights.dim()}")
    if integral and (not weights.dtype.is_integral or weights.dtype is bool_):
        raise RuntimeError(f"cov(): expected {kind} to have integral dtype but got {kind} with {weights.dtype} dtype")
    if not integral and not weights.is_floating_point():
        raise RuntimeError(f"cov(): expected {kind} to have floating point dtype but got {kind} with {weights.dtype} dtype")
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {kind} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    message = f"cov(): {kind} cannot be negative"
    known = values_of(weights)
    if known is not None and (known < 0).any():
        raise RuntimeError(message)
    return checked_later(weights, lambda x: x >= 0, RuntimeError, message)


@composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
def cov(self, *, correction=1, fweights=None, aweights=None):
    if self.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    if self.dtype is bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = self if self.dim() == 2 else aten.view.default(self, (1, -1)) if self.dim() else aten.reshape.default(self, (1, 1))
    rows = rows.to(get_default_dtype()) if rows.dtype.is_integral else rows
    count = rows.size(1)
    if fweights is not None:
        fweights = _checked_weights("fweights", fweights, count, True)
    if aweights is not None:
        aweights = _checked_weights("aweights", aweights, count, False)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    total = count if weights is None else aten.sum.dim_IntList(weights, None)
    weighted = rows if weights is None else rows * weights
    mean = aten.sum.dim_IntList(weighted, [1], True) / total
    scale = _scale(total, weights, aweights, correction)
    centred = rows - mean
    product = aten.matmul.default(centred if weights is None else centred * weights, adjoint(centred))
    return aten.squeeze.default(product / scale)


def _scale(total: Tensor | int, weights: Tensor | None, aweights: Tensor | None, correction: int) -> Tensor | float:
    """Return the normaliser of covariances: the number of observations minus the correction, at least 0."""
    if aweights is not None and correction:
        scale = total - correction * aten.sum.dim_IntList(weights * aweights, None) / total
    else:
        scale = total - correction
    if isinstance(scale, Tensor) and values_of(scale) is None:
        return scale.clamp(min=0)
    if float(scale) <= 0:
        message = "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations."
        warnings.warn(message, stacklevel=2)
        return scale * 0 if isinstance(scale, Tensor) else _zero()
    return scale


def _zero() -> Tensor:
    return aten.full.default((), 0.0)


@composite("corrcoef(Tensor self) -> Tensor")
def corrcoef(self):
    if self.dim() > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.dim()} dimensions"
        )
    covariance = cov(self)
    if not covariance.dim():
        return covariance / covariance
    variances = aten.diagonal.default(covariance)
    deviations = aten.sqrt.default(aten.real.default(variances) if variances.is_complex() else variances)
    ratio = covariance / aten.unsqueeze.default(deviations, 1) / aten.unsqueeze.default(deviations, 0)
    if ratio.is_complex():
        return aten.complex.default(*(aten.clamp.default(part, -1, 1) for part in (aten.real(ratio), aten.imag(ratio))))
    return aten.clamp.default(ratio, -1, 1)
