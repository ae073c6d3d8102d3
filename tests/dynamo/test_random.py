"""Random programs behave captured as they do in eager; `python -m tests.fuzz_dynamo` runs more."""

from __future__ import annotations

import pytest

from tests.fuzz_dynamo import failure


@pytest.mark.parametrize("start", range(0, 300, 30))
def test_random_programs(start: int) -> None:
    failures = {seed: found for seed in range(start, start + 30) if (found := failure(seed))}
    assert not failures
