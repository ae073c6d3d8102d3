"""`func.linearize`: outputs at a point, and the derivative there as a function of tangents."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.func import jvp, linearize


def function(x, more):
    return {"product": x.sin() * more["y"], "only": more["y"].exp(), "constant": torch.ones(2)}, x.sum()


def test_the_derivative_is_that_of_jvp():
    torch.manual_seed(0)
    x, y = torch.randn(3), torch.randn(3)
    outputs, derivative = linearize(function, x, {"y": y})
    for _ in range(2):
        dx, dy = torch.randn(3), torch.randn(3)
        found = derivative(dx, {"y": dy})

        def plain(x, y):
            made, total = function(x, {"y": y})
            return made["product"], made["only"], total

        expected, directional = jvp(plain, (x, y), (dx, dy))
        torch.testing.assert_close((outputs[0]["product"], outputs[0]["only"], outputs[1]), expected)
        torch.testing.assert_close((found[0]["product"], found[0]["only"], found[1]), directional)
        assert found[0]["constant"].tolist() == [0.0, 0.0]
    assert not outputs[1].requires_grad and not found[1].requires_grad


def test_linear_functions_and_wrong_tangents():
    x = torch.ones(2)
    output, derivative = linearize(lambda x: x * 3, x)
    assert output.tolist() == [3.0, 3.0] and derivative(torch.tensor([1.0, 2.0])).tolist() == [3.0, 6.0]
    assert linearize(lambda x: torch.ones(1), x)[1](x).tolist() == [0.0]
    for wrong in (torch.ones(3), torch.ones(2, dtype=torch.float64), 1.0):
        with pytest.raises(RuntimeError, match="Expected tangent 0"):
            derivative(wrong)
    with pytest.raises(RuntimeError, match="argspec"):
        derivative(x, x)
    with pytest.raises(ValueError, match="at least one"):
        linearize(function)
