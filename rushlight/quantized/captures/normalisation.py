"""Rules for normalisation.

They compute in float32: an integer may differ by one from the eager kernel's where a number is close to a half.
"""

from __future__ import annotations

from rushlight.quantized.captures.tensors import of_quantized, requantized, target_of
from rushlight.quantized.quantizer import inverse_of
from rushlight.quantized.registration import aten


@of_quantized("quantized::layer_norm")
def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point):
    made = aten.layer_norm(input.numbers(), normalized_shape, weight, bias, eps)
    return requantized(made, inverse_of(output_scale), input.dtype, target_of(output_scale, output_zero_point))


@of_quantized("quantized::group_norm")
def group_norm(input, num_groups, weight, bias, eps, output_scale, output_zero_point):
    made = aten.group_norm(input.numbers(), num_groups, weight, bias, eps)
    return requantized(made, inverse_of(output_scale), input.dtype, target_of(output_scale, output_zero_point))


@of_quantized("quantized::instance_norm")
def instance_norm(input, weight, bias, eps, output_scale, output_zero_point):
    made = aten.instance_norm(input.numbers(), weight, bias, None, None, True, 0.0, eps, False)
    return requantized(made, inverse_of(output_scale), input.dtype, target_of(output_scale, output_zero_point))


def _define_batch_norm(rank: str, suffix: str) -> None:
    @of_quantized(f"quantized::batch_norm{rank}{suffix}")
    def batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point):
        made = aten.batch_norm(qx.numbers(), weight, bias, mean, var, False, 0.0, eps, False)
        return requantized(
            made.relu() if suffix else made, inverse_of(output_scale), qx.dtype, target_of(output_scale, output_zero_point)
        )  # fmt: skip


for _rank in ("", "1d", "2d"):
    for _suffix in ("", "_relu"):
        _define_batch_norm(_rank, _suffix)
