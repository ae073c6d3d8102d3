"""`torch.distributed.fsdp`: sharding of models over processes, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

FullyShardedDataParallel = absent_class("torch.distributed.fsdp.FullyShardedDataParallel")
FSDPModule = absent_class("torch.distributed.fsdp.FSDPModule")
MixedPrecision = absent_class("torch.distributed.fsdp.MixedPrecision")
MixedPrecisionPolicy = absent_class("torch.distributed.fsdp.MixedPrecisionPolicy")
CPUOffload = absent_class("torch.distributed.fsdp.CPUOffload")
CPUOffloadPolicy = absent_class("torch.distributed.fsdp.CPUOffloadPolicy")
OffloadPolicy = absent_class("torch.distributed.fsdp.OffloadPolicy")
ShardingStrategy = absent_class("torch.distributed.fsdp.ShardingStrategy")
BackwardPrefetch = absent_class("torch.distributed.fsdp.BackwardPrefetch")
StateDictType = absent_class("torch.distributed.fsdp.StateDictType")
FullStateDictConfig = absent_class("torch.distributed.fsdp.FullStateDictConfig")
FullOptimStateDictConfig = absent_class("torch.distributed.fsdp.FullOptimStateDictConfig")
ShardedStateDictConfig = absent_class("torch.distributed.fsdp.ShardedStateDictConfig")
ShardedOptimStateDictConfig = absent_class("torch.distributed.fsdp.ShardedOptimStateDictConfig")
LocalStateDictConfig = absent_class("torch.distributed.fsdp.LocalStateDictConfig")
LocalOptimStateDictConfig = absent_class("torch.distributed.fsdp.LocalOptimStateDictConfig")
StateDictConfig = absent_class("torch.distributed.fsdp.StateDictConfig")
OptimStateDictConfig = absent_class("torch.distributed.fsdp.OptimStateDictConfig")
fully_shard = absent_function("torch.distributed.fsdp.fully_shard")
register_fsdp_forward_method = absent_function("torch.distributed.fsdp.register_fsdp_forward_method")
