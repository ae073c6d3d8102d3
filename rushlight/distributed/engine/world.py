"""All ranks of a program, from the first `init_process_group` to the end of the process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.errors import DistBackendError
from rushlight.distributed.engine.notes import Notes
from rushlight.distributed.engine.operation import Activity
from rushlight.distributed.engine.peers import Peer, has_ended, myself
from rushlight.distributed.engine.progress import Progress


class World:
    """The ranks that MPI started together, this process's part in them, and the thread that works for it.

    DistBackendError: not all ranks made theirs within `seconds`.
    """

    def __init__(self, seconds: float) -> None:
        MPI = mpi.start()
        self.rank: int = MPI.COMM_WORLD.rank
        self.size: int = MPI.COMM_WORLD.size
        self.activity = Activity()
        self.progress = Progress()
        self.counts: dict[str, int] = {}
        """The number of collectives that this rank has begun, by group."""
        self.failed = False
        """Whether an operation failed, so that MPI cannot be finalized."""
        self.lost: list[Any] = []
        """Operations that were given up: MPI may still write to their buffers."""
        self.meet(MPI.COMM_WORLD, seconds, "init_process_group")
        self.comm = MPI.COMM_WORLD.Dup()
        self.notes = Notes(MPI.COMM_WORLD.Dup(), self.activity.report)
        self.peers: list[Peer] = self.comm.allgather(myself())
        if self.size > 1:
            self.progress.repeat(self.notes.serve)

    def meet(self, comm: Any, seconds: float, what: str) -> None:
        """Wait until all ranks of a communicator call this. DistBackendError after `seconds`."""
        if mpi.poll(comm.Ibarrier(), seconds):
            return
        self.failed = True
        raise DistBackendError(
            f"rank {self.rank} waited {seconds:g} s in {what}: not all of the {comm.size} ranks called it"
        )

    def ended(self, ranks: Sequence[int]) -> list[int]:
        """Return those ranks whose processes are known to have ended."""
        me = self.peers[self.rank]
        return [rank for rank in ranks if has_ended(self.peers[rank], me)]
