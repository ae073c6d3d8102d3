"""`torch.distributed.distributed_c10d`: groups of processes under the name of their module."""

from rushlight.core.absent import absent_function
from rushlight.distributed import *  # noqa: F403
from rushlight.distributed import Backend, ProcessGroup, ReduceOp, Store, is_initialized

_get_default_group = absent_function("torch.distributed.distributed_c10d._get_default_group")
_get_pg_default_device = absent_function("torch.distributed.distributed_c10d._get_pg_default_device")

__all__ = ["Backend", "ProcessGroup", "ReduceOp", "Store", "is_initialized"]
