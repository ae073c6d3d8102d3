"""`torch.quantization.utils`: an older name of `torch.ao.quantization.utils`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.utils")
