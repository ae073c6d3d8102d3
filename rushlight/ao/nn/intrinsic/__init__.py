"""`torch.ao.nn.intrinsic`: fused float layers; `qat` has their trained form, `quantized` their quantized form."""

from rushlight.ao.nn.intrinsic.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.modules import __all__
from rushlight.ao.nn.intrinsic.modules.fused import _FusedModule
