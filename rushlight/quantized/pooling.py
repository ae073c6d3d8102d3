"""Pooling and resizing of quantized tensors: the result keeps dtype, scale and zero point.

Maxima are computed on the integers. Means are computed on the integers minus the zero point, with exact float32 sums; they
round half to even after adding the zero point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.meta.adaptive_pooling import output_sizes
from rushlight.ops.meta.pooling import Window, check_divisor, make_windows
from rushlight.ops.registry import aten as find
from rushlight.quantized.layout import like, one_scale
from rushlight.quantized.native import pool
from rushlight.quantized.quantizer import to_integers
from rushlight.quantized.registration import aten, operator, quantized


def _integers_as_float(source: Tensor, less: int = 0) -> Tensor:
    """Return the integers as float32 numbers, minus one number."""
    values = source._impl.array.astype(np.float32)
    values -= less
    return tensor_from_array(values, float32)


def _register_maximum(name: str, native: Callable | None = None) -> Callable:
    general = find(name)

    def kernel(self, *args, **kwargs):
        one_scale(self)
        made = native(self, *args, **kwargs) if native else None
        if made is None:
            made = general(_integers_as_float(self), *args, **kwargs)._impl.array.astype(self.dtype.numpy)
        return like(self, made)

    quantized(name)(kernel)
    return kernel


def _native_maximum(self: Tensor, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False) -> np.ndarray | None:
    windows = make_windows(self, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d")
    return _pool_natively(self, windows, (0, 0, 0, 0))


def _native_mean(
    self: Tensor, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
) -> np.ndarray | None:  # fmt: skip
    check_divisor(divisor_override)
    if (divisor_override or 0) < 0:
        return None
    windows = make_windows(self, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d")
    return _pool_natively(self, windows, (divisor_override or 0, 1, 0, int(count_include_pad)))


def _pool_natively(self: Tensor, windows: tuple[Window, Window], settings: tuple[int, ...]) -> np.ndarray | None:
    geometry = (getattr(each, name) for name in ("size", "stride", "padding", "dilation") for each in windows)
    sizes = [each.outputs for each in windows]
    return pool(self._impl.array, sizes, (*geometry, *settings, one_scale(self).zero_point))


def _native_adaptive_mean(self: Tensor, output_size) -> np.ndarray | None:
    sizes = output_sizes(self, output_size, 2, "adaptive_avg_pool2d")
    return pool(self._impl.array, sizes, (*(1,) * 8, 0, 1, 1, 0, one_scale(self).zero_point))


_max_pool1d, _max_pool2d, _max_pool3d = (
    _register_maximum(f"max_pool{rank}d", _native_maximum if rank == 2 else None) for rank in (1, 2, 3)
)
for _rank, _kernel in ((1, _max_pool1d), (2, _max_pool2d), (3, _max_pool3d)):
    operator(
        f"aten::quantized_max_pool{_rank}d(Tensor self, int[{_rank}] kernel_size, int[{_rank}] stride=[], "
        f"int[{_rank}] padding=0, int[{_rank}] dilation=1, bool ceil_mode=False) -> Tensor"
    )(_kernel)


def _register_average_pooling(name: str, native: Callable | None = None) -> None:
    general = find(name)

    def kernel(self, *args, **kwargs):
        middle = one_scale(self).zero_point
        made = native(self, *args, **kwargs) if native else None
        if made is not None:
            return like(self, made)
        mean = general(_integers_as_float(self, middle), *args, **kwargs)._impl.array
        return like(self, to_integers(mean + np.float32(middle), self.dtype))

    quantized(name)(kernel)


for _name in (
    "avg_pool1d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool3d", "upsample_bilinear2d", "upsample_bilinear2d.vec",
):  # fmt: skip
    _register_average_pooling(_name)
_register_average_pooling("avg_pool2d", _native_mean)
_register_average_pooling("adaptive_avg_pool2d", _native_adaptive_mean)


def _define_max_pool(rank: int, kernel: Callable) -> None:
    def pool(qx: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
             ceil_mode: bool) -> Tensor:  # fmt: skip
        return kernel(qx, kernel_size, stride, padding, dilation, ceil_mode)

    operator(
        f"quantized::max_pool{rank}d(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode)"
        " -> Tensor"
    )(pool)


_define_max_pool(1, _max_pool1d)
_define_max_pool(2, _max_pool2d)


@quantized("channel_shuffle")
def channel_shuffle(self, groups):
    one_scale(self)
    return like(self, aten.channel_shuffle(_integers_as_float(self), groups)._impl.array.astype(self.dtype.numpy))
