"""`torch.quantization.fake_quantize`: an older name of `torch.ao.quantization.fake_quantize`."""

from rushlight.core.lazy_module import names_of

__getattr__, __dir__ = names_of("rushlight.ao.quantization.fake_quantize")
