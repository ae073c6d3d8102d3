"""`torch.distributed._tensor.experimental`: tensors over several processes, which is not here yet."""

from rushlight.core.absent import absent_function

implicit_replication = absent_function("torch.distributed._tensor.experimental.implicit_replication")
local_map = absent_function("torch.distributed._tensor.experimental.local_map")
