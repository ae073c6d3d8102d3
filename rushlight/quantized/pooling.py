"""Pooling and resizing of quantized tensors: the result keeps dtype, scale and zero point.

Maxima are those of the integers. Means are of the integers less the zero point, whose sums are exact in float32; with the zero
point they round half to even.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import float32
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.registry import aten as find
from rushlight.quantized.layout import like, one_scale
from rushlight.quantized.quantizer import to_integers
from rushlight.quantized.registration import aten, operator, quantized


def _numbers(source: Tensor, less: int = 0) -> Tensor:
    """The integers as float32 numbers, less one."""
    values = source._impl.array.astype(np.float32)
    values -= less
    return tensor_from_array(values, float32)


def _maximum(name: str) -> Callable:
    general = find(name)

    def kernel(self, *args, **kwargs):
        one_scale(self)
        return like(self, general(_numbers(self), *args, **kwargs)._impl.array.astype(self.dtype.numpy))

    quantized(name)(kernel)
    return kernel


_max_pool1d, _max_pool2d, _max_pool3d = (_maximum(f"max_pool{rank}d") for rank in (1, 2, 3))
for _rank, _kernel in ((1, _max_pool1d), (2, _max_pool2d), (3, _max_pool3d)):
    operator(
        f"aten::quantized_max_pool{_rank}d(Tensor self, int[{_rank}] kernel_size, int[{_rank}] stride=[], "
        f"int[{_rank}] padding=0, int[{_rank}] dilation=1, bool ceil_mode=False) -> Tensor"
    )(_kernel)


def _averaged(name: str) -> None:
    general = find(name)

    def kernel(self, *args, **kwargs):
        middle = one_scale(self).zero_point
        mean = general(_numbers(self, middle), *args, **kwargs)._impl.array
        return like(self, to_integers(mean + np.float32(middle), self.dtype))

    quantized(name)(kernel)


for _name in (
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "upsample_bilinear2d", "upsample_bilinear2d.vec",
):  # fmt: skip
    _averaged(_name)


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
    return like(self, aten.channel_shuffle(_numbers(self), groups)._impl.array.astype(self.dtype.numpy))
