"""`torch.distributed.fsdp.api`: sharding of models over processes, which is not here yet."""

from rushlight.core.absent import absent_class

ShardingStrategy = absent_class("torch.distributed.fsdp.api.ShardingStrategy")
MixedPrecision = absent_class("torch.distributed.fsdp.api.MixedPrecision")
CPUOffload = absent_class("torch.distributed.fsdp.api.CPUOffload")
BackwardPrefetch = absent_class("torch.distributed.fsdp.api.BackwardPrefetch")
StateDictType = absent_class("torch.distributed.fsdp.api.StateDictType")
ShardedOptimStateDictConfig = absent_class("torch.distributed.fsdp.api.ShardedOptimStateDictConfig")
ShardedStateDictConfig = absent_class("torch.distributed.fsdp.api.ShardedStateDictConfig")
FullOptimStateDictConfig = absent_class("torch.distributed.fsdp.api.FullOptimStateDictConfig")
FullStateDictConfig = absent_class("torch.distributed.fsdp.api.FullStateDictConfig")
StateDictConfig = absent_class("torch.distributed.fsdp.api.StateDictConfig")
OptimStateDictConfig = absent_class("torch.distributed.fsdp.api.OptimStateDictConfig")
