"""`torch.utils.deterministic`: whether new memory is filled where deterministic algorithms are wished for."""

fill_uninitialized_memory = False
"""It is not: memory of `empty` holds what was there."""
