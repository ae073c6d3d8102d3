"""`torch.ao.nn.quantized`: the same as `torch.nn.quantized`."""

from rushlight.nn.quantized import FloatFunctional

__all__ = ["FloatFunctional"]
