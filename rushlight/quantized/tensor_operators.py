"""aten operators on quantized tensors that work on the integers alone, or on the dequantized numbers.

Operators that move elements keep dtype and quantizer. Comparisons use the dequantized numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.device import require_host
from rushlight.core.dtype import float32
from rushlight.core.layout import contiguous_format, preserve_format
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops.registry import aten as find
from rushlight.quantized.creation import values_of
from rushlight.quantized.layout import (
    in_one_order,
    integers_of,
    is_quantized,
    like,
    make_quantized,
    of_integers,
    one_scale,
    quantizer_of,
)
from rushlight.quantized.quantizer import ChannelQuantizer
from rushlight.quantized.registration import aten, quantized


def moved(integers: Tensor, source: Tensor) -> Tensor:
    """Return a tensor with rearranged integers, row-major or channels-last, and the quantizer of `source`."""
    return of_integers(in_one_order(integers), source.dtype, quantizer_of(source))


def _register_moving(name: str) -> None:
    """Register an operator that moves elements of one tensor with one scale."""
    general = find(name)

    def kernel(self, *args, **kwargs):
        one_scale(self)
        return moved(general(integers_of(self), *args, **kwargs), self)

    quantized(name)(kernel)


for _name in (
    "flip", "roll", "index.Tensor", "gather", "repeat", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d",
):  # fmt: skip
    _register_moving(_name)


@quantized("clone")
def clone(self, *, memory_format=None):
    """Copy a tensor, by default row-major: so does ATen, if the tensor is quantized."""
    return moved(integers_of(self).clone(memory_format=memory_format or contiguous_format), self)


@quantized("_to_copy")
def to_copy(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    if dtype not in (None, self.dtype):
        raise RuntimeError(
            f"Creation of quantized tensor requires quantized dtype like torch.quint8, and {self.dtype} can't become {dtype}: "
            "use dequantize()"
        )
    require_host(device, "quantized")
    return clone(self, memory_format=memory_format or preserve_format)


@quantized("index_select")
def index_select(self, dim, index):
    held, dim = quantizer_of(self), dim % max(self.dim(), 1)
    made = moved(aten.index_select(integers_of(self), dim, index), self)
    if isinstance(held, ChannelQuantizer) and dim == held.axis:
        chosen = index._impl.array
        kept = ChannelQuantizer(held.scales[chosen], held.zero_points[chosen], dim)
        return make_quantized(made._impl.array, self.dtype, kept)
    return made


@quantized("empty_like")
def empty_like(self, *args, **kwargs):
    if args or kwargs.get("dtype") not in (None, self.dtype):
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8 and a quantizer")
    return clone(self, memory_format=kwargs.get("memory_format") or preserve_format)


@quantized("zeros_like")
def zeros_like(self, *args, **kwargs):
    return fill_(empty_like(self, *args, **kwargs), 0)


@quantized("ones_like")
def ones_like(self, *args, **kwargs):
    return fill_(empty_like(self, *args, **kwargs), 1)


@quantized("full_like")
def full_like(self, fill_value, *args, **kwargs):
    return fill_(empty_like(self, *args, **kwargs), fill_value)


@quantized("copy_")
def copy_(self, src, non_blocking=False):
    if not is_quantized(self):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor "
            "from a quantized Tensor"
        )
    target = self._impl.array
    if is_quantized(src):
        if src.dtype is not self.dtype or quantizer_of(src).scheme is not quantizer_of(self).scheme:
            raise RuntimeError("Quantized Copy only works with same quantized dtypes and schemes")
        if self.numel() * self.element_size() == self._impl.storage.nbytes:
            self._impl.storage.quantizer = quantizer_of(src)
        elif not quantizer_of(src).equals(quantizer_of(self)):
            raise RuntimeError(
                "copy_ to a part of a quantized tensor: the source has another scale or zero point, which a part can't take: "
                "copy its dequantize()"
            )
        target[...] = src._impl.array
        return self
    if src.dtype is not float32:
        raise RuntimeError(f"Quantized copy only works with kFloat as source Tensor, got {src.dtype}")
    target[...] = quantizer_of(self).quantize(np.broadcast_to(src._impl.array, self.shape), self.dtype)
    return self


@quantized("fill_.Scalar")
def fill_(self, value):
    self._impl.array[...] = quantizer_of(self).quantize(np.full(self.shape, value, np.float32), self.dtype)
    return self


@quantized("_local_scalar_dense")
def local_scalar(self):
    if self.numel() != 1:
        raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
    return values_of(self).item()


@quantized("constant_pad_nd")
def constant_pad(self, pad, value=0):
    return moved(aten.constant_pad_nd(integers_of(self), pad, _integer_of(self, value)), self)


def _integer_of(source: Tensor, value: Tensor | float) -> int:
    """Return the integer that stands for a number in a quantized tensor."""
    number = value.item() if isinstance(value, Tensor) else value
    return int(one_scale(source).quantize(np.full((), number, np.float32), source.dtype))


@quantized("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(self, mask, value):
    return moved(integers_of(self).masked_fill(mask, _integer_of(self, value)), self)


@quantized("masked_fill_.Scalar", "masked_fill_.Tensor")
def masked_fill_(self, mask, value):
    integers_of(self).masked_fill_(mask, _integer_of(self, value))
    return self


@quantized("cat")
def cat(tensors, dim=0):
    first = tensors[0]
    if not all(is_quantized(each) and each.dtype is first.dtype for each in tensors):
        raise RuntimeError(f"cat: all tensors must be quantized with dtype {first.dtype}, that of the first")
    held = one_scale(first)
    parts = [integers_of(each) if one_scale(each) == held else _requantize_like(each, first) for each in tensors]
    return moved(aten.cat(parts, dim), first)


def _requantize_like(tensor: Tensor, target: Tensor) -> Tensor:
    return tensor_from_array(one_scale(target).quantize(values_of(tensor), target.dtype))


# Order


@quantized("max", "amax")
def max_(self, *args, **kwargs):
    return moved(aten.amax(integers_of(self), *args, **kwargs), _check_one_scale(self))


@quantized("min", "amin")
def min_(self, *args, **kwargs):
    return moved(aten.amin(integers_of(self), *args, **kwargs), _check_one_scale(self))


def _check_one_scale(self: Tensor) -> Tensor:
    """Check that the tensor has one scale, so that its integers are ordered like its values; return the tensor."""
    one_scale(self)
    return self


def _register_with_indices(name: str) -> None:
    """Register an operator that returns values of the tensor and their indices."""
    general = find(name)

    def kernel(self, *args, **kwargs):
        values, positions = general(integers_of(_check_one_scale(self)), *args, **kwargs)
        return moved(values, self), positions

    quantized(name)(kernel)


for _name in ("max.dim", "min.dim", "sort.stable", "topk"):
    _register_with_indices(_name)


@quantized("argmax", "argmin")
def places_refused(self, *args, **kwargs):
    raise NotImplementedError("argmax and argmin are not available for quantized tensors: use int_repr() first")


def _register_comparison(name: str) -> None:
    """Register a comparison of the dequantized values."""
    general: Callable = find(name)

    def kernel(self, other):
        pair = (_dequantize_if_quantized(each) for each in (self, other))
        return general(*pair)

    quantized(name)(kernel)


def _dequantize_if_quantized(value: object) -> object:
    return value.dequantize() if isinstance(value, Tensor) and is_quantized(value) else value


for _name in ("eq.Tensor", "ne.Tensor", "lt.Tensor", "le.Tensor", "gt.Tensor", "ge.Tensor"):
    _register_comparison(_name)


@quantized("equal")
def equal(self, other):
    if not is_quantized(self) or not is_quantized(other) or self.dtype is not other.dtype or self.shape != other.shape:
        return False
    return quantizer_of(self).equals(quantizer_of(other)) and np.array_equal(self._impl.array, other._impl.array)


# Averages


def _register_statistic(name: str) -> None:
    """Register a statistic, computed in floating point and quantized with the scale of the tensor."""
    general = find(name)

    def kernel(self, *args, dtype=None, **kwargs):
        found = general(self.dequantize(), *args, **kwargs)
        return like(self, one_scale(self).quantize(found._impl.array, self.dtype))

    quantized(name)(kernel)


for _name in ("mean", "mean.dim", "std", "std.dim", "std.correction"):
    _register_statistic(_name)
