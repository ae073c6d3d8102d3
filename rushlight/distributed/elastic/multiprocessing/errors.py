"""`torch.distributed.elastic.multiprocessing.errors`: errors of processes that are watched, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

ChildFailedError = absent_class("torch.distributed.elastic.multiprocessing.errors.ChildFailedError")
record = absent_function("torch.distributed.elastic.multiprocessing.errors.record")
