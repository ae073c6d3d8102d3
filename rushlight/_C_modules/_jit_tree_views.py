"""`torch._C._jit_tree_views`: the trees of TorchScript's syntax, by PyTorch's constructors."""

from rushlight.jit.frontend import tree_constructors
from rushlight.jit.frontend.tree_constructors import SourceRangeFactory
from rushlight.jit.source import SourceRange

globals().update(tree_constructors.TREES)

__all__ = [*tree_constructors.TREES, "SourceRange", "SourceRangeFactory"]
