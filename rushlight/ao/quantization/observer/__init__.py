"""`torch.ao.quantization.observer`: modules that observe tensors and compute their scale and zero point."""

from __future__ import annotations

from rushlight.ao.quantization.observer.base import (
    ObserverBase,
    UniformQuantizationObserverBase,
    _PartialWrapper,
    _with_args,
    _with_callable_args,
)
from rushlight.ao.quantization.observer.histograms import HistogramObserver
from rushlight.ao.quantization.observer.ranges import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from rushlight.ao.quantization.observer.simple import (
    FixedQParamsObserver,
    NoopObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
)
from rushlight.core.dtype import qint8, quint4x2, quint8
from rushlight.core.qscheme import per_channel_affine_float_qparams, per_channel_symmetric, per_tensor_symmetric
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module

__all__ = [
    "FixedQParamsObserver", "HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerChannelMinMaxObserver", "PlaceholderObserver",
    "RecordingObserver", "ReuseInputObserver", "UniformQuantizationObserverBase", "default_affine_fixed_qparams_observer",
    "default_debug_observer", "default_dynamic_quant_observer", "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer", "default_float_qparams_observer", "default_float_qparams_observer_4bit",
    "default_histogram_observer", "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer",
    "default_reuse_input_observer", "default_symmetric_fixed_qparams_observer", "default_weight_observer",
    "get_observer_state_dict", "load_observer_state_dict", "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]  # fmt: skip

_SYMMETRIC = {"dtype": qint8, "qscheme": per_tensor_symmetric}
_SYMMETRIC_CHANNELS = {"dtype": qint8, "qscheme": per_channel_symmetric}
_SYMMETRIC_RANGE = {"quant_min": -127, "quant_max": 127, "eps": 2**-12}
_FLOATING = {"qscheme": per_channel_affine_float_qparams, "ch_axis": 0}
_FIXED = {"dtype": quint8, "quant_min": 0, "quant_max": 255}

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(**_SYMMETRIC)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(**_SYMMETRIC, **_SYMMETRIC_RANGE)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(**_SYMMETRIC_CHANNELS)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(**_SYMMETRIC_CHANNELS, **_SYMMETRIC_RANGE)
default_dynamic_quant_observer = PlaceholderObserver.with_args(dtype=quint8, quant_min=0, quant_max=255, is_dynamic=True)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(dtype=quint8, **_FLOATING)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(dtype=quint4x2, **_FLOATING)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(scale=2.0 / 256.0, zero_point=128, **_FIXED)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(scale=1.0 / 256.0, zero_point=0, **_FIXED)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver


def _is_activation_post_process(module: Module) -> bool:
    """Return whether a module is an observer or fake quantization."""
    return isinstance(module, ObserverBase) or hasattr(module, "fake_quant_enabled")


_MARK = "activation_post_process"


def get_observer_state_dict(mod: Module) -> dict[str, Tensor]:
    """Return the observers' part of a prepared model's state."""
    return {name: value for name, value in mod.state_dict().items() if _MARK in name}


def load_observer_state_dict(mod: Module, obs_dict: dict[str, Tensor]) -> None:
    """Restore the observers from `get_observer_state_dict`; RuntimeError where one is missing."""
    state = mod.state_dict()
    lacking = sorted(name for name in state if _MARK in name and name not in obs_dict)
    if lacking:
        raise RuntimeError(f"Missing keys for observer {lacking} in state_dict")
    found, unexpected = mod.load_state_dict({name: obs_dict[name] for name in obs_dict}, strict=False)
    if unexpected:
        raise RuntimeError(f"Unexpected keys for observer {unexpected} in state_dict")
