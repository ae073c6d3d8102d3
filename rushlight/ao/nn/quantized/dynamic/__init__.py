"""`torch.ao.nn.quantized.dynamic`: layers on float tensors with quantized weights."""

from rushlight.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from rushlight.ao.nn.quantized.dynamic.modules import __all__
