"""`torch.ao.quantization.quantize`: what `eager` has. Python imports `quantize`, the function, from the package."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.eager")
