"""Batching rules of matrix products and convolutions: examples become rows, matrices, or groups of channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import first_example, rule
from rushlight.ops.batching.layout import (
    Levels,
    aligned,
    all_levels,
    aten,
    batch_sizes,
    folded,
    is_batched,
    levels_of,
    make_batched,
    spread,
    value_of,
)


@rule("matmul", "linalg_matmul")
def _matmul_rule(self: Tensor, other: Tensor) -> Tensor:
    a, b = self.dim(), other.dim()
    if not a or not b or self.size(-1) != other.size(max(b - 2, 0)):
        return first_example(aten.matmul.default, [self, other])
    if not is_batched(other) and b <= 2:
        return make_batched(aten.matmul.default(value_of(self), other), levels_of(self))
    levels = all_levels(self, other)
    left = aten.unsqueeze.default(self, 0) if a == 1 else self
    right = aten.unsqueeze.default(other, 1) if b == 1 else other
    rank = max(left.dim(), right.dim())
    product = aten.matmul.default(_align_if_batched(left, levels, rank), _align_if_batched(right, levels, rank))
    dropped = [product.dim() - 1] * (b == 1) + [product.dim() - 2] * (a == 1)
    return make_batched(aten.squeeze.dims(product, dropped) if dropped else product, levels)


def _align_if_batched(tensor: Tensor, levels: Levels, rank: int) -> Tensor:
    return aligned(tensor, levels, rank) if is_batched(tensor) else tensor


@rule("mm")
def _mm_rule(self: Tensor, mat2: Tensor) -> Tensor:
    if self.dim() != 2 or mat2.dim() != 2 or self.dtype is not mat2.dtype:
        return first_example(aten.mm.default, [self, mat2])
    return _matmul_rule(self, mat2)


@rule("bmm")
def _bmm_rule(self: Tensor, mat2: Tensor) -> Tensor:
    if self.dim() != 3 or mat2.dim() != 3 or self.size(0) != mat2.size(0) or self.dtype is not mat2.dtype:
        return first_example(aten.bmm.default, [self, mat2])
    return _matmul_rule(self, mat2)


@rule("addmm")
def _addmm_rule(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: object = 1, alpha: object = 1) -> Tensor:
    if mat1.dim() != 2 or mat2.dim() != 2 or not self.dtype is mat1.dtype is mat2.dtype:
        return first_example(aten.addmm.default, [self, mat1, mat2, beta, alpha])
    levels = levels_of(mat1)
    if not is_batched(self) and not is_batched(mat2) and self.dim() < 2:
        rows = value_of(mat1)
        flat = aten.addmm.default(self, rows.reshape(-1, rows.size(-1)), mat2, beta=beta, alpha=alpha)
        return make_batched(aten.view.default(flat, [*rows.shape[:-1], flat.size(-1)]), levels)
    product = _mm_rule(mat1, mat2) if is_batched(mat1) or is_batched(mat2) else aten.mm.default(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product + aten.zeros_like.default(self)
    return product + (self if beta == 1 else self * beta)


@rule("linear")
def _linear_rule(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if not is_batched(weight) and not is_batched(bias) and input.dim():
        return make_batched(aten.linear.default(value_of(input), weight, bias), levels_of(input))
    if weight.dim() > 2 or input.size(-1) != weight.size(-1):
        return first_example(aten.linear.default, [input, weight, bias])
    product = aten.matmul.default(input, weight.mT if weight.dim() == 2 else weight)
    return product if bias is None else product + bias


# Convolution. Channels are dimension 1 of inputs and results. Weights have the output channels first, then one
# group's input channels.


def _merge_into_channels(tensor: Tensor, levels: Levels, sizes: Sequence[int]) -> Tensor:
    """Merge examples (N, C, ...) into channels: (N, examples * C, ...)."""
    value = folded(spread(tensor, levels, sizes), len(levels))
    examples, rows, channels, *extents = value.shape
    return aten.reshape.default(aten.transpose.int(value, 0, 1), [rows, examples * channels, *extents])


def _split_channels(value: Tensor, sizes: Sequence[int]) -> Tensor:
    """Split (N, examples * C, ...) into (*sizes, N, C, ...)."""
    rows, channels, *extents = value.shape
    value = aten.view.default(value, [rows, *sizes, channels // math.prod(sizes), *extents])
    count = len(sizes)
    return aten.permute.default(value, [*range(1, 1 + count), 0, *range(1 + count, value.dim())])


def _merge_into_rows(tensor: Tensor, levels: Levels, sizes: Sequence[int]) -> Tensor:
    """Merge examples (N, ...) into rows: (examples * N, ...)."""
    value = spread(tensor, levels, sizes)
    return aten.reshape.default(value, [math.prod(value.shape[: len(sizes) + 1]), *tensor.shape[1:]])


@rule("convolution")
def _convolution_rule(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    levels = all_levels(input, weight, bias)
    sizes = batch_sizes(levels, input, weight, bias)
    how = stride, padding, dilation, transposed, output_padding
    if not is_batched(weight):
        plain = None if is_batched(bias) else bias
        found = aten.convolution.default(_merge_into_rows(input, levels, sizes), weight, plain, *how, groups)
        result = make_batched(aten.view.default(found, [*sizes, input.size(0), *found.shape[1:]]), levels)
        return _add_bias(result, bias) if plain is None else result
    if not is_batched(input) and groups == 1 and not transposed:
        found = aten.convolution.default(input, _merge_into_rows(weight, levels, sizes), None, *how, 1)
    else:
        merged = _merge_into_rows(weight, levels, sizes)
        found = aten.convolution.default(
            _merge_into_channels(input, levels, sizes), merged, None, *how, groups * math.prod(sizes)
        )
    return _add_bias(make_batched(_split_channels(found, sizes), levels), bias)


def _add_bias(result: Tensor, bias: Tensor | None) -> Tensor:
    return result if bias is None else result + bias.view(-1, *[1] * (result.dim() - 2))


@rule("convolution_backward")
def _convolution_backward_rule(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Sequence[int] | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
    output_mask: Sequence[bool],
) -> tuple:  # fmt: skip
    levels = all_levels(grad_output, input, weight)
    sizes = batch_sizes(levels, grad_output, input, weight)
    how = stride, padding, dilation, transposed, output_padding
    wants_input, wants_weight, wants_bias = output_mask
    grad_input = grad_weight = grad_bias = None
    if wants_input and not wants_weight and not is_batched(weight):
        parts = _merge_into_rows(grad_output, levels, sizes), _merge_into_rows(input, levels, sizes), weight
        found, _, _ = aten.convolution_backward.default(*parts, None, *how, groups, (True, False, False))
        grad_input = make_batched(_rows_of(found, input, sizes), levels)
    elif wants_input or wants_weight:
        parts = (
            _merge_into_channels(grad_output, levels, sizes),
            _merge_into_channels(input, levels, sizes),
            _merge_into_rows(weight, levels, sizes),
        )
        mask = (wants_input, wants_weight, False)
        found, slopes, _ = aten.convolution_backward.default(*parts, None, *how, groups * math.prod(sizes), mask)
        grad_input = make_batched(_split_channels(found, sizes), levels) if wants_input else None
        grad_weight = make_batched(aten.view.default(slopes, [*sizes, *weight.shape]), levels) if wants_weight else None
    if wants_bias:
        grad_bias = grad_output.sum((0, *range(2, grad_output.dim())))
    return grad_input, grad_weight, grad_bias


@rule("_scaled_dot_product_flash_attention_for_cpu")
def _attention_rule(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple:  # fmt: skip
    parts = (query, key, value, attn_mask)
    levels = all_levels(parts)
    sizes = batch_sizes(levels, parts)
    operands = [_merge_into_rows(part, levels, sizes) for part in (query, key, value)]
    mask = _mask(attn_mask, query, levels, sizes)
    found = aten._scaled_dot_product_flash_attention_for_cpu.default(
        *operands, dropout_p, is_causal, attn_mask=mask, scale=scale
    )
    return tuple(make_batched(_rows_of(one, query, sizes), levels) for one in found)


def _mask(mask: Tensor | None, query: Tensor, levels: Levels, sizes: Sequence[int]) -> Tensor | None:
    """Return an attention mask for all examples, merged into rows."""
    if mask is None or (not is_batched(mask) and mask.dim() == 2):
        return mask
    wide = mask.expand(query.size(0), *mask.shape[-3:]) if mask.dim() == 4 else mask.expand(query.size(0), 1, *mask.shape)
    return _merge_into_rows(wide, levels, sizes)


def _rows_of(value: Tensor, like: Tensor, sizes: Sequence[int]) -> Tensor:
    return aten.reshape.default(value, [*sizes, like.size(0), *value.shape[1:]])


@rule("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention_backward_rule(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: float,
    is_causal: bool, *, attn_mask: Tensor | None = None, scale: float | None = None,
) -> tuple:  # fmt: skip
    parts = (grad_out, query, key, value, out, logsumexp)
    levels = all_levels(parts, attn_mask)
    sizes = batch_sizes(levels, parts, attn_mask)
    operands = [_merge_into_rows(part, levels, sizes) for part in parts]
    mask = _mask(attn_mask, query, levels, sizes)
    found = aten._scaled_dot_product_flash_attention_for_cpu_backward.default(
        *operands, dropout_p, is_causal, attn_mask=mask, scale=scale
    )
    return tuple(make_batched(_rows_of(one, query, sizes), levels) for one in found)
