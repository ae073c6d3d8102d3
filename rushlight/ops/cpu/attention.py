"""CPU kernels of fused scaled-dot-product attention: a few heads at a time, so that their scores fit the cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rushlight.core.dtype import bool_, float32, float64
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import empty, operand
from rushlight.ops.cpu.products import matrix_product
from rushlight.ops.meta.attention import check_attention, default_scale, heads_inside_strides
from rushlight.ops.meta.sorting import kept_strides
from rushlight.ops.registry import cpu

_SCORES_AT_A_TIME = 1 << 18


def _heads(query: Tensor, key: Tensor) -> Iterator[tuple[int, slice]]:
    """Yield slices of batch entries and heads whose scores fit the cache."""
    batch, heads, length, _ = query._impl.sizes
    run = max(1, _SCORES_AT_A_TIME // max(length * key._impl.sizes[2], 1))
    for entry in range(batch):
        for first in range(0, heads, run):
            yield entry, slice(first, min(first + run, heads))


def _scale(query: Tensor, scale: float | None) -> float:
    return default_scale(query._impl.sizes[3]) if scale is None else scale


def _additive_mask(query: Tensor, key: Tensor, is_causal: bool, attn_mask: Tensor | None) -> np.ndarray | None:
    """Return the additive mask, broadcast to (B, H, L, S): 0 and -inf for causal and boolean masks; None where there is no
    mask."""
    kind = query.dtype.compute.type
    length, count = query._impl.sizes[2], key._impl.sizes[2]
    if is_causal:
        hidden = np.arange(count) > np.arange(length)[:, None]
        mask = np.where(hidden, kind(-np.inf), kind(0))
    elif attn_mask is None:
        return None
    elif attn_mask.dtype is bool_:
        mask = np.where(attn_mask._impl.array, kind(0), kind(-np.inf))
    else:
        mask = operand(attn_mask, query.dtype)
    return np.broadcast_to(mask, (*query._impl.sizes[:3], count))


def _scores(q: np.ndarray, k: np.ndarray, scale: float, bias: np.ndarray | None) -> np.ndarray:
    scores = matrix_product(q * q.dtype.type(scale), k.swapaxes(-1, -2))
    if bias is not None:
        scores += bias
    return scores


@cpu("_scaled_dot_product_flash_attention_for_cpu")
def attention(query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    check_attention(query, key, value, dropout_p, is_causal, attn_mask)
    sizes, kind = query._impl.sizes, query.dtype
    out = empty(sizes, kind, kept_strides(query))
    sums = empty(sizes[:3], float64 if kind is float64 else float32, heads_inside_strides(sizes[:3]))
    q, k, v = (operand(tensor, kind) for tensor in (query, key, value))
    if _native_attention(out, sums, (q, k, v), is_causal, attn_mask, _scale(query, scale)):
        return out, sums
    bias, factor = _additive_mask(query, key, is_causal, attn_mask), _scale(query, scale)
    with np.errstate(all="ignore"):
        for part in _heads(query, key):
            scores = _scores(q[part], k[part], factor, None if bias is None else bias[part])
            sums._impl.array[part], total = _exponentials(scores)
            out._impl.array[part] = matrix_product(scores, v[part]) / total
    return out, sums


def _native_attention(
    out: Tensor, sums: Tensor, operands: tuple[np.ndarray, ...], is_causal: bool, attn_mask: Tensor | None, scale: float
) -> bool:
    """Run the native kernel into `out` and `sums`; False if it does not support the arguments."""
    if native.kernels is None or out.dtype is not float32:
        return False
    mask = None if attn_mask is None else attn_mask._impl.array
    totals = np.empty(sums._impl.sizes, np.float32)
    if not native.kernels.attention(out._impl.array, totals, *operands, mask, bool(is_causal), float(scale)):
        return False
    sums._impl.array[...] = totals
    return True


def _exponentials(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn scores into exponentials relative to their maxima, in place; per row, the log of their sum and the sum.

    A fully masked row gives zeros, and 0 as the log of its sum.
    """
    highest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    shift = np.where(np.isneginf(highest), 0, highest)
    np.exp(np.subtract(scores, shift, out=scores), out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    return np.squeeze(np.log(total) + shift, -1), total


@cpu("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(
    grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None
):  # fmt: skip
    check_attention(query, key, value, dropout_p, is_causal, attn_mask)
    kind = query.dtype
    grads = [empty(t._impl.sizes, kind, heads_inside_strides(t._impl.sizes)) for t in (query, key, value)]
    to_q, to_k, to_v = (grad._impl.array for grad in grads)
    q, k, v, g, o = (operand(tensor, kind) for tensor in (query, key, value, grad_out, out))
    if native.kernels is not None and kind is float32:
        sums = native.contiguous(logsumexp._impl.array)
        mask = None if attn_mask is None else attn_mask._impl.array
        options = mask, bool(is_causal), float(_scale(query, scale))
        if native.kernels.attention_backward(to_q, to_k, to_v, g, o, sums, q, k, v, *options):
            return tuple(grads)
    bias, factor = _additive_mask(query, key, is_causal, attn_mask), q.dtype.type(_scale(query, scale))
    logs = logsumexp._impl.array.astype(q.dtype, copy=False)
    with np.errstate(all="ignore"):
        for part in _heads(query, key):
            weights = _scores(q[part], k[part], factor, None if bias is None else bias[part])
            np.exp(np.subtract(weights, logs[part][..., None], out=weights), out=weights)
            to_v[part] = matrix_product(weights.swapaxes(-1, -2), g[part])
            along = (g[part] * o[part]).sum(axis=-1, keepdims=True)
            weights *= matrix_product(g[part], v[part].swapaxes(-1, -2)) - along
            weights *= factor
            to_q[part] = matrix_product(weights, k[part])
            to_k[part] = matrix_product(weights.swapaxes(-1, -2), q[part])
    return tuple(grads)
