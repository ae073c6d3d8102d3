"""Large results are stored past the caches, and are what eager's are."""

from __future__ import annotations

import re

import pytest

import rushlight as torch
from rushlight.inductor.costs import core
from rushlight.nn import functional as F
from tests.inductor.native_nodes import check, source_of

COLUMNS = 4096
ROWS = core().stays // (4 * COLUMNS)


def test_text_of_large_results():
    assert "lane.stream(out0 + r + 4096L*x, tmp2);" in source_of(lambda x: x + 1, torch.zeros(ROWS, COLUMNS))
    assert "lane.stream(" not in source_of(lambda x: x + 1, torch.zeros(ROWS - 1, COLUMNS))
    assert "lane.stream(" not in source_of(lambda x: x > 1, torch.zeros(4 * ROWS, COLUMNS))
    product = source_of(lambda x, y: (x @ y).relu(), torch.zeros(COLUMNS, 8), torch.zeros(8, ROWS))
    assert f"lane.stream(out0 + r + {ROWS}L*x, " in product
    assert "lane.stream(" not in source_of(lambda x, y: x @ y, torch.zeros(COLUMNS, 8), torch.zeros(8, ROWS + 3))  # parts of lines


def test_text_of_rows_that_wait_for_their_sum():
    text = source_of(lambda x: x.softmax(-1), torch.zeros(ROWS, COLUMNS))
    assert "alignas(64) float row0[4096L];" in text
    assert "lane.stream(out0 + r + 4096L*x, " in text
    small = source_of(lambda x: x.softmax(-1), torch.zeros(8, COLUMNS))
    assert "float* row0 = out0 + 4096L*x;" in small
    wide = source_of(lambda x: x.softmax(-1), torch.zeros(ROWS // 4, 8 * COLUMNS))  # rows too long for the stack
    assert "float* row0 = out0 + 32768L*x;" in wide
    assert "lane.stream(" not in wide


@pytest.mark.parametrize("threads", [1, 2])
def test_large_results(threads):
    def function(x, y):
        sums = x + y
        return sums, torch.cat([x[:, :33], y[:, 33:]], 1), sums.softmax(-1), F.layer_norm(x, (COLUMNS,)), sums.amax(0)

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        check(function, torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS))
    finally:
        torch.set_num_threads(before)


def test_large_results_of_products_and_convolutions():
    check(lambda x, y, z: ((x @ y).relu(), (x @ y) @ z), torch.randn(COLUMNS, 40), torch.randn(40, ROWS), torch.randn(ROWS, 3))
    image, weight = torch.randn(2, 3, 258, 258), torch.randn(32, 3, 3, 3)
    check(lambda x, w: F.relu(F.conv2d(x, w)).mean((2, 3)), image, weight)
    check(lambda x, w: F.conv2d(x, w), image, weight)


def test_the_next_row_is_fetched_while_one_is_calculated_with():
    """Of arrays that the caches do not hold, and of what the first pass reads; the last row has no next one."""
    long, short = torch.randn(ROWS, COLUMNS), torch.randn(64, COLUMNS)
    softmax = lambda x: (x * 2).softmax(-1)  # noqa: E731
    fetched = re.findall(r"__builtin_prefetch\((\w+) \+ ([^)]*)\);", source_of(softmax, long))
    assert fetched == [("in0", f"r + {COLUMNS}L*x + {COLUMNS}L")]
    for function, argument in ((softmax, short), (lambda x: x.softmax(0), long), (torch.exp, long)):
        assert "__builtin_prefetch" not in source_of(function, argument)
    with torch.inference_mode():
        for function in (softmax, lambda x: F.layer_norm(x + 1, (COLUMNS,)), lambda x: x.flip(0).softmax(-1)):
            torch.testing.assert_close(torch.compile(function)(long), function(long), rtol=1e-5, atol=1e-5)
