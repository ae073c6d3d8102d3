"""The process groups of this process, and the numbers of ranks in them."""

from __future__ import annotations

import os
import warnings

from rushlight.distributed import environment
from rushlight.distributed.backends import Backend
from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.world import World
from rushlight.distributed.stores import Store

UNINITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class Registry:
    """The groups of this process. The world outlives them: MPI can be initialized once."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.default: ProcessGroup | None = None
        self.by_name: dict[str, ProcessGroup] = {}
        self.made = 0  # calls of new_group: all ranks count alike
        self.store: Store | None = None
        self.said: set[str] = set()  # names of backends that a message was about


registry = Registry()


class _OfAll(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802  (torch's name)
        """The group of all ranks; None before init_process_group."""
        return registry.default


class group(metaclass=_OfAll):  # noqa: N801  (torch's name)
    """The group of all ranks, `group.WORLD`."""


class GroupMember(metaclass=_OfAll):
    """The values that say which group a process is in: WORLD is the group of all, NON_GROUP_MEMBER none."""

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Return whether `init_process_group` was called."""
    return registry.default is not None


def default_group() -> ProcessGroup:
    """Return the group of all ranks. ValueError before init_process_group; RuntimeError without mpi4py."""
    if registry.default is None:
        raise ValueError(UNINITIALIZED if mpi.is_present() else f"{UNINITIALIZED} {mpi.HOW_TO_GET}")
    return registry.default


def resolve(group: ProcessGroup | str | int | None) -> ProcessGroup | None:
    """Return a group; None stands for all ranks. Returns None for a group that this process is not in."""
    if group is None:
        return default_group()
    if isinstance(group, str):
        return group_by_name(group)
    return None if not isinstance(group, ProcessGroup) else group


def group_by_name(name: str) -> ProcessGroup:
    """Return the group of a name. ValueError where this process is in none of it."""
    found = registry.by_name.get(name)
    if found is None:
        raise ValueError(f"this process is in no process group named {name!r}")
    return found


def member_of(group: ProcessGroup | str | int | None, caller: str) -> ProcessGroup | None:
    """Return the group for a collective; None, with a warning, where this process is not in it."""
    found = resolve(group)
    if found is None:
        warnings.warn(
            f"Running {caller} on global rank {default_group().rank()} which does not belong to the given group.",
            UserWarning, stacklevel=3,
        )  # fmt: skip
    return found


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return this process's number in a group, -1 where it is not in it. ValueError before init_process_group."""
    found = resolve(group)
    return -1 if found is None else found.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks of a group, -1 where this process is not in it. ValueError before init_process_group."""
    found = resolve(group)
    return -1 if found is None else found.size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """Return "mpi", or the name that was asked for, "gloo" or "nccl": MPI does the work of these, too.

    ValueError before init_process_group, or where this process is not in the group.
    """
    found = resolve(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return Backend(found.backend_name)


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Return the backend of each kind of device, such as "cpu:mpi"."""
    return f"cpu:{get_backend(group)}"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return this process's number on its machine, by LOCAL_RANK or the launcher, or else `fallback_rank`.

    RuntimeError: nothing says, and there is no `fallback_rank`.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    found = environment.launched()
    if found is not None:
        return found.local_rank
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow get_node_local_rank to work"
        )
    return int(fallback_rank)


def get_pg_count() -> int:
    """Return how many groups this process is in."""
    return len(registry.by_name)


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the world's numbers of a group's ranks, in the group's order."""
    found = resolve(group)
    if found is None:
        raise ValueError("this process is not in the process group")
    return list(found.ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the number in a group of the world's rank `global_rank`. ValueError where it is not in the group."""
    found = resolve(group)
    if found is None or global_rank not in found.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return found.ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the world's number of the rank `group_rank` of a group. ValueError for a number that the group does not have."""
    found = resolve(group)
    if found is None or not 0 <= group_rank < found.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return found.ranks[group_rank]


def root_of(
    group: ProcessGroup, rank: int | None, group_rank: int | None, name: str, default: int | None = None
) -> int:
    """Return the number in the group of a root that is given as the world's rank or as the group's.

    `default` is the world's rank where neither is given. ValueError: both are given, or neither and there is no default, or
    the rank is not in the group.
    """
    if rank is None and group_rank is None:
        rank = default
    if (rank is None) == (group_rank is None):
        raise ValueError(f"Must specify either {name} or group_{name}, and not both")
    if group_rank is None:
        return get_group_rank(group, rank)
    get_global_rank(group, group_rank)
    return group_rank


