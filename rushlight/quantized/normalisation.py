"""Normalisation of quantized tensors: computed in float32, with the given scale and zero point for the result."""

from __future__ import annotations

import numpy as np

from rushlight.core.dtype import float32
from rushlight.core.layout import channels_last
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.quantized.arithmetic import requantized
from rushlight.quantized.creation import values_of
from rushlight.quantized.layout import one_scale
from rushlight.quantized.native import is_channels_last
from rushlight.quantized.registration import aten, operator

_SCALE = "float output_scale, int output_zero_point"


def _array_or(tensor: Tensor | None, otherwise: float) -> np.ndarray | float:
    return otherwise if tensor is None else tensor.detach()._impl.array


def _batch_norm(
    qx: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, scale: float,
    zero_point: int, relu: bool, ranks: tuple[int, ...], name: str,
) -> Tensor:  # fmt: skip
    """Normalise a batch by stored statistics: x * factor + shift per channel."""
    one_scale(qx)
    if qx.dim() not in ranks:
        raise RuntimeError(f"quantized::{name}: expected an input of {' or '.join(map(str, ranks))} dimensions, got {qx.dim()}")
    factor = _array_or(weight, 1.0) / np.sqrt(_array_or(var, 1.0) + np.float32(eps))
    shift = _array_or(bias, 0.0) - _array_or(mean, 0.0) * factor
    along = (-1, *(1,) * (qx.dim() - 2))
    values = values_of(qx) * np.reshape(factor, along).astype(np.float32) + np.reshape(shift, along).astype(np.float32)
    return requantized(values, qx.dtype, scale, zero_point, relu)


def _define(name: str, ranks: tuple[int, ...], relu: bool) -> None:
    def normalise(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
        return _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, relu, ranks, name)

    operator(
        f"quantized::{name}(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, {_SCALE}) -> Tensor"
    )(normalise)


for _suffix in ("", "_relu"):
    for _rank, _ranks in (("", (2, 3, 4, 5)), ("1d", (2, 3)), ("2d", (4,)), ("3d", (5,))):
        _define(f"batch_norm{_rank}{_suffix}", _ranks, bool(_suffix))


@operator(
    f"aten::quantized_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, {_SCALE}) "
    "-> Tensor"
)
def quantized_batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point):
    ranks = (2, 3, 4, 5)
    return _batch_norm(input, weight, bias, mean, var, eps, output_scale, output_zero_point, False, ranks, "batch_norm")


def _quantize_result(made: Tensor, source: Tensor, scale: float, zero_point: int) -> Tensor:
    return requantized(made._impl.array, source.dtype, scale, zero_point)


def _dequantize_input(tensor: Tensor) -> Tensor:
    one_scale(tensor)
    return tensor_from_array(values_of(tensor), float32)


def _detach_or_none(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()


@operator(
    "quantized::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, "
    f"{_SCALE}) -> Tensor"
)
def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    made = aten.layer_norm(_dequantize_input(input), normalized_shape, _detach_or_none(weight), _detach_or_none(bias), eps)
    return _quantize_result(made, input, output_scale, output_zero_point)


@operator(
    f"quantized::group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps, {_SCALE}) -> Tensor"
)
def group_norm(input, num_groups, weight, bias, eps, output_scale, output_zero_point):
    made = aten.group_norm(_dequantize_input(input), num_groups, _detach_or_none(weight), _detach_or_none(bias), eps)
    return _quantize_result(made, input, output_scale, output_zero_point)


@operator(f"quantized::instance_norm(Tensor input, Tensor? weight, Tensor? bias, float eps, {_SCALE}) -> Tensor")
def instance_norm(input, weight, bias, eps, output_scale, output_zero_point):
    parameters = _detach_or_none(weight), _detach_or_none(bias)
    made = aten.instance_norm(_dequantize_input(input), *parameters, None, None, True, 0.0, eps, False)
    if is_channels_last(input._impl.array):
        made = made.contiguous(memory_format=channels_last)
    return _quantize_result(made, input, output_scale, output_zero_point)
