"""The benchmark of the frame hook: states are measured in processes of their own, and the table gives ratios."""

from __future__ import annotations

import pytest

from benchmarks import hook


def test_cases_compute():
    assert [case() for case in hook.CASES.values()] == [sum(range(30_000)), 2584]


@pytest.mark.parametrize("state", ["plain", "after"])
def test_a_state_is_measured(state):
    found = hook.run_once("rushlight", state, 0.01)
    assert set(found) == set(hook.CASES) and all(0 < seconds < 10 for seconds in found.values())


def test_the_table_gives_ratios():
    figures = {state: dict.fromkeys(hook.CASES, 1e-3 * (1 + index)) for index, state in enumerate(hook.STATES)}
    lines = hook.section(figures, "rushlight")
    assert any("nothing imported" in line and "(1.00)" in line for line in lines)
    assert any("after reset()" in line and "4 ms (4.00)" in line for line in lines)
