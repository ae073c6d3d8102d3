"""`torch.ao.nn.quantized`: layers on quantized tensors. `functional` has their functional forms, `dynamic` layers on float
tensors with quantized weights."""

from rushlight.ao.nn.quantized.modules import *  # noqa: F403
from rushlight.ao.nn.quantized.modules import __all__
from rushlight.core.lazy_module import lazy_names

_PARTS = ("dynamic", "functional", "modules")
__getattr__, __dir__ = lazy_names(globals(), {f"rushlight.ao.nn.quantized.{part}": () for part in _PARTS})
