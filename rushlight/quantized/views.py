"""Views of quantized tensors: any view if there is one scale; with a scale per channel, a view must keep the channels.

In: the arguments of a view operator. Out: a view, whose storage shares the memory. RuntimeError where it would mix channels.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.ops.registry import aten as find
from rushlight.quantized.layout import QuantizedStorage, quantizer_of
from rushlight.quantized.quantizer import ChannelQuantizer, Quantizer, TensorQuantizer
from rushlight.quantized.registration import quantized

_GENERAL = DispatchKey.CompositeExplicitAutograd


def _per_channel(name: str) -> Callable:
    """Register a function that computes the quantizer of a view, from the tensor, its quantizer, the view and the other
    arguments."""
    general = find(name).kernels[_GENERAL].function

    def decorate(requantizer: Callable) -> Callable:
        def kernel(self: Tensor, *args, **kwargs) -> Tensor:
            view, held = general(self, *args, **kwargs), quantizer_of(self)
            if isinstance(held, TensorQuantizer):
                return view
            return _with_quantizer(view, requantizer(self, held, view, *args, **kwargs))

        quantized(name)(kernel)
        return requantizer

    return decorate


def _with_quantizer(view: Tensor, quantizer: Quantizer) -> Tensor:
    impl = view._impl
    storage = QuantizedStorage(impl.storage.buffer, impl.storage.nbytes, quantizer)
    return wrap(TensorImpl(storage, impl.sizes, impl.strides, impl.storage_offset, impl.dtype, impl.device, impl.key_set))


@_per_channel("as_strided")
@_per_channel("permute")
@_per_channel("expand")
def restrided(self: Tensor, held: ChannelQuantizer, view: Tensor, *args: object, **kwargs: object) -> Quantizer:
    if view.shape == self.shape and view.stride() == self.stride():
        return held
    raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")


@_per_channel("view")
def reshaped(self: Tensor, held: ChannelQuantizer, view: Tensor, *args: object) -> Quantizer:
    kept = held.axis + 1
    if view.shape[:kept] != self.shape[:kept]:
        raise RuntimeError(
            f"view: a tensor of shape {list(self.shape)} with a scale for each index of dimension {held.axis} can't be seen "
            f"with shape {list(view.shape)}, which mixes them; dequantize it first"
        )
    return held


@_per_channel("select.int")
def selected(self: Tensor, held: ChannelQuantizer, view: Tensor, dim: int, index: int) -> Quantizer:
    dim = dim % self.dim()
    if dim == held.axis:
        return _quantizer_of_index(held, index)
    return held.on_axis(held.axis - (dim < held.axis))


def _quantizer_of_index(held: ChannelQuantizer, index: int) -> Quantizer:
    if held.zero_points.dtype.kind == "f":
        return ChannelQuantizer(held.scales[index].reshape(1), held.zero_points[index].reshape(1), 0)
    return TensorQuantizer(float(held.scales[index]), int(held.zero_points[index]))


@_per_channel("slice.Tensor")
def sliced(
    self: Tensor, held: ChannelQuantizer, view: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Quantizer:  # fmt: skip
    if dim % self.dim() != held.axis:
        return held
    return ChannelQuantizer(held.scales[start:end:step], held.zero_points[start:end:step], held.axis)


@_per_channel("unsqueeze")
def unsqueezed(self: Tensor, held: ChannelQuantizer, view: Tensor, dim: int) -> Quantizer:
    return held.on_axis(held.axis + (dim % view.dim() <= held.axis))


@_per_channel("squeeze.dims")
def squeezed(self: Tensor, held: ChannelQuantizer, view: Tensor, dim: list[int]) -> Quantizer:
    gone = {each % self.dim() for each in dim if self.size(each) == 1}
    if held.axis in gone:
        raise RuntimeError(f"squeeze: dimension {held.axis} has the scales of the channels and can't be removed")
    return held.on_axis(held.axis - sum(each < held.axis for each in gone))


@quantized("view.dtype")
def view_as_dtype(self, dtype):
    if dtype is self.dtype:
        return self.detach()
    raise NotImplementedError(f"view of a quantized tensor as {dtype}: use int_repr() for its integers")
