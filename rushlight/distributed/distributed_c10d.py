"""`torch.distributed.distributed_c10d`: the functions of `torch.distributed` under the name of their module."""

from __future__ import annotations

from rushlight.core.device import CPU, device
from rushlight.distributed import *  # noqa: F403
from rushlight.distributed import (
    Backend,
    DebugLevel,
    GroupMember,
    P2POp,
    PrefixStore,
    ProcessGroup,
    ReduceOp,
    Store,
    Work,
    default_pg_timeout,
    is_initialized,
)

__all__ = [
    "Backend", "DebugLevel", "GroupMember", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "Work",
    "default_pg_timeout", "is_initialized",
]  # fmt: skip


def _rank_not_in_group(group: ProcessGroup | int | None) -> bool:
    """Return whether this process is not in a group."""
    return group == GroupMember.NON_GROUP_MEMBER


def _get_pg_default_device(group: ProcessGroup | None = None) -> device:
    """Return the device whose tensors a group sends: the CPU."""
    return CPU


def _get_process_group_name(group: ProcessGroup) -> str:
    """Return a group's name."""
    return group.group_name
