"""`torch.nn.quantized.modules.batchnorm`: an older name of `torch.ao.nn.quantized.modules.batchnorm`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.quantized.modules.batchnorm")
