"""`torch.distributed.utils`: exchange of a module's state, which is not here yet."""

from rushlight.core.absent import absent_function

_sync_module_states = absent_function("torch.distributed.utils._sync_module_states")
_verify_param_shape_across_processes = absent_function("torch.distributed.utils._verify_param_shape_across_processes")
