"""Sample calls of fake quantization."""

from __future__ import annotations

import numpy as np

import rushlight as rl
from rushlight.core.tensor import Tensor
from tests.ops.samples import group

_random = np.random.default_rng(13)


def _numbers(*shape: int) -> Tensor:
    return rl.from_numpy(_random.uniform(-3, 3, shape).astype(np.float32))


def _int32(*values: int) -> Tensor:
    return rl.tensor(list(values), dtype=rl.int32)


@group
def _fake_quantization():
    scales = rl.tensor([0.02, 0.013, 0.007, 0.03])
    yield "fake_quantize_per_tensor_affine_cachemask", _numbers(4, 5), 0.017, 13, 0, 255
    yield (
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
        _numbers(4, 5).T,
        scales[:1],
        _int32(3),
        _int32(1),
        -8,
        127,
    )
    yield "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", _numbers(4, 5), scales[:1], _int32(3), _int32(0), -8, 127
    yield "fake_quantize_per_channel_affine_cachemask", _numbers(2, 4, 3), scales, _int32(0, 3, -4, 7), 1, -128, 127
    yield "fake_quantize_per_channel_affine_cachemask", _numbers(2, 4), scales, rl.tensor([0.5, 3.0, 44.0, 7.5]), 1, 0, 255
    yield "_fake_quantize_learnable_per_tensor_affine", _numbers(4, 5), scales[:1], rl.tensor([12.4]), 0, 255, 0.5
    zero_points = rl.tensor([0.0, 3.4, -4.6, 7.2])
    yield "_fake_quantize_learnable_per_channel_affine", _numbers(2, 4, 3), scales, zero_points, 1, -128, 127
    on, off, state = _int32(1), _int32(0), (rl.tensor([-1.0]), rl.tensor([2.0]), rl.tensor([1.0]), _int32(0))
    yield "_fused_moving_avg_obs_fq_helper", _numbers(4, 5), off, on, *state, 0.1, 0, 255, 0
    state = rl.tensor([-1.0] * 4), rl.tensor([2.0] * 4), scales.clone(), _int32(0, 0, 0, 0)
    yield "_fused_moving_avg_obs_fq_helper", _numbers(4, 5), off, on, *state, 0.1, -128, 127, 0, True, True
