"""`torch.distributed.checkpoint.state_dict_loader`: load under the name of its module."""

from rushlight.core.absent import absent_function
from rushlight.distributed.checkpoint.loading import load

load_state_dict = absent_function("torch.distributed.checkpoint.state_dict_loader.load_state_dict", "load is its successor")
_load_state_dict = absent_function("torch.distributed.checkpoint.state_dict_loader._load_state_dict", "load is its successor")

__all__ = ["load", "load_state_dict"]
