"""`torch.cuda.amp`: mixed precision under its former name."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import rushlight.amp as amp
from rushlight.amp import GradScaler as _GradScaler
from rushlight.core.dtype import dtype, float16


def _warn(name: str, instead: str) -> None:
    text = f"`torch.cuda.amp.{name}` is deprecated. Please use `{instead}` instead."
    warnings.warn(text, FutureWarning, stacklevel=3)


class autocast(amp.autocast):  # noqa: N801  (torch's name)
    """`torch.amp.autocast("cuda", ...)`."""

    def __init__(self, enabled: bool = True, dtype: dtype = float16, cache_enabled: bool = True) -> None:
        _warn("autocast(args...)", "torch.amp.autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _warn("GradScaler(args...)", "torch.amp.GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: dtype | None = None) -> Callable:
    """Return `torch.amp.custom_fwd(device_type="cuda")`."""
    return functools.partial(amp.custom_fwd, device_type="cuda")(fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable) -> Callable:
    """Return `torch.amp.custom_bwd(device_type="cuda")`."""
    return amp.custom_bwd(bwd, device_type="cuda")
