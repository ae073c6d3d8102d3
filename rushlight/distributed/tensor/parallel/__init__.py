"""`torch.distributed.tensor.parallel`: modules whose work is spread over the ranks of a mesh (tensor parallelism).

    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    parallelize_module(feed_forward, mesh, plan)
"""

from rushlight.core.absent import absent_function
from rushlight.distributed.tensor.parallel.api import parallelize_module
from rushlight.distributed.tensor.parallel.prepare import (
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
)
from rushlight.distributed.tensor.parallel.style import ColwiseParallel, ParallelStyle, RowwiseParallel, SequenceParallel

loss_parallel = absent_function(
    "torch.distributed.tensor.parallel.loss_parallel", "let the last layer give output_layouts=Replicate()"
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip
