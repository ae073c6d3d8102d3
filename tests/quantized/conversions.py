"""Converts tensors from torch to rushlight, including quantized ones, and compares results by their integers."""

from __future__ import annotations

import numpy as np

import rushlight


def to_rushlight(value: object) -> object:
    """A value of torch, with tensors of rushlight."""
    if isinstance(value, list | tuple):
        return type(value)(to_rushlight(each) for each in value)
    if not hasattr(value, "is_quantized"):
        return value
    if not value.is_quantized:
        return rushlight.tensor(value.detach().numpy())
    integers = rushlight.tensor(value.int_repr().numpy())
    if str(value.qscheme()) == "torch.per_tensor_affine":
        return rushlight._make_per_tensor_quantized_tensor(integers, value.q_scale(), value.q_zero_point())
    scales, zero_points = (to_rushlight(each) for each in (value.q_per_channel_scales(), value.q_per_channel_zero_points()))
    return rushlight._make_per_channel_quantized_tensor(integers, scales, zero_points, value.q_per_channel_axis())


def adds_in_16_bits(torch) -> bool:
    """Whether torch adds two products of bytes in 16 bits, where large ones saturate, as it does without VNNI instructions."""
    x = torch.quantize_per_tensor(torch.full((1, 64), 255.0), 1.0, 0, torch.quint8)
    w = torch.quantize_per_tensor(torch.full((1, 64), 127.0), 1.0, 0, torch.qint8)
    found = torch.ops.quantized.linear(x, torch.ops.quantized.linear_prepack(w, None), 64.0 * 255, 0)
    return found.int_repr().item() != 127


def assert_same(found: object, expected: object, quanta: int = 0) -> None:
    """Asserts that a result matches torch's: integers to this many quanta, floats to float32's precision."""
    if isinstance(expected, list | tuple):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            assert_same(*pair, quanta)
        return
    if not hasattr(expected, "is_quantized"):
        assert found == expected
        return
    assert str(found.dtype) == str(expected.dtype) and tuple(found.shape) == tuple(expected.shape)
    assert found.is_quantized == expected.is_quantized
    if not expected.is_quantized:
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-4, atol=1e-5)
        return
    assert found.qscheme().name == str(expected.qscheme()).removeprefix("torch.")
    if found.qscheme().name == "per_tensor_affine":
        assert found.q_scale() == expected.q_scale() or abs(found.q_scale() / expected.q_scale() - 1) < 1e-6
        assert found.q_zero_point() == expected.q_zero_point()
    left, right = (each.int_repr().numpy().astype(np.int64) for each in (found, expected))
    assert np.abs(left - right).max(initial=0) <= quanta
