"""`torch.distributed.algorithms`: ways of communicating, which is not here yet."""

from rushlight.core.absent import absent_class

Join = absent_class("torch.distributed.algorithms.Join")
Joinable = absent_class("torch.distributed.algorithms.Joinable")
JoinHook = absent_class("torch.distributed.algorithms.JoinHook")
