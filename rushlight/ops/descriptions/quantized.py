"""Docstrings of fake quantization."""

from __future__ import annotations

_RANGE = """    quant_min (int): the least integer.
    quant_max (int): the largest integer."""
_INPUT = "    input (Tensor): the operand, floating."

DOCSTRINGS: dict[str, str] = {
    "fake_quantize_per_tensor_affine": f"""The numbers that integers stand for.

They are (clamp(round(x / scale) + zero_point) - zero_point) * scale. The gradient passes where the integer was in its range.
RuntimeError where the zero point is not.

Args:
{_INPUT}
    scale (float | Tensor): the distance of two numbers.
    zero_point (int | Tensor): the integer that stands for 0.
{_RANGE}
    out (Tensor | None): where the result is written, if given.

Example:
    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.12, 9.0]), 0.1, 0, 0, 15)
    tensor([0.1000, 1.5000])""",
    "fake_quantize_per_tensor_affine_cachemask": f"""`fake_quantize_per_tensor_affine`, and where the integer was in its range.

Args:
{_INPUT}
    scale (float): the distance of two numbers.
    zero_point (int): the integer that stands for 0.
{_RANGE}

Example:
    >>> torch.fake_quantize_per_tensor_affine_cachemask(torch.tensor([0.12, 9.0]), 0.1, 0, 0, 15)[1]
    tensor([ True, False])""",
    "fake_quantize_per_channel_affine": f"""Fake quantization with a scale and a zero point for each channel.

Args:
{_INPUT}
    scale (Tensor): the scales, float32 (channels,).
    zero_point (Tensor): the zero points, int32, or floating ones, (channels,).
    axis (int): the dimension.
{_RANGE}
    out (Tensor | None): where the result is written, if given.

Example:
    >>> scales, zero_points = torch.tensor([0.1, 1.0]), torch.tensor([0, 0], dtype=torch.int32)
    >>> torch.fake_quantize_per_channel_affine(torch.tensor([0.12, 0.7]), scales, zero_points, 0, 0, 15)
    tensor([0.1000, 1.0000])""",
    "fake_quantize_per_channel_affine_cachemask": f"""The same, and where the integer was in its range.

Args:
{_INPUT}
    scale (Tensor): the scales, float32 (channels,).
    zero_point (Tensor): the zero points, int32, or floating ones, (channels,).
    axis (int): the dimension.
{_RANGE}

Example:
    >>> scales, zero_points = torch.tensor([0.1, 1.0]), torch.tensor([0, 0], dtype=torch.int32)
    >>> torch.fake_quantize_per_channel_affine_cachemask(torch.tensor([0.1, 20.0]), scales, zero_points, 0, 0, 15)[1]
    tensor([ True, False])""",
    "fused_moving_avg_obs_fake_quant": f"""Moves a running range towards the operand's, and rounds the operand by it.

Args:
{_INPUT}
    observer_on (Tensor): whether the range moves, one element.
    fake_quant_on (Tensor): whether the operand is rounded, one element.
    running_min (Tensor): the least number so far, which is written to.
    running_max (Tensor): the largest number so far, which is written to.
    scale (Tensor): written to.
    zero_point (Tensor): written to, int32.
    averaging_const (float): how far a call moves the range.
{_RANGE}
    ch_axis (int): the dimension of channels.
    per_row_fake_quant (bool): whether each channel has a range of its own.
    symmetric_quant (bool): whether a range of both signs is made symmetric.

Example:
    >>> on, scale, zero_point = torch.ones(1, dtype=torch.int64), torch.ones(1), torch.zeros(1, dtype=torch.int32)
    >>> low, high = torch.tensor(float("inf")), torch.tensor(-float("inf"))
    >>> x = torch.tensor([0.0, 0.1, 1.5])
    >>> torch.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, zero_point, 0.01, 0, 15, 0)
    tensor([0.0000, 0.1000, 1.5000])""",
}
