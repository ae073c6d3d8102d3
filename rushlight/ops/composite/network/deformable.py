"""deform_conv2d of torchvision: a convolution whose kernel's points move by given offsets (Dai et al. 2017, Zhu et al. 2019).

A composite, so that the image, the offsets, the mask, the weight and the bias have gradients.
"""

from __future__ import annotations

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_SCHEMA = (
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask)"
    " -> Tensor"
)


@composite(_SCHEMA, namespace="torchvision")
def deform_conv2d(
    input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask
):
    """Convolve by `offset` [N, 2 * offset_groups * kernel, rows, columns], y before x; `mask` has half as many channels, and
    `bias` is [out]."""
    strides, pads, dilations = (stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w)
    rows, columns = _check(input, weight, offset, mask, bias, strides, pads, dilations, groups, offset_groups, use_mask)
    images, channels, height, width = input.shape
    taps = weight.shape[2] * weight.shape[3]
    moved = offset.reshape(images, offset_groups, taps, 2, rows, columns)
    base_y, base_x = _points(weight, rows, columns, strides, pads, dilations, offset)
    sampled = _sample(input.reshape(images, offset_groups, -1, height * width), moved[:, :, :, 0] + base_y,
                      moved[:, :, :, 1] + base_x, height, width)  # fmt: skip
    if use_mask:
        sampled = sampled * mask.reshape(images, offset_groups, 1, taps * rows * columns)
    patches = sampled.reshape(images, groups, channels // groups * taps, rows * columns)
    kernel = weight.reshape(groups, weight.shape[0] // groups, -1)
    result = aten.matmul.default(kernel, patches).reshape(images, weight.shape[0], rows, columns)
    return result + bias.reshape(1, -1, 1, 1)


def _points(weight: Tensor, rows: int, columns: int, strides, pads, dilations, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the kernel's sampling points before the offsets: y as [taps, rows, 1], x as [taps, 1, columns]."""
    options = {"dtype": like.dtype, "device": like.device}
    down, across = (aten.arange.start_step(0, size, 1, **options) for size in weight.shape[2:])
    y = aten.arange.start_step(0, rows, 1, **options) * strides[0] - pads[0]
    x = aten.arange.start_step(0, columns, 1, **options) * strides[1] - pads[1]
    taps_y = (down * dilations[0]).reshape(-1, 1).expand(weight.shape[2], weight.shape[3]).reshape(-1, 1, 1)
    taps_x = (across * dilations[1]).expand(weight.shape[2], weight.shape[3]).reshape(-1, 1, 1)
    return taps_y + y.reshape(1, -1, 1), taps_x + x.reshape(1, 1, -1)


def _sample(image: Tensor, y: Tensor, x: Tensor, height: int, width: int) -> Tensor:
    """Sample the image bilinearly at points [N, groups, ...], zero outside: [N, groups, channels, height * width]."""
    images, groups, channels, _ = image.shape
    low_y, low_x = aten.floor.default(y), aten.floor.default(x)
    share_y, share_x = y - low_y, x - low_x
    total = None
    for down, weight_y in ((0, 1 - share_y), (1, share_y)):
        for across, weight_x in ((0, 1 - share_x), (1, share_x)):
            row, column = low_y + down, low_x + across
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            position = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
            position = position.nan_to_num(0.0).to(int64).reshape(images, groups, 1, -1)
            value = aten.gather.default(image, 3, position.expand(images, groups, channels, position.shape[3]))
            share = aten.where.ScalarOther(inside, weight_y * weight_x, 0).reshape(images, groups, 1, -1)
            total = value * share if total is None else total + value * share
    return total


def _check(input, weight, offset, mask, bias, strides, pads, dilations, groups, offset_groups, use_mask) -> tuple[int, int]:
    """Return the result's rows and columns; RuntimeError where an argument does not fit."""
    if input.dim() != 4 or weight.dim() != 4 or offset.dim() != 4:
        raise RuntimeError("deform_conv2d: expected input, weight and offset of 4 dimensions, but got shapes "
                           f"{list(input.shape)}, {list(weight.shape)} and {list(offset.shape)}")  # fmt: skip
    if min(strides) <= 0 or min(dilations) <= 0 or min(pads) < 0 or groups <= 0 or offset_groups <= 0:
        raise RuntimeError(f"deform_conv2d: stride {strides}, dilation {dilations}, groups {groups} and offset groups "
                           f"{offset_groups} must be positive, and padding {pads} not negative")  # fmt: skip
    if input.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups or input.shape[1] % offset_groups:
        raise RuntimeError(f"deform_conv2d: {groups} groups and {offset_groups} offset groups do not divide input "
                           f"{list(input.shape)} and weight {list(weight.shape)}")  # fmt: skip
    sides = zip(input.shape[2:], weight.shape[2:], strides, pads, dilations, strict=True)
    rows, columns = ((size + 2 * pad - dilation * (tap - 1) - 1) // stride + 1 for size, tap, stride, pad, dilation in sides)
    if rows <= 0 or columns <= 0:
        raise RuntimeError(f"deform_conv2d: calculated output size too small: {rows} x {columns}")
    taps = offset_groups * weight.shape[2] * weight.shape[3]
    expected = {"offset": (offset, (input.shape[0], 2 * taps, rows, columns)), "bias": (bias, (weight.shape[0],))}
    if use_mask:
        expected["mask"] = (mask, (input.shape[0], taps, rows, columns))
    for name, (value, sizes) in expected.items():
        if tuple(value.shape) != sizes:
            raise RuntimeError(f"deform_conv2d: expected {name} of shape {list(sizes)}, but got {list(value.shape)}")
    return rows, columns
