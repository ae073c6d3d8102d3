"""`torch.quantization.observer`: an older name of `torch.ao.quantization.observer`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.observer")
