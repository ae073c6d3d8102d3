"""`torch.distributed._composable.fsdp`: sharding as a function, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

CPUOffloadPolicy = absent_class("torch.distributed._composable.fsdp.CPUOffloadPolicy")
FSDPModule = absent_class("torch.distributed._composable.fsdp.FSDPModule")
MixedPrecisionPolicy = absent_class("torch.distributed._composable.fsdp.MixedPrecisionPolicy")
fully_shard = absent_function("torch.distributed._composable.fsdp.fully_shard")
