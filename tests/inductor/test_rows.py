"""What loops over rows keep of a row between their passes, and where."""

from __future__ import annotations

import re

import pytest

import rushlight as torch
from tests.inductor.native_nodes import source_of


def shares(e):
    return e / e.sum(-1, keepdim=True)


def softmax(x):
    return shares((x - x.amax(-1, keepdim=True)).exp())


def softmax_of_read_rows(x):  # the result is made of x too, in the pass that would have overwritten a row under it
    e = (x - x.amax(-1, keepdim=True)).exp()
    return shares(e) + x


def two_results(x):
    e = x.sin().exp()
    total = e.sum(-1, keepdim=True)
    return e / total, e - total


def read_again_later(x):
    e = x.exp()
    y = shares(e)
    return y, e * y.amax(-1, keepdim=True)


def sum_in_the_last_pass(x):
    e = x.exp()
    return shares(e), (e * e.amax(-1, keepdim=True)).sum(-1)


def sum_in_a_later_pass(x):
    e = x.exp()
    y = shares(e)
    return y, (e * y.amax(-1, keepdim=True)).sum(-1)


def of_another_type(x):
    e = x.exp()
    return (e / e.sum(-1, keepdim=True)).double()


def two_rows(x):
    e = x.exp()
    f = e.cos()
    return shares(e), f - f.amax(-1, keepdim=True)


def written_to(x, y):
    y.copy_(softmax(x))
    x.copy_(shares(x.exp()))
    return x + 1


def rows_of(function, *inputs) -> list[str]:
    """Where the kernels keep rows."""
    return re.findall(r"float\*? (row\d+(?: = out\d|\[\d+L\]))", source_of(function, *inputs))


PROGRAMS = [softmax, softmax_of_read_rows, two_results, read_again_later, sum_in_the_last_pass, sum_in_a_later_pass,
            of_another_type, two_rows]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 33), (40, 1030), (2, 70001)])
def test_results_are_eagers(function, shape):
    x = torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(function)(x), function(x), rtol=2e-6, atol=1e-6)


def test_a_row_lies_where_the_result_that_replaces_it_will():
    x = torch.zeros(40, 1030)
    assert rows_of(softmax, x) == ["row0 = out0"]
    assert rows_of(softmax_of_read_rows, x) == ["row0[1030L]"]
    assert rows_of(two_results, x) == ["row0 = out0"]
    assert rows_of(read_again_later, x) == ["row0 = out1"]
    assert rows_of(sum_in_the_last_pass, x) == ["row0 = out0"]
    assert rows_of(sum_in_a_later_pass, x) == ["row0[1030L]"]
    assert rows_of(of_another_type, x) == ["row0[1030L]"]
    assert rows_of(two_rows, x) == ["row0 = out0", "row1 = out1"]


@pytest.mark.parametrize("shape", [(6, 9), (300, 400)])
def test_inputs_that_are_written_to(shape):
    x, y = torch.randn(shape), torch.zeros(shape)
    ours, theirs = [x.clone(), y.clone()], [x.clone(), y.clone()]
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(written_to)(*ours), written_to(*theirs), rtol=2e-6, atol=1e-6)
    torch.testing.assert_close(ours, theirs, rtol=2e-6, atol=1e-6)
