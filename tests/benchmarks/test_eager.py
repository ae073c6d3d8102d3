"""The benchmark of eager operators: cases run, and the table says who was faster and whether results agree."""

from __future__ import annotations

import pytest

import rushlight
from benchmarks import eager


@pytest.fixture
def figures():
    before = rushlight.get_num_threads()
    yield eager.measure("rushlight", 1, 0.01, ["add", "add_grad", "linear", "mlp"])
    rushlight.set_num_threads(before)


def test_cases_are_measured(figures):
    assert set(figures) == {"add", "add_grad", "linear", "mlp"}
    assert all(0 < figure.median < 1 and figure.total > 0 for figure in figures.values())


def test_the_table_gives_ratios_and_names_disagreement():
    calm, slow = eager.Figures(1e-3, 0.0, 5.0), eager.Figures(2e-3, 0.0, 5.0)
    lines = eager.section({"rushlight": [{"add": calm}] * 3, "torch": [{"add": slow}] * 3})
    assert any("0.50" in line and "1 ms" in line for line in lines)
    other = eager.Figures(2e-3, 1.0, 9.0)
    (line,) = [line for line in eager.section({"rushlight": [{"add": calm}], "torch": [{"add": other}]}) if "0.50" in line]
    assert "DISAGREES" in line and "disturbed" in line


def test_names_of_cases_are_unique():
    names = [case.name for case in eager.CASES]
    assert len(set(names)) == len(names)
