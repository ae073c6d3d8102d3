"""`torch.nn.qat`: an older name of `torch.ao.nn.qat`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.qat")
