"""`torch.distributed`: programs of several processes, on MPI.

Start a program with `rushlight launch -n 4 train.py`, or `mpirun -n 4 rushlight exec train.py`. Each process is a rank; ranks
exchange tensors by collectives, which all ranks of a group call.

    import rushlight.distributed as dist

    dist.init_process_group()
    x = rushlight.ones(3)
    dist.all_reduce(x)  # x holds the number of ranks
    dist.destroy_process_group()

MPI is the extra `mpi`: `pip install rushlight[mpi]`. Without it `is_available()` is False.
"""

from __future__ import annotations

from importlib import import_module

from rushlight.core.lazy_module import lazy_names
from rushlight.distributed.backends import (
    Backend,
    get_default_backend_for_device,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
)
from rushlight.distributed.barriers import barrier, monitored_barrier
from rushlight.distributed.collectives import all_reduce, all_reduce_coalesced, broadcast, reduce
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.engine.comparison import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from rushlight.distributed.engine.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from rushlight.distributed.engine.reduce_op import ReduceOp, supports_complex
from rushlight.distributed.engine.reduce_op import premul_sum as _make_nccl_premul_sum
from rushlight.distributed.engine.work import Work
from rushlight.distributed.gathers import all_gather, all_gather_coalesced, all_to_all, gather, reduce_scatter, scatter
from rushlight.distributed.groups import (
    GroupMember,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_initialized,
)
from rushlight.distributed.initialization import destroy_process_group, init_process_group
from rushlight.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from rushlight.distributed.options import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from rushlight.distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from rushlight.distributed.process_group import ProcessGroup
from rushlight.distributed.rendezvous import register_rendezvous_handler, rendezvous
from rushlight.distributed.single_tensors import all_gather_into_tensor, all_to_all_single, reduce_scatter_tensor
from rushlight.distributed.stores import FileStore, HashStore, PrefixStore, Store, TCPStore
from rushlight.distributed.subgroups import new_group, new_subgroups, new_subgroups_by_enumeration, split_group

_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor
all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor
reduce_op = ReduceOp

_lazy_name, __dir__ = lazy_names(
    globals(),
    {
        "rushlight.distributed.device_mesh": ("DeviceMesh", "init_device_mesh"),
        "rushlight.distributed.reducer.buckets": ("GradBucket",),
    },
)
_MODULES = ("algorithms", "checkpoint", "device_mesh", "distributed_c10d", "fsdp", "nn", "optim", "rpc", "tensor")


def __getattr__(name: str) -> object:
    return import_module(f"{__name__}.{name}") if name in _MODULES else _lazy_name(name)
