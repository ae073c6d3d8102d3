"""The fused operators of torch's multi-head attention and Transformer encoder layers for evaluation.

Definitions: those of torch.nn.MultiheadAttention and torch.nn.TransformerEncoderLayer without dropout, batch first.
"""

from __future__ import annotations

import math

from rushlight.core.tensor import Tensor
from rushlight.jit.operators.registry import declare_operator
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

_SOURCE, _PADDING = 0, 1


def _additive_mask(mask: Tensor, kind: int | None, scores: Tensor) -> Tensor:
    """Return a mask that is True where forbidden, as an additive mask for scores of shape (batch, heads, target, source)."""
    if mask.dtype.is_floating_point:
        added = mask
    else:
        added = scores.new_zeros(mask.shape).masked_fill(mask, -math.inf)
    if kind == _PADDING or (kind is None and mask.dim() == 2 and mask.size(0) == scores.size(0) != scores.size(2)):
        return added.view(mask.size(0), 1, 1, mask.size(-1))
    return added if mask.dim() in (2, 4) else added.view(scores.size(0), -1, *mask.shape[1:])


def native_attention(
    query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor,
    proj_weight: Tensor, proj_bias: Tensor, mask: Tensor | None = None, need_weights: bool = True,
    average: bool = True, mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return self- or cross-attention of (batch, length, embed_dim) with packed projections, and the attention weights."""
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    parts = []
    for given, weight, bias in zip((query, key, value), weights, biases, strict=True):
        projected = aten.linear(given, weight, bias)
        parts.append(projected.view(given.size(0), given.size(1), num_head, embed_dim // num_head).transpose(1, 2))
    scores = (parts[0] / math.sqrt(embed_dim // num_head)) @ parts[1].transpose(-2, -1)
    if mask is not None:
        scores = scores + _additive_mask(mask, mask_type, scores)
    attention = scores.softmax(-1)
    if mask is not None:
        attention = attention.nan_to_num(0.0)
    mixed = (attention @ parts[2]).transpose(1, 2).reshape(query.size(0), query.size(1), embed_dim)
    result = aten.linear(mixed, proj_weight, proj_bias)
    if not need_weights:
        return result, tensor([])
    return result, attention.mean(1) if average else attention


def encoder_layer(
    src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
    use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor,
    norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
    mask: Tensor | None = None, mask_type: int | None = None,
) -> Tensor:  # fmt: skip
    """Return an encoder layer in evaluation: attention and a two-layer network, each with a residual connection and a norm."""

    def attend(x: Tensor) -> Tensor:
        return native_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False,
                                True, mask_type)[0]  # fmt: skip

    def feed(x: Tensor) -> Tensor:
        hidden = aten.linear(x, ffn_weight_1, ffn_bias_1)
        return aten.linear(hidden.relu() if not use_gelu else aten.gelu(hidden), ffn_weight_2, ffn_bias_2)

    def first(x: Tensor) -> Tensor:
        return aten.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def second(x: Tensor) -> Tensor:
        return aten.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    if norm_first:
        src = src + attend(first(src))
        return src + feed(second(src))
    src = first(src + attend(src))
    return second(src + feed(src))


_MATRICES = "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias"
declare_operator(
    f"aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, {_MATRICES}, "
    "Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
    native_attention,
)
declare_operator(
    f"aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, {_MATRICES}, bool use_gelu, "
    "bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, "
    "Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None)"
    " -> Tensor",
    encoder_layer,
)
