"""Layers of float tensors with ReLU and quantized weights."""

from rushlight.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import LinearReLU

__all__ = ["LinearReLU"]
