"""Dropout and its variants (Hinton et al. 2012; alpha dropout: Klambauer et al. 2017)."""

from __future__ import annotations

import math

from rushlight.core.dtype import bool_
from rushlight.ops.composite.network.activations import SELU_ALPHA, SELU_SCALE
from rushlight.ops.composite.network.common import aten, inplace
from rushlight.ops.registry import composite


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _drop_all(x):
    return x * x.new_zeros([])


@composite("dropout(Tensor input, float p, bool train) -> Tensor")
def dropout(input, p, train):
    """Zero each element with probability `p` and divide the rest by 1 - p; `input` itself outside of training."""
    _check_probability(p)
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        return _drop_all(input)
    return aten.native_dropout.default(input, p, train)[0]


def _feature_noise(x, p: float):
    if x.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return x.new_empty([*x.shape[:2]] + [1] * (x.dim() - 2)).bernoulli_(1 - p)


@composite("feature_dropout(Tensor input, float p, bool train) -> Tensor")
def feature_dropout(input, p, train):
    """Apply dropout to whole channels, which are selected by dimensions 0 and 1."""
    _check_probability(p)
    if p == 0 or not train or input.numel() == 0:
        return input
    return _drop_all(input) if p == 1 else input * _feature_noise(input, p).div_(1 - p)


@composite("alpha_dropout(Tensor input, float p, bool train) -> Tensor")
def alpha_dropout(input, p, train):
    """Set elements to SELU's saturation value instead of 0, keeping mean and variance."""
    _check_probability(p)
    if p == 0 or not train or input.numel() == 0:
        return input
    return _drop_all(input) if p == 1 else _apply_alpha_noise(input, input.new_empty(input.shape).bernoulli_(1 - p), p)


@composite("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor")
def feature_alpha_dropout(input, p, train):
    """Apply alpha_dropout to whole channels."""
    _check_probability(p)
    if p == 0 or not train or input.numel() == 0:
        return input
    return _drop_all(input) if p == 1 else _apply_alpha_noise(input, _feature_noise(input, p), p)


def _apply_alpha_noise(x, kept, p: float):
    if x.dtype.is_integral:
        wanted = "Long" if x.dtype is bool_ else x.dtype.scalar_name
        raise RuntimeError(f"result type Float can't be cast to the desired output type {wanted}")
    saturation = SELU_ALPHA * SELU_SCALE
    scale = 1 / math.sqrt((saturation * saturation * p + 1) * (1 - p))
    shift = (kept - 1) * (saturation * scale) + saturation * scale * p
    return x * (kept * scale) + shift


for _schema, _function in {
    "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)": dropout,
    "feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)": feature_dropout,
    "alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)": alpha_dropout,
    "feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)": feature_alpha_dropout,
}.items():
    inplace(_schema, _function)
