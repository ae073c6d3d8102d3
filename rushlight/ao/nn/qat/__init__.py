"""`torch.ao.nn.qat`: layers whose weights are fake-quantized in training."""

from rushlight.ao.nn.qat.modules import *  # noqa: F403
from rushlight.ao.nn.qat.modules import __all__
