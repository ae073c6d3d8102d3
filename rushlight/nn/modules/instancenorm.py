"""`torch.nn.modules.instancenorm`: instance normalisation under the name of its module."""

from rushlight.nn.modules.batchnorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]
