"""The `kernels` fixture: the header library, compiled once for each instruction set, for all processes of the session."""

from __future__ import annotations

import pytest

from tests.inductor.native.native_build import TARGETS, Kernels, available


@pytest.fixture(scope="session", params=list(TARGETS))
def kernels(request, session_cache) -> Kernels:
    if not available(request.param):
        pytest.skip(f"target {request.param!r} cannot be built or run here, or is what 'native' is")
    return Kernels(request.param)
