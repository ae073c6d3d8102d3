"""`torch.nn.modules.instancenorm`: instance normalisation under the name of its module."""

from rushlight.core.lazy_module import lazy_names
from rushlight.nn.modules.batchnorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm  # noqa: F401

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.lazy_layers": ("LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d"),
})  # fmt: skip
