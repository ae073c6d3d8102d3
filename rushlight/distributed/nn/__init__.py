"""`torch.distributed.nn`: collectives with gradients, which is not here yet."""

from rushlight.core.absent import absent_function

all_gather = absent_function("torch.distributed.nn.all_gather")
all_reduce = absent_function("torch.distributed.nn.all_reduce")
all_to_all = absent_function("torch.distributed.nn.all_to_all")
broadcast = absent_function("torch.distributed.nn.broadcast")
gather = absent_function("torch.distributed.nn.gather")
reduce = absent_function("torch.distributed.nn.reduce")
reduce_scatter = absent_function("torch.distributed.nn.reduce_scatter")
scatter = absent_function("torch.distributed.nn.scatter")
