"""`torch.distributed.algorithms.ddp_comm_hooks.default_hooks`: gradients sent in another precision, not here yet."""

from rushlight.core.absent import absent_function

allreduce_hook = absent_function("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.allreduce_hook")
bf16_compress_hook = absent_function("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_hook")
bf16_compress_wrapper = absent_function("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.bf16_compress_wrapper")
fp16_compress_hook = absent_function("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook")
fp16_compress_wrapper = absent_function("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_wrapper")
