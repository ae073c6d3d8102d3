"""`torch.distributed.checkpoint`: checkpoints of several processes, which is not here yet."""

from rushlight.core.absent import absent_class, absent_function

FileSystemReader = absent_class("torch.distributed.checkpoint.FileSystemReader")
FileSystemWriter = absent_class("torch.distributed.checkpoint.FileSystemWriter")
StorageReader = absent_class("torch.distributed.checkpoint.StorageReader")
StorageWriter = absent_class("torch.distributed.checkpoint.StorageWriter")
DefaultLoadPlanner = absent_class("torch.distributed.checkpoint.DefaultLoadPlanner")
DefaultSavePlanner = absent_class("torch.distributed.checkpoint.DefaultSavePlanner")
load = absent_function("torch.distributed.checkpoint.load")
save = absent_function("torch.distributed.checkpoint.save")
async_save = absent_function("torch.distributed.checkpoint.async_save")
load_state_dict = absent_function("torch.distributed.checkpoint.load_state_dict")
save_state_dict = absent_function("torch.distributed.checkpoint.save_state_dict")
