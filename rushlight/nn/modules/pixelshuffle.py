"""`torch.nn.modules.pixelshuffle`: pixel shuffles, under the module in which PyTorch has them."""

from rushlight.nn.modules.vision import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
