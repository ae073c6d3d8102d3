"""`torch.optim.adamw`: AdamW, under the module in which PyTorch has it."""

from rushlight.optim.adam import AdamW

__all__ = ["AdamW"]
