"""`torch.distributed.fsdp.wrap`: the choice of modules to shard, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

ModuleWrapPolicy = absent_class("torch.distributed.fsdp.wrap.ModuleWrapPolicy")
CustomPolicy = absent_class("torch.distributed.fsdp.wrap.CustomPolicy")
_Policy = absent_class("torch.distributed.fsdp.wrap._Policy")
transformer_auto_wrap_policy = absent_function("torch.distributed.fsdp.wrap.transformer_auto_wrap_policy")
size_based_auto_wrap_policy = absent_function("torch.distributed.fsdp.wrap.size_based_auto_wrap_policy")
lambda_auto_wrap_policy = absent_function("torch.distributed.fsdp.wrap.lambda_auto_wrap_policy")
_or_policy = absent_function("torch.distributed.fsdp.wrap._or_policy")
always_wrap_policy = absent_function("torch.distributed.fsdp.wrap.always_wrap_policy")
enable_wrap = absent_function("torch.distributed.fsdp.wrap.enable_wrap")
wrap = absent_function("torch.distributed.fsdp.wrap.wrap")
