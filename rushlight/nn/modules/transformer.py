"""The encoder-decoder of Vaswani et al., "Attention Is All You Need" (2017), and its layers."""

from __future__ import annotations

import copy
from collections.abc import Callable

from rushlight.autograd import is_grad_enabled
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.creation import new_tensor
from rushlight.nn.modules.activation import GELU, ReLU
from rushlight.nn.modules.attention import MultiheadAttention
from rushlight.nn.modules.container import ModuleList
from rushlight.nn.modules.dropout import Dropout
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _activation(chosen: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(chosen, str):
        return chosen
    if chosen not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {chosen}")
    return F.relu if chosen == "relu" else F.gelu


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


def _is_causal(mask: Tensor | None, is_causal: bool | None) -> bool:
    """Return the hint if it is given, otherwise whether the mask is the causal mask of its size."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    rows, columns = mask.shape[-2:]
    if rows != columns:
        return False
    causal = Transformer.generate_square_subsequent_mask(rows, mask.device, mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward block, each with a residual connection and a norm (first, if `norm_first`).

    Args:
        d_model (int): the number of features of a token.
        nhead (int): the number of heads.
        dim_feedforward (int): the features of the hidden layer.
        dropout (float): the probability of zeroing an element.
        activation (Activation): "relu", "gelu" or a function.
        layer_norm_eps (float): added to the variances in layer norms.
        batch_first (bool): whether the batch is the first dimension, instead of the second.
        norm_first (bool): whether norms come before attention and feed-forward, instead of after.
        bias (bool): whether the layers have biases.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.TransformerEncoderLayer(4, 2)(torch.ones(3, 1, 4)).shape
        torch.Size([3, 1, 4])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), *masks)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, *masks))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        attended = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )[0]
        return self.dropout1(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output, and a feed-forward block.

    Args:
        d_model (int): the number of features of a token.
        nhead (int): the number of heads.
        dim_feedforward (int): the features of the hidden layer.
        dropout (float): the probability of zeroing an element.
        activation (Activation): "relu", "gelu" or a function.
        layer_norm_eps (float): added to the variances in layer norms.
        batch_first (bool): whether the batch is the first dimension, instead of the second.
        norm_first (bool): whether norms come before attention and feed-forward, instead of after.
        bias (bool): whether the layers have biases.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.TransformerDecoderLayer(4, 2)(torch.ones(3, 1, 4), torch.ones(5, 1, 4)).shape
        torch.Size([3, 1, 4])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, **made)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *own)
            x = x + self._mha_block(self.norm2(x), memory, *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *own))
        x = self.norm2(x + self._mha_block(x, memory, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        attended = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout1(attended)

    def _mha_block(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        attended = self.multihead_attn(
            x, memory, memory, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout2(attended)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """`num_layers` copies of an encoder layer, then `norm`.

    With `enable_nested_tensor`, an encoder in eval mode without gradients returns zeros at padded positions, as torch's fast
    path does for standard layers; with `mask_check`, only if all padding is at the ends.

    Args:
        encoder_layer (TransformerEncoderLayer): the layer to copy.
        num_layers (int): the number of layers.
        norm (Module | None): a module applied at the end.
        enable_nested_tensor (bool): whether padding may be skipped in evaluation mode.
        mask_check (bool): whether to check first that all padding is at the ends.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(4, 2, batch_first=True)
        >>> torch.nn.TransformerEncoder(layer, 2)(torch.ones(1, 3, 4)).shape
        torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _has_common_form(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        is_causal = _is_causal(mask, is_causal)
        drops = mask is None and src.dim() == 3 and self.use_nested_tensor and not self.training and not is_grad_enabled()
        dropped = self._dropped_positions(src_key_padding_mask) if drops else None
        padding = src_key_padding_mask if dropped is None or self.mask_check else dropped
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=padding, is_causal=is_causal)
        if dropped is not None:
            src = src.masked_fill(dropped.unsqueeze(-1), 0.0)
        return src if self.norm is None else self.norm(src)

    def _dropped_positions(self, padding: Tensor | None) -> Tensor | None:
        """Return a mask of the positions that a nested tensor drops: the last ones of each row, as many as it has padding.

        All False if `mask_check` is on and padding is not at the ends.
        """
        if padding is None:
            return None
        marked = padding.bool()
        last = marked.new_ones(marked.shape).cumsum(1) > marked.logical_not().sum(1, keepdim=True)
        return last.logical_and((last == marked).all()) if self.mask_check else last


def _has_common_form(layer: Module) -> bool:
    """Return whether torch has a fast path for a layer, which drops padding."""
    if not isinstance(layer, TransformerEncoderLayer):
        return False
    attention, activation = layer.self_attn, layer.activation
    return (
        attention.batch_first
        and attention.in_proj_bias is not None
        and attention.num_heads % 2 == 0
        and not layer.norm_first
        and layer.norm1.eps == layer.norm2.eps
        and (activation in (F.relu, F.gelu) or isinstance(activation, ReLU | GELU))
    )


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder layer, then `norm`.

    Args:
        decoder_layer (TransformerDecoderLayer): the layer to copy.
        num_layers (int): the number of layers.
        norm (Module | None): a module applied at the end.

    Example:
        >>> decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(4, 2), 2)
        >>> decoder(torch.ones(3, 1, 4), torch.ones(5, 1, 4)).shape
        torch.Size([3, 1, 4])
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal)
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of source sequences and a decoder of target sequences.

    Args:
        d_model (int): the number of features of a token.
        nhead (int): the number of heads.
        num_encoder_layers (int): the number of encoder layers.
        num_decoder_layers (int): the number of decoder layers.
        dim_feedforward (int): the features of the hidden layer.
        dropout (float): the probability of zeroing an element.
        activation (Activation): "relu", "gelu" or a function.
        custom_encoder (Module | None): an encoder to use instead.
        custom_decoder (Module | None): a decoder to use instead.
        layer_norm_eps (float): added to the variances in layer norms.
        batch_first (bool): whether the batch is the first dimension, instead of the second.
        norm_first (bool): whether norms come before attention and feed-forward, instead of after.
        bias (bool): whether the layers have biases.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.Transformer(4, 2, 1, 1)(torch.ones(3, 1, 4), torch.ones(5, 1, 4)).shape
        torch.Size([5, 1, 4])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        options = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
            device, dtype,
        )  # fmt: skip
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*options)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*options)
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None) -> Tensor:
        """(sz, sz): -inf above the diagonal, 0 elsewhere."""
        return new_tensor([sz, sz], device, dtype, float("-inf")).triu(1)


_get_activation_fn = _activation  # torch's private name, which packages import
