"""Attention: scaled dot-product, and multi-head with projections (Vaswani et al. 2017)."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_
from rushlight.core.dtype import dtype as element_type
from rushlight.core.tensor import Tensor
from rushlight.nn.functional.activations import softmax
from rushlight.nn.functional.common import aten
from rushlight.nn.functional.dropout import dropout
from rushlight.nn.functional.linear import linear


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key^T * scale + attn_mask) @ value; (..., tokens, features) each.

    A bool mask is True where attending is allowed, a float mask is added. `is_causal` allows keys up to the query's own
    position. The scale defaults to 1 / sqrt(features). `enable_gqa` lets fewer key and value heads serve all query heads.

    Args:
        query (Tensor): the queries, (..., L, E).
        key (Tensor): the keys, (..., S, E).
        value (Tensor): the values, (..., S, E_v).
        attn_mask (Tensor | None): a bool mask that is True where attention is allowed, or numbers to add to the scores.
        dropout_p (float): the probability of dropping an attention weight.
        is_causal (bool): whether each query sees only keys up to its own position.
        scale (float | None): the factor of the scores; 1 / sqrt(E) by default.
        enable_gqa (bool): whether several query heads share a key and value head.

    Example:
        >>> F.scaled_dot_product_attention(torch.ones(1, 2, 3), torch.ones(1, 4, 3), torch.ones(1, 4, 5)).shape
        torch.Size([1, 2, 5])
    """
    return aten.scaled_dot_product_attention.default(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the functional form of MultiheadAttention; inputs are (tokens, batch, features) or (tokens, features).

    Returns the output, with the query's shape, and the attention weights: (batch, target, source), per head when not
    `average_attn_weights`, None when not `need_weights`. In bool masks True forbids, unlike in
    scaled_dot_product_attention.
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = _with_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    key_padding_mask = _float_mask(key_padding_mask, "key_padding_mask", query.dtype)
    attn_mask, is_causal = _causal_hint(attn_mask, key_padding_mask, need_weights, is_causal, query.dtype)
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_separately(query, key, value, weights, in_proj_bias)
    else:
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)
    batch, target, source = query.shape[1], query.shape[0], key.shape[0]
    attn_mask = _four_dimensional(attn_mask, batch, num_heads, target, source)
    if bias_k is not None and bias_v is not None:
        k, v = _append_row(k, bias_k, 0), _append_row(v, bias_v, 0)
        attn_mask, key_padding_mask = _pad_mask_by_one(attn_mask), _pad_mask_by_one(key_padding_mask)
    q = _split_heads(q, num_heads)
    k = _split_heads(k, num_heads) if static_k is None else _given_heads(static_k, batch)
    v = _split_heads(v, num_heads) if static_v is None else _given_heads(static_v, batch)
    if add_zero_attn:
        k, v = _append_row(k, k.new_zeros([]), 2), _append_row(v, v.new_zeros([]), 2)
        attn_mask, key_padding_mask = _pad_mask_by_one(attn_mask), _pad_mask_by_one(key_padding_mask)
    mask = _merge_masks(attn_mask, key_padding_mask, batch, k.shape[2])
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        context, attention = _attend_with_weights(q, k, v, mask, dropout_p)
    else:
        context, attention = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal), None
    output = linear(_join_heads(context), out_proj_weight, out_proj_bias)
    return _shape_results(output, attention, average_attn_weights, batched)


def _with_batch(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # One tensor as several arguments must stay one object, so that the packed projection recognises self-attention.
    batched_query = query.unsqueeze(1)
    batched_key = batched_query if key is query else key.unsqueeze(1)
    return batched_query, batched_key, batched_key if value is key else value.unsqueeze(1)


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, key_padding_mask, attn_mask, num_heads: int) -> bool:
    """Return whether there is a batch dimension; AssertionError when the arguments disagree about it."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    kind, dims = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {dims}-D"
            f" but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D"
            f" but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D"
            f" but found {attn_mask.dim()}-D tensor instead"
        )
    if not batched and attn_mask is not None and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_heads: int, separate: bool) -> None:
    given = query.shape[-1]
    if given != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {given}")
    if given % num_heads:
        raise AssertionError(f"embed_dim {given} not divisible by num_heads {num_heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _float_mask(mask: Tensor | None, name: str, dtype: element_type) -> Tensor | None:
    """Return a bool mask (True forbids) as a mask of 0 and -inf."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype is not bool_:
        raise AssertionError(f"only bool and floating types of {name} are supported, got {mask.dtype}")
    return mask.new_zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)


def _causal_hint(attn_mask, key_padding_mask, need_weights: bool, is_causal: bool, dtype: element_type):
    """Return the mask and whether the operator may use `is_causal` instead of it."""
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if is_causal and key_padding_mask is None and not need_weights:
        return None, True
    return _float_mask(attn_mask, "attn_mask", dtype), False


def _project_packed(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None):
    """Return the packed weight stacks the rows of the query's, the key's and the value's projections."""
    if key is value and query is key:
        return linear(query, weight, bias).chunk(3, -1)
    size = query.shape[-1]
    biases = (None, None) if bias is None else bias.split([size, 2 * size])
    weight_query, weight_rest = weight.split([size, 2 * size])
    q = linear(query, weight_query, biases[0])
    if key is value:
        return (q, *linear(key, weight_rest, biases[1]).chunk(2, -1))
    weight_key, weight_value = weight_rest.chunk(2)
    bias_key, bias_value = (None, None) if bias is None else biases[1].chunk(2)
    return q, linear(key, weight_key, bias_key), linear(value, weight_value, bias_value)


def _project_separately(query: Tensor, key: Tensor, value: Tensor, weights: tuple, bias: Tensor | None):
    if any(weight is None for weight in weights):
        raise AssertionError("use_separate_proj_weight is True but q_, k_ or v_proj_weight is None")
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))


def _four_dimensional(attn_mask: Tensor | None, batch: int, num_heads: int, target: int, source: int) -> Tensor | None:
    """Return the mask as (batch or 1, heads or 1, target, source)."""
    if attn_mask is None:
        return None
    flat = attn_mask.dim() == 2
    expected = (target, source) if flat else (batch * num_heads, target, source)
    if tuple(attn_mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {expected}."
        )
    return attn_mask.view([1, 1, target, source] if flat else [batch, num_heads, target, source])


def _append_row(x: Tensor, row: Tensor, dim: int) -> Tensor:
    shape = list(x.shape)
    shape[dim] = 1
    return aten.cat.default([x, row.expand(shape)], dim)


def _pad_mask_by_one(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else aten.constant_pad_nd.default(mask, [0, 1], 0)


def _split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(tokens, batch, features) to (batch, heads, tokens, features of a head)."""
    tokens, batch, features = x.shape
    return x.view([tokens, batch, num_heads, features // num_heads]).permute([1, 2, 0, 3])


def _given_heads(x: Tensor, batch: int) -> Tensor:
    """(batch * heads, tokens, features of a head) to (batch, heads, tokens, features of a head)."""
    return x.view([batch, x.shape[0] // batch, *x.shape[1:]])


def _join_heads(context: Tensor) -> Tensor:
    """(batch, heads, tokens, features of a head) to (tokens, batch, features)."""
    batch, heads, tokens, size = context.shape
    return context.permute([2, 0, 1, 3]).reshape([tokens, batch, heads * size])


def _merge_masks(attn_mask: Tensor | None, key_padding_mask: Tensor | None, batch: int, source: int) -> Tensor | None:
    if key_padding_mask is None:
        return attn_mask
    if tuple(key_padding_mask.shape) != (batch, source):
        raise AssertionError(f"expecting key_padding_mask shape of {(batch, source)}, but got {key_padding_mask.shape}")
    padding = key_padding_mask.view([batch, 1, 1, source])
    return padding if attn_mask is None else attn_mask + padding


def _attend_with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float):
    scores = (q * math.sqrt(1.0 / max(q.shape[-1], 1))).matmul(k.transpose(-2, -1))
    attention = softmax(scores if mask is None else scores + mask, -1)
    if dropout_p > 0.0:
        attention = dropout(attention, dropout_p)
    return attention.matmul(v), attention


def _shape_results(output: Tensor, attention: Tensor | None, average: bool, batched: bool):
    if attention is not None:
        attention = attention.mean([1]) if average else attention
        attention = attention if batched else attention.squeeze(0)
    return (output if batched else output.squeeze(1)), attention
