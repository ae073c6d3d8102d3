"""`torch.quantization.quant_type`: an older name of `torch.ao.quantization.quant_type`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.quant_type")
