"""`torch.distributed.optim`: optimizers of several processes, which is not here yet."""

from rushlight.core.absent import absent_class

ZeroRedundancyOptimizer = absent_class("torch.distributed.optim.ZeroRedundancyOptimizer")
PostLocalSGDOptimizer = absent_class("torch.distributed.optim.PostLocalSGDOptimizer")
DistributedOptimizer = absent_class("torch.distributed.optim.DistributedOptimizer")
