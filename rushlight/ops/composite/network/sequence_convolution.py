"""conv_tbc: convolution of sequences in (time, batch, channels) layout."""

from __future__ import annotations

from rushlight.ops.composite.network.common import aten
from rushlight.ops.registry import composite


@composite("conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor")
def conv_tbc(self, weight, bias, pad=0):
    """Convolve (time, batch, in) and (kernel, in, out) to (time', batch, out)."""
    if self.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            "conv_tbc expects input (time, batch, in), weight (kernel, in, out) and bias (out), "
            f"but got {list(self.shape)}, {list(weight.shape)} and {list(bias.shape)}"
        )
    output = aten.conv1d.default(self.permute([1, 2, 0]), weight.permute([2, 1, 0]), bias, 1, pad)
    return output.permute([2, 0, 1])


@composite("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor")
def native_channel_shuffle(self, groups):
    return aten.channel_shuffle.default(self, groups)
