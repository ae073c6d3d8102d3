"""Automatic mixed precision: regions in which operators choose their precision, and the scaling of losses."""

from rushlight.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from rushlight.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
