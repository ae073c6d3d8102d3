"""`torch.distributed.tensor`: tensors that are spread over processes, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

DTensor = absent_class("torch.distributed.tensor.DTensor")
Placement = absent_class("torch.distributed.tensor.Placement")
Shard = absent_class("torch.distributed.tensor.Shard")
Replicate = absent_class("torch.distributed.tensor.Replicate")
Partial = absent_class("torch.distributed.tensor.Partial")
DeviceMesh = absent_class("torch.distributed.tensor.DeviceMesh")
distribute_tensor = absent_function("torch.distributed.tensor.distribute_tensor")
distribute_module = absent_function("torch.distributed.tensor.distribute_module")
