"""A fixed part of the random programs that are exported with open sizes (tests/fuzz_exported.py)."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

import rushlight
from tests.fuzz_exported import finding


@pytest.mark.parametrize("seed", range(1290, 1320))
def test_a_program_gives_what_eager_gives_at_other_sizes(seed):
    with warnings.catch_warnings(), rushlight.no_grad():
        warnings.simplefilter("ignore")
        assert finding(seed, Counter()) is None
