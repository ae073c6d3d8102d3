"""`torch.ao.quantization.quantize`: re-exports `eager`. Importing `quantize` from the package gives the function."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.eager")
