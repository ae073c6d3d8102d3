"""The operators that agree with torch on all of OpInfo's samples go on agreeing."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.yardsticks import operators  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle

CLEAN = Path(operators.CLEAN).read_text().split()


@pytest.fixture(scope="module")
def known():
    """OpInfo's operators by name."""
    return operators.operators()


@pytest.mark.parametrize("name", CLEAN)
def test_operator_agrees_with_torch_on_every_sample(name, known):
    outcomes = operators.check(known[name])
    assert operators.is_clean(outcomes), dict(outcomes)
