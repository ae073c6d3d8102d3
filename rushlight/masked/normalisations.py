"""Operators that keep the shape: running sums and products, softmax and its like, over the elements that a mask chooses."""

from __future__ import annotations

from rushlight.core.dtype import dtype as element_type
from rushlight.core.tensor import Tensor
from rushlight.masked.common import aten, filled
from rushlight.masked.reductions import norm


def cumsum(input: Tensor, dim: int, *, dtype: element_type | None = None, mask: Tensor | None = None) -> Tensor:
    """Return the running sum along `dim`, to which elements that are left out add nothing; in the input's dtype by default."""
    kind = dtype or input.dtype
    return aten.cumsum.default(filled(input.to(kind), mask, 0), dim, dtype=kind)


def cumprod(input: Tensor, dim: int, *, dtype: element_type | None = None, mask: Tensor | None = None) -> Tensor:
    """Return the running product along `dim`; in the input's dtype by default."""
    kind = dtype or input.dtype
    return aten.cumprod.default(filled(input.to(kind), mask, 1), dim, dtype=kind)


def softmax(input: Tensor, dim: int, *, dtype: element_type | None = None, mask: Tensor | None = None) -> Tensor:
    """Return softmax along `dim`: 0 for elements that are left out, NaN where nothing is chosen."""
    return aten.softmax.int(filled(input.to(dtype or input.dtype), mask, -float("inf")), dim)


def log_softmax(input: Tensor, dim: int, *, dtype: element_type | None = None, mask: Tensor | None = None) -> Tensor:
    """Return the logarithm of `softmax`."""
    return aten.log_softmax.int(filled(input.to(dtype or input.dtype), mask, -float("inf")), dim)


def softmin(input: Tensor, dim: int, *, dtype: element_type | None = None, mask: Tensor | None = None) -> Tensor:
    """Return softmax of the negated input."""
    return softmax(-input, dim, dtype=dtype, mask=mask)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: element_type | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the input divided by its norm of order `ord` along `dim`, or by `eps` where that is greater; 0 where left out."""
    value = input.to(dtype or input.dtype)
    length = norm(value, ord, dim, keepdim=True, mask=mask)
    return filled(value, mask, 0) / aten.clamp.default(length, eps)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: element_type | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return log(exp(input) + exp(other)), each with a mask of its own; -inf where neither is chosen."""
    first = filled(input.to(dtype or input.dtype), input_mask, -float("inf"))
    second = filled(other.to(dtype or other.dtype), other_mask, -float("inf"))
    return aten.logaddexp.default(first, second)
