"""Distances of all pairs of points, and their gradients, as native code, agree with eager's."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.native_nodes import check

NORMS = [0.0, 0.5, 1.0, 2.0, 3.0, math.inf]


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("left, right", [
    ((3, 5), (4, 5)), ((1, 1), (1, 1)), ((30, 7), (65, 7)), ((66, 130), (67, 130)), ((9, 300), (3, 300)),
    ((2, 1, 5, 3), (4, 6, 3)), ((3, 0), (4, 0)), ((0, 4), (3, 4)), ((2, 21, 3), (2, 40, 3)),
], ids=str)  # fmt: skip
def test_distances(left, right, p):
    check(lambda a, b: torch.cdist(a, b, p=p), torch.randn(left), torch.randn(right))


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (30, 7), (200, 2), (5, 0)], ids=str)
def test_distances_within_one_matrix(shape, p):
    check(lambda a: F.pdist(a, p=p), torch.randn(shape))


def test_close_points_far_from_the_origin():
    """Where squares cancel, differences do not."""
    x = torch.randn(40, 20) * 1e-3 + 100
    found = torch.compile(lambda x: torch.cdist(x, x), fullgraph=True)(x)
    exact = torch.cdist(x.double(), x.double(), compute_mode="donot_use_mm_for_euclid_dist")
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=1e-9)


def test_other_dtypes_layouts_and_neighbours():
    x, y = torch.randn(40, 6), torch.randn(33, 6)
    check(lambda x, y: torch.cdist(x, y), x.double(), y.double())
    check(lambda x, y: torch.cdist(x.t(), y.t()[:, ::2]), x, torch.randn(80, 30))
    check(lambda x, y: (-torch.cdist(x + 1, y * 2)).exp().sum(1), x, y)
    check(lambda x, y: torch.cdist(x, y).topk(3, largest=False), x, y)


@pytest.mark.parametrize("p", [2.0, 1.0, math.inf])
def test_numbers_that_are_not_finite(p):
    x = torch.tensor([[1.0, math.nan, 2.0], [math.inf, 0.0, 1.0], [0.0, 0.0, 0.0], [math.inf, -math.inf, 0.0]])
    check(lambda x: torch.cdist(x, x.repeat(5, 1), p=p), x)


@pytest.mark.parametrize("p", NORMS)
def test_gradients(p):
    def cdist(x, y):
        return torch.cdist(x, y, p=p)

    def pdist(x, y):
        return F.pdist(x, p=p) + y.sum()

    for function, left, right in ((cdist, (5, 4), (18, 4)), (cdist, (2, 6, 20), (3, 20)), (pdist, (9, 4), (2, 2))):
        x, y = torch.randn(left, dtype=torch.float64), torch.randn(right, dtype=torch.float64)
        if function is cdist and x.dim() == y.dim():
            y[2] = x[1]  # a distance of 0 has no slope
        gradients = []
        for run in (torch.compile(function, fullgraph=True), function):
            leaves = [tensor.clone().requires_grad_() for tensor in (x, y)]
            found = run(*leaves)
            (found * torch.arange(found.numel()).view(found.shape)).sum().backward()
            gradients.append([leaf.grad for leaf in leaves])
        torch.testing.assert_close(*gradients)


def test_open_sizes():
    def function(x, y):
        return torch.cdist(x, y), torch.cdist(x, y, p=1.0) * 2, F.pdist(x)

    compiled = torch.compile(function, fullgraph=True, dynamic=True)
    for rows, others, width in ((5, 7, 3), (30, 70, 20), (6, 66, 150), (2, 3, 4)):
        x, y = torch.randn(rows, width), torch.randn(others, width)
        torch.testing.assert_close(compiled(x, y), function(x, y))
