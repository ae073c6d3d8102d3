"""`torch.quantization.fuser_method_mappings`: an older name of `torch.ao.quantization.fuser_method_mappings`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.fuser_method_mappings")
