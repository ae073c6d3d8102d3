"""`torch.distributed.tensor.parallel`: modules whose work is spread over the ranks of a mesh (tensor parallelism).

    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    parallelize_module(feed_forward, mesh, plan)
"""

from rushlight.distributed.tensor.parallel.api import parallelize_module
from rushlight.distributed.tensor.parallel.loss import loss_parallel
from rushlight.distributed.tensor.parallel.style import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
)

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput",
    "RowwiseParallel", "SequenceParallel", "loss_parallel", "parallelize_module",
]  # fmt: skip
