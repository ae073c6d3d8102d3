"""`torch.distributed.algorithms._checkpoint.checkpoint_wrapper`: recomputed activations, not here yet."""

from rushlight.core.absent import absent_class, absent_function

CheckpointImpl = absent_class("torch.distributed.algorithms._checkpoint.checkpoint_wrapper.CheckpointImpl")
CheckpointWrapper = absent_class("torch.distributed.algorithms._checkpoint.checkpoint_wrapper.CheckpointWrapper")
apply_activation_checkpointing = absent_function(
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.apply_activation_checkpointing"
)
checkpoint_wrapper = absent_function("torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper")
