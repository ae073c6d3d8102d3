"""Meetings of all ranks of a group: barrier, and monitored_barrier, which names all that are missing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rushlight.distributed.backends import Backend
from rushlight.distributed.collectives import hand_over
from rushlight.distributed.engine import faults, mpi
from rushlight.distributed.engine.errors import DistBackendError
from rushlight.distributed.engine.operation import Operation
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.work import Work
from rushlight.distributed.groups import member_of

_TAG = 2  # marks a monitored barrier's messages on a group's control communicator


def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Sequence[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:  # fmt: skip
    """Wait until all ranks of the group call this, and the group's collectives that this rank began are complete. With
    `async_op` a Work is returned.

    `device_ids` are GPUs, which the backend "nccl" takes: the host waits in any case. RuntimeError for them elsewhere.
    DistBackendError when a rank is missing, after `timeout` or the group's.
    """
    members = member_of(group, "barrier")
    if members is None:
        return None
    if device_ids is not None and members.backend_name != Backend.NCCL:
        raise RuntimeError(f"Function argument device_ids not supported for the selected backend {members.backend_name}")
    outstanding = members.world.progress.outstanding()
    earlier = [_Earlier(work) for work in outstanding if isinstance(work, Work) and work.is_collective_of(members)]
    work = members.begin("barrier", lambda channel: [channel.comm.Ibarrier(), *earlier])
    if not async_op:
        work.wait(timeout)
        return None
    return hand_over(work, True)


class _Earlier:
    """A collective that began before a barrier, in the form of a request that the barrier waits for."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def Test(self, status: Any = None) -> bool:  # noqa: N802  (MPI's name)
        """Return whether the operation is complete."""
        return self._work.advance(0, wait=False)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all ranks of the group call this; rank 0 checks who comes. `timeout` may be a number of seconds.

    DistBackendError on rank 0, after `timeout` or the group's, names the first rank that is missing, or with `wait_all_ranks`
    all of them. The other ranks then raise too.
    """
    members = member_of(group, "monitored_barrier")
    if members is None:
        return
    given = members.timeout if timeout is None else timeout
    seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    members.world.counts[members.group_name] += 1
    operation = Operation("monitored_barrier", members.number, members.group_name, [], "")
    if members.rank() != 0:
        here, reply = bytearray(1), bytearray(1)
        requests = [members.control.Irecv(reply, 0, _TAG), members.control.Isend(here, 0, _TAG)]
        # Rank 0 has the same time from its own start, and then asks the missing ranks: its answer comes a little later.
        Work(members, operation, requests, peers=[members.ranks[0]]).wait(timedelta(seconds=seconds + faults.ANSWERING))
        return
    if seconds <= 0:
        raise DistBackendError(f"[Rank 0]: Rank {members.ranks[0]} timed out in monitoredBarrier after {seconds * 1000:g} ms.")
    arrivals = [(rank, members.control.Irecv(bytearray(1), rank, _TAG)) for rank in range(1, members.size())]
    with members.world.activity.waiting(operation):
        late = _late(arrivals, seconds, wait_all_ranks)
    if late:
        raise _missing(members, operation, late, seconds)
    replies = [members.control.Isend(bytearray(1), rank, _TAG) for rank, _ in arrivals]
    Work(members, operation, replies, peers=members.ranks[1:]).wait()


def _late(arrivals: Sequence[tuple[int, Any]], seconds: float, all_of_them: bool) -> list[int]:
    """Return the ranks that do not arrive in time: the first, or all."""
    end, late = time.monotonic() + seconds, []
    for rank, request in arrivals:
        if not mpi.poll(request, max(end - time.monotonic(), 0)):
            late.append(rank)
            if not all_of_them:
                break
    return late


def _missing(members: ProcessGroup, operation: Operation, late: list[int], seconds: float) -> DistBackendError:
    ranks = [members.ranks[rank] for rank in late]
    who = f"Rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))} failed to pass monitoredBarrier in"
    cause = faults.timed_out(members.world, operation, ranks, seconds)
    members.fault = cause
    return DistBackendError(f"[Rank {members.ranks[0]}]: {who} {seconds * 1000:g} ms\n{cause}")
