"""`torch.distributed.tensor.experimental`: tensors over several processes, which is not here yet."""

from rushlight.core.absent import absent_function

context_parallel = absent_function("torch.distributed.tensor.experimental.context_parallel")
local_map = absent_function("torch.distributed.tensor.experimental.local_map")
implicit_replication = absent_function("torch.distributed.tensor.experimental.implicit_replication")
