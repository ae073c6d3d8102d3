"""Pooling. Two-dimensional windows are primitives; one dimension is a special case of two, and three take two passes."""

from __future__ import annotations

import math

from rushlight.core.dtype import int64
from rushlight.ops.composite.network.common import arange, aten, spread, window_count
from rushlight.ops.meta.pooling import require_poolable
from rushlight.ops.registry import composite


def _strides(stride, kernel: list[int], dims: int) -> list[int]:
    given = [] if stride is None else spread(stride, dims, "stride") if isinstance(stride, int) or stride else []
    return given or kernel


def _check_dims(x, dims: int, name: str) -> None:
    if x.dim() not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}() Expected {dims + 1}D or {dims + 2}D input tensor, but got input of size: {list(x.shape)}"
        )


# One dimension


@composite(
    "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, "
    "int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)"
)
def max_pool1d_with_indices(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    kernel = spread(kernel_size, 1, "kernel_size")
    steps, borders, gaps = _strides(stride, kernel, 1), spread(padding, 1, "padding"), spread(dilation, 1, "dilation")
    _check_row(self, kernel[0], steps[0], borders[0], gaps[0], ceil_mode)
    values, indices = aten.max_pool2d_with_indices.default(
        self.unsqueeze(-2), [1, *kernel], [1, *steps], [0, *borders], [1, *gaps], ceil_mode
    )
    return values.squeeze(-2), indices.squeeze(-2)


def _check_row(x, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> None:
    """Raise RuntimeError that names one-dimensional arguments, before the two-dimensional kernel's own checks."""
    if x.dim() not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError(
            "max_pool1d() Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got: {list(x.shape)}"
        )
    for role, value in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {role} must be greater than zero, but got {value}")
    if padding < 0 or 2 * padding > dilation * (kernel - 1) + 1:
        return  # the two-dimensional kernel raises its own error
    count = window_count(x.shape[-1], kernel, stride, padding, dilation, ceil_mode)
    if count <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")


@composite(
    "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, "
    "bool ceil_mode=False) -> Tensor"
)
def max_pool1d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    return max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


@composite(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor"
)
def avg_pool1d(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True):
    _check_dims(self, 1, "avg_pool1d")
    kernel = spread(kernel_size, 1, "kernel_size")
    steps, borders = _strides(stride, kernel, 1), spread(padding, 1, "padding")
    pooled = aten.avg_pool2d.default(
        self.unsqueeze(-2), [1, *kernel], [1, *steps], [0, *borders], ceil_mode, count_include_pad
    )
    return pooled.squeeze(-2)


# Two dimensions


@composite(
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
    "bool ceil_mode=False) -> Tensor"
)
def max_pool2d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    kernel = spread(kernel_size, 2, "kernel_size")
    return aten.max_pool2d_with_indices.default(
        self,
        kernel,
        _strides(stride, kernel, 2),
        spread(padding, 2, "padding"),
        spread(dilation, 2, "dilation"),
        ceil_mode,
    )[0]


# Three dimensions: pool each depth slice, then pool the results along depth


def _counts(sizes, kernel, stride, padding, dilation, ceil_mode) -> list[int]:
    counts = []
    for size, *window in zip(sizes, kernel, stride, padding, dilation, strict=True):
        counts.append(window_count(size, *window, ceil_mode))
    if min(counts) < 1:
        raise RuntimeError(
            f"Output size is too small: pooling a volume of {list(sizes)} with kernel_size {kernel}, stride {stride} and "
            f"padding {padding} would give {counts}; use a smaller kernel or more padding"
        )
    return counts


def _as_planes(volumes):
    """View volumes (N, C, D, H, W) as images (N * D, C, H, W)."""
    images, channels, depth, *sizes = volumes.shape
    return volumes.transpose(1, 2).reshape([images * depth, channels, *sizes])


def _planes_by_depth(planes, depth: int):
    """Return images (N * D, C, H, W) as (N, C, D, H * W)."""
    count, channels, height, width = planes.shape
    return planes.reshape([count // depth, depth, channels, height * width]).transpose(1, 2)


@composite(
    "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
    "int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)"
)
def max_pool3d_with_indices(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    kernel = spread(kernel_size, 3, "kernel_size")
    steps = _strides(stride, kernel, 3)
    borders, gaps = spread(padding, 3, "padding"), spread(dilation, 3, "dilation")
    _check_padding(kernel, borders)
    _check_volume(self, "max_pool3d")
    sizes = [*self.shape[:-3], *_counts(self.shape[-3:], kernel, steps, borders, gaps, ceil_mode)]
    depth, height, width = self.shape[-3:]
    volumes = self if self.dim() == 5 else self.unsqueeze(0)
    flat, across = aten.max_pool2d_with_indices.default(
        _as_planes(volumes), kernel[1:], steps[1:], borders[1:], gaps[1:], ceil_mode
    )
    values, down = aten.max_pool2d_with_indices.default(
        _planes_by_depth(flat, depth), [kernel[0], 1], [steps[0], 1], [borders[0], 0], [gaps[0], 1], ceil_mode
    )
    planes = down.div(math.prod(sizes[-2:]), rounding_mode="floor")
    positions = planes * (height * width) + _planes_by_depth(across, depth).gather(2, planes)
    return values.reshape(sizes), positions.reshape(sizes)


@composite(
    "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
    "bool ceil_mode=False) -> Tensor"
)
def max_pool3d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    return max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def _check_volume(x, name: str) -> None:
    if x.dim() not in (4, 5):
        raise RuntimeError(f"{name}: non-empty 4D or 5D (batch mode) tensor expected for input, but got: {list(x.shape)}")
    if 0 in x.shape[-4:]:
        raise RuntimeError(
            f"{name}: Expected input's non-batch dimensions to have positive length, but got: {list(x.shape)}"
        )


def _check_padding(kernel, padding) -> None:
    if min(padding) < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad={padding}")
    if any(2 * border > size for size, border in zip(kernel, padding, strict=True)):
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel}"
        )


@composite(
    "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True, int? divisor_override=None) -> Tensor"
)
def avg_pool3d(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    kernel = spread(kernel_size, 3, "kernel_size")
    steps, borders, gaps = _strides(stride, kernel, 3), spread(padding, 3, "padding"), [1, 1, 1]
    _check_padding(kernel, borders)
    _check_volume(self, "avg_pool3d")
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if any(size < extent for size, extent in zip(self.shape[-3:], kernel, strict=True)):
        raise RuntimeError(
            f"avg_pool3d: expected volumes that are no smaller than kernel_size={kernel}, but got {list(self.shape[-3:])}; "
            "use a smaller kernel"
        )
    counts = _counts(self.shape[-3:], kernel, steps, borders, gaps, ceil_mode)
    require_poolable("avg_pool3d", self)
    total = _sums_of_windows(self, kernel, steps, borders, ceil_mode).reshape([*self.shape[:-3], *counts])
    size = divisor_override
    if not size:
        size = _sizes_of_windows(self, counts, kernel, steps, borders, count_include_pad)
    return total.div(size, rounding_mode="trunc" if self.dtype is int64 else None).to(self.dtype)


def _sums_of_windows(x, kernel, steps, borders, ceil_mode):
    """Return the sums over windows, (N, C, D', H' * W'); in float32 for narrow types."""
    volumes = x if x.dim() == 5 else x.unsqueeze(0)
    wide = volumes.float() if x.dtype.itemsize < 4 else volumes
    flat = aten.avg_pool2d.default(_as_planes(wide), kernel[1:], steps[1:], borders[1:], ceil_mode, True, 1)
    columns = _planes_by_depth(flat, x.shape[-3])
    return aten.avg_pool2d.default(columns, [kernel[0], 1], [steps[0], 1], [borders[0], 0], ceil_mode, True, 1)


def _sizes_of_windows(x, counts, kernel, steps, borders, count_include_pad):
    """Return the number of elements in each window: a number, or a tensor (D', H', W')."""
    inside = all(
        (count - 1) * step + size <= extent + (2 * pad if count_include_pad else 0) and (count_include_pad or pad == 0)
        for count, step, size, extent, pad in zip(counts, steps, kernel, x.shape[-3:], borders, strict=True)
    )
    if inside:
        return math.prod(kernel)
    found = 1
    for dim, (count, step, size, extent, pad) in enumerate(zip(counts, steps, kernel, x.shape[-3:], borders, strict=True)):
        start = arange(x, count) * step - pad
        end = (start + size).clamp(max=extent + (pad if count_include_pad else 0))
        each = end - (start if count_include_pad else start.clamp(min=0))
        found = found * each.view([count if other == dim else 1 for other in range(3)])
    return found
