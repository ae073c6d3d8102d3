"""`torch.distributed._tensor`: tensors that are spread over processes, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

DTensor = absent_class("torch.distributed._tensor.DTensor")
Shard = absent_class("torch.distributed._tensor.Shard")
Replicate = absent_class("torch.distributed._tensor.Replicate")
Placement = absent_class("torch.distributed._tensor.Placement")
DeviceMesh = absent_class("torch.distributed._tensor.DeviceMesh")
distribute_tensor = absent_function("torch.distributed._tensor.distribute_tensor")
