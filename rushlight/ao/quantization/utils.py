"""Helpers on observers, integer ranges and modules, for all parts of quantization."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight.core.dtype import dtype, int8, int16, int32, qint8, qint32, quint4x2, quint8, uint8, uint16
from rushlight.core.qscheme import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
)
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.parametrize import is_parametrized

__all__ = [
    "MatchAllNode", "Pattern", "activation_dtype", "activation_is_dynamically_quantized", "activation_is_int8_quantized",
    "activation_is_statically_quantized", "calculate_qmin_qmax", "check_min_max_valid", "get_combined_dict", "get_qparam_dict",
    "getattr_from_fqn", "has_no_children_ignoring_parametrizations", "is_per_channel", "is_per_tensor",
    "op_is_int8_dynamically_quantized", "validate_qmin_qmax", "weight_dtype", "weight_is_quantized",
    "weight_is_statically_quantized",
]  # fmt: skip

Pattern = Callable | tuple[Callable, Callable] | tuple[Callable, tuple[Callable, Callable]] | Any


class MatchAllNode:
    """A wildcard for any node in a pattern."""


_BITS_8 = (quint8, qint8, uint8, int8)
_UNSIGNED = (quint8, uint8)


def is_per_tensor(qscheme: qscheme) -> bool:
    """Return whether a scheme has one scale."""
    return qscheme in (per_tensor_affine, per_tensor_symmetric)


def is_per_channel(qscheme: qscheme) -> bool:
    """Return whether a scheme has a scale per channel."""
    return qscheme in (per_channel_affine, per_channel_affine_float_qparams, per_channel_symmetric)


def get_combined_dict(default_dict: dict, additional_dict: dict) -> dict:
    """Return a dict of both, in which the second one's values win."""
    return {**default_dict, **additional_dict}


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """Return the attribute at a dotted name."""
    for name in fqn.split("."):
        obj = getattr(obj, name)
    return obj


# Configurations


def _make_observer(constructor: Callable | None) -> Any:
    return None if constructor is None else constructor()


def activation_dtype(qconfig: Any) -> dtype:
    """Return the dtype of activations under a configuration."""
    return _make_observer(qconfig.activation).dtype


def weight_dtype(qconfig: Any) -> dtype:
    """Return the dtype of weights under a configuration."""
    return _make_observer(qconfig.weight).dtype


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Return whether activations are quantized with observed scales."""
    found = _make_observer(qconfig.activation)
    return found.dtype in (quint8, qint8, qint32, uint8, int8, int16, int32) and not getattr(found, "is_dynamic", False)


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Return whether the scales of activations are computed at run time."""
    return bool(getattr(_make_observer(qconfig.activation), "is_dynamic", False))


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Return whether activations have 8 bits."""
    return activation_dtype(qconfig) in _BITS_8


def weight_is_quantized(qconfig: Any) -> bool:
    """Return whether weights are quantized."""
    return weight_dtype(qconfig) in (quint8, qint8, quint4x2, uint8, int8, int16, int32)


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Return whether weights have 8 bits."""
    return weight_dtype(qconfig) in _BITS_8


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Return whether a layer computes in 8 bits, with scales computed at run time."""
    return activation_dtype(qconfig) in _UNSIGNED and activation_is_dynamically_quantized(qconfig) and weight_dtype(
        qconfig
    ) in (qint8, int8)  # fmt: skip


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """Return an observer's parameters: "qscheme", "dtype", "scale", "zero_point", the range, and the channel axis."""
    scheme = getattr(observer_or_fake_quant, "qscheme", None)
    found: dict[str, Any] = {"qscheme": scheme, "dtype": observer_or_fake_quant.dtype}
    if scheme is None or is_per_tensor(scheme):
        found["qscheme"] = per_tensor_affine
    elif is_per_channel(scheme):
        found["qscheme"] = per_channel_affine if scheme is per_channel_symmetric else scheme
        found["axis"] = observer_or_fake_quant.ch_axis
    else:
        raise RuntimeError(f"Unrecognized qscheme: {scheme}")
    found["scale"], found["zero_point"] = observer_or_fake_quant.calculate_qparams()
    found["quant_min"] = observer_or_fake_quant.quant_min
    found["quant_max"] = observer_or_fake_quant.quant_max
    return found


# Ranges of integers


def check_min_max_valid(min_val: Tensor, max_val: Tensor) -> bool:
    """Return whether an observer has observations; warns if not. AssertionError if a minimum exceeds its maximum."""
    if min_val.numel() == 0 or max_val.numel() == 0:
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
        return False
    if min_val.dim() == 0 or max_val.dim() == 0:
        if min_val == float("inf") and max_val == float("-inf"):
            warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=2)
            return False
    if (min_val > max_val).any():
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


_RANGES = {qint8: (-128, 127), int8: (-128, 127), quint8: (0, 255), uint8: (0, 255), qint32: (-(2**31), 2**31 - 1),
           int32: (-(2**31), 2**31 - 1), uint16: (0, 2**16 - 1), int16: (-(2**15), 2**15 - 1)}  # fmt: skip
_MAX_RANGES = {qint8: 256, int8: 256, qint32: 2**32, int32: 2**32}
_REDUCED = {qint8: (-64, 63), int8: (-64, 63), quint8: (0, 127), uint8: (0, 127)}


def calculate_qmin_qmax(
    quant_min: int | None, quant_max: int | None, has_customized_qrange: bool, dtype: dtype, reduce_range: bool
) -> tuple[int, int]:
    """Return the smallest and the largest integer: the requested ones, or the dtype's, narrowed by a bit if `reduce_range`."""
    if not has_customized_qrange or quant_min is None or quant_max is None:
        if reduce_range and dtype in _REDUCED:
            return _REDUCED[dtype]
        return _RANGES.get(dtype, (0, 15))
    length = quant_max - quant_min + 1
    if dtype in _MAX_RANGES and not 0 < length <= _MAX_RANGES[dtype]:
        raise AssertionError(
            "quantization range should be positive and not exceed the maximum bit range "
            f"(={_MAX_RANGES[dtype]}): got {quant_min} to {quant_max}"
        )
    return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Raise AssertionError unless a range includes 0 and more than one integer."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError(f"Used-specified quantization range must include 0, got {quant_min} to {quant_max}.")
    if quant_min >= quant_max:
        raise AssertionError(
            f"qmin must be strictly less than qmax for user-specified quantization range, got {quant_min} and {quant_max}."
        )


# Modules


def has_no_children_ignoring_parametrizations(module: Module) -> bool:
    """Return whether a module has no submodules, or only parametrizations."""
    return not module._modules or (is_parametrized(module) and len(module._modules) == 1)
