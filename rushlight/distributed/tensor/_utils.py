"""`torch.distributed.tensor._utils`: shapes of tensors over several processes, which is not here yet."""

from rushlight.core.absent import absent_function

compute_local_shape_and_global_offset = absent_function("torch.distributed.tensor._utils.compute_local_shape_and_global_offset")
