"""Compiled elementary functions: within 2 units in the last place where that is promised, within torch's tolerances elsewhere."""

from __future__ import annotations

import pytest

from rushlight.inductor.lowering.pointwise import FLOAT_TYPE
from tests.yardsticks.functions import CASES, PROMISED, float32_arguments, float64_arguments, measure


def test_every_function_of_the_lowering_table_is_measured():
    assert FLOAT_TYPE.keys() <= CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_float32(name):
    found = measure(name, float32_arguments(step=20_011))
    assert found.special == 0, "NaN or infinity where the result is a number, or the other way round"
    assert found.outside == 0, "results outside of torch's tolerance"
    assert found.ulps <= PROMISED.get(name, float("inf")), f"at {found.argument!r}"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.wide])
def test_float64(name):
    found = measure(name, iter([float64_arguments(500)]), wide=True)
    assert (found.special, found.outside) == (0, 0)
    assert found.ulps <= (2 if name in PROMISED else 4), f"at {found.argument!r}"
