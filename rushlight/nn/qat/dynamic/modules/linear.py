"""`torch.nn.qat.dynamic.modules.linear`: an older name of `torch.ao.nn.qat.dynamic.modules.linear`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.qat.dynamic.modules.linear")
