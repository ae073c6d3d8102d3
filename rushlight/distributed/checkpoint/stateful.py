"""`torch.distributed.checkpoint.stateful`: objects with a state, which is not here yet."""

from rushlight.core.absent import absent_class

Stateful = absent_class("torch.distributed.checkpoint.stateful.Stateful")
