"""`torch.distributed.tensor.placement_types`: how tensors are spread, which is not here yet."""

from rushlight.core.absent import absent_class

Placement = absent_class("torch.distributed.tensor.placement_types.Placement")
Shard = absent_class("torch.distributed.tensor.placement_types.Shard")
Replicate = absent_class("torch.distributed.tensor.placement_types.Replicate")
Partial = absent_class("torch.distributed.tensor.placement_types.Partial")
