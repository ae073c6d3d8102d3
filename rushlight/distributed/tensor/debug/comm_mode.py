"""CommDebugMode: counts of the collectives that begin in a context."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rushlight.distributed.engine import operation
from rushlight.distributed.functional_operators import older

_COUNTED = {
    "all_reduce": older.all_reduce,
    "all_gather": older.all_gather_into_tensor,
    "all_gather_into_tensor": older.all_gather_into_tensor,
    "all_gather_coalesced": older.all_gather_into_tensor_coalesced,
    "all_reduce_coalesced": older.all_reduce_coalesced,
    "all_to_all": older.all_to_all_single,
    "all_to_all_single": older.all_to_all_single,
    "broadcast": older.broadcast,
    "reduce_scatter": older.reduce_scatter_tensor,
    "reduce_scatter_tensor": older.reduce_scatter_tensor,
}


class CommDebugMode:
    """Context that counts the collectives that this rank begins, by the operators of `torch.ops.c10d_functional`.

        with CommDebugMode() as comms:
            model(x).sum().backward()
        comms.get_comm_counts()  # {c10d_functional.all_reduce: 2}

    A collective counts alike whether a distributed tensor, a function of `torch.distributed` or an operator begins it.
    """

    def __init__(self) -> None:
        self.comm_counts: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> CommDebugMode:
        self.comm_counts.clear()
        operation.listeners.append(self._count)
        return self

    def __exit__(self, *error: object) -> None:
        operation.listeners.remove(self._count)

    def _count(self, begun: operation.Operation) -> None:
        counted = _COUNTED.get(begun.name)
        if counted is not None:
            self.comm_counts[counted] += 1

    def get_comm_counts(self) -> dict[Any, int]:
        """Return how often each kind of collective began; kinds that did not count as 0."""
        return self.comm_counts

    def get_total_counts(self) -> int:
        """Return how many collectives began."""
        return sum(self.comm_counts.values())
