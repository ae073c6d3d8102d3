"""Options of a process group's methods: objects with attributes, as `AllreduceOptions().reduceOp`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from rushlight.core.device import device
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp

UNSET = timedelta(milliseconds=-1)
"""A time that stands for the group's."""


@dataclass
class _Options:
    """What all have: how long the operation waits for missing ranks, and whether its caller waits for it later.

    A method returns a Work in any case, so `asyncOp` changes nothing.
    """

    timeout: timedelta = field(default=UNSET, kw_only=True)
    asyncOp: bool = field(default=True, kw_only=True)  # noqa: N815  (torch's name)


@dataclass
class AllreduceOptions(_Options):
    """The operation of `ProcessGroup.allreduce`."""

    reduceOp: RedOpType | ReduceOp = ReduceOp.SUM  # noqa: N815


@dataclass
class AllreduceCoalescedOptions(AllreduceOptions):
    """The operation of `ProcessGroup.allreduce_coalesced`."""


@dataclass
class ReduceScatterOptions(AllreduceOptions):
    """The operation of `ProcessGroup.reduce_scatter`."""


@dataclass
class BroadcastOptions(_Options):
    """The rank of the group, and which of its tensors, that `ProcessGroup.broadcast` copies."""

    rootRank: int = 0  # noqa: N815
    rootTensor: int = 0  # noqa: N815


@dataclass
class ReduceOptions(BroadcastOptions):
    """The operation of `ProcessGroup.reduce`, and the rank of the group that gets the result."""

    reduceOp: RedOpType | ReduceOp = ReduceOp.SUM  # noqa: N815


@dataclass
class GatherOptions(_Options):
    """The rank of the group that `ProcessGroup.gather` brings tensors to."""

    rootRank: int = 0  # noqa: N815


@dataclass
class ScatterOptions(GatherOptions):
    """The rank of the group that `ProcessGroup.scatter` takes tensors from."""


@dataclass
class AllgatherOptions(_Options):
    """The time of `ProcessGroup.allgather`."""


@dataclass
class AllToAllOptions(_Options):
    """The time of `ProcessGroup.alltoall`."""


@dataclass
class BarrierOptions(_Options):
    """The time of `ProcessGroup.barrier`; `device_ids` are GPUs', which it refuses."""

    device_ids: list[int] = field(default_factory=list)
    device: device | None = None
