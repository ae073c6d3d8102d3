"""Attention in TorchScript's language. The signatures are those of `nn.functional`."""

from __future__ import annotations

import math
from typing import Optional, Tuple  # noqa: UP035 (scripted code)

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.common import aten
from rushlight.nn.modules import transformer


def float_mask(mask: Optional[Tensor], like: Tensor) -> Optional[Tensor]:
    """Return a bool mask (True forbids) as a mask of 0 and -inf."""
    if mask is None:
        return None
    if mask.is_floating_point():
        return mask
    return aten.zeros_like(mask, dtype=like.dtype).masked_fill(mask, -math.inf)


def widened(mask: Optional[Tensor]) -> Optional[Tensor]:
    """Return a mask extended by one key that it allows."""
    if mask is None:
        return None
    return aten.constant_pad_nd(mask, [0, 1], 0)


def heads(x: Tensor, count: int) -> Tensor:
    """Reshape (tokens, batch, features) to (batch, heads, tokens, features of a head)."""
    return x.view(x.size(0), x.size(1), count, x.size(2) // count).permute([1, 2, 0, 3])


def given_heads(x: Tensor, batch: int) -> Tensor:
    """Reshape (batch * heads, tokens, features of a head) to (batch, heads, tokens, features of a head)."""
    return x.view(batch, x.size(0) // batch, x.size(1), x.size(2))


def project(
    query: Tensor, key: Tensor, value: Tensor, packed: Optional[Tensor], q_weight: Optional[Tensor],
    k_weight: Optional[Tensor], v_weight: Optional[Tensor], bias: Optional[Tensor],
) -> Tuple[Tensor, Tensor, Tensor]:
    """Project the inputs to queries, keys and values, by one packed weight or by three."""
    if packed is not None:
        if key is value and query is key:
            q, k, v = aten.linear(query, packed, bias).chunk(3, -1)
            return q, k, v
        q_weight, k_weight, v_weight = packed.chunk(3)
    assert q_weight is not None and k_weight is not None and v_weight is not None
    if bias is None:
        return aten.linear(query, q_weight), aten.linear(key, k_weight), aten.linear(value, v_weight)
    q_bias, k_bias, v_bias = bias.chunk(3)
    return aten.linear(query, q_weight, q_bias), aten.linear(key, k_weight, k_bias), aten.linear(value, v_weight, v_bias)


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor], bias_v: Optional[Tensor], add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Optional[Tensor], training: bool = True,
    key_padding_mask: Optional[Tensor] = None, need_weights: bool = True, attn_mask: Optional[Tensor] = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Optional[Tensor] = None,
    k_proj_weight: Optional[Tensor] = None, v_proj_weight: Optional[Tensor] = None, static_k: Optional[Tensor] = None,
    static_v: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:
    if query.dim() != 2 and query.dim() != 3:
        raise AssertionError(
            "query should be unbatched 2D or batched 3D tensor but received {}-D query tensor".format(query.dim())
        )
    batched = query.dim() == 3
    if not batched:
        same_value, same_key = value is key, key is query
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    if query.size(2) != embed_dim_to_check:
        raise AssertionError(
            "was expecting embedding dimension of {}, but got {}".format(embed_dim_to_check, query.size(2))
        )
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    padding = float_mask(key_padding_mask, query)
    hint = is_causal and padding is None and not need_weights
    mask: Optional[Tensor] = None
    if not hint:
        mask = float_mask(attn_mask, query)
    packed = None if use_separate_proj_weight else in_proj_weight
    q, k, v = project(query, key, value, packed, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias)
    target, batch = query.size(0), query.size(1)
    if mask is not None:
        if mask.dim() == 2:
            mask = mask.unsqueeze(0).unsqueeze(0)
        else:
            mask = mask.view(batch, num_heads, mask.size(1), mask.size(2))
    if bias_k is not None and bias_v is not None:
        k = aten.cat([k, bias_k.expand(1, batch, bias_k.size(2))])
        v = aten.cat([v, bias_v.expand(1, batch, bias_v.size(2))])
        mask, padding = widened(mask), widened(padding)
    q = heads(q, num_heads)
    k = heads(k, num_heads) if static_k is None else given_heads(static_k, batch)
    v = heads(v, num_heads) if static_v is None else given_heads(static_v, batch)
    if add_zero_attn:
        k = aten.cat([k, k.new_zeros([k.size(0), k.size(1), 1, k.size(3)])], 2)
        v = aten.cat([v, v.new_zeros([v.size(0), v.size(1), 1, v.size(3)])], 2)
        mask, padding = widened(mask), widened(padding)
    if padding is not None:
        spread = padding.view(batch, 1, 1, k.size(2))
        mask = spread if mask is None else mask + spread
    dropped = dropout_p if training else 0.0
    weights: Optional[Tensor] = None
    if need_weights:
        scores = (q * math.sqrt(1.0 / float(q.size(3)))).matmul(k.transpose(-2, -1))
        if mask is not None:
            scores = scores + mask
        attention = aten.softmax(scores, -1)
        if dropped > 0.0:
            attention = aten.dropout(attention, dropped, True)
        context = attention.matmul(v)
        averaged = attention.mean([1]) if average_attn_weights else attention
        weights = averaged if batched else averaged.squeeze(0)
    else:
        context = aten.scaled_dot_product_attention(q, k, v, mask, dropped, hint)
    joined = context.permute([2, 0, 1, 3]).reshape([target, batch, -1])
    output = aten.linear(joined, out_proj_weight, out_proj_bias)
    return output if batched else output.squeeze(1), weights


def is_causal_mask(mask: Optional[Tensor], is_causal: Optional[bool]) -> bool:
    """Return the hint if it is given, otherwise whether the mask is the causal mask of its size."""
    if is_causal is not None:
        return is_causal
    if mask is None:
        return False
    rows, columns = mask.size(-2), mask.size(-1)
    if rows != columns or mask.dim() != 2 or not mask.is_floating_point():
        return False
    causal = aten.full_like(mask, -math.inf).triu(1)
    return bool((mask == causal).all())


REPLACEMENTS = {F.multi_head_attention_forward: multi_head_attention_forward, transformer._is_causal: is_causal_mask}
