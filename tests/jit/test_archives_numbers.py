"""Numbers in archives that PyTorch traced: a constant tensor without dimensions decides dtypes as a number does."""

from __future__ import annotations

import io

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

HALF = torch.tensor(0.5, dtype=torch.float64)
PROGRAMS = {
    "mul": lambda x: x * 0.5, "add": lambda x: x + 0.5, "sub": lambda x: x - 0.5, "div": lambda x: x / 2.5,
    "alpha": lambda x: torch.add(x, 0.5, alpha=2), "in_place": lambda x: x.mul(0.5).add_(1.5), "sum": lambda x: x.sum() * 0.5,
    "floor": lambda x: x // 2.5, "mode": lambda x: torch.div(x, 2.5, rounding_mode="floor"), "first": lambda x: torch.add(0.5, x),
    "power": lambda x: x**0.5, "complex": lambda x: x * 1j, "isclose": lambda x: torch.isclose(x.float(), x * 1.0),
    "constant": lambda x: x * HALF, "constant_first": lambda x: HALF * x, "constant_maximum": lambda x: torch.maximum(x, HALF),
    "constant_result": lambda x: (x * HALF) + HALF.sin(), "constant_half": lambda x: x.half() * HALF,
    "constant_where": lambda x: torch.where(x > 1, x, HALF), "constant_returned": lambda x: (x * HALF, HALF)[1] + 0 * x,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_dtypes(name):
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(PROGRAMS[name], torch.arange(1, 4), check_trace=False), file)
    theirs = torch.jit.load(io.BytesIO(file.getvalue()))
    ours = rushlight.jit.load(io.BytesIO(file.getvalue()))
    for _ in range(4):
        expected, got = theirs(torch.arange(1, 4)), ours(rushlight.arange(1, 4))
        assert str(got.dtype) == str(expected.dtype)
        assert got.tolist() == pytest.approx(expected.tolist())
