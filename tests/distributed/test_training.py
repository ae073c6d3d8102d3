"""Training on several ranks gives the losses of one process, and goes on with another number of ranks."""

from __future__ import annotations

import pytest

from tests.distributed.ranks import needs_mpi, results

SAVED_AFTER = 2  # training_cases has the same number, but imports torch

pytestmark = needs_mpi


def test_losses_are_those_of_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("CHECKPOINT", str(tmp_path / "checkpoint"))
    found = results(2, "tests.distributed.training_cases", tmp_path)[0]
    expected, plain = found.pop("one process"), found.pop("one process, not clipped")
    assert found.pop("accumulated") < 1e-5 and found.pop("accumulated, put off") < 1e-5
    assert found.pop("16-bit") == pytest.approx(expected, rel=2e-2)
    assert found.pop("tensor") == pytest.approx(plain, rel=1e-5)
    for name, losses in found.items():
        assert losses == pytest.approx(expected, rel=1e-5), name

    of_four = results(4, "tests.distributed.training_cases", tmp_path)[0]
    assert of_four["continued"] == pytest.approx(expected[SAVED_AFTER:], rel=1e-5)
    assert of_four["copies of parts"] == pytest.approx(expected, rel=1e-5)
