"""`torch.nn.intrinsic.quantized.dynamic`: an older name of `torch.ao.nn.intrinsic.quantized.dynamic`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.intrinsic.quantized.dynamic")
