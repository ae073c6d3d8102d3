"""Checks and Meta rules of fused scaled-dot-product attention."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_, float32, float64
from rushlight.core.strides import broadcast_shapes, strides_in_order
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import require_floating
from rushlight.ops.meta.common import empty
from rushlight.ops.meta.sorting import kept_strides
from rushlight.ops.registry import meta

NAME = "scaled_dot_product_attention"
_HEADS_INSIDE = (0, 2, 1, 3)


def default_scale(width: int) -> float:
    """Return the default scale of scores for heads of size `width`; 0 for size 0."""
    return 1 / math.sqrt(max(width, 1))


def check_attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, attn_mask: Tensor | None
) -> None:
    """Raise RuntimeError unless query (B, H, L, E), key (B, H, S, E), value (B, H, S, E) and the mask fit together."""
    for role, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 4:
            raise RuntimeError(f"{NAME}: expected {role} of 4 dimensions, but got shape {list(tensor.shape)}")
        if tensor.dtype is not query.dtype:
            raise RuntimeError(
                f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype}, "
                f"key.dtype: {key.dtype}, and value.dtype: {value.dtype}"
            )
    require_floating(NAME, query)
    batch, heads, _, width = query._impl.sizes
    if key._impl.sizes != value._impl.sizes or key._impl.sizes[:2] + key._impl.sizes[3:] != (batch, heads, width):
        raise RuntimeError(
            f"{NAME}: Q/K/V should have the same batch, heads and head size, and K/V the same length, but got shapes "
            f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    if dropout_p:
        raise RuntimeError(f"{NAME}: currently do not support dropout > 0 in the fused CPU kernel, got {dropout_p}")
    if attn_mask is not None:
        _check_mask(query, key, is_causal, attn_mask)


def _check_mask(query: Tensor, key: Tensor, is_causal: bool, attn_mask: Tensor) -> None:
    if is_causal:
        raise RuntimeError(f"{NAME}: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask.dtype not in (bool_, float32, query.dtype):
        raise RuntimeError(
            f"{NAME}: expected attn_mask to be bool, float or of the query's dtype {query.dtype}, got {attn_mask.dtype}"
        )
    target = (*query._impl.sizes[:3], key._impl.sizes[2])
    if attn_mask.dim() not in (2, 4) or broadcast_shapes(target, attn_mask._impl.sizes) != target:
        raise RuntimeError(f"{NAME}: attn_mask of shape {list(attn_mask.shape)} does not broadcast to {list(target)}")


def heads_inside_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides of a (B, H, L, E) result that lies in memory as (B, L, H, E)."""
    return strides_in_order(sizes, _HEADS_INSIDE[: len(sizes)])


@meta("_scaled_dot_product_flash_attention_for_cpu")
def attention(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    check_attention(query, key, value, dropout_p, is_causal, attn_mask)
    sizes = query._impl.sizes
    sums = float64 if query.dtype is float64 else float32
    return (
        empty(sizes, query.dtype, kept_strides(query)),
        empty(sizes[:3], sums, heads_inside_strides(sizes[:3])),
    )


@meta("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(
    grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None
):  # fmt: skip
    check_attention(query, key, value, dropout_p, is_causal, attn_mask)
    sizes = (query._impl.sizes, key._impl.sizes, value._impl.sizes)
    return tuple(empty(size, query.dtype, heads_inside_strides(size)) for size in sizes)
