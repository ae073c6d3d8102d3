"""The operators whose compiled code agrees with eager on OpInfo's samples go on agreeing: one sample each, every other one with
its sizes open."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.yardsticks import compiled, operators  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def known():
    """OpInfo's operators by name."""
    return operators.operators()


@pytest.mark.parametrize(("index", "name"), list(enumerate(compiled.CLEAN.read_text().split())))
def test_compiled_operator_agrees_with_eager(index, name, known):
    outcomes = compiled.check(known[name], samples=1, is_open=(index % 2 == 1,))
    assert set(outcomes) <= operators.FINE, dict(outcomes)
