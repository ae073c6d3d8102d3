"""ProcessGroup: ranks that communicate with one another, in a communicator of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.algorithms import Channel
from rushlight.distributed.engine.comparison import DebugLevel, compare, get_debug_level
from rushlight.distributed.engine.errors import DistBackendError
from rushlight.distributed.engine.operation import Operation, listeners
from rushlight.distributed.engine.record import Record
from rushlight.distributed.engine.work import Work
from rushlight.distributed.engine.world import World

_TAGS = 16384  # collectives in flight whose messages can be told apart


class ProcessGroup:
    """Some of the ranks, numbered from 0 in the group; `ranks` are their numbers in the world.

    `init_process_group` and `new_group` make them.
    """

    bound_device_id = None
    backend_name = "mpi"
    """The name by which the backend was asked for: "mpi", "gloo" or "nccl"."""

    def __init__(self, world: World, comm: Any, ranks: Sequence[int], name: str, timeout: timedelta, desc: str = "") -> None:
        self.world, self.comm, self.ranks = world, comm, tuple(ranks)
        self.control, self.pairs = comm.Dup(), comm.Dup()
        """Communicators of the same ranks: for comparisons and meetings; for the messages that collectives are made of."""
        self.fault: BaseException | None = None
        self.destroyed = False
        self._name, self._desc = name, desc or "undefined"
        self._timeout = timeout
        self._messages = 0
        self._rank: int = comm.rank
        world.counts.setdefault(name, 0)

    def rank(self) -> int:
        """Return this process's number in the group."""
        return self._rank

    def size(self) -> int:
        """Return how many ranks the group has."""
        return len(self.ranks)

    def name(self) -> str:
        """Return the name of the backend, as it was asked for."""
        return self.backend_name

    @property
    def group_name(self) -> str:
        """Return the group's name; the group of all ranks is "0"."""
        return self._name

    @property
    def group_desc(self) -> str:
        """Return the description that the group was made with."""
        return self._desc

    @property
    def number(self) -> int:
        """Return how many collectives this rank has begun."""
        return self.world.counts[self._name]

    @property
    def timeout(self) -> timedelta:
        """Return how long operations wait for missing ranks."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long operations wait for missing ranks."""
        self._timeout = timeout

    def begin(
        self,
        name: str,
        start: Callable[[Channel], Iterable[Any]],
        *,
        tensors: Sequence[Tensor] = (),
        outputs: Sequence[Tensor] = (),
        detail: str = "",
        finish: Callable[[], None] | None = None,
    ) -> Work:
        """Begin a collective: `start` gets a channel and returns MPI's requests, or yields them one after the other.

        `tensors` and `detail` are what must agree between ranks. `finish` runs when the requests are complete.
        """
        number = self.world.counts[self._name] = self.world.counts[self._name] + 1
        operation = Operation(name, number, self._name, tensors, detail)
        self._announce(operation)
        for listener in listeners:
            listener(operation)
        if get_debug_level() is DebugLevel.DETAIL:
            compare(self, operation)
        record = Record(self, operation, tensors)
        requests = start(Channel(self.comm, self.pairs, number % _TAGS))
        return Work(self, operation, requests, outputs, finish, record, keep=start)

    def begin_message(
        self, name: str, start: Callable[[Any], Any], tensor: Tensor, peer: int | None, finish: Callable[[], None] | None = None
    ) -> Work:
        """Begin to send or receive; `peer` is a rank of this group, None for any."""
        self._messages += 1
        whom = "any rank" if peer is None else f"rank {self.ranks[peer]}"
        operation = Operation(name, self._messages, self._name, [tensor], f"with {whom}")
        self._announce(operation)
        record = Record(self, operation, [tensor], "recvAnySource" if peer is None else "")
        others = [rank for rank in self.ranks if rank != self.world.rank] if peer is None else [self.ranks[peer]]
        return Work(
            self, operation, [start(self.comm)], [tensor], finish, record, peers=others, status=mpi.load().Status(), keep=start,
        )  # fmt: skip

    def _announce(self, operation: Operation) -> None:
        """Note an operation as the last one begun.

        ValueError in a group that was destroyed. DistBackendError after an operation that failed: ranks are no longer in step.
        """
        if self.destroyed:
            raise ValueError(f"rank {self.world.rank}: {operation} cannot begin: its group has been destroyed")
        if self.fault is not None:
            raise DistBackendError(f"{operation} cannot begin after an earlier failure: {self.fault}") from self.fault
        self.world.activity.last = operation

    def __repr__(self) -> str:
        return f"<ProcessGroup {self._name!r} on mpi: rank {self._rank} of {self.size()}, ranks {list(self.ranks)}>"
