"""`torch.ao.nn`: modules for quantization."""

from rushlight.ao.nn import quantized

__all__ = ["quantized"]
