"""`torch.distributed.checkpoint.state_dict`: states of sharded models, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

StateDictOptions = absent_class("torch.distributed.checkpoint.state_dict.StateDictOptions")
get_state_dict = absent_function("torch.distributed.checkpoint.state_dict.get_state_dict")
set_state_dict = absent_function("torch.distributed.checkpoint.state_dict.set_state_dict")
get_model_state_dict = absent_function("torch.distributed.checkpoint.state_dict.get_model_state_dict")
set_model_state_dict = absent_function("torch.distributed.checkpoint.state_dict.set_model_state_dict")
get_optimizer_state_dict = absent_function("torch.distributed.checkpoint.state_dict.get_optimizer_state_dict")
set_optimizer_state_dict = absent_function("torch.distributed.checkpoint.state_dict.set_optimizer_state_dict")
