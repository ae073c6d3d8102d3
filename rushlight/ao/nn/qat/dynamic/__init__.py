"""`torch.ao.nn.qat.dynamic`: layers that train for dynamic quantization."""

from rushlight.ao.nn.qat.dynamic.modules import Linear

__all__ = ["Linear"]
