"""`torch.quantization.quantization_mappings`: an older name of `torch.ao.quantization.quantization_mappings`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.quantization_mappings")
