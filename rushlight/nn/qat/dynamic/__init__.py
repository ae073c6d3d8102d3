"""`torch.nn.qat.dynamic`: an older name of `torch.ao.nn.qat.dynamic`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.qat.dynamic")
