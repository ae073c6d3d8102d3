"""Products of two operands that change from call to call: which way they take, and that they agree with eager."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.inductor.native_nodes import source_of


@pytest.mark.parametrize("order", ["rows", "left by columns", "right by columns", "both by columns"])
@pytest.mark.parametrize(("rows", "depth", "columns"), [
    (64, 784, 512), (512, 64, 784), (1, 40, 33), (13, 1, 31), (5, 4097, 70), (100, 300, 7), (1100, 1000, 9),
    (32, 1000, 600), (96, 64, 517), (1, 5000, 33), (700, 300, 1), (1, 9, 1), (1, 1, 1),
])  # fmt: skip
def test_orders_of_memory(rows, depth, columns, order):
    left, right = torch.randn(rows, depth), torch.randn(depth, columns)
    if order in ("left by columns", "both by columns"):
        left = left.t().contiguous().t()
    if order in ("right by columns", "both by columns"):
        right = right.t().contiguous().t()
    bias = torch.randn(columns)

    def function(left, right, bias):
        return (left @ right + bias).relu()

    with torch.no_grad():
        torch.testing.assert_close(
            torch.compile(function)(left, right, bias), function(left, right, bias), rtol=1e-4, atol=1e-3
        )


def test_one_column_for_all():
    """Threads come to the last panel, which is not full, and to others in any order."""
    left, column = torch.randn(600, 90), torch.randn(90, 1)
    with torch.no_grad():
        compiled, wanted = torch.compile(lambda x, y: x @ y.expand(90, 17)), (left @ column).expand(600, 17)
        for _ in range(100):
            torch.testing.assert_close(compiled(left, column), wanted, rtol=1e-5, atol=1e-5)


def text_of(rows, depth, columns, by_columns=False, right_by_columns=False):
    def function(left, right):
        return (left.t() if by_columns else left) @ (right.t() if right_by_columns else right)

    shape = (depth, rows) if by_columns else (rows, depth)
    right = (columns, depth) if right_by_columns else (depth, columns)
    return source_of(function, torch.zeros(shape), torch.zeros(right))


def test_text_of_rows_that_stay_in_the_cache():
    assert "rl::gemm_by_panels(64L, in0, 784L, 1L, in1, 512L, 1L, 512L, 784L, scratch," in text_of(64, 784, 512)
    assert "rl::gemm_by_panels(128L, in0, 1L, 128L, in1, 96L, 1L, 96L, 64L, scratch," in text_of(128, 64, 96, True)


def test_text_of_rows_by_columns_of_a_large_result():
    assert "rl::gemm_columns(512L, in0, 512L, panels, 784L, 64L, scratch," in text_of(512, 64, 784, True)


def test_text_of_many_columns_that_lie_one_after_the_other():
    text = text_of(64, 784, 512, right_by_columns=True)
    assert "rl::pack_b(in0, 1L, 784L, 784L, 64L, panels);" in text
    assert "rl::gemm_turned(64L, panels, in1, 784L, 512L, 784L," in text
    assert "rl::gemm_turned" not in text_of(512, 784, 512, right_by_columns=True)  # as many rows as columns
    assert "rl::gemm_turned" not in text_of(40, 784, 512, right_by_columns=True)  # rows that fill panels badly
    assert "rl::gemm_turned" not in text_of(64, 5000, 512, right_by_columns=True)  # sums that go in parts


def test_text_of_more_rows():
    text = text_of(2048, 1024, 256)
    assert "rl::pack_b(in1, 256L, 1L, 1024L, 256L, panels);" in text
    assert "rl::gemm(2048L, in0, 1024L, rl::b_panels(panels), 256L, 1024L," in text
    assert "rl::gemm_columns(2048L, in0, 2048L, panels, 256L, 1024L, scratch," in text_of(2048, 1024, 256, True)


@pytest.mark.parametrize("sizes", [(1, 300, 40), (30, 20, 1), (6, 1, 9)])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_vectors(sizes, kind):
    """A matrix whose elements are used once is read as it lies by the loop that multiplies it, and that makes it."""
    rows, depth, columns = sizes
    left, right = torch.randn(3, rows, depth).to(kind), torch.randn(3, columns, depth).to(kind).transpose(1, 2)

    def function(left, right):
        return (left + 1) @ right, (left[0] + 1) @ right[0]

    text = source_of(function, left, right)
    assert "gemm" not in text.replace("<rushlight/gemm.h>", "")
    with torch.no_grad():
        for found, wanted in zip(torch.compile(function)(left, right), function(left.double(), right.double()), strict=True):
            assert found.dtype is kind
            torch.testing.assert_close(found, wanted.to(kind), atol=1e-2 if kind is torch.bfloat16 else 1e-4, rtol=1e-2)


def test_vectors_and_constant_matrices():
    """A row keeps the panels of a matrix that is packed once; a column needs none."""
    with torch.no_grad():
        assert "rl::gemm(1L" in source_of(torch.nn.Linear(96, 64), torch.zeros(1, 96))
        assert "rl::gemm" not in source_of(torch.nn.Linear(96, 1), torch.zeros(20, 96))


def test_first_power_is_what_it_is_taken_of():
    """The gradient of a square holds one."""
    assert "rl::pow" not in source_of(lambda x: x**1 * 2.0, torch.zeros(40))
