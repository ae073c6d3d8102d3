"""Layers that train for dynamic quantization."""

from rushlight.ao.nn.qat.dynamic.modules.linear import Linear

__all__ = ["Linear"]
