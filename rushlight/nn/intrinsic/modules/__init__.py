"""`torch.nn.intrinsic.modules`: an older name of `torch.ao.nn.intrinsic.modules`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.intrinsic.modules")
