"""`torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook`: exchange of compressed gradients, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

PowerSGDState = absent_class("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.PowerSGDState")
batched_powerSGD_hook = absent_function("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.batched_powerSGD_hook")
powerSGD_hook = absent_function("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.powerSGD_hook")
