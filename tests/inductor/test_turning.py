"""Loops between two orders of memory: their text, and that they agree with eager."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.inductor.native_nodes import source_of


def agrees(function, *inputs):
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(function)(*inputs), function(*inputs), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize(("channels", "height", "width"), [(16, 16, 16), (17, 5, 7), (64, 1, 300), (40, 31, 9)])
def test_both_ways(images, channels, height, width):
    x = torch.randn(images, channels, height, width)
    last, bias = x.contiguous(memory_format=torch.channels_last), torch.randn(channels, 1, 1)
    agrees(lambda a, b: (a + b).contiguous().exp(), last, bias)
    agrees(lambda a, b: (a * b).permute(0, 2, 3, 1).contiguous(), x, bias)
    agrees(lambda a, c: a.contiguous() * 2 + c, last, x)
    agrees(lambda a, c: (a.transpose(1, 3) - c.transpose(1, 3)).contiguous(), last, x)


@pytest.mark.parametrize("kind", [torch.float64, torch.int64, torch.bfloat16, torch.bool])
def test_other_types(kind):
    x = (torch.randn(2, 33, 40) * 3).to(kind)
    agrees(lambda a: a.transpose(1, 2).contiguous(), x)
    agrees(lambda a: a.transpose(1, 2).float().contiguous() + 1, x)


def test_masked_reads_stay_inside():
    agrees(lambda a: torch.nn.functional.pad(a.transpose(1, 2), (3, 2, 1, 4)).contiguous() * 2, torch.randn(2, 33, 40))


def test_reads_without_a_stride_are_collected():
    x, scale = torch.randn(2, 24, 5, 6), torch.randn(8)
    agrees(lambda a, s: (a.permute(0, 2, 3, 1) * s.repeat_interleave(3)).sigmoid(), x, scale)
    agrees(lambda a, s: torch.nn.functional.group_norm(a.contiguous(memory_format=torch.channels_last), 8) * 2, x, scale)


def test_text():
    text = source_of(lambda a: a.t().contiguous() + 1, torch.zeros(300, 40))
    assert "rl::turn(in0 + first + 40L*o + 40L*start, 40L, rows, count, turned0, 256L);" in text
    assert "lane.load(turned0 + (c - first) * 256L + i)" in text


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(64, 40), (33, 300), (17, 16), (130, 257)])
def test_narrow_types_are_turned(kind, shape):
    x = torch.randn(*shape).to(kind)
    agrees(lambda a: a.t().contiguous(), x)
    agrees(lambda a, b: a.t().contiguous() * 2 + b, x, torch.randn(*shape[::-1]))
    assert "rl::turn(" in source_of(lambda a: a.t().contiguous(), x)


def test_results_are_calculated_where_they_lie():
    """A result that eager gives in another order than row-major is not calculated first and turned then."""
    x, image = torch.randn(40, 30), torch.randn(2, 20, 6, 5).contiguous(memory_format=torch.channels_last)
    for function, argument in ((lambda a: a.t() * 2 + 1, x), (lambda a: a.relu() - 1, image), (lambda a: (a + 1).permute(1, 0), x)):
        eager, source = function(argument), source_of(function, argument)
        assert source.count("static void kernel_") == 1 and "rl::turn(" not in source
        made = torch.compile(function)(argument)
        assert made.stride() == eager.stride()
        torch.testing.assert_close(made, eager)
