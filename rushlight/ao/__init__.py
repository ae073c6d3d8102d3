"""`torch.ao`: quantization of models."""

from rushlight.core.lazy_module import lazy_names

__all__ = ["nn", "quantization"]
__getattr__, __dir__ = lazy_names(globals(), {f"rushlight.ao.{name}": () for name in __all__})
