"""`torch.distributed.algorithms.model_averaging.averagers`: averages of several processes' models, which is not here yet."""

from rushlight.core.absent import absent_class

ModelAverager = absent_class("torch.distributed.algorithms.model_averaging.averagers.ModelAverager")
PeriodicModelAverager = absent_class("torch.distributed.algorithms.model_averaging.averagers.PeriodicModelAverager")
