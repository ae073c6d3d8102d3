"""`torch.ao.nn.quantized.dynamic`: layers of float tensors with quantized weights."""

from rushlight.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from rushlight.ao.nn.quantized.dynamic.modules import __all__
