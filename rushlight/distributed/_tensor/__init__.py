"""`torch.distributed._tensor`: the old name of `torch.distributed.tensor`."""

from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.tensor.api import distribute_module, distribute_tensor
from rushlight.distributed.tensor.constructors import empty, full, ones, rand, randn, zeros
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty",
    "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip
