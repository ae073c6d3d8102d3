"""`torch.nn.qat.modules.linear`: an older name of `torch.ao.nn.qat.modules.linear`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.qat.modules.linear")
