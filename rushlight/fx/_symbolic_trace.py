"""`torch.fx._symbolic_trace`: where PyTorch has its tracer."""

from __future__ import annotations

from rushlight.fx.patching import wrap
from rushlight.fx.tracer import Tracer, symbolic_trace

__all__ = ["Tracer", "symbolic_trace", "wrap"]
