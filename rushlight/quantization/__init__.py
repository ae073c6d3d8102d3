"""`torch.quantization`: an older name of `torch.ao.quantization`."""

from importlib import import_module

from rushlight.core.lazy_module import names_of

# Modules under names that functions have, too: imported now, so that importing them later doesn't replace the functions.
for _name in ("fuse_modules", "quantize"):
    import_module(f"{__name__}.{_name}")
    del globals()[_name]

__getattr__, __dir__ = names_of("rushlight.ao.quantization")
