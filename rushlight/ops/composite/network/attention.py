"""Scaled dot-product attention (Vaswani et al. 2017)."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_
from rushlight.core.thread_state import state
from rushlight.ops.composite.network.activations import safe_softmax, softmax
from rushlight.ops.composite.network.common import arange, aten
from rushlight.ops.composite.network.dropout import dropout
from rushlight.ops.meta.attention import default_scale
from rushlight.ops.registry import composite


@composite(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor"
)
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
):
    """Compute softmax(query @ key^T * scale + mask) @ value over the last two dimensions (tokens, features).

    A bool mask is True where a key may be attended to. Fully masked rows give zeros.
    """
    _check_arguments(query, key, value, attn_mask)
    if enable_gqa:
        key, value = _repeat_heads(query, key, "Key"), _repeat_heads(query, value, "value")
    mask = _additive(attn_mask, query.dtype)
    if is_causal and mask is not None:
        mask, is_causal = mask.masked_fill(_causal_mask(query, key), -math.inf), False
    if _is_fused(query, key, value, mask, dropout_p):
        return aten._scaled_dot_product_flash_attention_for_cpu.default(
            query, key, value, dropout_p, is_causal, attn_mask=mask, scale=scale
        )[0]
    return _attend_by_operators(query, key, value, mask, dropout_p, is_causal, scale)


def _check_arguments(query, key, value, attn_mask) -> None:
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be at least 2 dimensional, but got "
            f"query.dim: {query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if attn_mask is None:
        return
    if attn_mask.dtype is not bool_ and attn_mask.dtype is not query.dtype:
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {attn_mask.dtype} and query.dtype: {query.dtype} instead."
        )


def _repeat_heads(query, x, name: str):
    """Repeat each head of `x`, which serves several heads of the query (grouped-query attention)."""
    heads, own = query.size(-3), x.size(-3)
    if not own or heads % own:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, "
            f"but {name} has {own} and query {heads}"
        )
    return x if heads == own else x.repeat_interleave(heads // own, -3)


def _additive(mask, dtype):
    """Return a bool mask as 0 and -inf to be added to the scores."""
    if mask is None or mask.dtype is not bool_:
        return mask
    allowed = aten.full.default([], 0.0, dtype=dtype, device=mask.device)
    return aten.where.self(mask, allowed, aten.full.default([], -math.inf, dtype=dtype, device=mask.device))


def _is_fused(query, key, value, mask, dropout_p: float) -> bool:
    queries, keys, values = query._impl.sizes, key._impl.sizes, value._impl.sizes
    return (
        not state.dual_levels  # forward mode needs double backward, which the fused operator lacks
        and dropout_p == 0
        and query.is_floating_point()
        and len(queries) == len(keys) == len(values) == 4
        and queries[:2] == keys[:2] == values[:2]
        and queries[3] == keys[3] == values[3]
        and keys[2] == values[2]
        and 0 not in (query.numel(), key.numel())
        and (mask is None or (not mask.requires_grad and mask.dim() in (2, 4)))
    )


def _causal_mask(query, key):
    """Return a mask of the keys (columns) after each query (row)."""
    return arange(query, key.shape[-2]) > arange(query, query.shape[-2]).unsqueeze(1)


def _attend_by_operators(query, key, value, mask, dropout_p: float, is_causal: bool, scale: float | None):
    scale = default_scale(query.shape[-1]) if scale is None else scale
    scores = (query * scale).matmul(key.transpose(-2, -1))
    if is_causal:
        scores = scores.masked_fill(_causal_mask(query, key), -math.inf)
    if mask is None:
        probabilities = softmax(scores, -1)
    else:
        probabilities = safe_softmax(scores + mask, -1)
    return dropout(probabilities, dropout_p, True).matmul(value)
