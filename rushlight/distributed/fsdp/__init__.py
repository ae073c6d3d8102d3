"""`torch.distributed.fsdp`: models whose parameters, gradients and optimizer's state are spread over ranks: `fully_shard`.

From the bottom up: `policies`, `parameter_group` (gathering and reducing), `state` (what happens around passes), `fully_shard`.
"""

from rushlight.core.absent import absent_class
from rushlight.distributed.fsdp.fully_shard import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
from rushlight.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

_HINT = "fully_shard is its successor"

FullyShardedDataParallel = absent_class("torch.distributed.fsdp.FullyShardedDataParallel", _HINT)
MixedPrecision = absent_class("torch.distributed.fsdp.MixedPrecision", _HINT)
CPUOffload = absent_class("torch.distributed.fsdp.CPUOffload", _HINT)
ShardingStrategy = absent_class("torch.distributed.fsdp.ShardingStrategy", _HINT)
BackwardPrefetch = absent_class("torch.distributed.fsdp.BackwardPrefetch", _HINT)
StateDictType = absent_class("torch.distributed.fsdp.StateDictType", _HINT)
FullStateDictConfig = absent_class("torch.distributed.fsdp.FullStateDictConfig", _HINT)
FullOptimStateDictConfig = absent_class("torch.distributed.fsdp.FullOptimStateDictConfig", _HINT)
ShardedStateDictConfig = absent_class("torch.distributed.fsdp.ShardedStateDictConfig", _HINT)
ShardedOptimStateDictConfig = absent_class("torch.distributed.fsdp.ShardedOptimStateDictConfig", _HINT)
LocalStateDictConfig = absent_class("torch.distributed.fsdp.LocalStateDictConfig", _HINT)
LocalOptimStateDictConfig = absent_class("torch.distributed.fsdp.LocalOptimStateDictConfig", _HINT)
StateDictConfig = absent_class("torch.distributed.fsdp.StateDictConfig", _HINT)
OptimStateDictConfig = absent_class("torch.distributed.fsdp.OptimStateDictConfig", _HINT)
OptimStateKeyType = absent_class("torch.distributed.fsdp.OptimStateKeyType", _HINT)
FlatParameter = absent_class("torch.distributed.fsdp.FlatParameter", _HINT)

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip
