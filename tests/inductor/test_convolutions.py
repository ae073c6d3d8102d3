"""Compiled convolutions of every rank, plain and transposed, run natively and agree with eager."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.inductor.graph import GraphLowering
from rushlight.inductor.ir import ComputedBuffer, TemplateBuffer, contiguous_layout
from rushlight.inductor.lowering import FALLBACKS
from rushlight.nn import functional as F
from rushlight.ops.registry import aten
from tests.inductor.native_nodes import functional_graph

# Sizes of the input; the kernel; stride, padding, dilation, output_padding (of transposed ones), groups.
PLAIN = [
    ((2, 8, 17), (3,), [1], [1], [1], 1),
    ((1, 8, 18), (4,), [3], [2], [2], 4),
    ((2, 8, 9, 7), (3, 2), [2, 1], [0, 1], [1, 2], 8),
    ((1, 4, 5, 6, 7), (3, 3, 3), [1, 1, 1], [1, 1, 1], [1, 1, 1], 1),
    ((2, 4, 7, 6, 5), (2, 1, 3), [2, 1, 3], [1, 0, 2], [2, 1, 1], 2),
]
TRANSPOSED = [
    ((2, 8, 9), (4,), [2], [1], [1], [0], 1),
    ((1, 8, 7), (3,), [3], [0], [2], [2], 2),
    ((2, 8, 5, 7), (3, 2), [2, 1], [1, 0], [1, 1], [1, 0], 1),
    ((1, 8, 5, 4), (3, 4), [2, 3], [2, 1], [2, 1], [0, 2], 4),
    ((2, 8, 6, 5), (1, 2), [3, 3], [0, 0], [1, 1], [2, 2], 8),
    ((1, 4, 3, 4, 3), (3, 2, 2), [2, 2, 1], [1, 0, 1], [1, 1, 1], [1, 0, 0], 1),
]


def _check(name: str, x, weight, bias, **settings) -> None:
    def function(x, weight, bias):
        return torch.relu(getattr(F, name)(x, weight, bias, **settings)) + 1

    want = function(x, weight, bias).numpy()
    got = torch.compile(function, fullgraph=True)(x, weight, bias)
    assert got.is_contiguous() or x.dim() == 4
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)


def test_convolution_is_no_eager_kernel():
    assert aten("convolution") not in FALLBACKS


@pytest.mark.parametrize("case", PLAIN, ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_plain(case, biased):
    sizes, kernel, stride, padding, dilation, groups = case
    torch.manual_seed(0)
    weight = torch.randn(12 if 12 % groups == 0 else 16, sizes[1] // groups, *kernel)
    bias = torch.randn(weight.size(0)) if biased else None
    _check(f"conv{len(kernel)}d", torch.randn(*sizes), weight, bias, stride=stride, padding=padding, dilation=dilation,
           groups=groups)  # fmt: skip


@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
@pytest.mark.parametrize("biased", [False, True])
def test_transposed(case, biased):
    sizes, kernel, stride, padding, dilation, output_padding, groups = case
    torch.manual_seed(0)
    weight = torch.randn(sizes[1], 5, *kernel)
    bias = torch.randn(5 * groups) if biased else None
    _check(f"conv_transpose{len(kernel)}d", torch.randn(*sizes), weight, bias, stride=stride, padding=padding,
           dilation=dilation, output_padding=output_padding, groups=groups)  # fmt: skip


@pytest.mark.parametrize("stride", [1, 2, (2, 3)], ids=str)
@pytest.mark.parametrize("outputs", [3, 40])
def test_transposed_with_frozen_weights(outputs, stride):
    torch.manual_seed(0)
    extra = 0 if stride == 1 else (1, 0)
    layers = (torch.nn.ConvTranspose2d(20, outputs, 4, stride, 1, extra), torch.nn.ReLU(), torch.nn.Conv2d(outputs, 5, 3))
    model = torch.nn.Sequential(*layers).eval()
    for layout in (torch.contiguous_format, torch.channels_last):
        model, x = model.to(memory_format=layout), torch.randn(2, 20, 6, 7).contiguous(memory_format=layout)
        with torch.no_grad():
            want, got = model(x), torch.compile(model, fullgraph=True)(x)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels_last", [False, True])
def test_depthwise_separable_model_with_frozen_weights(channels_last):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(16, 16, 3, padding=1, groups=16), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Conv2d(16, 24, 1),
        torch.nn.ConvTranspose2d(24, 6, 4, stride=2, padding=1),
    ).eval()  # fmt: skip
    x = torch.randn(2, 16, 11, 9)
    x = x.contiguous(memory_format=torch.channels_last) if channels_last else x
    with torch.no_grad():
        want, got = model(x), torch.compile(model, fullgraph=True)(x)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def buffers_of(function, *inputs) -> list:
    """The buffers of a function's loops IR."""
    return GraphLowering(functional_graph(function, *inputs)).run().buffers


def shuffled(x):
    images, channels, height, width = x.shape
    return x.view(images, 2, channels // 2, height, width).transpose(1, 2).reshape(x.shape)


def cut_in_two(x):
    left, right = shuffled(x).chunk(2, 1)
    return torch.cat([left, right.relu()], 1)


MOVES = {
    "shuffled": shuffled, "cut": cut_in_two, "pixels": lambda x: F.pixel_shuffle(x, 2), "channels": lambda x: F.pixel_unshuffle(x, 2),
    "padded": lambda x: F.pad(x, (1, 2, 0, 1)), "larger": lambda x: F.interpolate(x, scale_factor=2), "flipped": lambda x: x.flip(3),
    "taken": lambda x: x[:, torch.tensor([3, 1, 1, 7])],
}  # fmt: skip


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("images", [1, 3])
def test_images_whose_channels_or_pixels_move_stay_channels_last(move, images):
    torch.manual_seed(0)
    first, x = torch.randn(16, 3, 3, 3), torch.randn(images, 3, 8, 8)

    def function(x, first):
        moved = move(torch.relu(F.conv2d(x, first, padding=1)))
        return F.conv2d(moved, first[:, :1].expand(16, moved.size(1), 3, 3), padding=2, dilation=2)

    templates = [buffer for buffer in buffers_of(function, x, first) if isinstance(buffer, TemplateBuffer)]
    assert templates[-1].kind == "direct_convolution" and templates[-1].operands["input"].strides[1] == 1
    np.testing.assert_allclose(torch.compile(function)(x, first).numpy(), function(x, first).numpy(), rtol=1e-4, atol=1e-3)


def test_what_no_convolution_made_keeps_its_order():
    def function(query, rows):
        heads = F.gelu(F.scaled_dot_product_attention(query, query, query).transpose(1, 2).reshape(2, 16, 256))
        turned = (rows @ rows.mT).transpose(1, 2).sin()
        return heads, turned.softmax(-1)

    buffers = buffers_of(function, torch.zeros(2, 4, 16, 64), torch.zeros(2, 9, 16))
    loops = [buffer for buffer in buffers if isinstance(buffer, ComputedBuffer) and len(buffer.layout.size) == 3]
    assert {buffer.layout.size for buffer in loops} >= {(2, 16, 256), (2, 9, 9)}
    assert all(buffer.layout == contiguous_layout(buffer.layout.dtype, buffer.layout.size) for buffer in loops)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_of_no_channels_there_is_the_bias(rank):
    x, weight = torch.randn(2, 0, *[4] * rank), torch.randn(3, 0, *[2] * rank)
    _check(f"conv{rank}d", x, weight, torch.randn(3), padding=1)
    _check(f"conv{rank}d", x, weight, None)
