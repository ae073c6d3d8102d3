"""Convert the memory format of convolution weights."""

from __future__ import annotations

from rushlight.core.layout import memory_format as memory_format_type
from rushlight.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from rushlight.nn.modules.module import Module


def convert_conv2d_weight_memory_format(module: Module, memory_format: memory_format_type) -> Module:
    """Convert the weights of all 2-D convolutions in `module` to `memory_format`; other tensors are unchanged."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: memory_format_type) -> Module:
    """Convert the weights of all 3-D convolutions in `module` to `memory_format`; other tensors are unchanged."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def _convert(module: Module, kinds: tuple[type, ...], memory_format: memory_format_type) -> Module:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone().contiguous(memory_format=memory_format)
    return module
