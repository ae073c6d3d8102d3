"""`torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook`: gradients beside local steps, not here yet."""

from rushlight.core.absent import absent_class, absent_function

PostLocalSGDState = absent_class("torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.PostLocalSGDState")
post_localSGD_hook = absent_function("torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook.post_localSGD_hook")
