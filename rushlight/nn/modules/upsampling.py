"""`torch.nn.modules.upsampling`: upsampling layers, under the module in which PyTorch has them."""

from rushlight.nn.modules.vision import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
