"""`torch.quasirandom`: Sobol's points."""

from __future__ import annotations

import pytest

import rushlight as torch


def test_sobol_points():
    engine = torch.quasirandom.SobolEngine(3)
    first = engine.draw(4)
    assert first.tolist() == [[0.0] * 3, [0.5] * 3, [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]] and engine.num_generated == 4
    assert engine.reset().fast_forward(2).draw(2).equal(first[2:])
    scrambled = torch.quasirandom.SobolEngine(2, scramble=True, seed=1)
    assert scrambled.draw_base2(3).shape == (8, 2) and repr(scrambled) == "SobolEngine(dimension=2, scramble=True, seed=1)"
    with pytest.raises(ValueError, match="power of 2"):
        scrambled.draw_base2(1)
    with pytest.raises(ValueError, match="dimensionality"):
        torch.quasirandom.SobolEngine(0)
