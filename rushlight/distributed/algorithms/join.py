"""`torch.distributed.algorithms.join`: uneven inputs, which is not here yet."""

from rushlight.core.absent import absent_class

Join = absent_class("torch.distributed.algorithms.join.Join")
Joinable = absent_class("torch.distributed.algorithms.join.Joinable")
JoinHook = absent_class("torch.distributed.algorithms.join.JoinHook")
