"""The operators that give under vmap what a loop gives, on OpInfo's samples, go on doing so: one sample each."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.yardsticks import batched, operators  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def known():
    """OpInfo's operators by name."""
    return operators.operators()


@pytest.mark.parametrize("name", batched.CLEAN.read_text().split())
def test_mapped_operator_agrees_with_a_loop(name, known):
    outcomes = batched.check(known[name], samples=1)
    assert set(outcomes) <= operators.FINE, dict(outcomes)
