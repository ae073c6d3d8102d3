"""Joining and leaving the group of all ranks."""

from __future__ import annotations

import warnings
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse

from rushlight.core.device import device, present_device
from rushlight.distributed import adoption, environment, rendezvous
from rushlight.distributed.backends import Backend, check_backend, name_asked_for
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.engine import endings, mpi
from rushlight.distributed.engine.world import World
from rushlight.distributed.groups import GroupMember, registry, resolve
from rushlight.distributed.process_group import ProcessGroup
from rushlight.distributed.stores import Store


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: device | int | None = None,
) -> None:
    """Join the group of all ranks, which mpirun, Slurm or `rushlight launch` started; all ranks must call it.

    `backend` is "mpi"; None and "gloo" mean it too. `timeout`, 30 minutes unless given, is how long operations wait for
    missing ranks. `rank` and `world_size` must be MPI's where they are given.

    Processes that the program started itself on one machine, such as those of `multiprocessing.spawn`, become ranks by `rank`
    and `world_size`, or RANK and WORLD_SIZE. They meet where `init_method` ("env://", which reads MASTER_ADDR and MASTER_PORT,
    "tcp://HOST:PORT", or "file://PATH") or `store` says.

        import rushlight.distributed as dist

        dist.init_process_group()
        x = rushlight.ones(3) * dist.get_rank()
        dist.all_reduce(x)  # the sum over all ranks
        dist.destroy_process_group()

    A program that was started without a launcher is the only rank of its world. RuntimeError: mpi4py or MPI is missing; the
    backend is "nccl" or another that is not there; a launcher of another MPI was used; `init_method` is of an unknown kind.
    ValueError: called twice; `rank` or `world_size` are not MPI's; variables of `init_method` are not set. DistBackendError:
    not all ranks come in time.
    """
    if registry.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    check_backend(backend)
    _check_method(init_method, store)
    if pg_options is not None:
        raise ValueError("init_process_group: MPI takes no pg_options")
    check_device(device_id)
    limit = checked_timeout(timeout)
    world = registry.world or _new_world(limit, init_method, store, rank, world_size)
    _check_given(world, rank, world_size)
    _say_once(backend, world)
    registry.default = registry.by_name["0"] = ProcessGroup(world, world.comm, range(world.size), "0", limit, "default_pg")
    registry.default.backend_name = name_asked_for(backend) or Backend.MPI
    registry.store = store


def _new_world(limit: timedelta, method: str | None, store: Store | None, rank: int, size: int) -> World:
    found = environment.launched()
    if found is None or found.by == "torchrun":
        rank, size = rendezvous.rank_and_size(method, rank, size)
        if size > 1:
            adoption.join(store or rendezvous.meeting_place(method, rank, size, limit), rank, size, limit)
    count = mpi.start().COMM_WORLD.size
    if found is not None and found.by != "torchrun" and found.size > 1 == count:
        raise RuntimeError(
            f"{found.by} started {found.size} processes, but MPI takes each for a world of its own: start the program by "
            f"`rushlight launch -n {found.size} program.py`, by the mpirun of this MPI, or by `srun --mpi=pmix`"
        )
    environment.set_names_of_torchrun()
    registry.world = World(limit.total_seconds())
    endings.install(registry.world)
    return registry.world


def _check_method(method: str | None, store: Store | None) -> None:
    if method is not None and store is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    scheme = urlparse(method or "env://").scheme
    if not rendezvous.is_known(scheme):
        raise RuntimeError(f"No rendezvous handler for {scheme}://, which init_method={method!r} asks for")


def check_device(device_id: device | int | None) -> None:
    """Raise unless a device is the CPU or a GPU that is there; a number is a GPU's."""
    if device_id is not None and present_device(device_id).type not in ("cpu", "cuda"):
        raise ValueError(f"device_id is {device_id}, but collectives take tensors on the CPU or a GPU")


def _check_given(world: World, rank: int, world_size: int) -> None:
    if world_size not in (-1, world.size):
        raise ValueError(f"world_size is {world_size}, but MPI started {world.size} ranks: leave it out, or start as many")
    if rank not in (-1, world.rank):
        raise ValueError(f"rank is {rank}, but MPI made this process rank {world.rank}: leave it out")


def checked_timeout(timeout: timedelta | None) -> timedelta:
    if timeout is None:
        return default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _say_once(backend: str | None, world: World) -> None:
    if backend is not None and Backend.MPI not in backend.lower() and backend not in registry.said and world.rank == 0:
        registry.said.add(backend)
        way = "; tensors on GPUs go through the CPU's memory" if Backend.NCCL in backend.lower() else ""
        warnings.warn(f"the backend {backend!r} is MPI here, for which its name stands too{way}", UserWarning, stacklevel=3)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; None means all groups, after which `init_process_group` can be called anew.

    ValueError for a group that this process is not in; nothing for one that it never was in. AssertionError where there are no
    groups.
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if group is None and registry.default is None:
        raise AssertionError("there is no process group to destroy")
    found = resolve(group)
    if found is None or found.group_name not in registry.by_name:
        raise ValueError("Invalid process group specified or has been destroyed.")
    for each in registry.by_name.values() if found is registry.default else [found]:
        each.destroyed = True
    if found is registry.default:
        registry.by_name.clear()
        registry.default = registry.store = None
    else:
        del registry.by_name[found.group_name]


