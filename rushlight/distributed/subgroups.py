"""Groups of some of the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rushlight.core.device import device
from rushlight.distributed import environment
from rushlight.distributed.backends import check_backend, name_asked_for
from rushlight.distributed.engine.operation import Operation
from rushlight.distributed.engine.work import Work
from rushlight.distributed.groups import GroupMember, default_group, registry, resolve
from rushlight.distributed.initialization import check_device, checked_timeout
from rushlight.distributed.process_group import ProcessGroup

_MEETING_TAG = 1


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: device | None = None,
    sort_ranks: bool = True,
) -> ProcessGroup | int | None:
    """Return a new group of `ranks` (all, unless given), numbered in their order; with `sort_ranks` in ascending order.

    All ranks must call it, in the same order; with `use_local_synchronization` only those of the group. Ranks that are not in
    it get `GroupMember.NON_GROUP_MEMBER`, or None with `use_local_synchronization`. `timeout` is that of the group of all ranks
    unless given. ValueError for ranks that the world does not have, or that are given twice.
    """
    parent = default_group()
    if backend is not None:
        check_backend(backend)
    if pg_options is not None:
        raise ValueError("new_group: MPI takes no pg_options")
    check_device(device_id)
    members = _checked_ranks(parent, ranks, sort_ranks)
    made = _made(parent, members, timeout, group_desc, use_local_synchronization)
    if isinstance(made, ProcessGroup):
        made.backend_name = name_asked_for(backend) or parent.backend_name
    return made


def _made(
    parent: ProcessGroup, members: list[int], timeout: timedelta | None, desc: str | None, among_members: bool
) -> ProcessGroup | int | None:
    if among_members:
        return _among_members(parent, members, timeout, desc)
    registry.made += 1
    parent.begin("new_group", lambda channel: [channel.comm.Ibarrier()], detail=f"ranks {members}").wait()
    if parent.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    return _make(parent, members, str(registry.made), timeout, desc)


def _among_members(
    parent: ProcessGroup, members: list[int], timeout: timedelta | None, desc: str | None
) -> ProcessGroup | None:
    """Return the group of members, who alone call this; None elsewhere."""
    if parent.rank() not in members:
        return None
    stem = f"local-{'-'.join(map(str, members))}-"  # ends in a dash: [1, 2] is no beginning of [1, 20]
    name = f"{stem}{sum(each.startswith(stem) for each in registry.by_name)}"
    _gather_members(parent, members, name)
    return _make(parent, members, name, timeout, desc)


def _gather_members(parent: ProcessGroup, members: list[int], name: str) -> None:
    """Wait until all members are here: all but the first send it an empty message, and wait for its answer."""
    operation, first = Operation("new_group", 0, name, [], f"ranks {members}"), members[0]
    others = [rank for rank in members if rank != first]
    nothing, tag = bytearray(0), _MEETING_TAG
    steps = [("Irecv", "Isend"), ("Isend", "Irecv")][parent.rank() != first]
    for step in steps:
        whom = others if parent.rank() == first else [first]
        requests = [getattr(parent.control, step)(nothing, rank, tag) for rank in whom]
        Work(parent, operation, requests, peers=others if parent.rank() == first else [first]).wait()


def _make(
    parent: ProcessGroup, members: list[int], name: str, timeout: timedelta | None, desc: str | None
) -> ProcessGroup:
    """Make the communicator of members, who have met, and register the group."""
    comm = parent.comm.Create_group(parent.comm.Get_group().Incl(members))
    limit = parent.timeout if timeout is None else checked_timeout(timeout)
    made = registry.by_name[name] = ProcessGroup(parent.world, comm, members, name, limit, desc or "")
    return made


def _checked_ranks(parent: ProcessGroup, ranks: Sequence[int] | None, in_order: bool) -> list[int]:
    if ranks is None:
        return list(parent.ranks)
    members = [int(rank) for rank in ranks]
    if in_order:
        members.sort()
    if len(set(members)) < len(members):
        raise ValueError(f"new_group: a rank is given twice in {members}")
    if not members or not all(0 <= rank < parent.size() for rank in members):
        raise ValueError(
            f"The new group's rank should be within the world_size set by init_process_group: got {members}, of "
            f"{parent.size()} ranks"
        )
    return members


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup | int]]:
    """Split the ranks into groups of `group_size` consecutive ones; return this rank's group and the list of all.

    `group_size` is the number of ranks on this machine unless given. ValueError: the number of ranks is no multiple of it.
    """
    whole = resolve(group)
    if whole is None:
        raise ValueError("this process is not in the process group")
    found = environment.launched()
    size = group_size if group_size is not None else found.local_size if found else 1
    if size <= 0 or size > whole.size():
        raise ValueError(f"The arg 'group_size' ({size}) must be positive and must not exceed the world size ({whole.size()})")
    if whole.size() % size:
        raise ValueError(f"The world size ({whole.size()}) must be divisible by 'group_size={size}'")
    parts = [list(whole.ranks[start : start + size]) for start in range(0, whole.size(), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup, list[ProcessGroup | int]]:
    """Make one group of each list of ranks; return this rank's group and the list of all.

    ValueError: there are no lists, or a rank is in two.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    everyone = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(everyone)) < len(everyone):
        raise ValueError(f"a rank is in two subgroups of {list(map(list, ranks_per_subgroup_list))}")
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    mine = next((each for each in made if isinstance(each, ProcessGroup)), None)
    return mine, made  # type: ignore[return-value]


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Split a group by lists of its own ranks' numbers; return the part that this rank is in, None for none."""
    parent = resolve(parent_pg)
    if parent is None or not split_ranks:
        raise ValueError("split_group: a group that this process is in and lists of its ranks are needed")
    mine = next((ranks for ranks in split_ranks if parent.rank() in ranks), None)
    if mine is None:
        return None
    members = [parent.ranks[rank] for rank in mine]
    return new_group(  # type: ignore[return-value]
        members, timeout, backend, pg_options, use_local_synchronization=True, group_desc=group_desc
    )
