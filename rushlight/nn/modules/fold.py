"""`torch.nn.modules.fold`: sliding blocks, under the module in which PyTorch has them."""

from rushlight.nn.modules.vision import Fold, Unfold

__all__ = ["Fold", "Unfold"]
