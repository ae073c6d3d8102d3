"""The model that chooses between ways to run products and convolutions."""

from __future__ import annotations

import re

import pytest

import rushlight as torch
from rushlight.inductor import costs
from rushlight.nn import functional as F
from tests.inductor.native_nodes import source_of


@pytest.fixture
def on(monkeypatch):
    """Choose as for a kind of core, whatever this machine has."""
    return lambda core: monkeypatch.setattr(costs, "core", lambda: core)


@pytest.mark.parametrize(
    ("core", "rows", "columns", "depth", "expected"),
    [(costs.AVX512, 128, 1536, 384, None), (costs.AVX512, 197, 3072, 768, None), (costs.AVX512, 2048, 2048, 2048, 64),
     (costs.AVX512, 1024, 768, 768, 147), (costs.AVX512, 4, 10, 1 << 20, None), (costs.AVX2, 128, 1536, 384, None),
     (costs.AVX2, 128, 768, 3072, None), (costs.AVX2, 2048, 2048, 2048, 32)],
)  # fmt: skip
def test_passes_of_rows(on, core, rows, columns, depth, expected):
    on(core)
    assert costs.passes(rows, columns, depth).get("rows_at_once") == expected


@pytest.mark.parametrize(
    ("core", "images", "channels", "side", "winograd"),
    [(costs.AVX512, 1, 64, 56, True), (costs.AVX512, 1, 512, 7, False), (costs.AVX512, 8, 512, 7, True),
     (costs.AVX512, 1, 16, 56, True), (costs.AVX512, 1, 3, 224, False), (costs.AVX512, 1, 256, 14, True),
     (costs.AVX512, 1, 128, 8, True), (costs.AVX512, 1, 64, 8, True), (costs.AVX512, 1, 128, 5, False),
     (costs.AVX512, 1, 256, 4, False), (costs.AVX2, 1, 64, 56, True), (costs.AVX2, 1, 512, 7, True),
     (costs.AVX2, 1, 3, 224, False), (costs.AVX2, 1, 64, 8, True), (costs.AVX2, 1, 256, 4, False),
     (costs.AVX2, 1, 512, 4, False), (costs.AVX2, 1, 128, 5, False), (costs.AVX2, 1, 256, 7, True)],
)  # fmt: skip
def test_convolutions(on, core, images, channels, side, winograd):
    on(core)
    blocks, outputs = images * (-(-side // 4)) ** 2, max(channels, 16)
    fast = costs.winograd(blocks, channels, outputs)
    assert (fast < costs.direct_convolution(images * side, side, 9, channels, outputs)) is winograd


@pytest.mark.parametrize(("size", "outputs", "copied"), [((8, 64, 56, 56), 128, True), ((1, 64, 24, 24), 16, False),
                                                        ((8, 16, 56, 56), 128, False)])  # fmt: skip
def test_images_brought_into_order_for_direct_convolutions(on, size, outputs, copied):
    on(costs.AVX2)
    torch.manual_seed(0)
    x, weight = torch.randn(*size), torch.randn(outputs, size[1], 3, 3)
    text = source_of(lambda x, weight: F.conv2d(x, weight, None, 2, 1), x, weight)
    (strides,) = re.findall(r"conv2d_direct\(\w+, rl::image_strides\{\w+, (\w+),", text)
    assert (strides == "1L") is copied


@pytest.mark.parametrize(
    ("images", "size", "channels", "outputs", "winograd"),
    [(1, 56, 64, 64, True), (8, 7, 512, 512, True), (32, 4, 256, 512, True), (1, 14, 256, 256, False), (64, 2, 64, 64, False),
     (16, 28, 8, 64, False), (16, 28, 64, 8, False), (8, 7, 1024, 1024, False)],
)  # fmt: skip
def test_gradients_of_weights(on, images, size, channels, outputs, winograd):
    on(costs.AVX2)
    assert costs.winograd_weight(images, size, size, channels, outputs) is winograd


@pytest.mark.parametrize(("channels", "outputs", "side"), [(5, 7, 20), (16, 16, 33), (20, 50, 9), (64, 96, 13)])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_chosen_convolutions_agree(channels, outputs, side, layout):
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(channels, outputs, 3, padding=1).eval()
    x = torch.randn(2, channels, side, side).contiguous(memory_format=layout)
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(layer)(x), layer(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "columns", "depth"), [(700, 96, 1300), (513, 200, 1025)])
def test_products_in_passes_agree(rows, columns, depth):
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(depth, columns), torch.randn(rows, depth)
    assert "rows_at_once" in costs.passes(rows, columns, depth)
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(layer)(x), layer(x), rtol=1e-4, atol=1e-4)
