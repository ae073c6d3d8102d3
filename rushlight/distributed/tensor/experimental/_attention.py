"""`torch.distributed.tensor.experimental._attention`: attention over several processes, which is not here yet."""

from rushlight.core.absent import absent_function

context_parallel = absent_function("torch.distributed.tensor.experimental._attention.context_parallel")
set_rotate_method = absent_function("torch.distributed.tensor.experimental._attention.set_rotate_method")
context_parallel_unshard = absent_function("torch.distributed.tensor.experimental._attention.context_parallel_unshard")
