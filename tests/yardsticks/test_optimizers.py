"""The optimizers that train as torch's do, in all configurations of its database, go on doing so."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.yardsticks import optimizers  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", optimizers.CLEAN.read_text().split())
def test_optimizer_trains_as_in_torch(name):
    assert not optimizers.check(optimizers.optimizers()[name])
