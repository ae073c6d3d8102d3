"""`torch.nn.intrinsic`: an older name of `torch.ao.nn.intrinsic`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.nn.intrinsic")
