"""`torch.ao.quantization.fuse_modules`: re-exports `fusing`. Importing `fuse_modules` from the package gives the function."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.fusing")
