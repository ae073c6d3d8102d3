"""Convolutions with quantized weights, plain and transposed, in one to three dimensions.

The convolution of the integers minus their zero points is exact: in float32 over few enough channels that sums stay below 2^24,
or in float64. Its result is requantized as in a linear layer. 1-D convolutions are computed as 2-D ones with a first size of 1.
"""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float64, from_numpy_dtype, quint8
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.creation import check_zero_point, values_of
from rushlight.quantized.layout import make_quantized, one_scale
from rushlight.quantized.linear import reach_of, rescaled, summed, unwrapped
from rushlight.quantized.native import channels_first, channels_last, limits, sizes_after
from rushlight.quantized.packed import Conv3dPackedParams, ConvPackedParams
from rushlight.quantized.quantizer import TensorQuantizer, choose
from rushlight.quantized.registration import ANY_BACKEND, CPU, aten, operator

_CLASS = "__torch__.torch.classes.quantized.Conv{}dPackedParamsBase"


def _to_packed_rank(x: np.ndarray, rank: int, packed: ConvPackedParams, name: str) -> np.ndarray:
    """Return the input with the packed weight's number of dimensions: 1-D signals get a height of 1."""
    if x.ndim != rank + 2:
        raise RuntimeError(f"quantized::{name}: Expected activation of {rank + 2} dimensions, got {x.ndim}")
    if rank < packed.rank:
        x = np.expand_dims(x, 2)
    channels = packed.weight.size(0) if packed.transpose else packed.weight.size(1) * packed.groups
    if x.shape[1] != channels:
        raise RuntimeError(f"quantized::{name}: Given weights for {channels} input channels, got an input with {x.shape[1]}")
    return x


def _exact_sums(x: np.ndarray, zero_point: int, packed: ConvPackedParams) -> np.ndarray:
    """Return the convolution of the integers minus their zero points: exact integers, rounded to float32."""
    values = x.astype(np.float32)
    values -= zero_point
    # Split the sums at the weight's input dimension: its first one for a transposed convolution, and per group for grouped
    # ones.
    parts = [] if packed.transpose else packed.exact_parts(reach_of(x, zero_point))
    if len(parts) == 1:
        return _convolve_integers(values, parts[0][1], packed)
    if packed.transpose or packed.groups > 1:
        weight = tensor_from_array(packed.integers.astype(np.float64), float64)
        return _convolve_integers(values.astype(np.float64), weight, packed).astype(np.float32)
    return summed(_convolve_integers(values[:, part], weight, packed) for part, weight in parts)


def _convolve_integers(values: np.ndarray, weight: Tensor, packed: ConvPackedParams) -> np.ndarray:
    made = aten.convolution(
        tensor_from_array(values, weight.dtype), weight, None, packed.stride, packed.padding, packed.dilation,
        packed.transpose, packed.output_padding, packed.groups,
    )  # fmt: skip
    return made._impl.array


def _broadcast_over_channels(values: np.ndarray | None, packed: ConvPackedParams) -> np.ndarray | None:
    """Return per-channel numbers, shaped to broadcast against (batch, channels, ...)."""
    return values if values is None or not values.ndim else values.reshape(1, -1, *(1,) * packed.rank)


def _scales(packed: ConvPackedParams) -> np.ndarray:
    """Return the weight's scales per output channel; a transposed convolution repeats them for each group."""
    scales = packed.scales
    return _broadcast_over_channels(np.tile(scales, packed.groups) if packed.transpose and scales.ndim else scales, packed)


def convolve(
    x: Tensor, packed: object, scale: float, zero_point: int, relu: bool, rank: int, name: str,
    accumulated: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return a quantized convolution: x (batch, channels, ...) to the same dtype; `accumulated` is added before rounding."""
    packed, held = unwrapped(packed, ConvPackedParams, name), one_scale(x)
    check_zero_point(zero_point, x.dtype, "quantize_tensor_per_tensor_affine")
    target = TensorQuantizer(float(scale), int(zero_point))
    images = _to_packed_rank(x._impl.array, rank, packed, name)
    made = None if accumulated is not None else _convolve_natively(images, held, packed, relu, target)
    if made is not None:
        return make_quantized(made[:, :, 0] if rank < packed.rank else made, x.dtype, target)
    sums = _exact_sums(images, held.zero_point, packed)
    scales, bias = _scales(packed), _broadcast_over_channels(packed.bias_array, packed)
    if accumulated is not None:
        further = values_of(accumulated) / (np.float32(held.scale) * scales)
        sums = sums.astype(np.float32, copy=False) + further
    made = rescaled(sums, held.scale, scales, bias, target, x.dtype, relu)
    return make_quantized(made[:, :, 0] if rank < packed.rank else made, x.dtype, target)


def _convolve_natively(
    x: np.ndarray, held: TensorQuantizer, packed: ConvPackedParams, relu: bool, target: TensorQuantizer | None = None
) -> np.ndarray | None:
    """Return a convolution of bytes by a native kernel, to bytes of `target`, or to float32 if None; None if no kernel supports
    it."""
    if packed.native is None:
        return None
    sizes = sizes_after(x.shape[2:], packed.native.settings)
    made = None if min(sizes) < 1 else packed.applied(channels_last(x), sizes, x.dtype, held, target, relu)
    return None if made is None else channels_first(made)


def convolve_dynamic(x: Tensor, packed: object, reduce_range: bool, rank: int, name: str) -> Tensor:
    """Return a convolution of a float32 tensor, which is quantized dynamically to 8 bits."""
    packed, values = unwrapped(packed, ConvPackedParams, name), x.detach()._impl.array
    held = TensorQuantizer(*choose(*limits(values), 0, 127 if reduce_range else 255))
    images = _to_packed_rank(held.quantize(values, quint8), rank, packed, name)
    made = _convolve_natively(images, held, packed, False)
    if made is None:
        sums = _exact_sums(images, held.zero_point, packed)
        made = sums.astype(np.float32, copy=False) * (np.float32(held.scale) * _scales(packed))
        if packed.bias_array is not None:
            made += _broadcast_over_channels(packed.bias_array, packed)
    return tensor_from_array(made[:, :, 0] if rank < packed.rank else made, from_numpy_dtype(made.dtype))


def _define(rank: int, transposed: bool) -> None:
    packed = _CLASS.format(max(rank, 2))
    name = f"conv_transpose{rank}d" if transposed else f"conv{rank}d"
    settings = f"Tensor qx, {packed} packed_weight, float output_scale, int output_zero_point"
    overload = ".new" if rank > 1 and not transposed else ""
    for suffix in ("",) if transposed else ("", "_relu"):
        full, relu = name + suffix, bool(suffix)

        def static(qx, packed_weight, output_scale, output_zero_point, full=full, relu=relu):
            return convolve(qx, packed_weight, output_scale, output_zero_point, relu, rank, full)

        operator(f"quantized::{full}{overload}({settings}) -> Tensor")(static)
        if overload:
            _define_deprecated(full, packed, rank, relu)

    def dynamic(qx, packed_weight, reduce_range=False):
        return convolve_dynamic(qx, packed_weight, reduce_range, rank, f"{name}_dynamic")

    operator(f"quantized::{name}_dynamic(Tensor qx, {packed} packed_weight, bool reduce_range=False) -> Tensor", keys=(CPU,))(
        dynamic
    )
    _define_packing(name, packed, rank, transposed)


def _define_deprecated(name: str, packed: str, rank: int, relu: bool) -> None:
    """Define the deprecated signature, which repeats settings of the packed weight."""

    def static(qx, weight, stride, padding, dilation, groups, output_scale, output_zero_point):
        return convolve(qx, weight, output_scale, output_zero_point, relu, rank, name)

    operator(
        f"quantized::{name}(Tensor qx, {packed} weight, int[] stride, int[] padding, int[] dilation, int groups, "
        "float output_scale, int output_zero_point) -> Tensor"
    )(static)


def _define_packing(name: str, packed: str, rank: int, transposed: bool) -> None:
    kind = Conv3dPackedParams if rank == 3 else ConvPackedParams
    extra = ", int[] output_padding" if transposed else ""

    def pack(weight, bias, stride, padding, *rest):
        output_padding, dilation, groups = rest if transposed else ([], *rest)
        lists = [list(each) for each in (stride, padding, dilation, output_padding)]
        if rank == 1:
            weight = weight.unsqueeze(-2)
            lists = [[neutral, *each] if each else [] for neutral, each in zip((1, 0, 1, 0), lists, strict=True)]
        return kind(weight, bias, *lists[:3], groups, lists[3], transposed)

    def unpack(packed_weights):
        weight, bias = unwrapped(packed_weights, ConvPackedParams, f"{name}_unpack").unpack()
        return (weight.squeeze(-2) if rank == 1 else weight), bias

    operator(
        f"quantized::{name}_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding{extra}, int[] dilation, "
        f"int groups) -> {packed}"
    )(pack)
    operator(
        f"quantized::{name}_unpack({packed} packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)", keys=(ANY_BACKEND,)
    )(unpack)
    if rank > 1:
        _define_settings(name, packed)


def _define_settings(name: str, packed: str) -> None:
    for attribute, kind in (("stride", "int[]"), ("padding", "int[]"), ("output_padding", "int[]"), ("dilation", "int[]"),
                            ("groups", "int"), ("transpose", "int")):  # fmt: skip

        def read(packed_weights, attribute=attribute, kind=kind):
            found = getattr(unwrapped(packed_weights, ConvPackedParams, name), attribute)
            return list(found) if kind == "int[]" else int(found)

        operator(f"quantized::{name}_{attribute}({packed} packed_weights) -> {kind}", keys=(ANY_BACKEND,))(read)


for _rank in (1, 2, 3):
    _define(_rank, False)
    _define(_rank, True)

for _suffix in ("", "_relu"):

    def _convolve_and_add(qx, qaccum, packed_weight, output_scale, output_zero_point, relu=bool(_suffix)):
        return convolve(qx, packed_weight, output_scale, output_zero_point, relu, 2, "conv2d_add", qaccum)

    operator(
        f"quantized::conv2d_add{_suffix}(Tensor qx, Tensor qaccum, {_CLASS.format(2)} packed_weight, float output_scale, "
        "int output_zero_point) -> Tensor"
    )(_convolve_and_add)


@operator(
    f"quantized::conv_unpack({_CLASS.format(2)} packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)",
    keys=(ANY_BACKEND,),
)
def conv_unpack(packed_weights):
    return unwrapped(packed_weights, ConvPackedParams, "conv_unpack").unpack()
