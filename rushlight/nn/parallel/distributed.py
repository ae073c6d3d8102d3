"""`torch.nn.parallel.distributed`: DistributedDataParallel under the name of its module."""

from rushlight.nn.parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
