"""`torch.distributed.tensor`: tensors that lie on the ranks of a mesh.

From the bottom up: `placement_types` and `layout` say how a tensor lies, `redistribution` moves parts, `rules` say with which
placements operators work, `dispatch` runs operators on the parts, `dtensor` is the class, `api` and `constructors` make
distributed tensors, `parallel` spreads modules.
"""

from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.tensor.api import distribute_module, distribute_tensor
from rushlight.distributed.tensor.constructors import empty, full, ones, rand, randn, zeros
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.layout import Spec
from rushlight.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from rushlight.serialization import add_safe_globals

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty",
    "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip

add_safe_globals([DTensor, DeviceMesh, Partial, Replicate, Shard, Spec])
