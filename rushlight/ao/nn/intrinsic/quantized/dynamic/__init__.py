"""`torch.ao.nn.intrinsic.quantized.dynamic`: layers of float tensors with ReLU and quantized weights."""

from rushlight.ao.nn.intrinsic.quantized.dynamic.modules import LinearReLU

__all__ = ["LinearReLU"]
