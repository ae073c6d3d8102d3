"""Attention in several heads."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.creation import new_parameter
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module


class MultiheadAttention(Module):
    """Attention with `num_heads` heads, each on a part of the features (Vaswani et al. 2017).

    Inputs are (tokens, batch, features), (batch, tokens, features) when `batch_first`, or (tokens, features).
    `kdim` and `vdim` are the features of keys and values where they differ from the query's.

    Args:
        embed_dim (int): the number of features of a token.
        num_heads (int): the number of heads.
        dropout (float): the probability of zeroing an element.
        bias (bool): whether the layer has a learned bias.
        add_bias_kv (bool): whether a learned key and value are added.
        add_zero_attn (bool): whether a key and value of zeros are added.
        kdim (int | None): the features of keys.
        vdim (int | None): the features of values.
        batch_first (bool): whether the batch is the first dimension, instead of the second.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.MultiheadAttention(4, 2)(*[torch.ones(3, 1, 4)] * 3)[0].shape
        torch.Size([3, 1, 4])
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, "
                f"got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        self._make_projections(bias, device, dtype)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, new_parameter([1, 1, embed_dim], device, dtype) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _make_projections(self, bias: bool, device, dtype) -> None:
        sizes = {"q": self.embed_dim, "k": self.kdim, "v": self.vdim}
        same = self._qkv_same_embed_dim
        for name, size in sizes.items():
            weight = None if same else new_parameter([self.embed_dim, size], device, dtype)
            self.register_parameter(f"{name}_proj_weight", weight)
        packed = new_parameter([3 * self.embed_dim, self.embed_dim], device, dtype) if same else None
        self.register_parameter("in_proj_weight", packed)
        self.register_parameter("in_proj_bias", new_parameter([3 * self.embed_dim], device, dtype) if bias else None)

    def _reset_parameters(self) -> None:
        weights = (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        for weight in weights:
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output, and the attention weights (batch, target, source) or None when not `need_weights`.

        key_padding_mask: (batch, source). attn_mask: (target, source) or (batch * heads, target, source). True forbids;
        floats are added to the scores.
        """
        swap = self.batch_first and query.dim() == 3 and not query.is_nested
        if swap:
            query, key, value = _swap_batch_and_sequence(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(0, 1) if swap else output), weights


def _swap_batch_and_sequence(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # One tensor as several arguments must stay one object: the packed projection checks identity.
    swapped_query = query.transpose(0, 1)
    swapped_key = swapped_query if key is query else key.transpose(0, 1)
    return swapped_query, swapped_key, swapped_key if value is key else value.transpose(0, 1)
