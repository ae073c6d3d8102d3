"""`torch.ao.quantization.fake_quantize`: modules that round tensors in training as quantization will, with observed scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.ao.quantization.observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _PartialWrapper,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from rushlight.ao.quantization.utils import is_per_channel, is_per_tensor
from rushlight.core.dtype import float32, iinfo, int32, int64, qint8, quint4x2, quint8, uint8
from rushlight.core.qscheme import (
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from rushlight.core.tensor import Tensor
from rushlight.jit.decorators import export
from rushlight.nn.modules.module import Module
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces

__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant", "default_dynamic_fake_quant", "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit", "default_fake_quant", "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant", "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant", "default_symmetric_fixed_qparams_fake_quant", "default_weight_fake_quant",
    "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127", "fused_wt_fake_quant_range_neg_127_to_127",
]  # fmt: skip

aten = namespaces.namespace("aten")


class FakeQuantizeBase(Module):
    """Rounds its input while `fake_quant_enabled` is 1, and observes it while `observer_enabled` is 1."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        if type(self).forward is Module.forward:
            raise TypeError(f"Can't instantiate abstract class {type(self).__name__}: define forward in it")
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=uint8))

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        raise NotImplementedError

    @export
    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Enable or disable rounding."""
        self.fake_quant_enabled.fill_(int(enabled))

    @export
    def disable_fake_quant(self) -> None:
        """Disable rounding."""
        self.enable_fake_quant(False)

    @export
    def enable_observer(self, enabled: bool = True) -> None:
        """Enable or disable observing."""
        self.observer_enabled.fill_(int(enabled))

    @export
    def disable_observer(self) -> None:
        """Disable observing, which freezes scale and zero point."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> _PartialWrapper:
        """Return the class with preset arguments, for a qconfig."""
        return _with_args(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Rounds as quantization to `observer`'s dtype does: (clamp(round(x / scale + zero point)) - zero point) * scale.

    Args:
        observer: a class of observers, or one with arguments.
        quant_min, quant_max: the range of integers; by default the observer's.
        is_dynamic: whether scales are found again for every tensor while the quantized model runs.
        observer_kwargs: further arguments of the observer.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, observer: Callable = MovingAverageMinMaxObserver, quant_min: int | None = None, quant_max: int | None = None,
        is_dynamic: bool = False, **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if quant_min is not None and quant_max is not None:
            _check_range(observer, quant_min, quant_max, observer_kwargs)
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.activation_post_process = observer(is_dynamic=is_dynamic, **observer_kwargs)
        held = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = held.quant_min, held.quant_max, held.is_dynamic
        self.dtype, self.qscheme = held.dtype, held.qscheme
        self.ch_axis = getattr(held, "ch_axis", -1)
        if not is_per_channel(self.qscheme) and not is_per_tensor(self.qscheme):
            raise AssertionError(
                f"Only per channel and per tensor quantization are supported in fake quantize, got qscheme: {self.qscheme}"
            )
        self.is_per_channel = is_per_channel(self.qscheme)
        self.register_buffer("scale", tensor([1.0], dtype=float32))
        is_floating = self.qscheme is per_channel_affine_float_qparams
        self.register_buffer("zero_point", tensor([0], dtype=float32 if is_floating else int32))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Return the observer's scale and zero point."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        """Return `X` rounded."""
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self.calculate_qparams()
            for held, found in ((self.scale, scale), (self.zero_point, zero_point)):
                if held.shape != found.shape:
                    held.resize_(found.shape)
                held.copy_(found)
        if self.fake_quant_enabled[0] != 1:
            return X
        held = self.activation_post_process
        if self.is_per_channel:
            rounded = aten.fake_quantize_per_channel_affine.default
            return rounded(X, self.scale, self.zero_point, self.ch_axis, held.quant_min, held.quant_max)
        rounded = aten.fake_quantize_per_tensor_affine.tensor_qparams
        return rounded(X, self.scale, self.zero_point, held.quant_min, held.quant_max)

    def extra_repr(self) -> str:
        held = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={held.quant_min}, quant_max={held.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


def _check_range(observer: Callable, quant_min: int, quant_max: int, observer_kwargs: dict) -> None:
    kind = observer_kwargs.get("dtype", quint8)
    kind = getattr(getattr(observer, "p", None), "keywords", {}).get("dtype", kind)
    if quant_min > quant_max:
        raise AssertionError(f"quant_min must be less than or equal to quant_max, got {quant_min} and {quant_max}")
    limits = iinfo(kind)
    for name, value in (("quant_min", quant_min), ("quant_max", quant_max)):
        if not limits.min <= value <= limits.max:
            raise AssertionError(f"{name} out of bound: {value} is not in the range of {kind}")


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds with a fixed scale and zero point from `observer`, a FixedQParamsObserver with arguments."""

    def __init__(self, observer: Callable) -> None:
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(
                f"{type(self).__name__}'s observer must be a FixedQParamsObserver, but got "
                f"{type(self.activation_post_process).__name__}"
            )
        if not is_per_tensor(self.qscheme):
            raise AssertionError(f"Only per tensor quantization is supported, got qscheme: {self.qscheme}")
        self._observer_ctr = observer
        self.scale = self.activation_post_process.scale
        self.zero_point = self.activation_post_process.zero_point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        held = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={held.quant_min}, quant_max={held.quant_max}, "
            f"qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """`FakeQuantize` with an averaging observer, as one operator: `fused_moving_avg_obs_fake_quant`."""

    def __init__(
        self, observer: Callable = MovingAverageMinMaxObserver, quant_min: int = 0, quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        averaging = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, averaging):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver and "
                f"MovingAveragePerChannelMinMaxObserver, got {type(self.activation_post_process).__name__}"
            )
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=int64))
        self.register_buffer("observer_enabled", tensor([1], dtype=int64))
        self.is_symmetric_quant = self.qscheme in (per_tensor_symmetric, per_channel_symmetric)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        """Return `X` rounded."""
        held = self.activation_post_process
        return aten.fused_moving_avg_obs_fake_quant.default(
            X, self.observer_enabled, self.fake_quant_enabled, held.min_val, held.max_val, self.scale, self.zero_point,
            held.averaging_constant, held.quant_min, held.quant_max, self.ch_axis, self.is_per_channel,
            self.is_symmetric_quant,
        )  # fmt: skip

    def extra_repr(self) -> str:
        held = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={held.quant_min}, quant_max={held.quant_max}, "
            f"qscheme={self.qscheme}, reduce_range={held.reduce_range}"
        )


# Fake quantizers that qconfigs use

_AVERAGED, _CHANNELS = MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver
_SIGNED, _UNSIGNED = {"quant_min": -128, "quant_max": 127, "dtype": qint8}, {"quant_min": 0, "quant_max": 255, "dtype": quint8}
_SYMMETRIC_RANGE = {"quant_min": -127, "quant_max": 127, "dtype": qint8, "eps": 2**-12}
_ROWS = {"observer": _CHANNELS, "qscheme": per_channel_affine_float_qparams, "ch_axis": 0, "averaging_constant": 1}
_ACTIVATION = {**_UNSIGNED, "qscheme": per_tensor_affine, "reduce_range": True}
_WEIGHT = {"observer": _AVERAGED, "qscheme": per_tensor_symmetric}
_WEIGHT_CHANNELS = {"observer": _CHANNELS, "qscheme": per_channel_symmetric}

default_fake_quant = FakeQuantize.with_args(observer=_AVERAGED, **_ACTIVATION)
default_weight_fake_quant = FakeQuantize.with_args(**_WEIGHT, **_SIGNED, reduce_range=False)
default_dynamic_fake_quant = FakeQuantize.with_args(observer=_AVERAGED, **_UNSIGNED, is_dynamic=True, averaging_constant=1)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(**_WEIGHT_CHANNELS, **_SIGNED, reduce_range=False, ch_axis=0)
default_embedding_fake_quant = FakeQuantize.with_args(**_ROWS, **_UNSIGNED)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(**_ROWS, dtype=quint4x2)
default_histogram_fake_quant = FakeQuantize.with_args(observer=HistogramObserver, **_ACTIVATION)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(observer=_AVERAGED, **_UNSIGNED)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_WEIGHT, **_SIGNED)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_WEIGHT_CHANNELS, **_SIGNED)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(**_WEIGHT, **_SYMMETRIC_RANGE)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    **_WEIGHT_CHANNELS, **_SYMMETRIC_RANGE
)

# Functions for `model.apply`


def disable_fake_quant(mod: Module) -> None:
    """Disable rounding in a fake-quantization module: `model.apply(disable_fake_quant)`."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod: Module) -> None:
    """Enable rounding in a fake-quantization module."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod: Module) -> None:
    """Freeze the scale of a fake-quantization module."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod: Module) -> None:
    """Enable observing in a fake-quantization module."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()
