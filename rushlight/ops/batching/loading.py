"""Import the rest of vmap when it is first used: the operators' rules, and Tensor's attributes."""

from rushlight.ops.batching import methods, rules

__all__ = ["methods", "rules"]
