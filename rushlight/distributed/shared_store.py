"""The store that all ranks share, for programs that ask for one."""

from __future__ import annotations

import socket

from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.groups import default_group, registry
from rushlight.distributed.objects import broadcast_object_list
from rushlight.distributed.stores import HashStore, Store, TCPStore


def default_store() -> Store:
    """Return the store of all ranks: the one given to init_process_group, or else one that rank 0 serves.

    All ranks must call this the first time.
    """
    members = default_group()
    if registry.store is None:
        registry.store = HashStore() if members.size() == 1 else _served_by_rank_0(members)
        registry.store.set_timeout(members.timeout)
    return registry.store


def _served_by_rank_0(members: ProcessGroup) -> Store:
    place = [None, None]
    server = None
    if members.rank() == 0:
        server = TCPStore(socket.gethostname(), 0, is_master=True, wait_for_workers=False, timeout=members.timeout)
        place = [server.host, server.port]
    broadcast_object_list(place, 0)
    host, port = place
    return server or TCPStore(host, port, wait_for_workers=False, timeout=members.timeout)
