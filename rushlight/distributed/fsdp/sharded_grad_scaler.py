"""`torch.distributed.fsdp.sharded_grad_scaler`: the scaling of losses of sharded models, which is not here yet."""

from rushlight.core.absent import absent_class

ShardedGradScaler = absent_class("torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler")
