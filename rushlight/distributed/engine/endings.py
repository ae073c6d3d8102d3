"""How a rank ends: at the program's end together with the others, after an error at once and with them.

An uncaught error prints the rank and the traceback, and ends all ranks. SIGTERM, which mpirun sends when a rank has died,
says what the rank was waiting in, and which ranks are gone.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import util
from types import TracebackType

from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.world import World

_LAST_MEETING = 1800.0  # seconds that a rank at its end waits for the others: the default timeout of groups
_WITH_MPI, _AFTER_MPI = 200, 100  # priorities of what runs at exit
_TERMINATED = 128 + signal.SIGTERM


def install(world: World) -> None:
    """Have this process end with the others of a world."""
    at_exit(functools.partial(_leave, world))
    if world.size == 1:
        return
    previous, pid = sys.excepthook, os.getpid()

    def on_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if os.getpid() != pid:  # a forked child, such as a worker of a DataLoader, is no rank
            return previous(kind, error, traceback)
        world.failed = True
        _flush(f"rank {world.rank} of {world.size} raised an error, which ends all ranks:")
        previous(kind, error, traceback)
        _flush()
        mpi.end_all(1)

    sys.excepthook = on_error
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: _terminate(world, pid))


def at_exit(function: Callable[[], object], after_mpi: bool = False) -> None:
    """Call a function when this process ends, also one that multiprocessing forked, where `atexit` does not work.

    The last that is given comes first; MPI ends before those `after_mpi`.
    """
    util.Finalize(None, function, exitpriority=_AFTER_MPI if after_mpi else _WITH_MPI)


def _leave(world: World) -> None:
    """Tell the others that this rank has left, wait for them, and finalize MPI."""
    if world.failed:
        world.progress.stop()
        return _leave_unfinished()
    if world.size > 1 and not _all_have_left(world):
        return _leave_unfinished()
    world.progress.stop()
    mpi.finish()


def _all_have_left(world: World) -> bool:
    """Wait for the others; return whether they came. A rank that dies before is not waited for."""
    world.notes.say_goodbye(dict(world.counts))
    request, end = world.notes.comm.Ibarrier(), time.monotonic() + _LAST_MEETING
    while not mpi.poll(request, 0.2):
        gone = world.ended(range(world.size))
        if gone and not mpi.poll(request, 0.2):
            _flush(f"rank {world.rank} has left the program; rank {gone[0]} died before it did")
            return False
        if time.monotonic() >= end:
            _flush(f"rank {world.rank} has left the program, and waited {_LAST_MEETING:g} s for the others to do so")
            return False
    return True


def _leave_unfinished() -> None:
    """End without MPI_Finalize, which would wait for operations that were given up; mpirun then ends the other ranks."""
    _flush()
    mpi.end_all(1)


def _terminate(world: World, pid: int) -> None:
    """Say what the rank was waiting in, and end; a forked child only ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.getpid() == pid:
        waits = "; ".join(map(str, world.activity.waits())) or "no operation"
        gone = world.ended([rank for rank in range(world.size) if rank != world.rank])
        who = f"; gone before: {', '.join(f'rank {rank}' for rank in gone)}" if gone else ""
        _flush(f"rank {world.rank} of {world.size} was terminated while it waited in {waits}{who}")
    os._exit(_TERMINATED)


def _flush(message: str = "") -> None:
    """Write a line to stderr, and all that is buffered."""
    sys.stdout.flush()
    if message:
        sys.stderr.write(message + "\n")
    sys.stderr.flush()
