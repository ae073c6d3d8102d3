"""Further functions of `nn.functional` in TorchScript's language, where their own source is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import List, Optional  # noqa: UP035 (scripted code)

from rushlight.core.tensor import Tensor
from rushlight.jit.library import convolution, pooling, vision
from rushlight.nn import functional as F
from rushlight.nn.functional.common import aten


def product(numbers: List[int]) -> int:
    """`math.prod` of a list of ints."""
    total = 1
    for number in numbers:
        total *= number
    return total


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return aten.feature_dropout_(input, p, training) if inplace else aten.feature_dropout(input, p, training)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    batched = input if input.dim() == 5 else input.unsqueeze(0)
    result = aten.feature_dropout_(batched, p, training) if inplace else aten.feature_dropout(batched, p, training)
    return result if input.dim() == 5 else result.squeeze(0)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    return aten.feature_alpha_dropout_(input, p, training) if inplace else aten.feature_alpha_dropout(input, p, training)


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return aten.softmax(input, implied_dim(dim, input), dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return aten.log_softmax(input, implied_dim(dim, input), dtype)


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return aten.softmax(-input, implied_dim(dim, input), dtype)


def implied_dim(dim: Optional[int], input: Tensor) -> int:
    """The dimension that is meant where none is said."""
    if dim is not None:
        return dim
    return 0 if input.dim() in [0, 1, 3] else 1


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Optional[float] = None, enable_gqa: bool = False,
) -> Tensor:
    return aten.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def layer_norm(
    input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    return aten.layer_norm(input, normalized_shape, weight, bias, eps)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    if (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.dim() + 1 == input.dim():
        var = var.unsqueeze(-1)
    safe = var.detach().clamp(min=eps) + (var - var.detach())
    loss = 0.5 * (safe.log() + (input - target) ** 2 / safe)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:
    code = 0 if reduction == "none" else 1 if reduction == "mean" else 2
    return aten.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, code, zero_infinity)


REPLACEMENTS: dict[Callable, Callable] = {
    math.prod: product, F.dropout2d: dropout2d, F.dropout3d: dropout3d, F.feature_alpha_dropout: feature_alpha_dropout,
    F.softmax: softmax, F.log_softmax: log_softmax, F.softmin: softmin, F.gaussian_nll_loss: gaussian_nll_loss,
    F.scaled_dot_product_attention: scaled_dot_product_attention, F.layer_norm: layer_norm, F.ctc_loss: ctc_loss,
    **convolution.REPLACEMENTS, **pooling.REPLACEMENTS, **vision.REPLACEMENTS,
}  # fmt: skip
