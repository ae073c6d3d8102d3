"""`torch.distributed` on one process: programs ask whether several take part, and go on alone.

`is_available()` is False. The names of groups, operations and collectives are here so that imports and annotations resolve;
using one raises NotImplementedError by name.
"""

from __future__ import annotations

import enum
import os

from rushlight.core.absent import absent_class, absent_function

_HINT = "is_available() is False, so that programs can go on with one process"


def is_available() -> bool:
    """Return whether processes can work together: not yet."""
    return False


def is_initialized() -> bool:
    """Return whether a group of processes has been set up: never."""
    return False


def is_backend_available(backend: str) -> bool:
    """Return whether a way of communicating is there: none is."""
    return False


def is_mpi_available() -> bool:
    """Return whether MPI is there: not yet."""
    return False


def is_nccl_available() -> bool:
    """Return whether NCCL is there: never."""
    return False


def is_gloo_available() -> bool:
    """Return whether Gloo is there: never."""
    return False


def is_ucc_available() -> bool:
    """Return whether UCC is there: never."""
    return False


def is_xccl_available() -> bool:
    """Return whether XCCL is there: never."""
    return False


def is_torchelastic_launched() -> bool:
    """Return whether torchrun started this process, which it says by TORCHELASTIC_RUN_ID."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_rank(group: object = None) -> int:
    """Return the number of this process in its group; ValueError, as there is no group."""
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def get_world_size(group: object = None) -> int:
    """Raise ValueError, as there is no group whose size could be returned."""
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


def get_backend(group: object = None) -> str:
    """Raise ValueError, as there is no group whose backend could be returned."""
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


class RedOpType(enum.IntEnum):
    """The operations that reduce the values of several processes to one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9


ReduceOp = RedOpType


class Backend(str):
    """The name of a way of communicating."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"


ProcessGroup = absent_class("torch.distributed.ProcessGroup", _HINT)
Work = absent_class("torch.distributed.Work", _HINT)
Store = absent_class("torch.distributed.Store", _HINT)
TCPStore = absent_class("torch.distributed.TCPStore", _HINT, Store)
FileStore = absent_class("torch.distributed.FileStore", _HINT, Store)
HashStore = absent_class("torch.distributed.HashStore", _HINT, Store)
PrefixStore = absent_class("torch.distributed.PrefixStore", _HINT, Store)
P2POp = absent_class("torch.distributed.P2POp", _HINT)
DeviceMesh = absent_class("torch.distributed.DeviceMesh", _HINT)
GradBucket = absent_class("torch.distributed.GradBucket", _HINT)


class GroupMember:
    """The values that say which group a process is in."""

    WORLD = None
    NON_GROUP_MEMBER = -100


class group:  # noqa: N801  (torch's name)
    """The group of all processes, of which there is none."""

    WORLD = None


class DistError(RuntimeError):
    """An error of distributed communication."""


class DistBackendError(DistError):
    """An error of a backend."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of the store that processes share."""


_COLLECTIVES = (
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather",
    "gather_object", "get_group_rank", "get_global_rank", "get_process_group_ranks", "init_device_mesh",
    "init_process_group", "irecv", "isend", "monitored_barrier", "new_group", "new_subgroups", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
)  # fmt: skip
globals().update({name: absent_function(f"torch.distributed.{name}", _HINT) for name in _COLLECTIVES})


def __getattr__(name: str):
    if name in ("algorithms", "checkpoint", "device_mesh", "distributed_c10d", "fsdp", "nn", "optim", "tensor"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
