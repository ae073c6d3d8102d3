"""`torch.ao.quantization.fuse_modules`: what `fusing` has. Python imports `fuse_modules`, the function, from the package."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.fusing")
