"""`torch._tensor`: where PyTorch has Tensor, which some programs import from there."""

from rushlight._utils import _rebuild_from_type_v2
from rushlight.core.tensor import Tensor

__all__ = ["Tensor", "_rebuild_from_type_v2"]
