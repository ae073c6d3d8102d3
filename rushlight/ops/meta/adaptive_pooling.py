"""Checks, windows and Meta rules of adaptive pooling, where the output's size determines the windows.

The window of output i covers the inputs from floor(i * in / out) up to ceil((i + 1) * in / out).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import kept_format_strides, require_floating
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


def output_sizes(x: Tensor, output_size: int | Sequence[int], dims: int, name: str) -> list[int]:
    """Return the output's sizes along the last `dims` dimensions; RuntimeError where they or the input's are invalid."""
    if x.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got {list(x.shape)}")
    sizes = [output_size] * dims if isinstance(output_size, int) else list(output_size)
    if len(sizes) != dims:
        wanted = "'output_size' should contain one int" if dims == 1 else f"internal error: output_size must be {dims} ints"
        raise RuntimeError(f"{name}(): {wanted}, but got {sizes}")
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"{name}(): elements of output_size must be greater than or equal to 0: "
            f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}"
        )
    if 0 in x.shape[-dims:]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, "
            f"but input has sizes {list(x.shape)}"
        )
    return sizes


def pooled_sizes(self: Tensor, output_size: Sequence[int], name: str) -> tuple[int, ...]:
    """Return the sizes of an image's adaptive pool; RuntimeError and NotImplementedError as the operator `name` raises them."""
    sizes = output_sizes(self, output_size, 2, name)
    require_floating(name, self)
    return (*self._impl.sizes[:-2], *sizes)


def longest_window(inputs: int, outputs: int) -> int:
    """Return the number of elements in the longest window; the shortest has the same number or one less."""
    each, rest = (0, inputs) if inputs < outputs else divmod(inputs, outputs)
    # Window starts are multiples of the common divisor, over `outputs`. Symbolic sizes are compared as bools, which adds fewer
    # guards.
    return each + bool(rest > 0) + bool(rest > _common_divisor(inputs, outputs))


def _common_divisor(one: int, other: int) -> int:
    """Return the greatest common divisor. A symbolic size is reduced modulo a number, which adds a guard on the remainder only;
    of two symbolic sizes, `other` is specialised."""
    if type(one) is int and type(other) is not int:
        one, other = other, one
    other = int(other)
    return math.gcd(one % other, other) if other else one


@meta("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(self, output_size):
    sizes = pooled_sizes(self, output_size, "adaptive_avg_pool2d")
    return empty(sizes, self.dtype, kept_format_strides(sizes, self))


@meta("adaptive_max_pool2d")
def adaptive_max_pool2d(self, output_size):
    sizes = pooled_sizes(self, output_size, "adaptive_max_pool2d")
    strides = kept_format_strides(sizes, self)
    return empty(sizes, self.dtype, strides), empty(sizes, int64, strides)


def check_backward(grad_output: Tensor, self: Tensor, name: str) -> None:
    """Raise RuntimeError unless the gradient is that of some adaptive pool of an image."""
    lead = grad_output._impl.sizes[:-2]
    if grad_output.dim() not in (3, 4) or lead != self._impl.sizes[:-2] or grad_output.dtype is not self.dtype:
        raise RuntimeError(
            f"{name}: expected grad_output of {self.dtype} and of shape {[*self.shape[:-2], 'height', 'width']}, but got "
            f"{grad_output.dtype} and {list(grad_output.shape)}"
        )


@meta("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(grad_output, self):
    check_backward(grad_output, self, "adaptive_avg_pool2d_backward")
    return empty(self._impl.sizes, self.dtype, kept_format_strides(self._impl.sizes, self))


@meta("adaptive_max_pool2d_backward")
def adaptive_max_pool2d_backward(grad_output, self, indices):
    check_max_backward(grad_output, self, indices)
    return empty(self._impl.sizes, self.dtype, kept_format_strides(self._impl.sizes, self))


def check_max_backward(grad_output: Tensor, self: Tensor, indices: Tensor) -> None:
    """Raise RuntimeError unless the gradient fits an adaptive pool of the image, with an index for each of its elements."""
    name = "adaptive_max_pool2d_backward"
    check_backward(grad_output, self, name)
    if indices.dtype is not int64 or indices._impl.sizes != grad_output._impl.sizes:
        raise RuntimeError(
            f"{name}: expected indices of torch.int64 and of shape {list(grad_output.shape)}, but got {indices.dtype} and "
            f"{list(indices.shape)}"
        )
