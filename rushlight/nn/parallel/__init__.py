"""`torch.nn.parallel`: DataParallel and DistributedDataParallel, which only wrap their module without several GPUs."""

from __future__ import annotations

from rushlight.core.absent import absent_class, absent_function
from rushlight.nn.modules.data_parallel import DataParallel
from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.scatter_gather import gather, scatter

DistributedDataParallel = absent_class(
    "torch.nn.parallel.DistributedDataParallel", "torch.distributed.is_available() is False", Module
)
parallel_apply = absent_function("torch.nn.parallel.parallel_apply", "there are no several devices")
replicate = absent_function("torch.nn.parallel.replicate", "there are no several devices")
data_parallel = absent_function("torch.nn.parallel.data_parallel", "DataParallel wraps a module")
from rushlight.nn.parallel import distributed  # noqa: E402 (it gives the class above the name of its module)

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "distributed", "gather", "parallel_apply", "replicate",
    "scatter",
]  # fmt: skip
