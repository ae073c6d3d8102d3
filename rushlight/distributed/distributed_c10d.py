"""`torch.distributed.distributed_c10d`: the functions of `torch.distributed` under the name of their module."""

from __future__ import annotations

from rushlight.core.device import CPU, device
from rushlight.distributed import *  # noqa: F403
from rushlight.distributed import (
    Backend,
    GroupMember,
    P2POp,
    PrefixStore,
    ProcessGroup,
    ReduceOp,
    Store,
    Work,
    _make_nccl_premul_sum,
    groups,
    shared_store,
)
from rushlight.distributed.arguments import check_tensor as _check_single_tensor
from rushlight.distributed.arguments import check_tensors as _check_tensor_list
from rushlight.distributed.engine.reduce_op import RedOpType
from rushlight.distributed.options import AllgatherOptions

_get_default_group = groups.default_group
_get_default_store = shared_store.default_store
_resolve_process_group = groups.group_by_name

__all__ = [
    "AllgatherOptions", "Backend", "GroupMember", "P2POp", "PrefixStore", "ProcessGroup", "RedOpType", "ReduceOp", "Store",
    "Work", "_check_single_tensor", "_check_tensor_list", "_make_nccl_premul_sum",
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
