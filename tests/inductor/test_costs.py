"""The model that chooses between ways to run products and convolutions."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.inductor import costs


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "expected"),
    [(128, 1536, 384, None), (197, 3072, 768, None), (2048, 2048, 2048, 64), (1024, 768, 768, 147), (4, 10, 1 << 20, None)],
)
def test_passes_of_rows(rows, columns, depth, expected):
    assert costs.passes(rows, columns, depth).get("rows_at_once") == expected


@pytest.mark.parametrize(
    ("images", "channels", "side", "winograd"),
    [(1, 64, 56, True), (1, 512, 7, False), (8, 512, 7, True), (1, 16, 56, True), (1, 3, 224, False), (1, 256, 14, True),
     (1, 128, 8, True), (1, 64, 8, True), (1, 128, 5, False), (1, 256, 4, False)],
)
def test_convolutions(images, channels, side, winograd):
    blocks, outputs = images * (-(-side // 4)) ** 2, max(channels, 16)
    fast = costs.winograd(blocks, channels, outputs)
    assert (fast < costs.direct_convolution(images * side * side, 9, channels, outputs)) is winograd


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
