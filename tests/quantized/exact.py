"""A NumPy reference of quantized layers, with 64-bit integer sums and float32 arithmetic, and random layers to check.

`python -m tests.quantized.exact` compares random layers, with the native kernels that RUSHLIGHT_KERNELS names.
"""

from __future__ import annotations

import numpy as np

import rushlight as torch

F = np.float32


def quantized(integers: np.ndarray, scale: float, zero_point: int):
    """A quint8 or qint8 tensor of integers."""
    return torch._make_per_tensor_quantized_tensor(torch.from_numpy(integers.copy()), scale, zero_point)


def quantized_weight(integers: np.ndarray, scales: np.ndarray | float, zero_point: int = 0):
    """A qint8 tensor of integers, with a scale, or one for each channel."""
    held = torch.from_numpy(integers.copy())
    if not isinstance(scales, np.ndarray):
        return torch._make_per_tensor_quantized_tensor(held, scales, zero_point)
    zeros = torch.full((len(scales),), zero_point, dtype=torch.int64)
    return torch._make_per_channel_quantized_tensor(held, torch.from_numpy(scales), zeros, 0)


def rescaled(sums, input_scale, scales, bias, scale, zero_point, low, high, relu):
    """The integers of the result from exact sums (..., outputs)."""
    quantum = F(input_scale) * np.asarray(scales, F)
    values = (sums.astype(F) + (F(0) if bias is None else bias / quantum)) * (quantum / F(scale))
    return np.clip(np.rint(values) + F(zero_point), max(low, zero_point) if relu else low, high)


def windows(x, kernel, stride, padding, dilation, filler):
    """(images, height, width, channels, taps) of x (images, channels, height, width)."""
    (ph, pw), (kh, kw) = padding, kernel
    x = np.pad(x, [(0, 0), (0, 0), (ph, ph), (pw, pw)], constant_values=filler)
    height, width = (
        (size - d * (k - 1) - 1) // s + 1 for size, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    )
    taps = []
    for ky in range(kh):
        for kx in range(kw):
            y, z = ky * dilation[0], kx * dilation[1]
            taps.append(
                x[:, :, y : y + (height - 1) * stride[0] + 1 : stride[0], z : z + (width - 1) * stride[1] + 1 : stride[1]]
            )
    return np.stack(taps, -1).transpose(0, 2, 3, 1, 4)


def convolved(x, weight, stride, padding, dilation, groups):
    """Exact sums (images, height, width, outputs) of int64 arrays, from which zero points are already subtracted."""
    gathered = windows(x, weight.shape[2:], stride, padding, dilation, 0)
    outputs, channels = weight.shape[0] // groups, weight.shape[1]
    made = []
    for group in range(groups):
        part = gathered[:, :, :, group * channels : (group + 1) * channels]
        rows = weight[group * outputs : (group + 1) * outputs].reshape(outputs, channels, -1)
        made.append(np.einsum("nhwct,oct->nhwo", part, rows))
    return np.concatenate(made, -1)


class Draw:
    """Random operands: some of arbitrary bytes, some of extreme ones only."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)

    def bytes(self, sizes, kind, most: int | None = None) -> np.ndarray:
        """Random integers of a dtype, or up to `most`."""
        info = np.iinfo(kind)
        high = info.max if most is None else most
        if self.random.integers(3) == 0:
            return self.random.choice([info.min, high], sizes).astype(kind)
        return self.random.integers(info.min, high + 1, sizes).astype(kind)

    def zero_point(self, kind) -> int:
        """A zero point, often at an end of the range."""
        info = np.iinfo(kind)
        return int(self.random.choice([info.min, info.max, self.random.integers(info.min, info.max + 1)]))

    def scales(self, outputs: int) -> np.ndarray | float:
        """A scale, or one for each output."""
        if self.random.integers(2):
            return float(self.random.uniform(0.001, 0.01))
        return self.random.uniform(0.001, 0.01, outputs)

    def kind(self) -> type:
        """uint8 or int8."""
        return (np.uint8, np.int8)[self.random.integers(2)]


def check_linear(seed: int, rows: int, depth: int, outputs: int, reduced: bool = False, extreme: bool = False) -> None:
    """Checks a random linear layer against its definition."""
    draw = Draw(seed)
    kind = np.uint8 if reduced or extreme else draw.kind()
    x = np.full((rows, depth), 255, kind) if extreme else draw.bytes((rows, depth), kind, 127 if reduced else None)
    weight = (
        draw.random.choice([-128, 127], (outputs, depth)).astype(np.int8) if extreme else draw.bytes((outputs, depth), np.int8)
    )
    if extreme:
        weight[: outputs // 2] = -128
    scales, bias = draw.scales(outputs), draw.random.standard_normal(outputs).astype(F) if draw.random.integers(2) else None
    zero, out_zero, relu = draw.zero_point(kind), draw.zero_point(kind), bool(draw.random.integers(2))
    scale = float(0.02 * scales.mean() if isinstance(scales, np.ndarray) else 0.02 * scales) * depth**0.5 * 100
    packed = torch.ops.quantized.linear_prepack(
        quantized_weight(weight, scales), None if bias is None else torch.from_numpy(bias)
    )
    run = torch.ops.quantized.linear_relu if relu else torch.ops.quantized.linear
    made = run(quantized(x, 0.02, zero), packed, scale, out_zero).int_repr().numpy()
    sums = (x.astype(np.int64) - zero) @ weight.astype(np.int64).T
    info = np.iinfo(kind)
    np.testing.assert_array_equal(made, rescaled(sums, 0.02, scales, bias, scale, out_zero, info.min, info.max, relu))
    check_dynamic(x, weight, scales, bias, packed)


def check_dynamic(x, weight, scales, bias, packed) -> None:
    """Checks the same layer on float32 input, which it quantizes dynamically."""
    real = torch.from_numpy((x.astype(F) - F(x.min())) * F(0.5)) if x.size else torch.zeros(x.shape)
    made = torch.ops.quantized.linear_dynamic(real, packed).numpy()
    scale, zero = torch.ops.aten._choose_qparams_per_tensor(real) if x.size else (0.1, 0)
    integers = torch.quantize_per_tensor(real, scale, zero, torch.quint8).int_repr().numpy().astype(np.int64) - zero
    wanted = (integers @ weight.astype(np.int64).T).astype(F) * (F(scale) * np.asarray(scales, F))
    np.testing.assert_array_equal(made, wanted if bias is None else wanted + bias)


def check_convolution(
    seed, sizes, outputs, kernel, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, last=True
) -> None:
    """Checks a random convolution against its definition."""
    draw = Draw(seed)
    kind = draw.kind()
    x, weight = draw.bytes(sizes, kind), draw.bytes((outputs, sizes[1] // groups, *kernel), np.int8)
    scales, bias = draw.scales(outputs), draw.random.standard_normal(outputs).astype(F)
    zero, out_zero, relu = draw.zero_point(kind), draw.zero_point(kind), bool(draw.random.integers(2))
    settings = [list(each) for each in (stride, padding, dilation)]
    packed = torch.ops.quantized.conv2d_prepack(quantized_weight(weight, scales), torch.from_numpy(bias), *settings, groups)
    images = quantized(x, 0.02, zero)
    if last:
        images = images.contiguous(memory_format=torch.channels_last)
    run = torch.ops.quantized.conv2d_relu if relu else torch.ops.quantized.conv2d
    scale = 0.01 * weight[0].size ** 0.5
    made = run(images, packed, scale, out_zero).int_repr().numpy()
    sums = convolved(x.astype(np.int64) - zero, weight.astype(np.int64), stride, padding, dilation, groups)
    info = np.iinfo(kind)
    wanted = rescaled(sums, 0.02, scales, bias, scale, out_zero, info.min, info.max, relu)
    np.testing.assert_array_equal(made, wanted.transpose(0, 3, 1, 2))


LINEAR = [(1, 1, 1), (3, 7, 5), (6, 64, 16), (7, 65, 17), (13, 130, 33), (100, 259, 48), (2, 1000, 3), (31, 96, 70)]
CONVOLUTIONS = [
    ((1, 3, 9, 8), 8, (3, 3), (1, 1), (1, 1)), ((2, 16, 7, 7), 24, (1, 1)), ((2, 16, 7, 6), 9, (1, 1), (2, 2)),
    ((1, 5, 11, 10), 17, (7, 5), (2, 3), (3, 2)), ((1, 8, 6, 9), 16, (3, 3), (1, 1), (2, 2), (2, 2)),
    ((2, 12, 5, 5), 18, (3, 3), (1, 1), (1, 1), (1, 1), 3), ((1, 10, 9, 9), 10, (3, 3), (2, 2), (1, 1), (1, 1), 10),
    ((1, 37, 6, 5), 37, (3, 2), (1, 1), (1, 0), (2, 1), 37), ((1, 4, 3, 3), 8, (3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((1, 4, 5, 1), 3, (1, 3), (1, 1), (0, 2)),
    # windows that tile registers read from copied lines: strides, dilation, cut images, joined images, wide groups
    ((1, 64, 14, 11), 40, (3, 3), (1, 1), (1, 1)), ((2, 32, 13, 9), 33, (3, 3), (2, 2), (1, 1)),
    ((1, 48, 15, 12), 32, (3, 2), (1, 3), (2, 2), (2, 3)), ((1, 68, 12, 12), 20, (5, 3), (3, 2), (0, 1)),
    ((1, 64, 60, 130), 8, (3, 3), (1, 1), (1, 1)), ((9, 64, 7, 7), 16, (3, 3), (1, 1), (1, 1)),
    ((1, 128, 9, 8), 64, (3, 3), (1, 1), (1, 1), (1, 1), 2), ((1, 64, 2, 3), 16, (3, 3), (1, 1), (1, 1)),
    # many rows that lie in the image, and gathered ones that end with the image
    ((1, 64, 30, 33), 70, (1, 1)), ((1, 3, 20, 19), 64, (7, 7), (2, 2), (3, 3)),
    # gathered windows of few channels: two images, short and long taps, columns that no window inside begins at
    ((2, 5, 13, 40), 33, (5, 5), (1, 1), (2, 2)), ((2, 3, 12, 31), 16, (3, 3), (3, 3)), ((1, 3, 6, 4), 8, (3, 7), (1, 2), (1, 3)),
    ((2, 11, 9, 30), 16, (3, 5), (2, 2), (1, 1)),
]  # fmt: skip


def check_all() -> None:
    """Checks random layers of each shape."""
    for number, shape in enumerate(LINEAR):
        check_linear(number, *shape)
        check_linear(number, *shape, reduced=True)
        check_linear(number, *shape, extreme=True)
    for number, settings in enumerate(CONVOLUTIONS):
        check_convolution(number, *settings)


if __name__ == "__main__":
    check_all()
