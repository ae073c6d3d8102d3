"""`torch.distributed.tensor.parallel`: modules that are spread over processes, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

ParallelStyle = absent_class("torch.distributed.tensor.parallel.ParallelStyle")
ColwiseParallel = absent_class("torch.distributed.tensor.parallel.ColwiseParallel")
RowwiseParallel = absent_class("torch.distributed.tensor.parallel.RowwiseParallel")
SequenceParallel = absent_class("torch.distributed.tensor.parallel.SequenceParallel")
PrepareModuleInput = absent_class("torch.distributed.tensor.parallel.PrepareModuleInput")
PrepareModuleOutput = absent_class("torch.distributed.tensor.parallel.PrepareModuleOutput")
loss_parallel = absent_function("torch.distributed.tensor.parallel.loss_parallel")
parallelize_module = absent_function("torch.distributed.tensor.parallel.parallelize_module")
