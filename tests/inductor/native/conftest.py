"""The `kernels` fixture: the header library, compiled once for each instruction set, for all processes of the session."""

from __future__ import annotations

import fcntl
import os

import pytest

from tests.inductor.native.native_build import TARGETS, Kernels, available


@pytest.fixture(scope="session", params=list(TARGETS))
def kernels(request, tmp_path_factory) -> Kernels:
    if not available(request.param):
        pytest.skip(f"target {request.param!r} cannot be built or run here, or is what 'native' is")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "native"
    folder.mkdir(exist_ok=True)
    with open(folder / f"{request.param}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return Kernels(request.param, folder)
