"""`torch.distributed.checkpoint._consolidate_hf_safetensors`: several processes' safetensors as one, which is not here yet."""

from rushlight.core.absent import absent_function

consolidate_safetensors_files = absent_function(
    "torch.distributed.checkpoint._consolidate_hf_safetensors.consolidate_safetensors_files"
)
consolidate_safetensors_files_on_every_rank = absent_function(
    "torch.distributed.checkpoint._consolidate_hf_safetensors.consolidate_safetensors_files_on_every_rank"
)
