"""The operators whose second derivatives agree with torch's go on agreeing: one sample each."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.yardsticks import second_derivatives  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def known():
    """OpInfo's operators by name."""
    return second_derivatives.known()


@pytest.mark.parametrize("name", second_derivatives.CLEAN.read_text().split())
def test_second_derivatives_agree_with_torch(name, known):
    outcomes = second_derivatives.check(known[name], samples=1)
    assert set(outcomes) <= second_derivatives.FINE, dict(outcomes)
