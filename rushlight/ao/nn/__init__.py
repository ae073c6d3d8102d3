"""`torch.ao.nn`: quantized layers, float layers prepared for quantization, and layers for quantization-aware training."""

from rushlight.core.lazy_module import lazy_names

__all__ = ["intrinsic", "qat", "quantized"]
__getattr__, __dir__ = lazy_names(globals(), {f"rushlight.ao.nn.{name}": () for name in __all__})
