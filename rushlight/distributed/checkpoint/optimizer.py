"""`torch.distributed.checkpoint.optimizer`: optimizers' states of several processes, which is not here yet."""

from rushlight.core.absent import absent_function

load_sharded_optimizer_state_dict = absent_function("torch.distributed.checkpoint.optimizer.load_sharded_optimizer_state_dict")
