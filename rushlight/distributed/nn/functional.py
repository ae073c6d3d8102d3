"""`torch.distributed.nn.functional`: collectives with gradients, which is not here yet."""

from rushlight.core.absent import absent_function

all_gather = absent_function("torch.distributed.nn.functional.all_gather")
all_reduce = absent_function("torch.distributed.nn.functional.all_reduce")
all_to_all = absent_function("torch.distributed.nn.functional.all_to_all")
broadcast = absent_function("torch.distributed.nn.functional.broadcast")
gather = absent_function("torch.distributed.nn.functional.gather")
reduce = absent_function("torch.distributed.nn.functional.reduce")
reduce_scatter = absent_function("torch.distributed.nn.functional.reduce_scatter")
scatter = absent_function("torch.distributed.nn.functional.scatter")
