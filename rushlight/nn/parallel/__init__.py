"""`torch.nn.parallel`: DistributedDataParallel, and DataParallel, which only wraps its module without several GPUs."""

from __future__ import annotations

from importlib import import_module

from rushlight.core.absent import absent_function
from rushlight.core.lazy_module import lazy_names
from rushlight.nn.modules.data_parallel import DataParallel
from rushlight.nn.parallel.scatter_gather import gather, scatter

parallel_apply = absent_function("torch.nn.parallel.parallel_apply", "there are no several devices")
replicate = absent_function("torch.nn.parallel.replicate", "there are no several devices")
data_parallel = absent_function("torch.nn.parallel.data_parallel", "DataParallel wraps a module")

# Only programs of several ranks need torch.distributed.
_lazy_name, __dir__ = lazy_names(globals(), {"rushlight.nn.parallel.distributed": ("DistributedDataParallel",)})


def __getattr__(name: str) -> object:
    return import_module(f"{__name__}.distributed") if name == "distributed" else _lazy_name(name)


__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "distributed", "gather", "parallel_apply", "replicate",
    "scatter",
]  # fmt: skip
