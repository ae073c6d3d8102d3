"""CPU kernels of activation functions and their derivatives."""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.dtype import bool_
from rushlight.ops.cpu import native
from rushlight.ops.cpu.common import apply
from rushlight.ops.cpu.pointwise import sigmoid
from rushlight.ops.cpu.special import erf
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.pointwise import check_approximate
from rushlight.ops.promotion import float_type, result_type
from rushlight.ops.registry import cpu, elementwise

_SQRT_HALF = math.sqrt(0.5)
_TANH_SCALE = math.sqrt(2.0 / math.pi)
_TANH_CUBIC = 0.044715


@native.stands_for("silu")
def _silu(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    return np.multiply(x, sigmoid(x), out=out)


@elementwise("silu")
def silu(self, *, out=None):
    kind = float_type(self.dtype)
    return apply(_silu, kind, kind, self, out=out)


def _gelu_parts(x: np.ndarray, approximate: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the (approximate) normal distribution function at x, and its derivative there."""
    if approximate == "none":
        density = np.exp(-0.5 * x * x) * x.dtype.type(1 / math.sqrt(2 * math.pi))
        return 0.5 * (1 + erf(x * x.dtype.type(_SQRT_HALF))), density
    inner = x.dtype.type(_TANH_SCALE) * (x + x.dtype.type(_TANH_CUBIC) * x * x * x)
    slope = x.dtype.type(_TANH_SCALE) * (1 + x.dtype.type(3 * _TANH_CUBIC) * x * x)
    bent = np.tanh(inner)
    return 0.5 * (1 + bent), 0.5 * (1 - bent * bent) * slope


@elementwise("gelu")
def gelu(self, *, approximate="none", out=None):
    check_approximate(approximate)
    kind = self.dtype
    if not kind.is_floating_point:
        raise not_implemented("GeluKernelImpl", kind)
    kernel = native.kernel("gelu" if approximate == "none" else "gelu_tanh")

    def formula(x, out=None):
        return np.multiply(x, _gelu_parts(x, approximate)[0], out=out)

    return apply(formula, kind, kind, self, out=out, kernel=kernel)


@cpu("gelu_backward")
def gelu_backward(grad_output, self, *, approximate="none"):
    check_approximate(approximate)
    kind = result_type(grad_output, self)
    if not kind.is_floating_point:
        raise not_implemented("GeluBackwardKernelImpl", kind)

    def formula(grad, x, out=None):
        cumulative, density = _gelu_parts(x, approximate)
        return np.multiply(grad, cumulative + x * density, out=out)

    kernel = native.kernel("gelu_backward" if approximate == "none" else "gelu_tanh_backward")
    return apply(formula, kind, kind, grad_output, self, kernel=kernel)


@cpu("threshold_backward")
def threshold_backward(grad_output, self, threshold):
    kind = result_type(grad_output, self)
    if kind is bool_:
        raise not_implemented("threshold_cpu", kind)

    def formula(grad, x, out=None):
        kept = np.where(x <= threshold, x.dtype.type(0), grad)
        return kept if out is None else np.positive(kept, out=out)

    exact = isinstance(threshold, int | float)
    kernel = native.kernel("threshold_backward", threshold) if exact else None
    return apply(formula, kind, kind, grad_output, self, kernel=kernel)
