"""`torch.nn.quantized`: modules for models that are to be quantized. Those of quantized numbers are not here yet."""

from rushlight.nn.quantized.functional_modules import FloatFunctional

__all__ = ["FloatFunctional"]
