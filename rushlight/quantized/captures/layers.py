"""Rules for linear layers and convolutions, on quantized tensors or, "dynamic", on float32 tensors."""

from __future__ import annotations

from rushlight.core.dtype import float32, uint8
from rushlight.core.tensor import Tensor
from rushlight.ops.modes import SuspendModes
from rushlight.quantized.captures.tensors import (
    CapturedQuantized,
    derived_from,
    own,
    requantized,
    require_captured,
    rule,
    target_of,
    zero_of,
)
from rushlight.quantized.linear import unwrapped
from rushlight.quantized.packed import ConvPackedParams, LinearPackedParams, PackedWeight
from rushlight.quantized.quantizer import TensorQuantizer
from rushlight.quantized.registration import aten


def _apply_layer(packed: PackedWeight, images: Tensor, zero_point: Tensor) -> Tensor:
    """Apply a layer to images of bytes (batch, height, width, channels): the sums, as float32."""
    with SuspendModes():
        geometry = packed.geometry
    if geometry is None:
        raise NotImplementedError("a layer whose weight is not of two dimensions, or needs more than a byte")
    return own.byte_layer(images, derived_from(packed, "weight"), zero_point, *geometry).to(float32)


def _rounded_sums(
    packed: PackedWeight, images: Tensor, source: CapturedQuantized, target: TensorQuantizer, relu: bool
) -> CapturedQuantized:  # fmt: skip
    """Return the requantized results of a layer, (batch, height, width, channels)."""
    scales = source.quantizer.scale, target.scale
    made = _apply_layer(packed, images, zero_of(source.quantizer)) + derived_from(packed, "bias", *scales)
    return requantized(made.relu() if relu else made, derived_from(packed, "factor", *scales), source.dtype, target)


def _scaled_sums(packed: PackedWeight, images: Tensor, scale: Tensor, zero_point: Tensor, relu: bool) -> Tensor:
    """Return the float32 results of a layer, for images whose scale is computed at run time."""
    sums = _apply_layer(packed, images, zero_point)
    made = own.rounded_mul(sums, scale * derived_from(packed, "scale")) + derived_from(packed, "plain bias")
    return made.relu() if relu else made


def _quantized_input(x: Tensor, reduce_range: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Quantize a float32 tensor to unsigned bytes, with computed scale, float32, and zero point, int32."""
    if x.dtype is not float32 or isinstance(x, CapturedQuantized):
        raise NotImplementedError(f"a layer that quantizes its input, of {x.dtype}")
    scale, zero_point = own.choose_quantization(x, 127 if reduce_range else 255)
    return own.quantize_bytes(x, 1 / scale, zero_point, uint8), scale, zero_point


def _as_one_image(x: Tensor) -> Tensor:
    """Return rows (..., width) as one image with one pixel per row, (1, 1, rows, width)."""
    return x.reshape(1, 1, -1, x.shape[-1])


def linear_weight(held: object, x: Tensor, name: str) -> LinearPackedParams:
    packed = unwrapped(held, LinearPackedParams, name)
    if x.dim() == 0 or x.shape[-1] != packed.weight.size(1):
        raise NotImplementedError(f"quantized::{name} of the shape {list(x.shape)}")
    return packed


def _define_linear(suffix: str, relu: bool) -> None:
    name = f"linear{suffix}"

    @rule(f"quantized::{name}")
    def static(X, W_prepack, Y_scale_i, Y_zero_point_i):
        x, packed = require_captured(X, name), linear_weight(W_prepack, X, name)
        made = _rounded_sums(packed, _as_one_image(x.integers), x, target_of(Y_scale_i, Y_zero_point_i), relu)
        return made.with_integers(made.integers.reshape(*x.shape[:-1], made.shape[-1]))

    @rule(f"quantized::{name}_dynamic", f"quantized::{name}_dynamic_fp16")
    def dynamic(X, W_prepack, reduce_range=False):
        return product(X, linear_weight(W_prepack, X, name), reduce_range, relu)


def product(x: Tensor, packed: LinearPackedParams, reduce_range: bool, relu: bool = False) -> Tensor:
    """Apply a layer to a float32 tensor, either quantizing it, or with a weight rounded to float16."""
    if packed.is_float16:
        made = aten.linear(x, derived_from(packed, "halves"), derived_from(packed, "bias of halves"))
        return made.relu() if relu else made
    integers, scale, zero_point = _quantized_input(x, reduce_range)
    made = _scaled_sums(packed, _as_one_image(integers), scale, zero_point, relu)
    return made.reshape(*x.shape[:-1], made.shape[-1])


def _to_channels_last(images: Tensor) -> Tensor:
    """Return images (batch, channels, ...) permuted to channels last; 1-D images become 2-D."""
    return images.permute(0, 2, 3, 1) if images.dim() == 4 else images.permute(0, 2, 1).unsqueeze(1)


def _to_channels_first(images: Tensor, rank: int) -> Tensor:
    """Undo `_to_channels_last`: return images with channels first."""
    return images.permute(0, 3, 1, 2) if rank == 2 else images.squeeze(1).permute(0, 2, 1)


def _require_filters(held: object, x: Tensor, rank: int, name: str) -> ConvPackedParams:
    packed = unwrapped(held, ConvPackedParams, name)
    if packed.transpose or x.dim() != rank + 2 or x.shape[1] != packed.weight.size(1) * packed.groups:
        raise NotImplementedError(f"quantized::{name} of the shape {list(x.shape)}")
    return packed


def _define_convolution(rank: int, suffix: str) -> None:
    name, relu = f"conv{rank}d{suffix}", bool(suffix)

    def static(qx, packed_weight, output_scale, output_zero_point):
        x, packed = require_captured(qx, name), _require_filters(packed_weight, qx, rank, name)
        made = _rounded_sums(packed, _to_channels_last(x.integers), x, target_of(output_scale, output_zero_point), relu)
        return made.with_integers(_to_channels_first(made.integers, rank))

    def former(qx, weight, stride, padding, dilation, groups, output_scale, output_zero_point):
        return static(qx, weight, output_scale, output_zero_point)

    if rank == 1:
        rule(f"quantized::{name}")(static)
    else:
        rule(f"quantized::{name}.new")(static)
        rule(f"quantized::{name}")(former)


def _define_dynamic_convolution(rank: int) -> None:
    name = f"conv{rank}d_dynamic"

    @rule(f"quantized::{name}")
    def dynamic(qx, packed_weight, reduce_range=False):
        packed = _require_filters(packed_weight, qx, rank, name)
        integers, scale, zero_point = _quantized_input(qx, reduce_range)
        return _to_channels_first(_scaled_sums(packed, _to_channels_last(integers), scale, zero_point, False), rank)


for _suffix, _relu in (("", False), ("_relu", True)):
    _define_linear(_suffix, _relu)
    for _rank in (1, 2):
        _define_convolution(_rank, _suffix)
for _rank in (1, 2):
    _define_dynamic_convolution(_rank)
