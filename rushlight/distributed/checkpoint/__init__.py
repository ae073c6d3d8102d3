"""`torch.distributed.checkpoint`: states saved by several processes together, and loaded by another number of them.

From the bottom up: `metadata` (what a checkpoint says of itself), `flattening` (nested states by name), `filesystem` (files),
`coordination` (the ranks), `saving`, `loading`, and `state_dict` (states of models and optimizers).
"""

from rushlight.core.absent import absent_class, absent_function
from rushlight.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from rushlight.distributed.checkpoint.loading import DefaultLoadPlanner, load
from rushlight.distributed.checkpoint.metadata import CheckpointException
from rushlight.distributed.checkpoint.saving import async_save, save
from rushlight.distributed.checkpoint.stateful import Stateful

_HINT = "save and load write and read files"

StorageReader = absent_class("torch.distributed.checkpoint.StorageReader", _HINT)
StorageWriter = absent_class("torch.distributed.checkpoint.StorageWriter", _HINT)
DefaultSavePlanner = absent_class("torch.distributed.checkpoint.DefaultSavePlanner", _HINT)
load_state_dict = absent_function("torch.distributed.checkpoint.load_state_dict", "load is its successor")
save_state_dict = absent_function("torch.distributed.checkpoint.save_state_dict", "save is its successor")

__all__ = [
    "CheckpointException", "DefaultLoadPlanner", "FileSystemReader", "FileSystemWriter", "Stateful", "async_save",
    "load", "save",
]  # fmt: skip
