"""Programs whose assertions run on each rank."""

from __future__ import annotations

import pytest

from tests.distributed.ranks import needs_mpi, results

pytestmark = needs_mpi


@pytest.mark.parametrize(("name", "ranks"), [("checks_groups", 4), ("checks_functional", 2), ("checks_profile", 2)])
def test_assertions_hold_on_each_rank(name, ranks, tmp_path):
    assert results(ranks, f"tests.distributed.{name}", tmp_path) == [None] * ranks
