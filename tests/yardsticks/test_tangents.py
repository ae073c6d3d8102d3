"""The operators whose tangents agree with torch's go on agreeing: one sample each."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.yardsticks import tangents  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def known():
    """OpInfo's operators by name."""
    return tangents.known()


@pytest.mark.parametrize("name", tangents.CLEAN.read_text().split())
def test_tangents_agree_with_torch(name, known):
    outcomes = tangents.check(known[name], samples=1)
    assert set(outcomes) <= tangents.FINE, dict(outcomes)
