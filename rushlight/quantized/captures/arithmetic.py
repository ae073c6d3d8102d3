"""Rules for sums, products, concatenations and elementwise functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rushlight.core.dtype import float32, int64
from rushlight.core.tensor import Tensor
from rushlight.ops.modes import SuspendModes
from rushlight.quantized.arithmetic import quantum_of_product
from rushlight.quantized.captures.tensors import (
    CapturedQuantized,
    constant,
    of_quantized,
    operator_named,
    requantized,
    require_captured,
    rounded,
    rule,
    target_of,
)
from rushlight.quantized.layout import make_quantized, one_scale
from rushlight.quantized.quantizer import TensorQuantizer, inverse_of, limits
from rushlight.quantized.registration import aten


def _define_pairs(suffix: str, relu: bool) -> None:
    def kept(values: Tensor) -> Tensor:
        return values.relu() if relu else values

    @rule(f"quantized::add{suffix}")
    def add(qa, qb, scale, zero_point):
        a, b = _check_pair(qa, qb, "quantized::add")
        total = kept(a.numbers_rounded_once() + b.numbers_rounded_once())
        return requantized(total, inverse_of(scale), a.dtype, target_of(scale, zero_point))

    @rule(f"quantized::mul{suffix}")
    def mul(qa, qb, scale, zero_point):
        a, b = _check_pair(qa, qb, "quantized::mul")
        quantum = float(quantum_of_product(a.quantizer.scale, b.quantizer.scale, scale))
        return requantized(kept((a.shifted() * b.shifted()).to(float32)), quantum, a.dtype, target_of(scale, zero_point))

    @rule(f"quantized::cat{suffix}")
    def cat(qx, dim, scale=None, zero_point=None):
        held = [require_captured(each, "quantized::cat") for each in qx]
        first = held[0].quantizer
        target = TensorQuantizer(
            first.scale if scale is None else float(scale), first.zero_point if zero_point is None else int(zero_point)
        )
        return _concatenate(held, dim, target, relu)


for _suffix, _relu in (("", False), ("_relu", True)):
    _define_pairs(_suffix, _relu)


def _check_pair(qa: Tensor, qb: Tensor, name: str) -> tuple[CapturedQuantized, CapturedQuantized]:
    a, b = require_captured(qa, name), require_captured(qb, name)
    if a.dtype is not b.dtype:
        raise NotImplementedError(f"{name} of {a.dtype} and {b.dtype}")
    return a, b


def _concatenate(held: Sequence[CapturedQuantized], dim: int, target: TensorQuantizer, relu: bool) -> CapturedQuantized:
    kind, parts = held[0].dtype, []
    for each in held:
        if each.dtype is not kind:
            raise NotImplementedError(f"cat of {kind} and {each.dtype}")
        if each.quantizer == target and not relu:
            parts.append(each.integers)
        else:
            numbers = each.numbers().relu() if relu else each.numbers()
            parts.append(rounded(numbers, inverse_of(target.scale), kind, target))
    return CapturedQuantized(aten.cat(parts, dim), kind, target)


@rule("aten::cat")
def cat(tensors, dim=0):
    if not any(isinstance(each, CapturedQuantized) for each in tensors):
        return NotImplemented
    held = [require_captured(each, "cat") for each in tensors]
    return _concatenate(held, dim, held[0].quantizer, False)




def _clamp(self: CapturedQuantized, low: float | None, high: float | None) -> CapturedQuantized:
    def integer(bound: float) -> int:
        return int(self.quantizer.quantize(np.full((), bound, np.float32), self.dtype))

    return self.with_integers(self.integers.clamp(*(None if bound is None else integer(bound) for bound in (low, high))))


@of_quantized("aten::relu")
def relu(self):
    return _clamp(self, 0.0, None)


@of_quantized("aten::relu6", "quantized::relu6")
def relu6(self, inplace=False):
    if inplace:
        raise NotImplementedError("quantized::relu6 in place")
    return _clamp(self, 0.0, 6.0)


@of_quantized("aten::hardtanh", "aten::clamp", "quantized::clamp")
def clamp(self, min=None, max=None, *, min_val=None, max_val=None):
    return _clamp(self, min if min_val is None else min_val, max if max_val is None else max_val)


def _look_up(op: Callable, self: CapturedQuantized, *args: object, **kwargs: object) -> CapturedQuantized:
    """Apply an elementwise function by a look-up in a table of its results for all integers."""
    low, high = limits(self.dtype)
    with SuspendModes():
        every = make_quantized(np.arange(low, high + 1).astype(self.dtype.numpy), self.dtype, self.quantizer)
        table = op(every, *args, **kwargs)
    positions = self.integers.to(int64) - low if low else self.integers.to(int64)
    return CapturedQuantized(aten.index(constant(table._impl.array), [positions]), self.dtype, one_scale(table))


def _register_table_lookup(name: str) -> None:
    of_quantized(name)(lambda self, *args, **kwargs: _look_up(operator_named(name), self, *args, **kwargs))


for _name in (
    "aten::sigmoid", "aten::tanh", "aten::hardsigmoid", "aten::leaky_relu", "aten::gelu", "aten::threshold",
    "quantized::threshold", "quantized::hardswish", "quantized::sigmoid", "quantized::elu", "quantized::celu",
    "quantized::add_scalar", "quantized::add_scalar_relu", "quantized::mul_scalar", "quantized::mul_scalar_relu",
    "quantized::add.Scalar", "quantized::add_relu.Scalar", "quantized::mul.Scalar", "quantized::mul_relu.Scalar",
):  # fmt: skip
    _register_table_lookup(_name)


@of_quantized("quantized::leaky_relu")
def leaky_relu(self, negative_slope, inplace, output_scale, output_zero_point):
    return _look_up(operator_named("quantized::leaky_relu"), self, negative_slope, False, output_scale, output_zero_point)
