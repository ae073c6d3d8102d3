"""Sample calls of the operators in quantized layers."""

from __future__ import annotations

import rushlight as rl
from tests.ops.samples import group


def _bytes(kind, *shape: int):
    low, high = (0, 256) if kind is rl.uint8 else (-128, 128)
    return rl.randint(low, high, shape, dtype=kind)


def _zero(value: int):
    return rl.tensor(value, dtype=rl.int32)


@group
def _byte_operators():
    rl.manual_seed(3)
    for kind, zero in ((rl.uint8, 7), (rl.int8, -3)):
        image, weight = _bytes(kind, 2, 6, 5, 8), _bytes(rl.int8, 6, 3, 2, 4)
        yield "rushlight::byte_layer", image, weight, _zero(zero), [2, 1], [1, 0], [1, 2], 2
        yield (
            "rushlight::byte_layer",
            _bytes(kind, 1, 1, 9, 33),
            _bytes(rl.int8, 5, 1, 1, 33),
            _zero(zero),
            [1, 1],
            [0, 0],
            [1, 1],
            1,
        )
        yield "rushlight::byte_layer", image, _bytes(rl.int8, 8, 3, 3, 1), _zero(zero), [1, 1], [1, 1], [1, 1], 8
        for rounds_first in (False, True):
            yield "rushlight::quantize_bytes", rl.randn(4, 9) * 3, rl.tensor(21.3), _zero(zero), kind, rounds_first
        yield "rushlight::quantize_bytes", rl.randn(4, 9), rl.rand(9) * 50, _zero(zero), kind, True
    for values in (rl.randn(3, 50), rl.rand(7), -rl.rand(7), rl.zeros(3), rl.randn(9) * 1e-8, rl.empty(0)):
        yield "rushlight::choose_quantization", values, 255
        yield "rushlight::choose_quantization", values, 127
    yield "rushlight::multiply_add", rl.randn(3, 4), rl.tensor(0.1), rl.tensor(2.5)
    yield "rushlight::multiply_add", rl.randn(3, 1), rl.rand(4), rl.rand(2, 1, 4)
    yield "rushlight::rounded_mul", rl.randn(3, 4), rl.tensor(0.1)
