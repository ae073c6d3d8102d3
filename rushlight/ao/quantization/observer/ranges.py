"""Observers of minima and maxima, over all observations or averaged over time, per tensor or per channel."""

from __future__ import annotations

from typing import Any

from rushlight.ao.quantization.observer.base import EPS, UniformQuantizationObserverBase, aten, factory_kwargs_of
from rushlight.ao.quantization.utils import is_per_channel, is_per_tensor
from rushlight.core.dtype import dtype, quint8
from rushlight.core.qscheme import (
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
)
from rushlight.core.tensor import Tensor
from rushlight.ops.construct import tensor

_INFINITY = float("inf")


def require_per_tensor(scheme: qscheme, name: str) -> None:
    """Raise NotImplementedError unless a scheme has one scale."""
    if not is_per_tensor(scheme):
        raise NotImplementedError(
            f"{name}'s qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine, but got: {scheme}"
        )


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the minimum and maximum of all observed tensors: `min_val`, `max_val`, buffers of one element.

    The arguments are those of `UniformQuantizationObserverBase`; `qscheme` has one scale.
    """

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, dtype: dtype = quint8, qscheme: qscheme = per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        require_per_tensor(qscheme, "MinMaxObserver")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        made = factory_kwargs_of(factory_kwargs)
        self.register_buffer("min_val", tensor(_INFINITY, **made))
        self.register_buffer("max_val", tensor(-_INFINITY, **made))
        if qscheme is per_tensor_symmetric and reduce_range and dtype is quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig: Tensor) -> Tensor:
        """Observe the range of `x_orig`, and return it."""
        if x_orig.numel():
            low, high = self._range(x_orig)
            self.min_val.copy_(aten.minimum.default(low, self.min_val))
            self.max_val.copy_(aten.maximum.default(high, self.max_val))
        return x_orig

    def _range(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return aten.aminmax.default(x.detach().to(self.min_val.dtype))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale (1,) and zero point (1,)."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget all observations."""
        self.min_val.fill_(_INFINITY)
        self.max_val.fill_(-_INFINITY)


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Averages the minima and maxima of observed tensors: each moves by `averaging_constant` towards the new one."""

    def __init__(
        self, averaging_constant: float = 0.01, dtype: dtype = quint8, qscheme: qscheme = per_tensor_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None, eps: float = EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        require_per_tensor(qscheme, "MovingAverageMinMaxObserver")
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging constant of "
                f"{averaging_constant}: use 1"
            )
        super().__init__(
            dtype=dtype, qscheme=qscheme, reduce_range=reduce_range, quant_min=quant_min, quant_max=quant_max, eps=eps,
            is_dynamic=is_dynamic, **kwargs,
        )  # fmt: skip
        self.averaging_constant = averaging_constant

    def forward(self, x_orig: Tensor) -> Tensor:
        """Observe the range of `x_orig`, and return it."""
        if x_orig.numel():
            low, high = self._range(x_orig)
            if self.min_val != _INFINITY or self.max_val != -_INFINITY:
                low = self.min_val + self.averaging_constant * (low - self.min_val)
                high = self.max_val + self.averaging_constant * (high - self.max_val)
            self.min_val.copy_(low)
            self.max_val.copy_(high)
        return x_orig


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Keeps minima and maxima for each index of dimension `ch_axis`: `min_val` and `max_val`, (channels,)."""

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, ch_axis: int = 0, dtype: dtype = quint8, qscheme: qscheme = per_channel_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if not is_per_channel(qscheme):
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support torch.per_channel_symmetric, torch.per_channel_affine and "
                f"torch.per_channel_affine_float_qparams, but got: {qscheme}"
            )
        if is_dynamic:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        self.ch_axis = ch_axis
        made = factory_kwargs_of(factory_kwargs)
        self.register_buffer("min_val", tensor([], **made))
        self.register_buffer("max_val", tensor([], **made))
        if qscheme is per_channel_symmetric and reduce_range and dtype is quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig: Tensor) -> Tensor:
        """Observe the ranges of `x_orig`, and return it."""
        if x_orig.numel():
            low, high = self._ranges(x_orig)
            if self.min_val.numel() and self.max_val.numel():
                low, high = self._combine_ranges(low, high)
            self._set(low, high)
        return x_orig

    def _combine_ranges(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return aten.minimum.default(low, self.min_val), aten.maximum.default(high, self.max_val)

    def _ranges(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.detach().to(self.min_val.dtype).transpose(0, self.ch_axis).flatten(1)
        return aten.aminmax.default(rows, dim=1)

    def _set(self, low: Tensor, high: Tensor) -> None:
        self.min_val.resize_(low.shape)
        self.max_val.resize_(high.shape)
        self.min_val.copy_(low)
        self.max_val.copy_(high)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Return scales (channels,) and zero points (channels,)."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        version = local_metadata.get("version")
        plural = "s" if version is not None and version < 3 else ""
        for name in ("min_val", "max_val"):
            key = f"{prefix}{name}{plural}"
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            getattr(self, name).resize_(state_dict[key].shape)
            if plural:
                state_dict[prefix + name] = state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def reset_min_max_vals(self) -> None:
        """Forget all observations."""
        self.min_val, self.max_val = (tensor([], device=self.min_val.device) for _ in range(2))


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Averages minima and maxima for each index of dimension `ch_axis`, by `averaging_constant`."""

    def __init__(
        self, averaging_constant: float = 0.01, ch_axis: int = 0, dtype: dtype = quint8, qscheme: qscheme = per_channel_affine,
        reduce_range: bool = False, quant_min: int | None = None, quant_max: int | None = None, eps: float = EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if is_dynamic:
            raise NotImplementedError("MovingAveragePerChannelMinMaxObserver doesn't support dynamic quantization")
        super().__init__(
            ch_axis=ch_axis, dtype=dtype, qscheme=qscheme, reduce_range=reduce_range, quant_min=quant_min, quant_max=quant_max,
            eps=eps, is_dynamic=is_dynamic, **kwargs,
        )  # fmt: skip
        self.averaging_constant = averaging_constant

    def _combine_ranges(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        constant = self.averaging_constant
        return self.min_val + constant * (low - self.min_val), self.max_val + constant * (high - self.max_val)
