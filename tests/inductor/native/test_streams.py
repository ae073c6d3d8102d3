"""rushlight/vec.h: stores past the caches."""

from __future__ import annotations

import numpy as np
import pytest

from tests.inductor.native.native_build import aligned


@pytest.mark.parametrize("count", [0, 1, 15, 16, 33, 1000])
@pytest.mark.parametrize("offset", [0, 1, 8, 16])
def test_streams_store_what_is_given_wherever_it_lies(kernels, count, offset):
    given = np.random.default_rng(count).normal(size=count).astype(np.float32)
    memory = aligned(count + offset + 40)
    memory[:] = np.nan
    kernels.call("streamed", given, memory[offset:], count)
    assert np.array_equal(memory[offset : offset + count], given)
    assert np.isnan(memory[:offset]).all() and np.isnan(memory[offset + count :]).all()
