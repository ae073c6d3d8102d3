"""`torch.quantization.quantize_fx`: an older name of `torch.ao.quantization.quantize_fx`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.quantize_fx")
