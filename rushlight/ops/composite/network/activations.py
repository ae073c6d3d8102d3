"""Activation functions. At a kink, the gradient is the one that ATen chooses."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_, finfo, float64, uint8
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.network.common import aten, inplace
from rushlight.ops.composite.pointwise import filled
from rushlight.ops.composite.precision import in_full_precision
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.promotion import check_number
from rushlight.ops.registry import composite

# Klambauer et al., "Self-Normalizing Neural Networks" (2017).
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def _softmax_input(self, dtype):
    return self if dtype is None or dtype is self.dtype else self.to(dtype)


@composite("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
def softmax(self, dim, dtype=None):
    return aten._softmax.default(_softmax_input(self, dtype), dim, False)


@composite("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
def log_softmax(self, dim, dtype=None):
    return aten._log_softmax.default(_softmax_input(self, dtype), dim, False)


@composite("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
def safe_softmax(self, dim, dtype=None):
    """Compute softmax, but zero instead of NaN where every entry is -inf."""
    nothing_allowed = (self == -math.inf).all(dim, True)
    # Mask the input as well: NaN would propagate into the gradient.
    return softmax(self.masked_fill(nothing_allowed, 0.0), dim, dtype).masked_fill(nothing_allowed, 0.0)


@composite("leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor")
def leaky_relu(self, negative_slope=0.01):
    return aten.where.self(self > 0, self, self * negative_slope)


@composite(
    "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor"
)
def rrelu(self, lower=0.125, upper=1.0 / 3, training=False, generator=None):
    """Compute leaky_relu with a slope drawn from [lower, upper] for each element up to 0; their mean outside of training."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got {lower} and {upper}")
    if not training:
        return leaky_relu(self, (lower + upper) / 2)
    negative = self.detach().reshape([-1]) <= 0
    slopes = self.new_empty([int(negative.sum())], dtype=float64).uniform_(lower, upper, generator=generator)
    factors = aten.index_put.default(self.new_ones([self.numel()]), [negative], slopes.to(self.dtype))
    return self * factors.view(self.shape)


@composite("elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
@in_full_precision
def elu(self, alpha=1, scale=1, input_scale=1):
    # The negative branch gets no positive numbers: their exponentials could overflow and make the gradient NaN.
    positive = self > 0
    bent = _scale(_scale(filled(self, positive, 0), input_scale).expm1(), alpha * scale)
    return aten.where.self(positive, _scale(self, scale), bent)


def _scale(self: Tensor, factor: float) -> Tensor:
    return self if factor == 1 else self * factor


@composite("selu(Tensor self) -> Tensor")
@in_full_precision
def selu(self):
    return elu(self, SELU_ALPHA, SELU_SCALE)


@composite("celu(Tensor self, Scalar alpha=1.0) -> Tensor")
@in_full_precision
def celu(self, alpha=1.0):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(self, alpha, 1.0, 1.0 / alpha)


@composite("hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
def hardtanh(self, min_val=-1, max_val=1):
    check_number(min_val, self.dtype)
    check_number(max_val, self.dtype)
    if self.dtype is bool_:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if self.dtype.is_integral:
        min_val, max_val = int(min_val), int(max_val)
        if self.dtype is uint8 and min(min_val, max_val) < 0:
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if min_val != min_val or max_val != max_val:
        return aten.full_like.default(self, math.nan)
    min_val = max_val if min_val > max_val else min_val
    return filled(filled(self, self <= min_val, min_val), self >= max_val, max_val)


@composite("relu6(Tensor self) -> Tensor")
def relu6(self):
    return hardtanh(self, 0, 6)


@composite("hardsigmoid(Tensor self) -> Tensor")
@in_full_precision
def hardsigmoid(self):
    return hardtanh(self + 3, 0, 6) / 6


@composite("hardswish(Tensor self) -> Tensor")
@in_full_precision
def hardswish(self):
    return self * hardtanh(self + 3, 0, 6) / 6


@composite("softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor")
@in_full_precision
def softplus(self, beta=1, threshold=20):
    scaled = _scale(self, beta)
    linear = scaled > threshold
    bent = filled(scaled, linear, 0).exp().log1p()
    return aten.where.self(linear, self, bent if beta == 1 else bent / beta)


@composite("mish(Tensor self) -> Tensor")
@in_full_precision
def mish(self):
    return self * softplus(self).tanh()


@composite("log_sigmoid(Tensor self) -> Tensor")
@in_full_precision
def log_sigmoid(self):
    # `minimum` halves the gradient at 0, as ATen does.
    return aten.minimum.default(self, self.new_zeros([])) - (-self.abs()).exp().log1p()


@composite("threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor")
def threshold(self, threshold, value):
    if self.dtype is bool_:
        raise not_implemented("threshold_cpu", bool_)
    check_number(threshold, self.dtype)
    check_number(value, self.dtype)
    return _threshold(self, threshold, value)


@in_full_precision
def _threshold(self, threshold, value):
    return filled(self, self <= threshold, value)


@composite("hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
def hardshrink(self, lambd=0.5):
    return filled(self, (self >= -lambd).logical_and(self <= lambd), 0)


@composite("softshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
@in_full_precision
def softshrink(self, lambd=0.5):
    if not 0 <= lambd <= finfo(self.dtype).max:
        raise RuntimeError(
            f"lambda must be in range [0, {finfo(self.dtype).max}] for input dtype {self.dtype}, but found {lambd}."
        )
    return filled(self - self.sign() * lambd, self.abs() <= lambd, 0)


@composite("glu(Tensor self, int dim=-1) -> Tensor")
@in_full_precision
def glu(self, dim=-1):
    """Return the first half of dimension `dim` times the sigmoid of the second."""
    if self.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = self.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % self.dim()} is size {size}")
    half = size // 2
    return self.narrow(dim, 0, half) * self.narrow(dim, half, half).sigmoid()


@composite("prelu(Tensor self, Tensor weight) -> Tensor")
def prelu(self, weight):
    """Compute leaky_relu with one learned slope, or one per channel (dimension 1)."""
    if self.dtype is not weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {self.dtype} and {weight.dtype}")
    if weight.numel() != 1:
        channels = self.shape[1] if self.dim() > 1 else 1
        if self.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if channels != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. "
                f"Found parameter numbers = {weight.numel()} and channel size = {channels}."
            )
    if weight.dim() > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}")
    slopes = weight.reshape([1, weight.numel()] + [1] * (self.dim() - 2)) if self.dim() >= 2 else weight.reshape([])
    return aten.where.self(self > 0, self, self * slopes)


for _schema, _function in {
    "leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)": leaky_relu,
    "rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, "
    "Generator? generator=None) -> Tensor(a!)": rrelu,
    "elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)": elu,
    "selu_(Tensor(a!) self) -> Tensor(a!)": selu,
    "celu_(Tensor(a!) self, Scalar alpha=1.0) -> Tensor(a!)": celu,
    "hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)": hardtanh,
    "relu6_(Tensor(a!) self) -> Tensor(a!)": relu6,
    "hardsigmoid_(Tensor(a!) self) -> Tensor(a!)": hardsigmoid,
    "hardswish_(Tensor(a!) self) -> Tensor(a!)": hardswish,
    "mish_(Tensor(a!) self) -> Tensor(a!)": mish,
    "threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)": threshold,
}.items():
    inplace(_schema, _function)
