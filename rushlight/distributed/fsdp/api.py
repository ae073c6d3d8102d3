"""`torch.distributed.fsdp.api`: sharding of models over processes, which is not here yet."""

from rushlight.core.absent import absent_class

ShardingStrategy = absent_class("torch.distributed.fsdp.api.ShardingStrategy")
MixedPrecision = absent_class("torch.distributed.fsdp.api.MixedPrecision")
CPUOffload = absent_class("torch.distributed.fsdp.api.CPUOffload")
BackwardPrefetch = absent_class("torch.distributed.fsdp.api.BackwardPrefetch")
StateDictType = absent_class("torch.distributed.fsdp.api.StateDictType")
