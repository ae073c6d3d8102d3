"""Helpers of the masked operators: broadcast masks, and fill masked-out elements with a neutral value."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import bool_, dtype, iinfo
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
Dims = int | Sequence[int] | None


def full_mask(input: Tensor, mask: Tensor | None) -> Tensor | None:
    """Return the mask in the input's shape; IndexError when it has more dimensions, RuntimeError when it does not broadcast."""
    if mask is None:
        return None
    if mask.dim() > input.dim():
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input): "
            f"{list(mask.shape)} and {list(input.shape)}"
        )
    if mask.dtype is not bool_:
        mask = mask != 0
    return aten.expand.default(mask, input.shape)


def filled(input: Tensor, mask: Tensor | None, value: float | int) -> Tensor:
    """Return the input with `value` wherever the mask is False."""
    chosen = full_mask(input, mask)
    return input if chosen is None else aten.where.self(chosen, input, aten.full.default((), value, dtype=input.dtype))


def counts(input: Tensor, mask: Tensor | None, dim: Dims, keepdim: bool) -> Tensor:
    """Return the number of unmasked elements that each result of a reduction over `dim` has, int64."""
    chosen = aten.ones_like.default(input, dtype=bool_) if mask is None else full_mask(input, mask)
    return aten.sum.dim_IntList(chosen, listed(dim), keepdim)


def listed(dim: Dims) -> list[int] | None:
    """Return dimensions as a list; None for all."""
    return [dim] if isinstance(dim, int) else None if dim is None else list(dim)


def lowest(kind: dtype, name: str) -> float | int:
    """Return the least value of a dtype; NotImplementedError for bool and complex numbers."""
    if kind.is_floating_point:
        return -float("inf")
    if kind is bool_ or kind.is_complex:
        raise NotImplementedError(f"identity of {name} on {kind} input")
    return iinfo(kind).min


def highest(kind: dtype, name: str) -> float | int:
    """Return the greatest value of a dtype; NotImplementedError for bool and complex numbers."""
    return float("inf") if kind.is_floating_point else -1 - lowest(kind, name) if kind.name != "uint8" else 255
