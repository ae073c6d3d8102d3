"""`torch.distributed.checkpoint.format_utils`: checkpoints' change of form, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

_EmptyStateDictLoadPlanner = absent_class("torch.distributed.checkpoint.format_utils._EmptyStateDictLoadPlanner")
dcp_to_torch_save = absent_function("torch.distributed.checkpoint.format_utils.dcp_to_torch_save")
torch_save_to_dcp = absent_function("torch.distributed.checkpoint.format_utils.torch_save_to_dcp")
