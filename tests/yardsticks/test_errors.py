"""The operators that refuse bad arguments as torch does go on doing so."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.yardsticks import errors  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle

CLEAN = Path(errors.CLEAN).read_text().split()


@pytest.fixture(scope="module")
def known():
    """The OpInfos with error inputs, by name."""
    return errors.operators()


@pytest.mark.parametrize("name", CLEAN)
def test_bad_calls_raise_as_in_torch(name, known):
    tried, problems = errors.check(known[name])
    assert tried and not problems, "\n".join(problems)
