"""`torch.nn.modules.channelshuffle`: channel shuffles, under the module in which PyTorch has them."""

from rushlight.nn.modules.vision import ChannelShuffle

__all__ = ["ChannelShuffle"]
