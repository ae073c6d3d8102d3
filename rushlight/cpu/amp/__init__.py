"""`cpu.amp`: automatic mixed precision under the names that it once had."""

from __future__ import annotations

import warnings

from rushlight.amp import autocast_mode, grad_scaler
from rushlight.core.dtype import bfloat16, dtype

__all__ = ["GradScaler", "autocast"]


def _warn(name: str) -> None:
    text = f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cpu', args...)` instead."
    warnings.warn(text, FutureWarning, stacklevel=3)


class autocast(autocast_mode.autocast):
    """`amp.autocast` for the CPU."""

    def __init__(self, enabled: bool = True, dtype: dtype = bfloat16, cache_enabled: bool = True):
        _warn("autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)

    def _fresh(self) -> autocast:
        return autocast_mode.autocast("cpu", self.fast_dtype, self.enabled, self.cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`amp.GradScaler` for the CPU."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        _warn("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
