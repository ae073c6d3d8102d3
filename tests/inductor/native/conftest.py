"""The `kernels` fixture: the header library, compiled once per session for each instruction set."""

from __future__ import annotations

import pytest

from tests.inductor.native.native_build import TARGETS, Kernels, available


@pytest.fixture(scope="session", params=list(TARGETS))
def kernels(request, tmp_path_factory) -> Kernels:
    if not available(request.param):
        pytest.skip(f"target {request.param!r} cannot be built or run here, or is what 'native' is")
    return Kernels(request.param, tmp_path_factory.mktemp(f"native-{request.param}"))
