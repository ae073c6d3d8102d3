"""Rows whose elements lie apart in memory are turned before they are walked."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.native_nodes import check, source_of


def softmax(x):
    return x.transpose(1, 2).softmax(-1), x.transpose(1, 2).log_softmax(-1)


def copied(x):
    return (x.transpose(1, 2).contiguous() + 1).softmax(-1)


def layer_norm(x):
    size = (x.shape[1],)
    return F.layer_norm(x.transpose(1, 2), size, torch.arange(x.shape[1]) * 0.1), F.layer_norm(x.mT, size).mT


def of_two(x):
    y = x.flip(0).mT
    z = x.mT * 2 + y
    return z - z.amax(-1, keepdim=True), z.argmin(-1), (x.mT.exp() * y.abs()).sum(-1, keepdim=True) + y


def rows_of_halves(x):
    return F.layer_norm(x.bfloat16().mT, (x.shape[1],)), x.double().mT.softmax(-1)


SHAPES = [(2, 64, 33), (3, 9, 16), (1, 100, 260), (2, 1500, 20), (2, 5, 40), (2, 3000, 17)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", [softmax, copied, layer_norm, of_two, rows_of_halves])
def test_results_are_eagers(function, shape):
    check(function, torch.randn(shape))


def test_channels_of_images():
    def function(x, weight):
        normal = F.layer_norm(x.permute(0, 2, 3, 1), (x.shape[1],), weight)
        return normal.permute(0, 3, 1, 2), x.permute(0, 2, 3, 1).softmax(-1).sum((1, 2))

    for shape in [(2, 24, 7, 9), (1, 64, 32, 32), (3, 8, 5, 1)]:
        check(function, torch.randn(shape), torch.randn(shape[1]))


def test_sizes_that_are_open():
    check(lambda x: x.transpose(1, 2).softmax(-1), torch.randn(3, 40, 50), dynamic=True)


def test_written_where_it_was_read():
    def function(x):
        x.mT.copy_(x.mT.softmax(-1))
        return x + 1

    x = torch.randn(2, 20, 40)
    y = x.clone()
    torch.testing.assert_close(torch.compile(function)(x), function(y))
    torch.testing.assert_close(x, y)


@pytest.mark.parametrize("function", [softmax, copied, layer_norm, of_two])
def test_no_row_is_read_element_by_element(function):
    source = source_of(function, torch.randn(2, 64, 100))
    assert "rl::turn(" in source and "load_strided" not in source
