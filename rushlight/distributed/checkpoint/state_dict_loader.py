"""`torch.distributed.checkpoint.state_dict_loader`: loading of several processes' states, which is not here yet."""

from rushlight.core.absent import absent_function

load = absent_function("torch.distributed.checkpoint.state_dict_loader.load")
load_state_dict = absent_function("torch.distributed.checkpoint.state_dict_loader.load_state_dict")
_load_state_dict = absent_function("torch.distributed.checkpoint.state_dict_loader._load_state_dict")
