"""All that batched tensors need, imported when the first map runs: the rules of operators, and Tensor's attributes."""

from rushlight.ops.batching import methods, rules

__all__ = ["methods", "rules"]
