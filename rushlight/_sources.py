"""`torch._sources`, where PyTorch has had the frontend's contexts since 1.8; before that they were in `torch.jit.frontend`."""

from rushlight.jit.frontend.pytorch_names import SourceContext
from rushlight.jit.frontend.tree_constructors import SourceRangeFactory

__all__ = ["SourceContext", "SourceRangeFactory"]
