"""Parts of one weight, and one weight read in several ways, are packed apart."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

PRODUCTS = {
    "fewer columns first": lambda x, w: (x @ w[:32].t(), x @ w.t()),
    "fewer columns last": lambda x, w: (x @ w.t(), x @ w[:5].t()),
    "less depth first": lambda x, w: (x[:, :40] @ w[:, :40].t(), x @ w.t()),
    "less depth last": lambda x, w: (x @ w.t(), x[:, :40] @ w[:, :40].t()),
    "by rows": lambda x, w: (x[:, :64] @ w, x[:, :64] @ w[:, :40], x[:, :20] @ w[:20]),
    "both": lambda x, w: (x[:, :64] @ w, x @ w.t(), x[:, :20] @ w[:20]),
    "left by columns first": lambda x, w: (F.linear(x.t().contiguous().t(), w), F.linear(x, w)),
    "left by columns last": lambda x, w: (F.linear(x, w), F.linear(x.t().contiguous().t(), w)),
}
IMAGES = {
    "fewer outputs": lambda x, w: (F.conv2d(x, w), F.conv2d(x, w[:16])),
    "fewer outputs first": lambda x, w: (F.conv2d(x, w[:16]), F.conv2d(x, w)),
    "fewer taps": lambda x, w: (F.conv2d(x, w[:, :, :1]), F.conv2d(x, w)),
    "groups": lambda x, w: (F.conv2d(x, w), F.conv2d(torch.cat([x, x], 1), w, groups=2)),
    "transposed": lambda x, w: (F.conv2d(x, w, padding=1), F.conv_transpose2d(x, w, padding=1)),
    "one channel each": lambda x, w: (F.conv2d(x, w[:, :1], groups=32), F.conv2d(x[:, :16], w[:16, :1], groups=16)),
}  # fmt: skip


class Weighted(nn.Module):
    """A function of an input and of a weight that belongs to the module."""

    def __init__(self, function, weight):
        super().__init__()
        self.function, self.weight = function, nn.Parameter(weight)

    def forward(self, x):
        return self.function(x, self.weight)


def check(model, x):
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        for _ in range(3):  # the first call packs weights as it goes
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", PRODUCTS.values(), ids=list(PRODUCTS))
def test_products(function):
    check(Weighted(function, torch.randn(64, 100)), torch.randn(9, 100))


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("function", IMAGES.values(), ids=list(IMAGES))
def test_images(function, memory_format):
    check(Weighted(function, torch.randn(32, 32, 3, 3)), torch.randn(1, 32, 9, 9).contiguous(memory_format=memory_format))


def test_recurrent_layers():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(1, 64, bidirectional=True, bias=False)

        def forward(self, x):
            return self.gru(x)[0] + self.gru(x * 0.5)[0]

    check(Shared().eval(), torch.randn(6, 2, 1).transpose(0, 1))
