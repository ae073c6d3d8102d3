"""More functions of `nn.functional` in TorchScript's language, where their own source does not compile."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import List, Optional, Tuple  # noqa: UP035 (scripted code)

from rushlight.core.tensor import Tensor
from rushlight.jit.library import attention, convolution, packing, pooling, vision
from rushlight.jit.overloads import overload
from rushlight.nn import functional as F
from rushlight.nn.functional import common
from rushlight.nn.functional.common import aten
from rushlight.ops import distinct, functional_linalg
from rushlight.ops import functional as ops_functional


def product(numbers: List[int]) -> int:
    """Return `math.prod` of a list of ints."""
    total = 1
    for number in numbers:
        total *= number
    return total


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    norm = input.norm(p, [dim], True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else aten.div(input, norm, out=out)


def reduction_code(reduction: str) -> int:
    """Return ATen's number for the name of a reduction."""
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError("{} is not a valid value for reduction".format(reduction))


def reduction_name(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> str:
    """Return the reduction, or the one that the deprecated flags stand for, if given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "sum" if size_average is not None and not size_average else "mean"


def embedding(
    input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:
    row = -1
    if padding_idx is not None:
        row = padding_idx if padding_idx >= 0 else padding_idx + weight.size(0)
        assert 0 <= row and row < weight.size(0), "Padding_idx must be within num_embeddings"
    if max_norm is not None:
        limit_norms(weight.detach(), input, max_norm, norm_type)
    return aten.embedding(weight, input, row, scale_grad_by_freq, sparse)


def limit_norms(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale indexed rows down to the norm, in place."""
    flat = indices.reshape(-1)
    rows = weight.index_select(0, flat)
    norms = rows.norm(norm_type, [1], True)
    scale = (max_norm / (norms + 1e-7)).masked_fill(norms <= max_norm, 1.0)
    weight[flat] = rows * scale


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False, padding_idx: Optional[int] = None,
) -> Tensor:
    if mode not in ["sum", "mean", "max"]:
        raise ValueError("mode has to be one of sum, mean or max, got {}".format(mode))
    flat = input.reshape(-1)
    position = aten.arange(flat.size(0), device=input.device)
    if input.dim() == 2:
        count = input.size(0)
        bags = position.div(max(input.size(1), 1), rounding_mode="floor")
    else:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        count = offsets.size(0) - int(include_last_offset)
        bags = aten.searchsorted(offsets[:count].to(position.dtype), position, right=True) - 1
    rows = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    counted = aten.ones_like(rows[:, :1])
    if padding_idx is not None:
        counted = (flat != padding_idx % weight.size(0)).to(rows.dtype).unsqueeze(1)
    spread = bags.unsqueeze(1).expand(rows.size())
    if mode == "max":
        start = aten.full_like(rows[:1], -math.inf).expand(count, rows.size(1)).contiguous()
        largest = start.scatter_reduce(0, spread, rows.masked_fill(counted == 0, -math.inf), "amax")
        return largest.masked_fill(largest.detach() == -math.inf, 0.0)
    if per_sample_weights is not None:
        counted = counted * per_sample_weights.reshape(-1, 1)
    total = rows.new_zeros([count, weight.size(1)]).scatter_add(0, spread, rows * counted)
    if mode == "sum":
        return total
    sizes = rows.detach().new_zeros([count, 1]).scatter_add(0, bags.unsqueeze(1), counted)
    return total / sizes.clamp(min=1)


def unique_all(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    if dim is None:
        return aten._unique2(input, sorted, return_inverse, return_counts)
    return aten.unique_dim(input, dim, sorted, return_inverse, return_counts)


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tensor:
    return unique_all(input, sorted, False, False, dim)[0]


def unique_inverse(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    values, inverse, _ = unique_all(input, sorted, True, False, dim)
    return values, inverse


def unique_counts(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    values, _, counts = unique_all(input, sorted, False, True, dim)
    return values, counts


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tensor:
    return aten.unique_consecutive(input, False, False, dim)[0]


def unique_consecutive_inverse(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    values, inverse, _ = aten.unique_consecutive(input, True, False, dim)
    return values, inverse


def unique_consecutive_counts(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    values, _, counts = aten.unique_consecutive(input, False, True, dim)
    return values, counts


def unique_consecutive_all(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: Optional[int] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    return aten.unique_consecutive(input, True, True, dim)


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
    """Return the dimension that is used if none is given."""
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


@overload
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor: ...
@overload
def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: List[int], target_lengths: List[int], blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor: ...
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    code = 0 if reduction == "none" else 1 if reduction == "mean" else 2
    return aten.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, code, zero_infinity)


@overload
def tensordot(a: Tensor, b: Tensor, dims: int = 2) -> Tensor: ...
@overload
def tensordot(a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]]) -> Tensor: ...
@overload
def tensordot(a: Tensor, b: Tensor, dims: List[List[int]]) -> Tensor: ...
@overload
def tensordot(a: Tensor, b: Tensor, dims: Tensor) -> Tensor: ...
def tensordot(a, b, dims):
    if isinstance(dims, Tensor):
        if dims.numel() > 1:
            first: List[int] = dims[0].tolist()
            second: List[int] = dims[1].tolist()
            return aten.tensordot(a, b, first, second)
        count = int(dims.item())
        return aten.tensordot(a, b, list(range(a.dim() - count, a.dim())), list(range(count)))
    elif isinstance(dims, int):
        return aten.tensordot(a, b, list(range(a.dim() - dims, a.dim())), list(range(dims)))
    else:
        return aten.tensordot(a, b, dims[0], dims[1])


@overload
def assert_true(condition: bool, message: str) -> None: ...
@overload
def assert_true(condition: Tensor, message: str) -> None: ...
def assert_true(condition, message):
    assert condition, message


REPLACEMENTS: dict[Callable, Callable] = {
    ops_functional._assert: assert_true,
    functional_linalg.tensordot: tensordot,
    math.prod: product, F.dropout2d: dropout2d, F.dropout3d: dropout3d, F.feature_alpha_dropout: feature_alpha_dropout,
    F.softmax: softmax, F.log_softmax: log_softmax, F.softmin: softmin, F.gaussian_nll_loss: gaussian_nll_loss,
    F.scaled_dot_product_attention: scaled_dot_product_attention, F.layer_norm: layer_norm, F.ctc_loss: ctc_loss,
    F.embedding_bag: embedding_bag, F.normalize: normalize, common.reduction_code: reduction_code,
    common.reduction_name: reduction_name, F.embedding: embedding,
    **attention.REPLACEMENTS, **convolution.REPLACEMENTS, **pooling.REPLACEMENTS, **vision.REPLACEMENTS,
    **packing.REPLACEMENTS,
}  # fmt: skip
_FLAGS = (False, False), (True, False), (False, True), (True, True)
BY_FLAGS: dict[Callable, tuple] = {
    distinct.unique: (
        (("return_inverse", 2), ("return_counts", 3)),
        dict(zip(_FLAGS, (unique, unique_inverse, unique_counts, unique_all), strict=True)),
    ),
    distinct.unique_consecutive: (
        (("return_inverse", 1), ("return_counts", 2)),
        dict(zip(
            _FLAGS,
            (unique_consecutive, unique_consecutive_inverse, unique_consecutive_counts, unique_consecutive_all), strict=True,
        )),
    ),
}  # fmt: skip
"""By function: the positions of the flags that decide the number of results, and the function compiled for each choice."""
