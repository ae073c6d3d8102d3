"""A few of the random programs of `tests/fuzz_jit.py`."""

from __future__ import annotations

import pytest

from tests.fuzz_jit import difference


@pytest.mark.parametrize("start", range(0, 200, 25))
def test_random_programs_give_what_python_gives(start):
    found = [each for each in map(difference, range(start, start + 25)) if each is not None]
    assert not found, "\n".join(found)
