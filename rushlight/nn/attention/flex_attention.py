"""`torch.nn.attention.flex_attention`: attention with a user-defined function of the scores.

In: queries (B, Hq, L, E), keys (B, Hkv, S, E), values (B, Hkv, S, Ev); a function of a score and its indices, a BlockMask. Out:
(B, Hq, L, Ev). The functions take one score at a time, and vmap applies them to all. A compiled function without gradients
fuses them into one kernel that works block by block and skips masked blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from rushlight.core.dtype import bfloat16, float16, float32
from rushlight.core.tensor import Tensor
from rushlight.nn.attention.block_mask import (
    DEFAULT_BLOCK_SIZE,
    BlockMask,
    _indices,
    and_masks,
    create_block_mask,
    create_mask,
    noop_mask,
    or_masks,
    over_elements,
)
from rushlight.ops.registry import aten as op

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = DEFAULT_BLOCK_SIZE
_mask_mod_signature = _score_mod_signature = Callable


class FlexKernelOptions(TypedDict, total=False):
    """Options of GPU kernels, which have no effect here."""


class AuxRequest(NamedTuple):
    """The extra results that `flex_attention` should return."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The extra results, (B, Hq, L) in float32 each: log-sum-exp, and the maximal score."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """softmax(score_mod(query @ key.T * scale)) @ value, over the keys that `block_mask.mask_mod` lets a query meet.

    `score_mod(score, b, h, q_idx, kv_idx)` returns the new score. `scale` is 1 / sqrt(E) by default. With `enable_gqa`, several
    query heads share a key head. A query that attends to no key has the result 0. Returns the result, or with `return_lse`
    (result, lse), or with `return_aux` (result, AuxOutput). ValueError for sizes that do not fit.
    """
    _check(query, key, value, block_mask, enable_gqa)
    heads = query.shape[1] // key.shape[1]
    if heads > 1:
        key, value = key.repeat_interleave(heads, 1), value.repeat_interleave(heads, 1)
    mask = None if block_mask is None or block_mask.mask_mod is noop_mask else block_mask.mask_mod
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if score_mod is None and not return_lse and return_aux is None:
        seen = None if mask is None else over_elements(mask)(*_places(query, key))
        return op("scaled_dot_product_attention")(query, key, value, seen, scale=scale)
    scores = _scores(query, key, score_mod, mask, scale)
    result, lse = _attend(scores, value)
    result = result.to(query.dtype)
    if return_aux is not None:
        highest = scores.amax(-1) if return_aux.max_scores else None
        return result, AuxOutput(lse if return_aux.lse else None, highest)
    return (result, lse) if return_lse else result


def _places(query: Tensor, key: Tensor) -> list[Tensor]:
    return _indices(*query.shape[:3], key.shape[2], device=query.device)


def _scores(query: Tensor, key: Tensor, score_mod: Callable | None, mask: Callable | None, scale: float) -> Tensor:
    """Return the scores (B, H, L, S), in float32 or wider, with -inf where masked."""
    kind = float32 if query.dtype in (float16, bfloat16) else query.dtype
    scores = query.to(kind) @ key.to(kind).transpose(-2, -1) * scale
    positions = _places(query, key)
    if score_mod is not None:
        scores = over_elements(score_mod, with_score=True)(scores, *positions).to(kind)
    return scores if mask is None else scores.masked_fill(~over_elements(mask)(*positions), -math.inf)


def _attend(scores: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted sums of values, and the log-sum-exps."""
    lse = scores.logsumexp(-1)
    weights = op("_safe_softmax")(scores, -1)
    return weights @ value.to(scores.dtype), lse


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.dtype != key.dtype or query.dtype != value.dtype:
        raise ValueError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype}, "
            f"key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared and not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={shared}. Try setting "
            "enable_gqa=True for GQA."
        )
    if heads % shared:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={shared}."
        )
    if block_mask is not None:
        _check_lengths(query.shape[2], key.shape[2], block_mask)


def _check_lengths(q_len: int, kv_len: int, block_mask: BlockMask) -> None:
    rows, columns = block_mask.shape[-2:]
    if q_len > rows or kv_len > columns:
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} and kv_len={kv_len}. As the "
            "block mask was created for a smaller length than you're using it for, you likely need to create a new block mask."
        )
    if q_len < rows and kv_len <= columns or q_len <= rows and kv_len < columns:
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={q_len} and kv_len={kv_len}. As the "
            "block mask was created for a larger length than you're using it for, you can either 1. create a new block mask "
            "with the correct length, or 2. 'adjust' the existing block mask to the correct length by calling "
            "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper left corner, which does "
            "not work for all mask_mods!"
        )
