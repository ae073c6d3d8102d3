"""`torch.distributed.fsdp.fully_sharded_data_parallel`: sharding of models over processes, which is not here yet."""

from rushlight.core.absent import absent_class

FullyShardedDataParallel = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel")
FlatParameter = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.FlatParameter")
MixedPrecision = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.MixedPrecision")
CPUOffload = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.CPUOffload")
ShardingStrategy = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.ShardingStrategy")
BackwardPrefetch = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.BackwardPrefetch")
StateDictType = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.StateDictType")
FullStateDictConfig = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.FullStateDictConfig")
FullOptimStateDictConfig = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.FullOptimStateDictConfig")
ShardedStateDictConfig = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.ShardedStateDictConfig")
ShardedOptimStateDictConfig = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.ShardedOptimStateDictConfig")
OptimStateKeyType = absent_class("torch.distributed.fsdp.fully_sharded_data_parallel.OptimStateKeyType")
