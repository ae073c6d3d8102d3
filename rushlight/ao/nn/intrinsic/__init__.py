"""`torch.ao.nn.intrinsic`: several layers as one, to be quantized; `qat` trains them, `quantized` has them quantized."""

from rushlight.ao.nn.intrinsic.modules import *  # noqa: F403
from rushlight.ao.nn.intrinsic.modules import __all__
from rushlight.ao.nn.intrinsic.modules.fused import _FusedModule
