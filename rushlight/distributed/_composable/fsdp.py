"""`torch.distributed._composable.fsdp`: the old name of `fully_shard` in `torch.distributed.fsdp`."""

from rushlight.distributed.fsdp.fully_shard import FSDPModule, fully_shard, register_fsdp_forward_method
from rushlight.distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip
