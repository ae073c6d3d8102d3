"""`torch.distributed._functional_collectives`: collectives as functions, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

all_gather_tensor = absent_function("torch.distributed._functional_collectives.all_gather_tensor")
all_reduce = absent_function("torch.distributed._functional_collectives.all_reduce")
all_to_all_single = absent_function("torch.distributed._functional_collectives.all_to_all_single")
broadcast = absent_function("torch.distributed._functional_collectives.broadcast")
reduce_scatter_tensor = absent_function("torch.distributed._functional_collectives.reduce_scatter_tensor")
wait_tensor = absent_function("torch.distributed._functional_collectives.wait_tensor")
AsyncCollectiveTensor = absent_class("torch.distributed._functional_collectives.AsyncCollectiveTensor")
