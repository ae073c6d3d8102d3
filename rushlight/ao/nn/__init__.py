"""`torch.ao.nn`: layers that are quantized, that are to be, and that train with quantization."""

from rushlight.core.lazy_module import lazy_names

__all__ = ["intrinsic", "qat", "quantized"]
__getattr__, __dir__ = lazy_names(globals(), {f"rushlight.ao.nn.{name}": () for name in __all__})
