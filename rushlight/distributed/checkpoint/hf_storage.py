"""`torch.distributed.checkpoint.hf_storage`: checkpoints of several processes as safetensors, which is not here yet."""

from rushlight.core.absent import absent_class

HuggingFaceStorageReader = absent_class("torch.distributed.checkpoint.hf_storage.HuggingFaceStorageReader")
HuggingFaceStorageWriter = absent_class("torch.distributed.checkpoint.hf_storage.HuggingFaceStorageWriter")
