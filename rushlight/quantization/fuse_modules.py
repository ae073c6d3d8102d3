"""`torch.quantization.fuse_modules`: an older name of `torch.ao.quantization.fuse_modules`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.fusing")
