"""`torch.ao.nn.intrinsic.quantized`: several quantized layers as one."""

from rushlight.ao.nn.intrinsic.quantized.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.quantized.modules import __all__
