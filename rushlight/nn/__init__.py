"""`torch.nn`: modules, their functional forms, initialisation and utilities."""

from __future__ import annotations

from rushlight.core.lazy_module import lazy_names
from rushlight.nn import modules

_PARTS = ("attention", "functional", "grad", "init", "intrinsic", "modules", "parallel", "qat", "quantized", "utils")
_HOMES = {
    **{f"rushlight.nn.{part}": () for part in _PARTS},
    **modules.HOMES,
    "rushlight.nn.functional.classification": ("LinearCrossEntropyOptions",),
    "rushlight.nn.parameter": ("Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"),
}

__all__ = sorted((*_PARTS, *(name for names in _HOMES.values() for name in names)))
__getattr__, __dir__ = lazy_names(globals(), _HOMES)
