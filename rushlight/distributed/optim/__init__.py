"""`torch.distributed.optim`: an optimizer whose state is spread over ranks."""

from rushlight.core.absent import absent_class
from rushlight.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

PostLocalSGDOptimizer = absent_class("torch.distributed.optim.PostLocalSGDOptimizer")
DistributedOptimizer = absent_class("torch.distributed.optim.DistributedOptimizer", "RPC is not offered")

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
