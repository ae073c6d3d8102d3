"""Work: an operation that has begun and may not be complete yet."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rushlight.autograd.profiler import section
from rushlight.core.tensor import Tensor
from rushlight.distributed.engine import faults, mpi
from rushlight.distributed.engine.errors import DistBackendError
from rushlight.distributed.engine.operation import Operation
from rushlight.distributed.engine.record import Record
from rushlight.futures import Future

if TYPE_CHECKING:
    from rushlight.distributed.engine.process_group import ProcessGroup

_SLICE = 0.05  # seconds of testing between two looks for missing ranks


class Work:
    """An operation that has begun.

        work = dist.all_reduce(tensor, async_op=True)
        ...                   # calculate meanwhile, without touching `tensor`
        work.wait()           # from here on `tensor` holds the sum

    `wait` raises DistBackendError when a rank is missing: its process ended, it left the program, or the time is up.
    """

    def __init__(
        self,
        group: ProcessGroup,
        operation: Operation,
        requests: Iterable[Any],
        outputs: Sequence[Tensor] = (),
        finish: Callable[[], None] | None = None,
        record: Record | None = None,
        *,
        peers: Sequence[int] | None = None,
        status: Any = None,
        keep: object = None,
    ) -> None:
        self._group, self.operation = group, operation
        self._requests, self._finish = iter(requests), finish
        self._request = next(self._requests, None)
        self._outputs = list(outputs)
        self._peers, self._record = peers, record
        self._keep = keep  # the owner of the memory that MPI reads and writes
        self._status = status
        self._lock = threading.RLock()
        self._done = False
        self._error: BaseException | None = None
        self._future: Future | None = None
        self.limit: timedelta | None = None
        """How long `wait` waits, unless that is the group's time."""

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation is complete and its outputs can be read; return True.

        DistBackendError: a rank is missing, after `timeout`, its own time or the group's at the latest; or MPI failed.
        """
        if not self._done:
            self._wait((timeout or self.limit or self._group.timeout).total_seconds())
        if self._error is not None:
            raise self._error
        return True

    def _wait(self, seconds: float) -> None:
        world, end = self._group.world, time.monotonic() + seconds
        with world.activity.waiting(self.operation), section("mpi:wait"):
            while not self.advance(min(_SLICE, max(end - time.monotonic(), 0))):
                error = self._missing(seconds if time.monotonic() >= end else None)
                if error is not None:
                    self._fail(error)
                    return

    def _missing(self, waited: float | None) -> DistBackendError | None:
        """Return the error of ranks that are missing: those that cannot come and, after the time `waited`, all."""
        ranks = self._group.ranks if self._peers is None else self._peers
        error = faults.missing_for_good(self._group.world, self.operation, ranks, collective=self._peers is None)
        if error is None and waited is not None:
            return faults.timed_out(self._group.world, self.operation, ranks, waited)
        return error

    def advance(self, seconds: float, wait: bool = True) -> bool:
        """Test for so long; return whether the operation is complete. Without `wait`, False while another thread tests."""
        if self._done:
            return True
        if not self._lock.acquire(blocking=wait):
            return False
        try:
            return self._done or self._advance(seconds)
        finally:
            self._lock.release()

    def _advance(self, seconds: float) -> bool:
        try:
            while self._request is not None:
                if not mpi.poll(self._request, seconds, self._status):
                    return False
                self._request = next(self._requests, None)
            if self._finish is not None:
                self._finish()
        except BaseException as error:  # MPI failed, or a later step: the thread that waits gets the error
            self._error = self._explained(error)
        self._complete()
        return True

    def _explained(self, error: BaseException) -> BaseException:
        self._group.world.failed = True
        return DistBackendError(
            f"rank {self._group.world.rank}: {self.operation} failed: {error}. Set TORCH_DISTRIBUTED_DEBUG=DETAIL to have "
            "ranks compare what they call"
        )

    def _fail(self, error: BaseException) -> None:
        """Give the operation up, unless it is complete by now. MPI may still write to its memory, which is kept."""
        with self._lock:
            if self._done:
                return
            self._error = self._group.fault = error
            self._group.world.lost.append(self)
            self._complete()

    def _complete(self) -> None:
        self._done, self._finish = True, None
        if self._record is not None:
            self._record.finish()
        if self._error is None:
            self._keep = None
        if self._future is not None:
            self._settle(self._future)

    def _settle(self, future: Future) -> None:
        if self._error is None:
            future.set_result(self._outputs)
        else:
            future.set_exception(self._error)

    def together(self, others: Sequence[Work]) -> Work:
        """Return a Work that is complete when this one and others of the group are."""
        operation, outputs = self.operation, [output for work in (self, *others) for output in work._outputs]
        joint = Work(self._group, operation, (), outputs, lambda: [work.wait() for work in (self, *others)], keep=others)
        joint.progress_in_background()
        return joint

    def is_collective_of(self, group: ProcessGroup) -> bool:
        """Return whether this is an operation of all ranks of a group, and not a message between two."""
        return self._group is group and self._peers is None

    def progress_in_background(self) -> None:
        """Have the background thread advance the operation."""
        self._group.world.progress.watch(self)

    def is_completed(self) -> bool:
        """Return whether the operation is complete or has failed."""
        return self.advance(0, wait=False)

    def is_success(self) -> bool:
        """Return whether the operation is complete and did not fail."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """Return the error of an operation that failed."""
        return self._error

    def synchronize(self) -> None:
        """Wait, as `wait` does."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait, as `wait` does: the CPU has no streams."""
        self.wait()

    def result(self) -> list[Tensor]:
        """Return the outputs, after waiting for them."""
        self.wait()
        return self._outputs

    def get_future(self) -> Future:
        """Return a future of the outputs, a list of tensors; callbacks run in the thread that finds the operation complete."""
        with self._lock:
            if self._future is None:
                self._future = Future()
                if self._done:
                    self._settle(self._future)
                else:
                    self._group.world.progress.watch(self)
            return self._future

    def source_rank(self) -> int:
        """Return the rank that a received message came from. RuntimeError for other operations."""
        if self._status is None:
            raise RuntimeError(f"{self.operation} received no message: only recv and irecv have a source rank")
        return self._group.ranks[self._status.Get_source()]

    _source_rank = source_rank

    def __repr__(self) -> str:
        state = "failed" if self._error else "complete" if self._done else "outstanding"
        return f"<Work {self.operation}: {state}>"

