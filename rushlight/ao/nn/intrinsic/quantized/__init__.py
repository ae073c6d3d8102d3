"""`torch.ao.nn.intrinsic.quantized`: fused quantized layers."""

from rushlight.ao.nn.intrinsic.quantized.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.quantized.modules import __all__
