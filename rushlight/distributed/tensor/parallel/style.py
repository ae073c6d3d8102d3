"""`torch.distributed.tensor.parallel.style`: how a module's work is spread over ranks."""

from rushlight.distributed.tensor.parallel.layers import ColwiseParallel, ParallelStyle, RowwiseParallel, SequenceParallel
from rushlight.distributed.tensor.parallel.prepare import PrepareModuleInput, PrepareModuleInputOutput, PrepareModuleOutput

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel",
]  # fmt: skip
