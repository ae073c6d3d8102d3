"""`torch.ao.nn.intrinsic.qat`: fused layers whose weights are fake-quantized in training."""

from rushlight.ao.nn.intrinsic.qat.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.qat.modules import __all__
